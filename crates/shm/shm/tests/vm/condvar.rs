//! The condition variable of the robust mutexes. No waiter looks again after a time.

use crate::place::{Fair, Mutex, at_each_step, join, sampled, slots, soon};
use std::sync::Arc;
use ulocks_core::Shared;
use ulocks_core::model::{Config, Deaths, Kernel, explore, thread};
use ulocks_core::spin::NoSpin;
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_core::sync::{AtomicU32, spin_until, yield_now};
use ulocks_shm::robust::RawRobust;
use ulocks_shm::slots::Slot;
use ulocks_shm::{self as shm, Condvar, LockError, LockResult, Member, MutexGuard, OrRepairBy};
use ulocks_testkit::thread::with;

/// Items, and the threads that take them.
struct Place<L: RawRobust> {
    slots: [Slot; 6],
    items: shm::Mutex<AtomicU32, L>,
    arrived: Condvar<Shared<NoSpin>>,
    /// The items, for a look without the mutex.
    seen: AtomicU32,
}

impl<L: RawRobust> Place<L> {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            slots: slots(),
            items: shm::Mutex::new(AtomicU32::new(0)),
            arrived: Condvar::new(),
            seen: AtomicU32::new(0),
        })
    }

    fn join(&self) -> Member<'_> {
        join(self, &self.slots)
    }

    /// The number of items is whole at each moment.
    fn held<'a>(how: LockResult<'a, AtomicU32, L>) -> MutexGuard<'a, AtomicU32, L> {
        match how {
            Ok(guard) => guard,
            Err(LockError::OwnerDied(mut guard)) => {
                guard.mark_consistent();
                guard
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn store(&self, guard: &MutexGuard<'_, AtomicU32, L>, items: u32) {
        // First, so that a thread that dies between the two has not taken it unseen.
        self.seen.store(items, Relaxed);
        guard.store(items, Relaxed);
    }

    /// Takes one item; if `timed`, only if it comes in time.
    fn takes(&self, me: &Member<'_>, timed: bool) {
        let mut guard = Self::held(self.items.lock(me));
        while guard.load(Relaxed) == 0 {
            if timed {
                let in_time =
                    self.arrived.wait_until(&mut guard, soon()).or_repair_by(&mut guard, |_| ()).unwrap();
                if !in_time && guard.load(Relaxed) == 0 {
                    return;
                }
            } else {
                self.arrived.wait(&mut guard).or_repair_by(&mut guard, |_| ()).unwrap();
            }
        }
        self.store(&guard, guard.load(Relaxed) - 1);
    }

    fn brings(&self, me: &Member<'_>, all: bool) {
        let guard = Self::held(self.items.lock(me));
        self.store(&guard, guard.load(Relaxed) + 1);
        drop(guard);
        if all {
            self.arrived.notify_all(me);
        } else {
            self.arrived.notify_one(me);
        }
    }

    fn taker(self: &Arc<Self>, timed: bool) -> thread::JoinHandle<()> {
        with(self, move |place| {
            let me = place.join();
            place.takes(&me, timed);
            std::mem::forget(me);
        })
    }
}

/// `N` threads take an item each, of which the last may be `timed`. Each item is brought when the
/// one before it is gone, with a notification for one waiter, or for `all`.
fn one_after_the_other<L: RawRobust, const N: usize>(timed: bool, all: bool) -> impl Fn() + Clone + 'static {
    move || {
        let place = Place::<L>::new();
        let me = place.join();
        let threads: Vec<_> = (1..=N).map(|nth| place.taker(timed && nth == N)).collect();
        // So many steps that all others are asleep, mostly.
        (0..40 * N).for_each(|_| yield_now());
        for nth in 1..=N {
            place.brings(&me, all);
            if nth < N {
                spin_until(|| place.seen.load(Relaxed) == 0);
            }
        }
        std::mem::forget(me);
        threads.into_iter().for_each(|thread| _ = thread.join());
    }
}

#[test]
fn each_notification_wakes_a_waiter() {
    for kernel in Kernel::ALL {
        for all in [false, true] {
            explore(sampled(2, kernel), one_after_the_other::<Mutex, 1>(false, all));
            explore(sampled(3, kernel), one_after_the_other::<Mutex, 2>(false, all));
            explore(sampled(4, kernel), one_after_the_other::<Fair, 3>(false, all));
        }
    }
}

#[test]
fn a_notification_is_not_lost_to_a_timeout() {
    for kernel in Kernel::ALL {
        let config = Config { timeouts: true, ..sampled(3, kernel) };
        let model = || {
            let place = Place::<Mutex>::new();
            let me = place.join();
            let (timed, other) = (place.taker(true), place.taker(false));
            (0..80).for_each(|_| yield_now());
            place.brings(&me, false);
            place.brings(&me, false);
            std::mem::forget(me);
            timed.join().unwrap();
            other.join().unwrap();
        };
        explore(config, model);
    }
}

#[test]
fn a_notification_is_not_lost_to_a_death() {
    for kernel in Kernel::ALL {
        at_each_step(1, kernel, false, 12, one_after_the_other::<Mutex, 2>(false, false));
        at_each_step(1, kernel, false, 12, one_after_the_other::<Fair, 2>(false, false));
        let config = |threads| Config { deaths: Deaths::Threads(1), ..sampled(threads, kernel) };
        explore(config(3), one_after_the_other::<Mutex, 3>(false, false));
        explore(config(3), one_after_the_other::<Fair, 3>(false, true));
    }
}

/// The waiter behind thread 1 leaves when its time is over. The one behind both takes an item, as
/// soon as there is one for each of the two.
fn behind_a_timeout<L: RawRobust>() -> impl Fn() + Clone + 'static {
    move || {
        let place = Place::<L>::new();
        let me = place.join();
        let (dying, timed, last) = (place.taker(false), place.taker(true), place.taker(false));
        timed.join().unwrap();
        for _ in 0..2 {
            place.brings(&me, false);
            spin_until(|| place.seen.load(Relaxed) == 0 || last.is_finished());
        }
        std::mem::forget(me);
        last.join().unwrap();
        _ = dying.join();
    }
}

#[test]
fn a_notification_is_not_lost_to_a_death_and_a_timeout() {
    for kernel in Kernel::ALL {
        at_each_step(1, kernel, true, 12, behind_a_timeout::<Mutex>());
        at_each_step(1, kernel, true, 12, behind_a_timeout::<Fair>());
    }
}
