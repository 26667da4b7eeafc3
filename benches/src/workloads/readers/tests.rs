use super::*;
use crate::run::busy_work;
use crate::subjects::rwlocks::{self, RwLock};
use std::mem::MaybeUninit;
use std::sync::LazyLock;

fn conditions(window_ms: u64) -> Conditions {
    static SPEED: LazyLock<f64> = LazyLock::new(busy_work::calibrate);
    let iterations_per_us = *SPEED;
    Conditions { warmup_ms: 2, window_ms, iterations_per_us, seed: 1, pin: Pin::Scatter }
}

/// Carries it out, with a longer window if other programs left no time to the workers in a short
/// one, until `seen`.
fn until(run: Run, lock: &Entry, seen: impl Fn(&Result<Outcome>) -> bool) -> Result<Outcome> {
    for window_ms in [15, 200, 2_000, 20_000] {
        let outcome = run.with(lock, &conditions(window_ms));
        if seen(&outcome) {
            return outcome;
        }
    }
    panic!("{run:?} of {} did not come to it in 20 s", lock.name);
}

/// Every run, and a figure that says that it did what it is for.
fn runs() -> Vec<(Run, &'static str)> {
    let of = |test| Run::new(test);
    let module = Module { handler_every_us: 100, by_thread: true, ..Module::DEFAULT };
    vec![
        (of(Test::Writer), "iterations"),
        (of(Test::TryWriter), "iterations"),
        (of(Test::Reader(Rank::Bulk)), "iterations"),
        (of(Test::Reader(Rank::Urgent)), "iterations"),
        (of(Test::Reader(Rank::Nested)), "iterations"),
        (of(Test::Readers), "bulk/iterations"),
        (of(Test::Contention), "bulk/iterations"),
        (of(Test::Behind), "writer/iterations"),
        (of(Test::Invariance { hold_us: 100, probe: Probe::Urgent }), "urgent/iterations"),
        (of(Test::Invariance { hold_us: 100, probe: Probe::Handler }), "handler/iterations"),
        (of(Test::Queue { writers: 2, probe: Probe::Urgent }), "urgent/iterations"),
        (of(Test::Queue { writers: 2, probe: Probe::Handler }), "handler/iterations"),
        (Run { test: Test::Contention, module }, "handler/5/iterations"),
        (Run { test: Test::Writer, module }, "writer/0/iterations"),
    ]
}

/// In one process there may be handlers of one lock at a time, hence one test.
#[test]
fn every_run_goes_with_every_lock_that_can() {
    for name in ["std-rw", "psrw", "std-rw-masked", "psrw-timed"] {
        let lock = Entry::find(name).unwrap();
        for (run, sign) in runs() {
            if !run.is_for(lock) {
                let error = run.with(lock, &conditions(5)).unwrap_err().to_string();
                assert!(error.contains("; allowed: "), "{run:?} of {name}: {error}");
                continue;
            }
            let is_there =
                |outcome: &Result<Outcome>| outcome.as_ref().is_ok_and(|all| all.get(sign) > Some(&0.0));
            let outcome = until(run, lock, is_there).unwrap();
            let words = format!("{run:?} of {name}: {outcome:?}");
            assert!(
                outcome.iter().all(|(key, value)| value.is_finite() && Figure::find(key).is_some()),
                "{words}"
            );
            let alone = run.workers() == 1;
            assert_eq!(outcome.contains_key("pair"), alone, "{words}");
            for (key, iterations) in outcome.iter().filter(|(key, _)| key.ends_with("iterations")) {
                let role = key.trim_end_matches("iterations");
                let figure = |name: &str| outcome.get(&format!("{role}{name}")).copied();
                let ordered = |name: &str| {
                    let [min, mean, max] =
                        ["min", "mean", "max"].map(|kind| figure(&format!("{name}-{kind}")));
                    assert!(min <= mean && mean <= max, "{role} of {words}");
                    min.is_some()
                };
                let _ = ["unlock", "held-off"].map(ordered);
                assert!(*iterations == 0.0 || ordered("wait"), "{words}");
                assert!(figure("held-off-max") <= figure("masked-max"), "{words}");
                assert_eq!(ordered("masked"), figure("masked-times").is_some(), "{words}");
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

    fn write(&self, _: bool) -> Option<()> {
        Some(())
    }

    fn read(&self, _: Rank, _: bool) -> Option<()> {
        Some(())
    }
}

#[test]
fn a_lock_that_excludes_nobody_is_seen() {
    let broken = rwlocks::entry::<Broken>("broken", "lets everybody in");
    let run = Run { test: Test::Contention, module: Module { writer_delay_us: 0, ..Module::DEFAULT } };
    let error = until(run, &broken, Result::is_err).unwrap_err().to_string();
    assert!(error.starts_with("lock 'broken' let somebody see a half-written state, "), "{error}");
}

#[test]
fn the_modules_parameters_are_those_of_the_run() {
    let (try_readers, try_writers) = (2, 0);
    let module = Module { writers: 3, bulk: 1, urgent: 0, ..Module::DEFAULT };
    let module = Module { try_readers, try_writers, ..module };
    let roles = |test| (Run { test, module }).duties().iter().map(|duty| duty.role).collect::<Vec<_>>();
    assert_eq!(roles(Test::Contention), ["writer", "writer", "writer", "bulk", "try-reader", "try-reader"]);
    assert_eq!(roles(Test::Readers), ["bulk"]);
    let none = Run { test: Test::Readers, module: Module { bulk: 0, ..module } };
    let error = none.carry_out("std-rw", &conditions(5)).unwrap_err();
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
