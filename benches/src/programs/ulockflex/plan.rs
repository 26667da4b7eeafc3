//! What is to be measured: cells, the variants that run in each, and how often.

use crate::run::pinning::Pin;
use crate::subjects::locks::Entry;
use crate::workloads::trial::{TrialSpec, Workers};
use std::fmt;
use std::time::Duration;

/// Fewer counted runs than this say nothing about their spread; it is the least that stands in
/// Franke's column i.
pub const MIN_RUNS: usize = 5;
/// A throughput is known when the half width of its 95 % interval is at most this share of the
/// mean.
pub const WIDTH: f64 = 0.05;
/// Loops shorter than this are not timed in the counted runs: two clock reads would be part of what
/// is measured.
const TIMED_FROM_NS: u64 = 1_000;

/// A number of children and a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The contenders.
    pub workers: Workers,
    /// Mean time outside, Franke's r.
    pub non_hold_ns: u64,
    /// Mean time inside, Franke's x.
    pub hold_ns: u64,
}

impl Cell {
    /// Whether the counted runs may time each acquisition.
    pub fn timed(&self) -> bool {
        self.hold_ns + self.non_hold_ns >= TIMED_FROM_NS
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (r, x) = (Duration::from_nanos(self.non_hold_ns), Duration::from_nanos(self.hold_ns));
        write!(f, "c {}, r {r:?}, x {x:?}", self.workers.count())
    }
}

/// What these workers are called.
pub fn children_are(workers: Workers) -> &'static str {
    match workers {
        Workers::Threads(_) => "threads",
        Workers::Processes(_) => "processes",
    }
}

/// A lock as it runs: which one, how patient, how many of its acquisitions are shared.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// The lock that is measured.
    pub entry: &'static Entry,
    /// Percentage of shared acquisitions.
    pub read_share: u8,
}

/// What a run is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To warm up; its result is thrown away.
    WarmUp,
    /// To be counted.
    Count,
    /// To look closer: see [`Plan::close_look`].
    CloseLook,
}

/// The whole order.
#[derive(Debug)]
pub struct Plan {
    /// The cells, in the order of the table.
    pub cells: Vec<Cell>,
    /// What runs in each cell.
    pub variants: Vec<Variant>,
    /// Lock instances; child `i` uses lock `i % lock_count`.
    pub lock_count: u32,
    /// Not counted, at the start of each run.
    pub warmup_ms: u64,
    /// The measured window of each run.
    pub window_ms: u64,
    /// Counted runs before a row may settle.
    pub min_runs: usize,
    /// Counted runs after which it is given up.
    pub max_runs: usize,
    /// Half width of the 95 % interval at which a row settles, as a share of the mean.
    pub width: f64,
    /// Where children run.
    pub pin: Pin,
    /// Calibration of the busy work.
    pub iterations_per_us: f64,
    /// Seed of the first round.
    pub seed: u64,
}

impl Plan {
    /// The order for one run. A round has one seed for all locks, so that they meet the same
    /// sequence of times.
    pub fn spec(&self, cell: &Cell, variant: &Variant, purpose: Purpose, round: usize) -> TrialSpec {
        let closer = purpose == Purpose::CloseLook;
        let entry =
            if closer { variant.entry.metered_twin().unwrap_or(variant.entry) } else { variant.entry };
        TrialSpec {
            lock: entry.name.to_owned(),
            workers: cell.workers,
            lock_count: self.lock_count,
            hold_ns: cell.hold_ns,
            non_hold_ns: cell.non_hold_ns,
            read_share: variant.read_share,
            warmup_ms: self.warmup_ms,
            window_ms: self.window_ms,
            pin: self.pin,
            waits: closer || cell.timed(),
            iterations_per_us: self.iterations_per_us,
            seed: self.seed + round as u64,
        }
    }

    /// Whether a row needs one more run for what its counted runs cannot tell without being slowed
    /// down by it: wait times, where a loop is hardly longer than two looks at the clock, and
    /// contention, which a twin of the lock counts at the price of an atomic increment for each
    /// acquisition.
    pub fn close_look(&self, cell: &Cell, variant: &Variant) -> bool {
        !cell.timed() || variant.entry.metered_twin().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subjects::locks;

    const LONG: Cell = Cell { workers: Workers::Threads(2), non_hold_ns: 900, hold_ns: 100 };
    const SHORT: Cell = Cell { workers: Workers::Threads(2), non_hold_ns: 899, hold_ns: 100 };

    fn plan(names: &[&str]) -> Plan {
        let variant = |name: &&str| Variant { entry: locks::Entry::find(name).unwrap(), read_share: 0 };
        Plan {
            cells: vec![LONG, SHORT],
            variants: names.iter().map(variant).collect(),
            lock_count: 1,
            warmup_ms: 20,
            window_ms: 100,
            min_runs: 5,
            max_runs: 7,
            width: WIDTH,
            pin: Pin::None,
            iterations_per_us: 1000.0,
            seed: 7,
        }
    }

    #[test]
    fn all_locks_of_a_round_get_the_same_order() {
        let plan = plan(&["std", "sysv"]);
        let [a, b] = [0, 1].map(|i| plan.spec(&LONG, &plan.variants[i], Purpose::Count, 3));
        assert_eq!((a.lock.as_str(), b.lock.as_str()), ("std", "sysv"));
        assert_eq!((a.seed, a.waits), (b.seed, b.waits));
        assert_ne!(a.seed, plan.spec(&LONG, &plan.variants[0], Purpose::Count, 4).seed);
    }

    #[test]
    fn the_close_look_alone_counts_and_times_what_costs() {
        let plan = plan(&["std", "unfair", "unfair-counted"]);
        let look = |cell, i: usize, purpose| {
            let spec = plan.spec(cell, &plan.variants[i], purpose, 1);
            (spec.lock, spec.waits)
        };
        assert_eq!(look(&LONG, 1, Purpose::Count), ("unfair".into(), true));
        assert_eq!(look(&SHORT, 1, Purpose::Count), ("unfair".into(), false));
        assert_eq!(look(&SHORT, 1, Purpose::CloseLook), ("unfair-counted".into(), true));
        assert_eq!(look(&SHORT, 0, Purpose::CloseLook), ("std".into(), true));
        let needed =
            |cell| plan.variants.iter().map(|variant| plan.close_look(cell, variant)).collect::<Vec<_>>();
        assert_eq!(needed(&LONG), [false, true, false]);
        assert_eq!(needed(&SHORT), [true, true, true]);
    }
}
