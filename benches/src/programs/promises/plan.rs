//! Which trials the promises need.

use super::promise::{Claim, Promise, Subject};
use crate::programs::harness::plan::{Effort, Plan};
use crate::report::Mode;
use crate::workloads::cell::Probe;
use std::time::Duration;

/// The share of this harness in `cargo bench`, in `cargo bench -- --quick`, or in `cargo test`.
fn effort(mode: Mode) -> Effort {
    let of = |seconds, rounds, max_rounds, windows_ms: (u64, u64)| Effort {
        budget: Duration::from_secs(seconds),
        rounds,
        max_rounds,
        min_window_ms: windows_ms.0,
        max_window_ms: windows_ms.1,
        usual_window_ms: (mode == Mode::Full).then_some(200),
    };
    match mode {
        Mode::Full => of(250, 3, 9, (60, 300)),
        Mode::Quick => of(21, 3, 5, (30, 100)),
        Mode::Smoke => of(2, 1, 1, (5, 5)),
    }
}

/// What `promises` need, each trial once a round. A window or a number of rounds that is given is
/// kept.
pub fn plan(
    mode: Mode,
    promises: &[Promise],
    window_ms: Option<u64>,
    rounds: Option<u32>,
    iterations_per_us: f64,
) -> Plan {
    Plan::new(effort(mode), probes(promises), Vec::new(), window_ms, rounds, iterations_per_us)
}

/// Each lock in each cell once; uncontended pairs of all locks together.
fn probes(promises: &[Promise]) -> Vec<Probe> {
    let mut probes: Vec<Probe> = Vec::new();
    let mut add = |subject: &Subject| {
        let lock = subject.lock.to_owned();
        let has = |probe: &Probe| probe.cell == subject.cell && probe.locks.contains(&lock);
        if probes.iter().any(has) {
            return;
        }
        match probes.iter_mut().find(|probe| probe.cell == subject.cell && subject.cell.is_pairs()) {
            Some(pairs) => pairs.locks.push(lock),
            None => probes.push(Probe { cell: subject.cell, locks: vec![lock] }),
        }
    };
    for promise in promises {
        match &promise.claim {
            Claim::Value(subject) => add(subject),
            Claim::Ratio { mine, others }
            | Claim::ByBestIn { mine, others, .. }
            | Claim::Share { mine, limits: others } => {
                add(mine);
                others.iter().for_each(&mut add);
            }
        }
    }
    probes
}
