//! Stolen time, which adds up as all other time does.

use super::super::{Ended, Late, Noise, Odds, Run};
use super::locks::Line;
use super::{on_plain, word};
use core::time::Duration;
use ulocks_vm::clock::{Clock, Time, has_passed};
use ulocks_vm::sync::{AtomicU32, Ordering::*, spin_until, work};

/// How long a run takes on CPUs that are stolen for 1 us after each 2 us in the mean, and how long
/// without noise.
fn with_and_without(run: &Run, body: impl Fn() + Clone + 'static) -> (f64, f64) {
    let time = |noise| {
        let mut run = run.clone();
        run.machine.noise = noise;
        let body = body.clone();
        let outcome = run.of(|| (), move |(), _| body()).unwrap();
        assert_eq!(outcome.ended, Ended::AllDone);
        outcome.time_ns
    };
    (time(Some(thefts())), time(None))
}

fn thefts() -> Noise {
    let always = |time| vec![Odds { share: 1.0, time }];
    Noise { stolen_every: 2_000.0, stolen: always(1_000.0), late: vec![Late { idle: 0.0, by: always(0.0) }] }
}

/// Nothing else happens meanwhile, so the thread is never suspended.
#[test]
fn a_lone_thread_is_robbed_too() {
    let (noisy, quiet) = with_and_without(&on_plain(1), || work(100_000));
    assert_eq!(quiet, 100_000.0);
    assert!((140_000.0..160_000.0).contains(&noisy), "{noisy}");
    let (noisy, quiet) = with_and_without(&on_plain(1), || (0..1_000).for_each(|_| work(100)));
    assert_eq!(quiet, 100_000.0);
    assert!((140_000.0..160_000.0).contains(&noisy), "{noisy}");
}

/// A slice ends after the moment at which the thread would be done, had its CPU not been stolen.
#[test]
fn a_slice_ends_in_stolen_time() {
    let run = Run { cpus: 1, ..on_plain(3) };
    for length in 9_000..10_000 {
        let (noisy, quiet) = with_and_without(&run, move || work(length));
        assert!(noisy >= quiet + 10_000.0, "{length}: {noisy}, {quiet}");
    }
}

/// What a CPU loses while a store is on its way hides no work.
#[test]
fn stolen_time_is_no_credit() {
    let mut run = on_plain(1);
    run.machine.memory.store_buffer = true;
    let body = || {
        let lines: Vec<_> = (0..1_000).map(|_| Line(AtomicU32::new(0))).collect();
        for some in lines.chunks(10) {
            some.iter().for_each(|line| line.0.store(1, Relaxed));
            work(2_000);
        }
    };
    let (noisy, quiet) = with_and_without(&run, body);
    // Each store takes 81 ns, of which the work hides 80.
    assert_eq!(quiet, 100.0 * (10.0 * 81.0 + 2_000.0 - 800.0));
    // Thefts are half as long as what they interrupt, wherever they do.
    assert!(noisy > 1.4 * quiet, "{noisy}, {quiet}");
}

/// What is longer than any run ends no earlier than the run, and takes no time to find that out.
#[test]
fn work_and_waits_may_be_longer_than_the_run() {
    for noise in [None, Some(thefts())] {
        let mut run = on_plain(2);
        run.machine.noise = noise;
        let outcome = run
            .of(word, |word, worker| {
                work(1);
                if worker.index() == 0 {
                    work(u64::MAX);
                }
                let deadline = Time { clock: Clock::Monotonic, since_zero: Duration::MAX };
                spin_until(|| word.load(Acquire) == 1 || has_passed(deadline));
            })
            .unwrap();
        assert_eq!((outcome.ended, outcome.time_ns), (Ended::TimeUp, 1e6));
    }
}
