use super::*;
use crate::run::busy_work;
use crate::subjects::rwlocks::{Class, RwLock};
use std::mem::MaybeUninit;
use std::sync::LazyLock;

fn conditions(window_ms: u64) -> Conditions {
    static SPEED: LazyLock<f64> = LazyLock::new(busy_work::calibrate);
    let iterations_per_us = *SPEED;
    Conditions { warmup_ms: 2, window_ms, iterations_per_us, seed: 1, pin: Pin::Scatter }
}

/// Every run with one probe or period of each kind.
fn runs() -> Vec<Run> {
    let mut tests = vec![Test::Writer, Test::TryWriter, Test::Readers, Test::Contention, Test::Behind];
    tests.extend([Rank::Bulk, Rank::Urgent, Rank::Nested].map(Test::Reader));
    for probe in [Probe::Urgent, Probe::Handler] {
        tests.extend([Test::Invariance { hold_us: 100, probe }, Test::Queue { writers: 2, probe }]);
    }
    let mut runs: Vec<Run> = tests.into_iter().map(Run::new).collect();
    let module = Module { handler_every_us: 100, by_thread: true, ..Module::DEFAULT };
    runs.push(Run { test: Test::Contention, module });
    runs
}

/// Carries it out, with a longer window if other programs left no time to the workers in a short
/// one: until the figure is there.
fn until(run: Run, lock: &Entry, figure: &str) -> Outcome {
    for window_ms in [15, 200, 2_000, 20_000] {
        let outcome = run.with(lock, &conditions(window_ms)).unwrap();
        if outcome.get(figure).is_some_and(|&value| value > 0.0) {
            return outcome;
        }
    }
    panic!("{run:?} of {}: no {figure} in 20 s", lock.name);
}

/// A figure that says that the run did what it is for.
fn sign(run: Run) -> &'static str {
    match run.test {
        _ if run.module.by_thread => "handler/5/iterations",
        Test::Writer | Test::TryWriter | Test::Reader(_) => "iterations",
        Test::Invariance { probe: Probe::Handler, .. } | Test::Queue { probe: Probe::Handler, .. } => {
            "handler/iterations"
        }
        Test::Readers => "bulk/iterations",
        Test::Contention => "try-reader/attempts",
        Test::Behind => "writer/iterations",
        _ => "urgent/iterations",
    }
}

/// In one process there may be handlers of one lock at a time, hence one test.
#[test]
fn every_run_goes_with_every_lock_that_can() {
    for name in ["std-rw", "psrw", "std-rw-masked", "psrw-timed"] {
        let lock = Entry::find(name).unwrap();
        for run in runs() {
            if !run.is_for(lock) {
                let error = run.with(lock, &conditions(5)).unwrap_err().to_string();
                assert!(error.contains("; allowed: "), "{run:?} of {name}: {error}");
                continue;
            }
            let outcome = until(run, lock, sign(run));
            let words = format!("{run:?} of {name}: {outcome:?}");
            assert!(outcome.values().all(|value| value.is_finite()), "{words}");
            assert!(outcome.keys().all(|name| Figure::find(name).is_some()), "{words}");
            assert_eq!(outcome.contains_key("pair"), run.workers() == 1, "{words}");
            assert_eq!(outcome.contains_key("unlock"), run.workers() == 1 && !lock.timed_mask, "{words}");
            for (key, iterations) in outcome.iter().filter(|(key, _)| key.ends_with("iterations")) {
                let role = key.trim_end_matches("iterations");
                let figure = |name: &str| outcome.get(&format!("{role}{name}")).copied();
                let ordered = |ends: [&str; 3]| {
                    let [min, mean, max] = ends.map(figure);
                    assert!(min <= mean && mean <= max, "{role} of {words}");
                    min.is_some()
                };
                assert!(*iterations == 0.0 || ordered(["wait-min", "wait-mean", "wait-max"]), "{words}");
                ordered(["unlock-min", "unlock-mean", "unlock-max"]);
                assert!(figure("attempts").is_none_or(|attempts| attempts >= *iterations), "{words}");
                let masks = lock.timed_mask && ordered(["masked-min", "masked-mean", "masked-max"]);
                assert!(figure("held-off-max") <= figure("masked-max"), "{words}");
                assert_eq!(masks, figure("masked-times").is_some(), "{words}");
            }
        }
    }
}

/// A lock that lets everybody in.
struct Broken;

impl RwLock for Broken {
    type Write<'a> = ();
    type Read<'a> = ();

    fn place(place: &mut MaybeUninit<Self>) -> Result<()> {
        place.write(Self);
        Ok(())
    }

    fn write(&self) {}

    fn try_write(&self) -> Option<()> {
        Some(())
    }

    fn read<C: Class>(&self) {}

    fn try_read<C: Class>(&self) -> Option<()> {
        Some(())
    }
}

#[test]
fn a_lock_that_excludes_nobody_is_seen() {
    let broken = Entry::of::<Broken>("broken", "lets everybody in");
    for window_ms in [15, 200, 2_000, 20_000] {
        let module = Module { writer_delay_us: 0, ..Module::DEFAULT };
        if let Err(error) = (Run { test: Test::Contention, module }).with(&broken, &conditions(window_ms)) {
            let error = error.to_string();
            assert!(error.starts_with("lock 'broken' let somebody see a half-written state, "), "{error}");
            return;
        }
    }
    panic!("nobody saw a half-written state in 20 s");
}

#[test]
fn the_modules_parameters_are_those_of_the_run() {
    let module = Module { writers: 3, try_writers: 0, bulk: 1, urgent: 0, try_readers: 2, ..Module::DEFAULT };
    let roles = |test| (Run { test, module }).duties().iter().map(|duty| duty.role).collect::<Vec<_>>();
    assert_eq!(roles(Test::Contention), ["writer", "writer", "writer", "bulk", "try-reader", "try-reader"]);
    assert_eq!(roles(Test::Readers), ["bulk"]);
    let none = Module { bulk: 0, ..module };
    let error = (Run { test: Test::Readers, module: none }).carry_out("std-rw", &conditions(5)).unwrap_err();
    assert!(error.to_string().ends_with("allowed: at least one thread"));
    // A record says no more than what is not as it always was.
    let text = |run: &Run| serde_json::to_string(run).unwrap();
    let run = Run::new(Test::Invariance { hold_us: 3000, probe: Probe::Urgent });
    assert_eq!(text(&run), r#"{"test":{"invariance":{"hold_us":3000,"probe":"urgent"}}}"#);
    assert_eq!(serde_json::from_str::<Run>(&text(&run)).unwrap(), run);
}

#[test]
fn those_that_are_to_be_apart_are_where_they_can() {
    let duty = |apart| Duty { apart, ..Duty::reader(Rank::Bulk, 0) };
    let duties = [duty(true), duty(false), duty(false)];
    assert_eq!(places(&duties, &[4, 5, 6]), [4, 5, 6]);
    assert_eq!(places(&duties, &[4, 5]), [4, 5, 5]);
    assert_eq!(places(&duties, &[4]), [4; 3]);
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
