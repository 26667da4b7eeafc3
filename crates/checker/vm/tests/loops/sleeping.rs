//! Loops in which a thread may sleep on a futex, or find that it need not.

use crate::{Data, completes, each, fails, outcomes};
use core::time::Duration;
use std::collections::BTreeSet;
use ulocks_vm::clock::Clock::Monotonic;
use ulocks_vm::clock::{Time, has_passed, now};
use ulocks_vm::explore::{Config, Strategy, run};
use ulocks_vm::futex::{self, Waited};
use ulocks_vm::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_vm::sync::{AtomicU32, yield_now};

fn wait(word: &AtomicU32, expected: u32) {
    _ = futex::wait(word, expected, u32::MAX, None, true);
}

fn wake(word: &AtomicU32, count: u32) {
    _ = futex::wake(core::ptr::from_ref(word).addr(), count, u32::MAX, true);
}

/// The mutexes of U. Drepper, *Futexes Are Tricky*, 2011, and mistakes in them.
#[derive(Clone, Copy, PartialEq)]
enum Mutex {
    /// The first one: a counter. It may be overtaken for ever, but each execution ends.
    First,
    Second,
    Third,
    /// The third one. A woken thread takes it as if nobody waited.
    OneAfterWakeUp,
    /// The third one, released without an order.
    Relaxed,
    /// The third one. A thread says that it waits after it has slept.
    NotSaid,
}

impl Mutex {
    fn lock(self, word: &AtomicU32) {
        match self {
            Self::First => loop {
                let before = word.fetch_add(1, Acquire);
                if before == 0 {
                    return;
                }
                wait(word, before + 1);
            },
            Self::Second => {
                let Err(mut seen) = word.compare_exchange(0, 1, Acquire, Acquire) else { return };
                loop {
                    if seen == 2 || word.compare_exchange(1, 2, Acquire, Acquire) != Err(0) {
                        wait(word, 2);
                    }
                    match word.compare_exchange(0, 2, Acquire, Acquire) {
                        Ok(_) => return,
                        Err(now) => seen = now,
                    }
                }
            }
            Self::OneAfterWakeUp => {
                if word.compare_exchange(0, 1, Acquire, Relaxed).is_ok() {
                    return;
                }
                let mut seen = word.swap(2, Acquire);
                while seen != 0 {
                    wait(word, 2);
                    seen = word.swap(1, Acquire);
                }
            }
            Self::Third | Self::Relaxed | Self::NotSaid => {
                if word.compare_exchange(0, 1, Acquire, Relaxed).is_ok() {
                    return;
                }
                let mine = if self == Self::NotSaid { 1 } else { 2 };
                while word.swap(mine, Acquire) != 0 {
                    wait(word, mine);
                }
            }
        }
    }

    fn unlock(self, word: &AtomicU32) {
        match self {
            Self::First => {
                word.store(0, Release);
                wake(word, 1);
            }
            Self::Second => {
                if word.fetch_sub(1, Release) != 1 {
                    word.store(0, Release);
                    wake(word, 1);
                }
            }
            Self::Third | Self::NotSaid | Self::OneAfterWakeUp => {
                if word.swap(0, Release) == 2 {
                    wake(word, 1);
                }
            }
            Self::Relaxed => {
                if word.swap(0, Relaxed) == 2 {
                    wake(word, 1);
                }
            }
        }
    }

    fn counting(self, threads: usize) -> impl Fn() + Clone + 'static {
        move || {
            let state = (AtomicU32::new(0), Data::default(), self);
            let (_, state) = each(threads, state, |(word, data, mutex), _| {
                mutex.lock(word);
                data.add();
                mutex.unlock(word);
            });
            assert_eq!(state.1.get() as usize, threads);
        }
    }
}

#[test]
fn the_first_mutex() {
    completes(Mutex::First.counting(2));
}

#[test]
fn the_second_mutex() {
    completes(Mutex::Second.counting(2));
}

#[test]
fn the_third_mutex() {
    completes(Mutex::Third.counting(2));
    completes(Mutex::Third.counting(3));
    fails("data race", Mutex::Relaxed.counting(2));
    fails("lost wake-up", Mutex::NotSaid.counting(2));
    completes(Mutex::OneAfterWakeUp.counting(2));
    fails("lost wake-up", Mutex::OneAfterWakeUp.counting(3));
}

/// A flag that is polled so often, and slept on then.
fn spin_then_sleep(polls: u32, is_woken: bool) -> impl Fn() + Clone + 'static {
    move || {
        let state = (AtomicU32::new(0), Data::default(), polls, is_woken);
        each(2, state, |(flag, data, polls, is_woken), me| {
            if me == 0 {
                data.add();
                flag.store(1, Release);
                if *is_woken {
                    wake(flag, 1);
                }
                return;
            }
            'done: loop {
                for _ in 0..*polls {
                    if flag.load(Acquire) == 1 {
                        break 'done;
                    }
                }
                wait(flag, 0);
            }
            data.get();
        });
    }
}

#[test]
fn polls_and_then_a_sleep() {
    completes(spin_then_sleep(1, true));
    completes(spin_then_sleep(2, true));
    fails("lost wake-up", spin_then_sleep(2, false));
}

/// A thread that asks for a sleep it never gets spins, and the holder ends it.
#[test]
fn a_wait_for_what_is_not_there_is_a_poll() {
    let model = |is_freed: bool| {
        move || {
            let state = (AtomicU32::new(1), is_freed);
            each(2, state, |(word, is_freed), me| {
                if me == 0 {
                    while word.swap(1, Acquire) != 0 {
                        wait(word, 2);
                    }
                } else if *is_freed {
                    word.store(0, Release);
                }
            });
        }
    };
    completes(model(true));
    fails("deadlock", model(false));
}

/// A condition variable of a sequence, in a loop around the predicate.
fn condition(is_read_in_time: bool) -> impl Fn() + Clone + 'static {
    move || {
        let state = ([0; 3].map(AtomicU32::new), is_read_in_time);
        each(2, state, |([mutex, ready, sequence], is_read_in_time), me| {
            Mutex::Third.lock(mutex);
            if me == 0 {
                ready.store(1, Relaxed);
                Mutex::Third.unlock(mutex);
                sequence.fetch_add(1, Release);
                wake(sequence, 1);
                return;
            }
            while ready.load(Relaxed) == 0 {
                let before = sequence.load(Acquire);
                Mutex::Third.unlock(mutex);
                let seen = if *is_read_in_time { before } else { sequence.load(Acquire) };
                wait(sequence, seen);
                Mutex::Third.lock(mutex);
            }
            Mutex::Third.unlock(mutex);
        });
    }
}

#[test]
fn a_condition_variable() {
    completes(condition(true));
    fails("lost wake-up", condition(false));
}

/// A loop of timed waits, each of which may end without a wake-up.
#[test]
fn waits_that_end_for_no_reason_are_repeated() {
    let config = Config { spurious: 2, ..crate::exhaustive() };
    let model = || {
        each(2, AtomicU32::new(0), |flag, me| {
            if me == 0 {
                flag.store(1, Release);
                wake(flag, 1);
            } else {
                while flag.load(Acquire) == 0 {
                    wait(flag, 0);
                }
            }
        });
    };
    assert!(run(&config, model).unwrap().finished);
}

/// A loop of nothing but futex waits that return at once.
#[test]
fn waits_that_return_at_once() {
    completes(|| {
        each(2, AtomicU32::new(1), |word, me| {
            if me == 0 {
                return word.store(0, Release);
            }
            let second = Duration::from_secs(1);
            let deadline = Time { clock: Monotonic, since_zero: now(Monotonic) + second };
            while futex::wait(word, 0, u32::MAX, Some(deadline), true) == Waited::Mismatch {}
        });
    });
}

/// A flag, or a deadline.
#[test]
fn a_deadline_ends_a_loop() {
    let seen = |is_set: bool| {
        outcomes(move || {
            let (seen, _) = each(2, (AtomicU32::new(0), is_set), |(flag, is_set), me| {
                if me == 0 {
                    flag.store(u32::from(*is_set), Release);
                    return 0;
                }
                let second = Duration::from_secs(1);
                let deadline = Time { clock: Monotonic, since_zero: now(Monotonic) + second };
                while flag.load(Acquire) == 0 {
                    if has_passed(deadline) {
                        return 2;
                    }
                }
                1
            });
            seen[1]
        })
    };
    assert_eq!(seen(true), BTreeSet::from([1, 2]));
    assert_eq!(seen(false), BTreeSet::from([2]));
}

/// A thread that is woken, and finds the word as it was, sleeps again.
#[test]
fn a_round_that_slept_was_not_in_vain() {
    let model = || {
        each(2, AtomicU32::new(0), |word, me| {
            if me == 0 {
                while word.load(Acquire) == 0 {
                    wait(word, 0);
                }
                return;
            }
            for _ in 0..5 {
                while futex::wake(core::ptr::from_ref(word).addr(), 1, u32::MAX, true) == 0 {
                    yield_now();
                }
            }
            word.store(1, Release);
            wake(word, 1);
        });
    };
    // All executions are without end: the other may wake before there is a sleeper.
    let config = Config { strategy: Strategy::Random, spurious: 0, ..Config::sampled(100) };
    let report = run(&config, model).unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(report.executions, 100);
}
