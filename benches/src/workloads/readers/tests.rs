use super::*;
use crate::run::busy_work;
use crate::run::child::Task;
use crate::run::clock::Calibration;
use crate::statistics::delays::{Delay, Delays};
use crate::subjects::rwlocks::{Entry, mask};
use std::collections::HashSet;

fn spec(lock: &str, run: Run) -> Spec {
    let iterations_per_us = busy_work::calibrate();
    Spec { subject: lock.into(), run, warmup_ms: 2, window_ms: 15, iterations_per_us, seed: 1 }
}

/// Every run with one probe or period of each kind.
fn runs() -> Vec<Run> {
    let contention = |every_us, tries| Run::Contention(Some(Handlers { every_us, tries }));
    let mut runs = vec![Run::Writer, Run::TryWriter, Run::Readers, Run::Behind];
    runs.extend([Rank::Bulk, Rank::Urgent, Rank::Nested].map(Run::Reader));
    runs.extend([Run::Contention(None), contention(100_000, false), contention(100, true)]);
    for probe in [Probe::Urgent, Probe::Handler] {
        runs.extend([Run::Invariance { hold_us: 100, probe }, Run::Queue { writers: 2, probe }]);
    }
    runs
}

#[test]
fn names_are_unique() {
    let names: HashSet<String> = runs().into_iter().map(Run::name).collect();
    assert_eq!(names.len(), runs().len());
}

/// Carries it out, with a longer window if other programs left no time to the workers in a short
/// one.
fn busy(spec: &Spec) -> Outcome {
    for window_ms in [spec.window_ms, 200, 2_000, 20_000] {
        let outcome = Spec { window_ms, ..spec.clone() }.carry_out().unwrap();
        if outcome.roles.iter().flat_map(|role| &role.counts).any(|&count| count > 0) {
            return outcome;
        }
    }
    panic!("{} of {}: no operation in 20 s", spec.run.name(), spec.subject);
}

#[test]
fn every_run_goes_with_every_lock_that_can() {
    for entry in Entry::all() {
        for run in runs() {
            let spec = spec(entry.name, run);
            let can =
                (entry.handler || !run.has_handlers()) && (entry.nested || run != Run::Reader(Rank::Nested));
            let words = format!("{} of {}", run.name(), entry.name);
            // Some runs need a handler installed, and there is one type of lock to a process: see
            // `handlers_read`.
            if !can {
                let error = spec.carry_out().unwrap_err().to_string();
                assert!(error.contains("; allowed: locks that "), "{words}: {error}");
            } else if !run.has_handlers() {
                let outcome = busy(&spec);
                assert!(outcome.elapsed_s >= 0.015, "{words}");
                assert_eq!(outcome.batch.is_some(), run.duties().len() == 1, "{words}");
                let threads: usize = outcome.roles.iter().map(|role| role.counts.len()).sum();
                assert_eq!(threads, run.duties().len(), "{words}");
                for role in &outcome.roles {
                    let counted: u64 = role.counts.iter().sum();
                    assert!(role.attempts >= counted && role.fewest <= counted, "{words}: {role:?}");
                    assert_eq!(role.lock.is_some(), role.unlock.is_some(), "{words}: {role:?}");
                    assert!(role.handler.is_none());
                    assert!(role.masked.is_none() || entry.timed_mask, "{words}: {role:?}");
                }
            }
        }
    }
}

/// In one process there may be handlers of one lock at a time, hence one test. A handler may wait
/// for the whole of a window where its thread waits with signals blocked; not in all runs, though.
#[test]
fn handlers_read() {
    let locks = ["std-rw-masked", "psrw-handler", "psrw-timed"];
    for lock in locks {
        let mut ran = 0;
        for run in runs().into_iter().filter(|run| run.has_handlers()) {
            let outcome = Spec { window_ms: 60, ..spec(lock, run) }.carry_out().unwrap();
            let words = format!("{} of {lock}: {outcome:?}", run.name());
            let handlers: Vec<_> = outcome.roles.iter().filter_map(|role| role.handler).collect();
            assert!(!handlers.is_empty(), "{words}");
            for handler in handlers {
                let count = |delay: Option<Delay>| delay.map_or(0, |delay| delay.count);
                assert_eq!(count(handler.delivery), count(handler.unlock), "{words}");
                assert_eq!(handler.lost, 0, "{words}");
                ran += count(handler.lock) + handler.refused;
            }
        }
        assert!(ran > 0, "{lock}");
    }
}

#[test]
fn delays_are_summed_up() {
    let mut delays = Delays::new();
    assert_eq!(delays.delay(), None);
    (1..=1000).for_each(|ticks| delays.record(ticks));
    let mut more = Delays::new();
    more.record(5000);
    delays.add(&more);
    let delay = delays.delay().unwrap();
    assert_eq!((delay.count, delay.min, delay.max), (1001, 1, 5000));
    assert!((delay.mean - 505_500.0 / 1001.0).abs() < 1e-9);
    assert!(delay.p50.abs_diff(501) < 10 && delay.p99.abs_diff(991) < 15, "{delay:?}");
    // Nothing at all is a delay, too.
    let mut none = Delays::new();
    none.record(0);
    let delay = none.delay().unwrap();
    assert_eq!((delay.min, delay.p50, delay.max), (0, 0, 0));
}

#[test]
fn the_clock_runs() {
    let clock = Calibration::new();
    assert!(clock.per_ns > 0.0 && clock.step > 0);
    let [least, middle, most] = clock.empty;
    assert!(least <= middle && middle <= most && clock.overhead() == middle);
    assert!((clock.ns(clock.per_ns) - 1.0).abs() < 1e-9);
}

#[test]
fn masks_nest_and_the_outermost_is_timed() {
    use crate::subjects::rwlocks::mask::{Blocking, Timed};
    use ulocks_core::signal::Mask;
    let is_blocked = || {
        // SAFETY: both sets are valid; a null set changes nothing.
        unsafe {
            let mut set = std::mem::zeroed();
            libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &mut set);
            libc::sigismember(&set, mask::signal()) == 1
        }
    };
    mask::start(1.0);
    Timed::<Blocking>::raise();
    Timed::<Blocking>::raise();
    assert!(is_blocked());
    Timed::<Blocking>::lower();
    assert!(is_blocked());
    Timed::<Blocking>::lower();
    assert!(!is_blocked());
    let log = mask::take().unwrap();
    let masked = log.masked.delay().unwrap();
    assert_eq!(masked.count, 1);
    assert!(log.held_off.delay().is_none_or(|held_off| held_off.count == 1 && held_off.max <= masked.max));
}
