//! The semaphore.

use crate::closing::{
    a_close_publishes, a_grant_before_the_close_is_kept, all_leave, the_count_publishes,
    the_large_one_at_the_head_leaves_too, users_come_until_it_is_closed, who_asks_learns,
};
use crate::permits::{
    Binary, a_permit_that_nobody_waits_for_can_be_had, a_release_publishes, never_more_out_than_in,
    overflow_changes_nothing, producers_and_consumers, the_acquirer_frees, the_large_one_is_not_overtaken,
    timeout_against_release, who_gives_up_lets_others_pass,
};
use crate::way::{ByTasks, Way};
use std::sync::Arc;
use ulocks_core::Private;
use ulocks_core::model::linear::specs::{self, SemaphoreCall};
use ulocks_core::model::linear::{Recorder, Specification};
use ulocks_core::model::signal::{self, Signal};
use ulocks_core::model::thread::spawn;
use ulocks_core::model::{Config, explore};
use ulocks_core::spin::NoSpin;
use ulocks_core::time::Deadline;
use ulocks_fair::RawSemaphore;
use ulocks_testkit::model;
use ulocks_testkit::thread::with;

/// Waiters sleep at once: fewer steps, hence more executions of what is left.
type Sleeps = Private<NoSpin>;

/// Runs `check` on the semaphore in its variants, each with a chance of its own.
macro_rules! on_each {
    ($check:ident) => {
        $check::<Private>(1);
        $check::<Sleeps>(2);
        $check::<ByTasks<Sleeps>>(3);
        $check::<ByTasks<Sleeps, true, 2>>(4);
        $check::<ByTasks<Sleeps, false>>(5);
        $check::<ByTasks<Private>>(6);
    };
}

/// How many executions of a model of so many threads: about as many steps for each number.
fn sampled(threads: usize, seed: u64) -> Config {
    Config { spurious: 2, seed, ..Config::sampled(4_000 / threads as u64) }
}

#[test]
fn one_permit_is_a_mutex() {
    fn check<P: Way>(seed: u64) {
        explore(sampled(3, seed), || model::exclusion::<Binary<P>>(3));
        for threads in [4, 16] {
            explore(sampled(threads, seed), move || model::no_lost_wake::<Binary<P>>(threads, 2));
        }
        explore(sampled(4, seed), || model::try_lock_coherence::<Binary<P>>(4));
    }
    on_each!(check);
}

#[test]
fn never_more_are_out_than_in() {
    fn check<P: Way>(seed: u64) {
        for (threads, permits) in [(3, 2), (8, 3), (12, 5)] {
            explore(sampled(threads, seed), move || never_more_out_than_in::<P>(threads, permits));
        }
    }
    on_each!(check);
}

#[test]
fn a_permit_without_waiters_can_be_had() {
    fn check<P: Way>(seed: u64) {
        let more = Config { executions: 4_000, ..sampled(2, seed) };
        explore(more, a_permit_that_nobody_waits_for_can_be_had::<P>);
    }
    on_each!(check);
}

#[test]
fn a_release_is_seen_by_who_gets_its_permits() {
    fn check<P: Way>(seed: u64) {
        explore(Config { seed, ..Config::sampled(5_000) }, a_release_publishes::<P>);
    }
    on_each!(check);
}

#[test]
fn nobody_sleeps_for_ever() {
    fn check<P: Way>(seed: u64) {
        explore(sampled(4, seed), || producers_and_consumers::<P>(2, 2, false));
        explore(sampled(12, seed), || producers_and_consumers::<P>(4, 8, false));
        explore(sampled(4, seed), || producers_and_consumers::<P>(1, 3, true));
        explore(sampled(16, seed), || producers_and_consumers::<P>(1, 15, true));
        explore(Config { seed, ..Config::sampled(200) }, || model::no_lost_wake::<Binary<P>>(4, 20));
    }
    on_each!(check);
}

#[test]
fn the_first_in_line_is_first() {
    fn check<P: Way>(seed: u64) {
        for small in [1, 3, 8] {
            explore(sampled(2 + small, seed), move || the_large_one_is_not_overtaken::<P>(small));
        }
    }
    on_each!(check);
}

#[test]
fn a_timeout_loses_no_permit_and_strands_nobody() {
    fn check<P: Way>(seed: u64) {
        for (timed, patient) in [(1, 0), (1, 1), (2, 2), (6, 6)] {
            explore(sampled(1 + timed + patient, seed), move || {
                timeout_against_release::<P>(timed, patient);
            });
        }
        explore(sampled(20, seed), || timeout_against_release::<P>(16, 3));
        for behind in [1, 2, 8] {
            explore(sampled(1 + behind, seed), move || who_gives_up_lets_others_pass::<P>(behind));
        }
        explore(sampled(8, seed), || model::timeout_vs_unlock::<Binary<P>>(8));
    }
    on_each!(check);
}

#[test]
fn an_interrupted_waiter_strands_nobody() {
    fn check<P: Way>(seed: u64) {
        for threads in [3, 8] {
            explore(sampled(threads, seed), move || model::interrupt_vs_unlock::<Binary<P>>(threads));
        }
    }
    check::<Private>(1);
    check::<Sleeps>(2);
}

#[test]
fn the_release_touches_the_semaphore_no_more() {
    fn check<P: Way>(seed: u64) {
        explore(Config { seed, ..Config::sampled(5_000) }, the_acquirer_frees::<P>);
        explore(sampled(8, seed), || model::last_unlocker_frees::<Binary<P>>(8));
    }
    on_each!(check);
}

#[test]
fn an_overflow_changes_nothing() {
    fn check<P: Way>(seed: u64) {
        for waiting in [false, true] {
            explore(sampled(3, seed), move || overflow_changes_nothing::<P>(waiting));
        }
    }
    on_each!(check);
}

/// Every history of a few operations is one of a sequential semaphore's.
#[test]
fn histories_are_those_of_a_semaphore() {
    fn check<P: Way>(seed: u64) {
        let config = Config { seed, ..Config::sampled(3_000) };
        explore(config, || {
            let semaphore = Arc::new(RawSemaphore::<P>::new(2));
            let recorder = Recorder::new();
            let threads: Vec<_> = (0..4_u32)
                .map(|me| {
                    let (semaphore, recorder) = (Arc::clone(&semaphore), recorder.clone());
                    spawn(move || {
                        let wanted = 1 + me % 2;
                        let deadline = || Deadline::after(core::time::Duration::from_millis(1));
                        let (wanted_64, acquire) = (u64::from(wanted), wanted == 1);
                        let had = if acquire {
                            recorder.record(SemaphoreCall::Acquire(wanted_64), || {
                                P::acquire(&semaphore, wanted);
                                true
                            })
                        } else {
                            // In line, permits are there for another thread.
                            recorder.record(SemaphoreCall::Attempt(wanted_64), || {
                                P::acquire_until(&semaphore, wanted, deadline())
                            })
                        };
                        let again = recorder.record(SemaphoreCall::Attempt(1), || semaphore.try_acquire(1));
                        let back = u32::from(again) + if had { wanted } else { 0 };
                        recorder
                            .record(SemaphoreCall::Release(back.into()), || semaphore.release(back).is_ok());
                    })
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            recorder.check(&specs::Semaphore(2)).unwrap_or_else(|error| panic!("{error}"));
        });
    }
    on_each!(check);
}

/// No waiter sleeps for ever after the close, whoever comes, goes or gives up at that time.
#[test]
fn all_leave_when_it_is_closed() {
    fn check<P: Way>(seed: u64) {
        for (patient, timed, released, closers) in
            [(1, 0, 1, 1), (2, 0, 1, 1), (2, 2, 2, 1), (3, 0, 2, 2), (8, 4, 5, 1), (16, 16, 9, 2)]
        {
            explore(sampled(1 + patient + timed + closers, seed), move || {
                all_leave::<P>(patient, timed, released, closers);
            });
        }
        for small in [1, 2, 8] {
            explore(sampled(2 + small, seed), move || the_large_one_at_the_head_leaves_too::<P>(small));
        }
        explore(sampled(2, seed), a_grant_before_the_close_is_kept::<P>);
        for (threads, permits) in [(2, 2), (4, 2), (12, 3)] {
            explore(sampled(1 + threads, seed), move || {
                users_come_until_it_is_closed::<P>(threads, permits, 3);
            });
        }
    }
    on_each!(check);
}

#[test]
fn a_close_is_seen_by_who_gets_its_error() {
    fn check<P: Way>(seed: u64) {
        for waiters in [1, 2, 6] {
            explore(sampled(1 + waiters, seed), move || a_close_publishes::<P>(waiters));
        }
        explore(sampled(2, seed), who_asks_learns::<P>);
        explore(sampled(3, seed), the_count_publishes::<P>);
    }
    on_each!(check);
}

/// A semaphore that is closed by one of its operations.
struct Closable(u64);

#[derive(Debug)]
enum Call {
    /// Waits for so many permits as long as that takes; returns whether it has them.
    Acquire(u64),
    /// The same, but gives up whenever it likes.
    Attempt(u64),
    Release(u64),
    Close,
}

impl Specification for Closable {
    /// How many permits there are, and whether it is closed.
    type State = (u64, bool);
    type Call = Call;
    type Return = u64;

    fn start(&self) -> (u64, bool) {
        (self.0, false)
    }

    fn outcomes(
        &self,
        &(permits, closed): &(u64, bool),
        call: &Call,
    ) -> impl IntoIterator<Item = ((u64, bool), u64)> {
        let refused = Some(((permits, closed), 0));
        let take = |count| (!closed).then(|| Some(((permits.checked_sub(count)?, false), 1))).flatten();
        let (first, second) = match *call {
            Call::Acquire(count) => (take(count), refused.filter(|_| closed)),
            Call::Attempt(count) => (take(count), refused),
            Call::Release(count) => (Some(((permits + count, closed), 1)), None),
            Call::Close => (Some(((permits, true), 1)), None),
        };
        first.into_iter().chain(second)
    }
}

/// Every history with a close in it is that of a semaphore which gives no permits from one moment
/// on.
#[test]
fn histories_with_a_close_are_those_of_a_semaphore() {
    fn check<P: Way>(seed: u64) {
        explore(Config { seed, ..Config::sampled(3_000) }, || {
            let semaphore = Arc::new(RawSemaphore::<P>::new(2));
            let recorder = Recorder::new();
            let threads: Vec<_> = (0..4_u32)
                .map(|me| {
                    let (semaphore, recorder) = (Arc::clone(&semaphore), recorder.clone());
                    spawn(move || {
                        let wanted = 1 + me % 2;
                        let acquire = || u64::from(P::acquire_unless_closed(&semaphore, wanted).is_ok());
                        let had = recorder.record(Call::Acquire(wanted.into()), acquire);
                        if me == 0 {
                            recorder.record(Call::Close, || {
                                semaphore.close();
                                semaphore.is_closed().into()
                            });
                        }
                        let again = recorder.record(Call::Attempt(1), || semaphore.try_acquire(1).into());
                        let back = again as u32 + if had > 0 { wanted } else { 0 };
                        recorder
                            .record(Call::Release(back.into()), || semaphore.release(back).is_ok().into());
                    })
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            recorder.check(&Closable(2)).unwrap_or_else(|error| panic!("{error}"));
        });
    }
    on_each!(check);
}

/// A handler that releases strikes a thread at any step of an acquisition, of a release, of a
/// timeout.
#[test]
fn a_signal_handler_may_release() {
    fn check<P: Way>(seed: u64) {
        let config = Config { seed, ..Config::sampled(4_000) };
        explore(config, || {
            let semaphore = Arc::new(RawSemaphore::<P>::new(0));
            let waiter = with(&semaphore, |semaphore| semaphore.acquire(2));
            let handled = Arc::clone(&semaphore);
            let usr1 = Signal::new(10);
            signal::install(usr1, 0, move || handled.release(1).expect("room"));
            let struck = with(&semaphore, |semaphore| {
                let soon = Deadline::after(core::time::Duration::from_millis(1));
                let had = semaphore.acquire_until(1, soon);
                semaphore.release(1 + u32::from(had)).expect("room");
            });
            signal::send(2, usr1);
            semaphore.release(1).expect("room");
            waiter.join().unwrap();
            struck.join().unwrap();
            // One from each of the three, less the two that were taken; the signal may come after
            // the end of its thread.
            assert_eq!(semaphore.waiters(), 0);
            assert!(semaphore.available() <= 1, "{semaphore:?}");
        });
    }
    check::<Private>(1);
    check::<Sleeps>(2);
}

/// A handler that closes strikes a thread at any step of an acquisition, of a release, of a
/// timeout, of a close.
#[test]
fn a_signal_handler_may_close() {
    fn check<P: Way>(seed: u64) {
        explore(Config { seed, ..Config::sampled(4_000) }, || {
            let semaphore = Arc::new(RawSemaphore::<P>::new(0));
            let waiter = with(&semaphore, |semaphore| semaphore.acquire_unless_closed(2));
            let handled = Arc::clone(&semaphore);
            let usr1 = Signal::new(10);
            signal::install(usr1, 0, move || handled.close());
            let struck = with(&semaphore, |semaphore| {
                let soon = Deadline::after(core::time::Duration::from_millis(1));
                let had = semaphore.acquire_until(1, soon);
                semaphore.release(1 + u32::from(had)).expect("room");
                semaphore.close();
            });
            signal::send(2, usr1);
            semaphore.release(1).expect("room");
            let had = waiter.join().unwrap().map_or(0, |()| 2);
            struck.join().unwrap();
            assert!(semaphore.is_closed());
            assert_eq!((semaphore.waiters(), semaphore.available()), (0, 2 - had));
        });
    }
    check::<Private>(1);
    check::<Sleeps>(2);
}
