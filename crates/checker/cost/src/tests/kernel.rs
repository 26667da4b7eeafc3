//! Futexes and CPUs, with times that add up.

use super::super::{CostError, Ended, Run};
use super::locks::Line;
use super::{nothing, on_plain, ran, word};
use core::time::Duration;
use ulocks_vm::clock::{Clock, Time, now};
use ulocks_vm::futex::{self, Entry, Waited};
use ulocks_vm::sync::{AtomicU32, Ordering::*, work};
use ulocks_vm::thread;

fn address(word: &AtomicU32) -> usize {
    (&raw const *word).addr()
}

fn at(ns: u64) -> Option<Time> {
    Some(Time { clock: Clock::Monotonic, since_zero: Duration::from_nanos(ns) })
}

#[test]
fn a_sleeper_runs_after_the_wake_up_and_its_latency() {
    let outcome = ran(2, word, |word, worker| {
        if worker.index() == 0 {
            assert_eq!(futex::wait(word, 0, !0, None, true), Waited::Woken);
            // The wake-up is decided at 10,000 + 100 (call) + 300 (wake).
            assert_eq!(worker.now_ns(), 12_400.0);
        } else {
            work(10_000);
            assert_eq!(futex::wake(address(word), 1, !0, true), 1);
            assert_eq!(worker.now_ns(), 10_800.0); // and 400 for the interrupt
            assert_eq!(futex::wake(address(word), 1, !0, true), 0);
            assert_eq!(worker.now_ns(), 10_900.0);
        }
    });
    let kernel = &outcome.kernel;
    assert_eq!((kernel.calls, kernel.waits, kernel.sleeps, kernel.wakes, kernel.woken), (3, 1, 1, 2, 1));
    assert_eq!((kernel.mismatches, kernel.timeouts), (0, 0));
}

#[test]
fn a_changed_word_is_not_slept_on() {
    let outcome = ran(
        1,
        || AtomicU32::new(1),
        |word, _| assert_eq!(futex::wait(word, 0, !0, None, true), Waited::Mismatch),
    );
    assert_eq!((outcome.kernel.mismatches, outcome.kernel.sleeps), (1, 0));
    assert_eq!(outcome.time_ns, 100.0 + 81.0); // the call, and a word from memory
}

/// A wake-up while the sleeper's CPU is still putting it to sleep is not lost, and saves the sleep.
#[test]
fn a_wake_up_on_the_way_to_sleep_counts() {
    let outcome = ran(2, word, |word, worker| {
        if worker.index() == 0 {
            assert_eq!(futex::wait(word, 0, !0, None, true), Waited::Woken);
            assert_eq!(worker.now_ns(), 100.0 + 81.0 + 200.0);
        } else {
            work(150);
            assert_eq!(futex::wake(address(word), 1, !0, true), 1);
        }
    });
    assert_eq!((outcome.kernel.waits, outcome.kernel.sleeps, outcome.kernel.woken), (1, 0, 1));
}

#[test]
fn sleepers_are_served_in_order_and_by_mask() {
    ran(
        4,
        || (AtomicU32::new(0), Line(AtomicU32::new(0))),
        |(word, order), worker| {
            if worker.index() < 3 {
                work(1_000 * worker.index() as u64);
                futex::wait(word, 0, 1 << (worker.index() % 2), None, true);
                let place = order.0.fetch_add(1, Relaxed);
                assert_eq!(place, [1, 0, 2][worker.index()]);
            } else {
                work(20_000);
                assert_eq!(futex::wake(address(word), 9, 2, true), 1); // worker 1 alone
                work(20_000);
                // Worker 0, which came first.
                assert_eq!(futex::wake(address(word), 1, !0, true), 1);
                work(20_000);
                assert_eq!(futex::wake(address(word), 9, 1, false), 0); // another futex
                assert_eq!(futex::wake(address(word), 9, 1, true), 1);
            }
        },
    );
}

#[test]
fn a_deadline_ends_a_sleep() {
    let outcome = ran(1, word, |word, worker| {
        assert_eq!(futex::wait(word, 0, !0, at(5_000), true), Waited::TimedOut);
        assert_eq!(worker.now_ns(), 7_000.0); // the latency of waking up comes on top
        // One that has passed already.
        assert_eq!(futex::wait(word, 0, !0, at(5_000), true), Waited::TimedOut);
        let realtime = now(Clock::Realtime) + Duration::from_nanos(5_000);
        let deadline = Time { clock: Clock::Realtime, since_zero: realtime };
        let before = worker.now_ns();
        assert_eq!(futex::wait(word, 0, !0, Some(deadline), true), Waited::TimedOut);
        assert!((6_999.0..7_001.0).contains(&(worker.now_ns() - before)));
    });
    assert_eq!(outcome.kernel.timeouts, 3);
}

/// A deadline that nobody waits for any more, and a slice of a thread that has ended, lie between
/// the last thread's end and the end of the run.
#[test]
fn time_ends_with_the_last_thread() {
    let cancelled = ran(2, word, |word, worker| {
        if worker.index() == 0 {
            assert_eq!(futex::wait(word, 0, !0, at(900_000), true), Waited::Woken);
        } else {
            work(10_000);
            futex::wake(address(word), 1, !0, true);
        }
        worker.count();
    });
    assert_eq!((cancelled.ended, cancelled.time_ns), (Ended::AllDone, 12_400.0));
    assert_eq!(cancelled.per_us, 2.0 / 12.4);
    // The slice of worker 0 would end at 10,000, and that of worker 1 later still.
    let run = Run { cpus: 1, ..on_plain(3) };
    let sliced = run.of(|| (), |(), _| work(100)).unwrap();
    assert_eq!((sliced.ended, sliced.time_ns), (Ended::AllDone, 3.0 * 100.0 + 2.0 * 500.0));
    // Beyond the end of the run.
    let run = Run { time_ns: 5_000.0, ..run };
    assert_eq!(run.of(|| (), |(), _| work(100)).unwrap().time_ns, 1_300.0);
    // What ended in the warm-up does not count.
    let run = Run { warm_up_ns: 3_000.0, ..run };
    assert_eq!(run.of(|| (), |(), _| work(100)).unwrap().time_ns, 0.0);
}

#[test]
fn requeued_sleepers_wait_elsewhere() {
    let outcome = ran(
        4,
        || (AtomicU32::new(0), AtomicU32::new(0), Line(AtomicU32::new(0))),
        |(one, other, woken), worker| {
            if worker.index() < 3 {
                futex::wait(one, 0, !0, None, true);
                woken.0.fetch_add(1, Relaxed);
            } else {
                work(10_000);
                assert_eq!(futex::cmp_requeue(one, 7, 1, 9, address(other), true), None);
                assert_eq!(futex::cmp_requeue(one, 0, 1, 9, address(other), true), Some((1, 2)));
                work(10_000);
                assert_eq!(futex::wake(address(one), 9, !0, true), 0);
                assert_eq!(woken.0.load(Relaxed), 1);
                assert_eq!(futex::cmp_requeue(other, 0, 0, 1, address(one), true), Some((0, 1)));
                assert_eq!(futex::wake(address(other), 9, !0, true), 1);
                assert_eq!(futex::wake(address(one), 9, !0, true), 1);
            }
        },
    );
    assert_eq!((outcome.kernel.requeued, outcome.kernel.woken, outcome.kernel.mismatches), (3, 3, 1));
}

#[test]
fn a_wait_for_several_is_ended_by_one() {
    let outcome = ran(
        2,
        || (AtomicU32::new(0), AtomicU32::new(1)),
        |(first, second), worker| {
            let entry = |word, expected| Entry { word, expected, private: true };
            if worker.index() == 0 {
                let both = [entry(first, 0), entry(second, 1)];
                assert_eq!(futex::wait_any(&both, None), (Waited::Woken, Some(1)));
                let wrong = [entry(first, 0), entry(second, 0)];
                assert_eq!(futex::wait_any(&wrong, None), (Waited::Mismatch, None));
                assert_eq!(futex::wait_any(&both, at(100_000)), (Waited::TimedOut, None));
            } else {
                work(10_000);
                assert_eq!(futex::wake(address(second), 1, !0, true), 1);
                work(20_000);
                // It has left the first queue too, also after the mismatch; now it waits again.
                assert_eq!(futex::wake(address(first), 0, !0, true), 0);
                work(180_000);
                assert_eq!(futex::wake(address(first), 9, !0, true), 0);
            }
        },
    );
    assert_eq!((outcome.kernel.timeouts, outcome.kernel.mismatches), (1, 1));
}

#[test]
fn a_deadlock_is_an_error_and_names_the_place() {
    let error = on_plain(3)
        .of(word, |word, worker| {
            if worker.index() > 0 {
                futex::wait(word, 0, !0, None, true);
            }
        })
        .unwrap_err();
    let CostError::Stuck(stuck) = &error else { panic!("{error}") };
    assert_eq!(
        stuck.threads.iter().map(|stuck| (stuck.thread, stuck.spins)).collect::<Vec<_>>(),
        [(1, false), (2, false)]
    );
    assert!(error.to_string().contains("tests/kernel.rs"), "{error}");
}

/// A thread that sleeps gives its CPU to the next; one that wakes up with no CPU idle waits for its
/// turn.
#[test]
fn sleepers_leave_their_cpu() {
    let run = Run { cpus: 1, ..on_plain(2) };
    let outcome = run
        .of(word, |word, worker| {
            if worker.index() == 0 {
                futex::wait(word, 0, !0, None, true);
                // The other had a slice from 381 + 500, and the CPU.
                assert_eq!(worker.now_ns(), 881.0 + 2_000.0 + 100.0 + 300.0 + 4_000.0 + 500.0);
            } else {
                assert_eq!(worker.now_ns(), 100.0 + 81.0 + 200.0 + 500.0);
                work(2_000);
                assert_eq!(futex::wake(address(word), 1, !0, true), 1);
                work(4_000);
            }
        })
        .unwrap();
    assert_eq!((outcome.kernel.context_switches, outcome.kernel.preemptions), (2, 0));
}

#[test]
fn threads_share_a_cpu_by_slices() {
    let run = Run { cpus: 1, time_ns: 1e6, ..on_plain(4) };
    let outcome = run
        .of(nothing, |(), worker| {
            loop {
                work(100);
                worker.count();
            }
        })
        .unwrap();
    assert_eq!(outcome.ended, Ended::TimeUp);
    // 1 ms of slices of 10 us with 0.5 us between them.
    assert!((94..=96).contains(&outcome.kernel.preemptions), "{:?}", outcome.kernel);
    assert!(outcome.fairness.min_by_max > 0.9, "{:?}", outcome.fairness);
}

/// A look at the clock is paid for before the next operation. A slice that ends meanwhile ends the
/// thread's turn before that operation, not after it.
#[test]
fn a_slice_ends_while_a_debt_is_paid() {
    let mut run = Run { cpus: 1, ..on_plain(2) };
    run.machine.memory.clock_read = 100.0;
    let outcome = run
        .of(nothing, |(), worker| {
            if worker.index() == 0 {
                work(9_950);
                let _ = now(Clock::Monotonic);
                work(50_000);
            } else {
                assert_eq!(worker.now_ns(), 9_950.0 + 100.0 + 500.0);
            }
        })
        .unwrap();
    assert_eq!((outcome.ended, outcome.kernel.preemptions), (Ended::AllDone, 1));
}

#[test]
fn an_idle_cpu_takes_who_waits() {
    let run = Run { cpus: 2, ..on_plain(4) };
    let outcome =
        run.of(|| (), |(), worker| work(if worker.index() % 2 == 0 { 9_000 } else { 1_000 })).unwrap();
    // CPU 1 is done at 1,000 and takes thread 3 at once, then thread 2, which waited on CPU 0.
    assert_eq!(outcome.time_ns, 1_000.0 + 500.0 + 1_000.0 + 500.0 + 9_000.0);
    assert_eq!(outcome.kernel.migrations, 1);
}

/// One CPU. Worker 0 sleeps, worker 1 computes and wakes it: the one with less CPU time takes the
/// CPU at once, if the machine is so.
#[test]
fn a_woken_thread_takes_the_cpu_from_one_that_had_more() {
    let woken_at = |wake_preemption| {
        let mut run = Run { cpus: 1, ..on_plain(2) };
        run.machine.scheduler.wake_preemption = wake_preemption;
        let ran = std::rc::Rc::new(std::cell::Cell::new(0.0));
        let seen = std::rc::Rc::clone(&ran);
        run.of(word, move |word, worker| {
            if worker.index() == 0 {
                futex::wait(word, 0, !0, None, true);
                seen.set(worker.now_ns());
            } else {
                work(2_000); // until 2,881
                futex::wake(address(word), 1, !0, true); // until 3,281
                work(5_000);
            }
        })
        .unwrap();
        ran.get()
    };
    assert_eq!(woken_at(true), 3_281.0 + 500.0);
    assert_eq!(woken_at(false), 3_281.0 + 5_000.0 + 500.0);
}

/// A thread that has slept for long is owed a slice, and not all the time that it slept: after that
/// it waits for its turns.
#[test]
fn a_sleeper_is_not_owed_all_it_missed() {
    let mut run = Run { cpus: 1, ..on_plain(2) };
    run.machine.scheduler.wake_preemption = true;
    run.of(word, |word, worker| {
        if worker.index() == 0 {
            work(10_000_000);
            return;
        }
        futex::wait(word, 0, !0, at(500_000), true);
        let woken = worker.now_ns();
        for _ in 0..20 {
            work(5_000);
            let soon = worker.now_ns() as u64 + 1_000;
            futex::wait(word, 0, !0, at(soon), true);
        }
        let took = worker.now_ns() - woken;
        // 20 times 5,000 and a little, if it could always take the CPU; but the other has its half.
        assert!((200_000.0..400_000.0).contains(&took), "{took}");
    })
    .unwrap();
}

/// A slice that ends in the middle of a call, when no thread waits any more by the end of the call,
/// does not stand in the way of the next.
#[test]
fn slices_go_on_after_one_that_nobody_waited_for() {
    let run = Run { cpus: 2, ..on_plain(3) };
    let outcome = run
        .of(word, |word, worker| match worker.index() {
            0 => {
                work(9_950);
                futex::wake(address(word), 1, !0, true); // until 10,050
                let child = thread::spawn(|| now(Clock::Monotonic));
                work(100_000);
                let ran = child.join().unwrap();
                assert!(ran < Duration::from_nanos(15_000), "{ran:?}");
            }
            1 => work(10_010), // then CPU 1 takes worker 2, which waits for CPU 0
            _ => work(500_000),
        })
        .unwrap();
    assert_eq!((outcome.ended, outcome.kernel.migrations), (Ended::AllDone, 1));
}

#[test]
fn a_thread_knows_its_cpu() {
    let run = Run { cpus: 2, ..on_plain(3) };
    let outcome = run
        .of(nothing, |(), worker| {
            assert_eq!(thread::cpus(), Some(2));
            if worker.index() < 2 {
                assert_eq!(thread::cpu(), Some(worker.index()));
                work(if worker.index() == 0 { 9_000 } else { 1_000 });
            } else {
                // It waited for CPU 0 until the other had nothing to do.
                assert_eq!(thread::cpu(), Some(1));
            }
        })
        .unwrap();
    assert_eq!((outcome.ended, outcome.kernel.migrations), (Ended::AllDone, 1));
}

#[test]
fn threads_start_threads_and_wait_for_them() {
    let run = on_plain(1);
    let outcome = Run { cpus: 4, ..run }
        .of(nothing, |(), worker| {
            let child = thread::spawn(|| {
                work(5_000);
                thread::current()
            });
            assert_eq!(worker.now_ns(), 1_000.0);
            assert_eq!(child.join().unwrap(), 1);
            assert_eq!(worker.now_ns(), 1_000.0 + 2_000.0 + 5_000.0 + 2_000.0);
            thread::spawn(|| ()).join().unwrap();
        })
        .unwrap();
    assert_eq!(outcome.ended, Ended::AllDone);
}

/// A store's wait for its line is hidden by what the thread computes next, if the machine has a
/// store buffer.
#[test]
fn a_store_buffer_hides_the_wait() {
    let time = |store_buffer| {
        let mut run = on_plain(1);
        run.machine.memory.store_buffer = store_buffer;
        let outcome = run
            .of(word, |word, _| {
                word.store(1, Release);
                work(200);
            })
            .unwrap();
        outcome.time_ns
    };
    assert_eq!((time(false), time(true)), (81.0 + 200.0, 1.0 + 200.0));
}
