//! A spinning thread sleeps on lines, and misses nothing.

use super::super::{CostError, Ended, Run};
use super::locks::{Line, Mcs, ThreeState};
use super::{contend, on_plain, ran, word};
use core::time::Duration;
use ulocks_vm::clock::{Clock, Time, has_passed};
use ulocks_vm::sync::{AtomicU32, Ordering::*, spin_until, work};

/// The round reads `flag`, then something slow; `flag` changes meanwhile. A spinner that went to
/// sleep on it now would sleep for ever: the first version of this model did, and was wrong by a
/// factor of a hundred.
#[test]
fn a_store_between_look_and_sleep() {
    let outcome = ran(
        2,
        || (Line(AtomicU32::new(0)), Line(AtomicU32::new(0))),
        |(flag, other), worker| {
            if worker.index() == 0 {
                spin_until(|| {
                    let seen = flag.0.load(Acquire);
                    other.0.load(Relaxed); // takes 80 ns
                    seen == 1
                });
            } else {
                work(20);
                flag.0.store(1, Release); // takes effect at 100
            }
        },
    );
    assert_eq!(outcome.ended, Ended::AllDone);
}

/// The spinner looks when its pauses end, not when the store happens.
#[test]
fn a_spinner_looks_at_its_own_times() {
    let seen = |store_at: u64| {
        let outcome = ran(2, word, move |word, worker| {
            if worker.index() == 0 {
                spin_until(|| word.load(Acquire) == 1);
            } else {
                work(store_at);
                word.store(1, Release);
            }
        });
        outcome.time_ns
    };
    // It has looked by 81, and looks every 10. The store's request arrives after 20 and invalidates
    // its copy; the look that misses asks for 20, waits for the store to be done, 21 after its
    // arrival, and is done 21 later.
    assert_eq!(seen(195), 221.0 + 20.0 + 21.0);
    assert_eq!(seen(201), 221.0 + 21.0 + 21.0);
    assert_eq!(seen(202), 231.0 + 20.0 + 21.0);
    assert_eq!(seen(211), 231.0 + 21.0 + 21.0);
}

#[test]
fn waiting_in_the_own_cache_is_free() {
    let outcome = ran(2, word, |word, worker| {
        if worker.index() == 0 {
            spin_until(|| word.load(Acquire) == 1);
        } else {
            work(500_000);
            word.store(1, Release);
        }
    });
    assert_eq!((outcome.traffic.transfers, outcome.traffic.accesses), (3, 3));
}

/// A round on two lines wakes for either, however often the other never changes.
#[test]
fn a_spinner_watches_all_it_read() {
    let outcome = ran(
        2,
        || [Line(AtomicU32::new(0)), Line(AtomicU32::new(0))],
        |[one, other], worker| {
            if worker.index() == 0 {
                spin_until(|| one.0.load(Acquire) + other.0.load(Acquire) == 101);
            } else {
                for _ in 0..100 {
                    work(1_000);
                    other.0.fetch_add(1, Release);
                }
                work(1_000);
                one.0.store(1, Release);
            }
        },
    );
    assert_eq!(outcome.ended, Ended::AllDone);
}

#[test]
fn a_round_with_a_deadline_ends_at_it() {
    let outcome = ran(1, word, |word, worker| {
        let deadline = Time { clock: Clock::Monotonic, since_zero: Duration::from_nanos(5_000) };
        spin_until(|| word.load(Acquire) == 1 || has_passed(deadline));
        assert!((5_000.0..5_100.0).contains(&worker.now_ns()), "{}", worker.now_ns());
    });
    assert_eq!(outcome.ended, Ended::AllDone);
}

#[test]
fn a_round_that_writes_is_executed_again_and_again() {
    let outcome = ran(
        2,
        || AtomicU32::new(1),
        |word, worker| {
            if worker.index() == 0 {
                spin_until(|| word.swap(1, Acquire) == 0);
            } else {
                work(10_000);
                word.store(0, Release);
            }
        },
    );
    // A swap of 5 and a pause of 10 each time, for about 10 us.
    assert!((600..700).contains(&outcome.traffic.accesses), "{}", outcome.traffic.accesses);
}

/// Two threads on one CPU: the spinning one is asleep on its line and keeps the CPU all the same,
/// until its slice ends.
#[test]
fn a_spinner_holds_its_cpu() {
    let run = Run { cpus: 1, ..on_plain(2) };
    let outcome = run
        .of(word, |word, worker| {
            if worker.index() == 0 {
                spin_until(|| word.load(Acquire) == 1);
                assert!(worker.now_ns() > 10_500.0);
            } else {
                // A slice and a switch.
                assert!(worker.now_ns() >= 10_500.0, "{}", worker.now_ns());
                word.store(1, Release);
            }
        })
        .unwrap();
    assert_eq!((outcome.ended, outcome.kernel.preemptions), (Ended::AllDone, 1));
}

/// The owner is preempted in its critical section: all others wait for at least the slice that came
/// between.
#[test]
fn a_preempted_owner_delays_the_others() {
    let run = Run { cpus: 2, ..on_plain(3) };
    let outcome = run
        .of(
            || Line(AtomicU32::new(0)),
            |lock, worker| match worker.index() {
                0 => {
                    lock.0.store(1, Relaxed);
                    work(9_950); // its slice ends before the next operation
                    work(1_000);
                    lock.0.store(2, Release);
                }
                1 => {
                    work(1_000);
                    spin_until(|| lock.0.load(Acquire) == 2);
                    // 10,000 of the first slice, 10,000 of the intruder's, two switches, and what
                    // was left.
                    let now = worker.now_ns();
                    assert!((21_000.0..23_000.0).contains(&now), "{now}");
                }
                _ => work(50_000),
            },
        )
        .unwrap();
    assert_eq!(outcome.ended, Ended::AllDone);
}

#[test]
fn who_waits_for_nobody_is_reported() {
    let error = on_plain(2)
        .of(|| Line(AtomicU32::new(0)), |lock, _| spin_until(|| lock.0.load(Acquire) == 1))
        .unwrap_err();
    let CostError::Stuck(stuck) = &error else { panic!("{error}") };
    assert_eq!(
        stuck.threads.iter().map(|stuck| (stuck.thread, stuck.spins)).collect::<Vec<_>>(),
        [(0, true), (1, true)]
    );
    assert!(error.to_string().contains("spinning.rs"), "{error}");
}

#[test]
#[should_panic(expected = "enters a critical section")]
fn a_lock_that_does_not_exclude_is_noticed() {
    let _ = on_plain(2).contend(|| (), |(), worker| worker.acquire(|| worker.hold()));
}

/// Readers share, and no writer comes beside them.
#[test]
#[should_panic(expected = "writes beside so many readers")]
fn a_writer_beside_readers_is_noticed() {
    let run = Run { hold_ns: 500.0, ..on_plain(3) };
    let outcome = run.contend(|| (), |(), worker| worker.acquire(|| worker.hold_shared())).unwrap();
    // The line of data, for each reader.
    assert_eq!((outcome.traffic.transfers, outcome.traffic.invalidations), (3, 0));
    let run = Run { hold_ns: 2_000.0, ..run };
    let _ = run.contend(
        || (),
        |(), worker| {
            if worker.index() < 2 {
                worker.hold_shared();
            } else {
                work(400);
                worker.hold();
            }
        },
    );
}

#[test]
#[should_panic(expected = "reads beside this worker")]
fn a_reader_beside_a_writer_is_noticed() {
    let run = Run { hold_ns: 2_000.0, ..on_plain(2) };
    let _ = run.contend(
        || (),
        |(), worker| {
            if worker.index() == 0 {
                worker.hold();
            } else {
                work(400);
                worker.hold_shared();
            }
        },
    );
}

#[test]
#[should_panic(expected = "takes no time")]
fn a_section_without_time_is_refused() {
    let run = Run { think_ns: 0.0, ..on_plain(1) };
    let _ = run.contend(|| (), |(), _| ());
}

#[test]
fn what_cannot_be_run_is_said() {
    let error = |run: Run| contend::<Mcs>(&run).unwrap_err().to_string();
    assert_eq!(error(Run { cpus: 17, ..on_plain(1) }), "cpus is 17; machine plain has 1 to 16");
    assert!(error(Run { threads: 0, ..on_plain(1) }).starts_with("threads is 0; it must be from 1 to"));
    assert!(
        error(Run { hold_ns: f64::NAN, ..on_plain(1) }).starts_with("hold_ns is NaN; it must be from 0 to")
    );
    let mut run = on_plain(1);
    run.machine.memory.hit = 0.0;
    assert!(error(run).starts_with("machine plain: memory.hit is 0; it must be"));
}

/// The warm-up is not counted.
#[test]
fn counting_begins_after_the_warm_up() {
    let run = Run { warm_up_ns: 1e5, time_ns: 1e5, ..on_plain(1) };
    let outcome = contend::<ThreeState<0>>(&run).unwrap();
    assert_eq!((outcome.traffic.transfers, outcome.time_ns), (0, 1e5));
    assert_eq!(outcome.operations, outcome.operations_by_thread[0]);
    assert!(outcome.waits.unwrap().max < 10.0);
}
