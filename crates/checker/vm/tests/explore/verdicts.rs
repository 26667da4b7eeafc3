//! What is wrong is told as what it is, with the places, and nothing else is.

use crate::locks::{Lock, Tas, ThreeStates};
use crate::{all_outcomes, failure, outcomes, shared, verdict, with};
use std::sync::{Arc, Mutex};
use ulocks_vm::explore::{Config, Verdict, explore, run};
use ulocks_vm::futex;
use ulocks_vm::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_vm::sync::{AtomicPtr, AtomicU8, AtomicU32, UnsafeCell, Watch, spin_until};
use ulocks_vm::thread;

/// That the first failure among all executions of `model` is of this kind and says all of `parts`.
#[track_caller]
fn says(kind: &str, parts: &[&str], model: impl Fn() + 'static) {
    let failure = failure(&Config::exhaustive(), model);
    let text = failure.to_string();
    assert_eq!(failure.verdict.kind(), kind, "{text}");
    for part in parts {
        assert!(failure.verdict.to_string().contains(part), "no {part:?} in: {text}");
    }
}

#[test]
fn two_locks_in_two_orders_are_a_deadlock() {
    let model = || {
        shared((ThreeStates::default(), ThreeStates::default()))
            .threads([|(a, b)| a.locked(|| b.locked(|| ())), |(a, b)| b.locked(|| a.locked(|| ()))]);
    };
    says(
        "deadlock",
        &["thread 1 sleeps at ", "thread 2 sleeps at ", "locks.rs:", "expecting 0x2, which holds 0x2 now"],
        model,
    );
}

#[test]
fn two_spin_locks_in_two_orders_are_a_deadlock() {
    let model = || {
        shared((Tas::default(), Tas::default()))
            .threads([|(a, b)| a.locked(|| b.locked(|| ())), |(a, b)| b.locked(|| a.locked(|| ()))]);
    };
    says("deadlock", &["thread 1 spins at ", "thread 2 spins at ", " = 0x1"], model);
}

#[test]
fn an_unlock_that_wakes_nobody_is_a_lost_wake_up() {
    let model = || {
        shared(AtomicU32::new(1)).threads([
            |word| crate::discard(futex::wait(word, 1, u32::MAX, None, true)),
            |word| word.store(0, Release),
        ]);
    };
    says("lost wake-up", &["expecting 0x1, which holds 0x0 now", "thread 0 waits at "], model);
}

/// A futex of a sequence: a waiter that reads it after the unlock, and so sleeps on the news.
fn sequence_read_after_the_unlock(is_bumped: bool) -> impl Fn() + 'static {
    move || {
        shared((ThreeStates::default(), AtomicU32::new(0), AtomicU32::new(0), is_bumped)).threads([
            |(lock, flag, sequence, _)| {
                let mut is_set = false;
                lock.locked(|| is_set = flag.load(Relaxed) == 1);
                if !is_set {
                    let seen = sequence.load(Acquire);
                    crate::discard(futex::wait(sequence, seen, u32::MAX, None, true));
                }
            },
            |(lock, flag, sequence, is_bumped)| {
                lock.locked(|| flag.store(1, Relaxed));
                if *is_bumped {
                    sequence.fetch_add(1, Release);
                }
                futex::wake(crate::address(sequence), 1, u32::MAX, true);
            },
        ]);
    }
}

#[test]
fn a_wake_up_that_came_too_early_is_lost() {
    let parts = ["thread 1 sleeps at ", "thread 2 woke at ", "before it slept", "thread 0 waits at "];
    says("lost wake-up", &parts, sequence_read_after_the_unlock(true));
    says("lost wake-up", &parts, sequence_read_after_the_unlock(false));
}

/// Each sleeps on the other's futex before it wakes. What a third thread announced there in vain is
/// history, for another has written the word since.
#[test]
fn a_cycle_of_waits_is_a_deadlock_whatever_wake_ups_came_before() {
    let model = || {
        shared((AtomicU32::new(0), AtomicU32::new(0))).threads([
            |(a, b)| {
                futex::wake(crate::address(b), 1, u32::MAX, true);
                a.store(7, Relaxed);
                crate::discard(futex::wait(a, 7, u32::MAX, None, true));
                futex::wake(crate::address(b), 1, u32::MAX, true);
            },
            |(a, b)| {
                futex::wake(crate::address(a), 1, u32::MAX, true);
                b.store(7, Relaxed);
                crate::discard(futex::wait(b, 7, u32::MAX, None, true));
                futex::wake(crate::address(a), 1, u32::MAX, true);
            },
        ]);
    };
    says("deadlock", &["thread 1 sleeps at ", "thread 2 sleeps at "], model);
}

/// Two spin for each other. The last wake-up of a third came early, and it waits for the next.
#[test]
fn one_that_missed_a_wake_up_does_not_explain_the_others() {
    let model = || {
        shared([0; 4].map(AtomicU32::new)).threads([
            |[sequence, woke, a, b]| {
                futex::wake(crate::address(sequence), 1, u32::MAX, true);
                woke.store(1, Relaxed);
                spin_until(|| a.load(Relaxed) == 1);
                b.store(1, Relaxed);
            },
            |[_, _, a, b]| {
                spin_until(|| b.load(Relaxed) == 1);
                a.store(1, Relaxed);
            },
            |[sequence, woke, ..]| {
                spin_until(|| woke.load(Relaxed) == 1);
                crate::discard(futex::wait(sequence, 0, u32::MAX, None, true));
            },
        ]);
    };
    says("deadlock", &["thread 1 spins at ", "thread 3 sleeps at "], model);
}

#[test]
fn threads_that_make_way_for_each_other_for_ever_are_a_livelock() {
    let model = || {
        shared((AtomicU32::new(0), AtomicU32::new(0))).threads([
            |(a, b)| loop {
                a.store(1, Relaxed);
                if b.swap(0, Relaxed) == 2 {
                    return;
                }
            },
            |(a, b)| loop {
                b.store(1, Relaxed);
                if a.swap(0, Relaxed) == 2 {
                    return;
                }
            },
        ]);
    };
    for config in [Config::exhaustive(), Config::default()] {
        let failure = failure(&Config { max_steps: 500, shrink: 10, ..config }, model);
        assert_eq!(failure.verdict.kind(), "livelock", "{failure}");
        assert!(failure.verdict.to_string().contains("thread 1 runs at "), "{failure}");
    }
}

#[test]
fn a_panic_is_told_with_its_message_and_place() {
    says("panic", &["seven is 8", "verdicts.rs:"], || {
        let seven = AtomicU32::new(8).into_inner();
        assert_eq!(seven, 7, "seven is {seven}");
    });
    says("panic", &["formatted 3", "verdicts.rs:"], || {
        drop(thread::spawn(|| panic!("formatted {}", 1 + 2)).join())
    });
}

#[test]
fn a_panic_that_the_model_catches_ends_the_run_if_its_clean_up_was_due() {
    struct Unlocks<'a>(&'a AtomicU32);
    impl Drop for Unlocks<'_> {
        fn drop(&mut self) {
            self.0.store(0, Release);
        }
    }
    says("panic", &["inside", "the model caught it"], || {
        let word = AtomicU32::new(0);
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            word.store(1, Relaxed);
            let _guard = Unlocks(&word);
            panic!("inside");
        }));
        word.load(Relaxed);
    });
}

#[test]
fn a_panic_that_unwinds_through_no_operation_may_be_caught() {
    let report = explore(Config::exhaustive(), || {
        let word = AtomicU32::new(0);
        let caught = std::panic::catch_unwind(|| panic!("inside"));
        assert!(caught.is_err());
        word.store(1, Relaxed);
    });
    assert!(report.complete, "{report}");
}

/// The drops of a panic reach what nothing orders, and are no fault of their own.
#[test]
fn a_panic_is_the_verdict_and_not_what_its_drops_would_do() {
    let failure = failure(&Config::exhaustive(), || {
        let word = std::sync::Arc::new(AtomicU32::new(0));
        let _other = with(&word, |word| word.store(1, Relaxed));
        assert_eq!(word.load(Relaxed), 7);
    });
    assert_eq!(failure.verdict.kind(), "panic");
    let text = failure.verdict.to_string();
    assert!(text.contains("left == right") && !text.contains("race") && !text.contains("caught"), "{text}");
    assert!(!std::thread::panicking());
}

#[test]
fn the_message_of_a_panic_may_look_into_a_lock_that_is_held() {
    struct Locks<'a>(&'a ulocks_vm::sync::Mutex<u32>);
    impl std::fmt::Debug for Locks<'_> {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "holds {}", *self.0.lock().unwrap())
        }
    }
    says("panic", &["holds 5"], || {
        let lock = ulocks_vm::sync::Mutex::new(5);
        let _guard = lock.lock().unwrap();
        panic!("{:?}", Locks(&lock));
    });
}

struct Data<T>(UnsafeCell<T>);
unsafe impl<T: Send> Sync for Data<T> {}

#[test]
fn plain_accesses_that_nothing_orders_are_a_race() {
    let parts = ["thread 1 ", "thread 2 ", "verdicts.rs:", "the data"];
    let write: fn(&Data<u32>) = |data| data.0.with_mut(|data| unsafe { *data = 1 });
    let read: fn(&Data<u32>) = |data| crate::discard(data.0.with(|data| unsafe { *data }));
    let data = || Data(UnsafeCell::new(0));
    says("data race", &parts, move || crate::discard(shared(data()).threads([write, write])));
    says("data race", &parts, move || crate::discard(shared(data()).threads([write, read])));
    all_outcomes(move || crate::discard(shared(data()).threads([read, read])), [()]);
}

#[test]
fn a_guard_that_is_not_excluded_is_a_race() {
    let open: fn(&Watch) = |watch| {
        watch.open_write();
        watch.close_write();
    };
    says("data race", &["the data"], move || crate::discard(shared(Watch::new()).threads([open, open])));
    let locked = || {
        shared((ThreeStates::default(), Watch::new())).threads([
            |(lock, watch)| {
                lock.locked(|| {
                    watch.open_write();
                    watch.close_write();
                });
            },
            |(lock, watch)| {
                lock.locked(|| {
                    watch.open_write();
                    watch.close_write();
                });
            },
        ]);
    };
    all_outcomes(locked, [()]);
}

#[test]
fn guards_of_readers_overlap_and_exclude_writers() {
    let read: fn(&Watch) = |watch| {
        watch.open_read();
        watch.close_read();
    };
    let write: fn(&Watch) = |watch| {
        watch.open_write();
        watch.close_write();
    };
    all_outcomes(move || crate::discard(shared(Watch::new()).threads([read, read])), [()]);
    says("data race", &["the data"], move || crate::discard(shared(Watch::new()).threads([read, write])));
    let overlap = "at the same time";
    let alone = |watch: &Watch| {
        watch.open_read();
        watch.open_read();
        watch.close_read();
    };
    says("panic", &[overlap], move || {
        let watch = Watch::new();
        alone(&watch);
        // The access of the other reader is open still.
        watch.open_write();
    });
    says("panic", &[overlap], || {
        let watch = Watch::new();
        watch.open_write();
        watch.open_read();
    });
}

#[test]
fn an_atomic_that_was_handed_over_without_order_is_unpublished() {
    let model = |order| {
        move || {
            let slot = Arc::new(AtomicPtr::<AtomicU32>::default());
            let shared = Arc::clone(&slot);
            let maker =
                thread::spawn(move || shared.store(Box::into_raw(Box::new(AtomicU32::new(7))), order));
            let made = slot.load(Acquire);
            if !made.is_null() {
                assert_eq!(unsafe { (*made).load(Relaxed) }, 7);
            }
            maker.join().unwrap();
            drop(unsafe { Box::from_raw(slot.load(Relaxed)) });
        }
    };
    says("unordered initialisation", &["verdicts.rs:"], model(Relaxed));
    all_outcomes(model(Release), [()]);
}

#[test]
fn an_atomic_that_is_dropped_while_another_uses_it_is_found_both_ways() {
    // The last one out drops the word. The first one's last access must come before that.
    let model = |order| {
        move || {
            let word = Box::into_raw(Box::new(AtomicU32::new(2))).expose_provenance();
            let done = Arc::new(AtomicU32::new(2));
            let started = [0, 1].map(|_| {
                with(&done, move |done| {
                    let word = std::ptr::with_exposed_provenance_mut::<AtomicU32>(word);
                    unsafe { (*word).fetch_add(1, Relaxed) };
                    if done.fetch_sub(1, order) == 1 {
                        drop(unsafe { Box::from_raw(word) });
                    }
                })
            });
            started.into_iter().for_each(|thread| thread.join().unwrap());
        }
    };
    says("data race", &["drops the atomic", "accesses the atomic"], model(Relaxed));
    all_outcomes(model(ulocks_vm::sync::Ordering::AcqRel), [()]);
    let after = || {
        let word = Box::into_raw(Box::new(AtomicU32::new(0)));
        let copy = std::mem::ManuallyDrop::new(unsafe { std::ptr::read(word) });
        drop(unsafe { Box::from_raw(word) });
        copy.store(1, Relaxed);
    };
    says("use after the end", &["accesses the atomic", "drops the atomic"], after);
}

#[test]
fn an_atomic_that_outlives_its_run_is_noticed() {
    for bytes in [false, true] {
        let kept = Arc::new(Mutex::new((None::<Arc<AtomicU32>>, None::<Arc<AtomicU8>>)));
        let failure = failure(&Config::sampled(2), move || {
            let mut kept = kept.lock().unwrap();
            match &*kept {
                (Some(word), Some(byte)) => {
                    // This run has words of its own, and their numbers are not those of the last
                    // one's.
                    let _own = (AtomicU32::new(2), AtomicU8::new(2));
                    let (word, byte) = (Arc::clone(word), Arc::clone(byte));
                    drop(kept);
                    if bytes {
                        crate::discard(byte.load(Relaxed))
                    } else {
                        crate::discard(word.load(Relaxed))
                    }
                }
                _ => *kept = (Some(Arc::new(AtomicU32::new(1))), Some(Arc::new(AtomicU8::new(1)))),
            }
        });
        assert_eq!(failure.verdict.kind(), "misuse", "{failure}");
        assert!(failure.verdict.to_string().contains("outlived the execution it was made in"), "{failure}");
        assert!(failure.verdict.to_string().contains("sync_static!"), "{failure}");
    }
}

#[test]
fn a_run_in_a_run_is_refused() {
    says("panic", &["a run of the virtual machine inside another"], || {
        drop(run(&Config::exhaustive(), || ()));
    });
    explore(Config::exhaustive(), || ()); // and the machine is free again
}

#[test]
fn an_operation_outside_of_a_run_is_refused() {
    let refused = std::panic::catch_unwind(|| AtomicU32::new(0)).unwrap_err();
    let text =
        refused.downcast_ref::<String>().map_or_else(|| refused.downcast_ref::<&str>().copied(), |s| Some(s));
    assert!(text.unwrap_or_default().contains("outside of a run"), "{text:?}");
}

#[test]
fn bytes_of_one_run_hold_what_was_stored() {
    let model = || {
        let bytes: Vec<_> = (0..255).map(|value| AtomicU8::new(value as u8)).collect();
        bytes.iter().enumerate().all(|(value, byte)| byte.fetch_add(1, Relaxed) == value as u8)
            && bytes.iter().enumerate().all(|(value, byte)| byte.load(Relaxed) == (value + 1) as u8)
    };
    for _ in 0..300 {
        assert_eq!(outcomes(Config::exhaustive(), model), [true].into());
    }
}

#[test]
fn data_on_a_stack_that_is_used_again_is_no_race() {
    // The first thread's data has moved away from its stack, and not been dropped there.
    let model = || {
        let touch = || {
            thread::spawn(|| {
                let data = UnsafeCell::new([0_u32; 8]);
                data.with_mut(|data| unsafe { (*data)[0] = 1 });
                std::mem::forget(data);
            })
        };
        let first = touch();
        spin_until(|| true);
        let second = touch();
        let word = AtomicU32::new(0);
        word.load(Relaxed);
        let third = touch();
        [first, second, third].into_iter().for_each(|thread| thread.join().unwrap());
    };
    all_outcomes(model, [()]);
}

#[test]
fn a_deadlock_is_found_although_another_thread_has_ended() {
    assert!(matches!(
        verdict(|| {
            let word = Arc::new(AtomicU32::new(0));
            let ended = with(&word, |word| word.store(1, Relaxed));
            spin_until(|| word.load(Relaxed) == 2);
            ended.join().unwrap();
        }),
        Verdict::Deadlock(_)
    ));
}

/// The first execution does one thing more, or one less, than the others.
#[test]
fn a_model_that_is_not_deterministic_is_told_so_with_both_questions() {
    for more in [true, false] {
        for config in [Config::exhaustive(), Config { preemptions: Some(1), ..Config::exhaustive() }] {
            let count = Arc::new(std::sync::atomic::AtomicU32::new(0));
            let failure = failure(&config, move || {
                let (word, count) = (Arc::new(AtomicU32::new(0)), Arc::clone(&count));
                let other = with(&word, |word| word.fetch_add(1, Relaxed));
                let is_first = count.fetch_add(1, Relaxed) == 0;
                if is_first != more {
                    word.store(0, Relaxed);
                }
                word.fetch_add(1, Relaxed);
                other.join().unwrap();
            });
            let text = failure.to_string();
            assert_eq!(failure.verdict.kind(), "not deterministic", "{text}");
            assert!(text.contains("the question was first: ") && text.contains(", and now: "), "{text}");
            assert!(failure.replay.is_empty(), "{text}");
        }
    }
}
