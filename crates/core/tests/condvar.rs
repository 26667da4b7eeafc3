//! The condition variable on the machine: bounded buffers, storms of notifications, deadlines, and
//! processes.
#![cfg(world = "machine")]

mod condvar_buffer;

use condvar_buffer::{Buffer, Notify, WAYS};
use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;
use ulocks_core::condvar::{RawCondvar, Wakeup};
use ulocks_core::futex::Local;
use ulocks_core::raw::RawMutex;
use ulocks_core::time::Deadline;
use ulocks_testkit::plain::{Plain, PlainShared, ThreeState};
use ulocks_testkit::shared::{Mapping, forked};
use ulocks_testkit::stress::Random;
use ulocks_testkit::thread::{together, with};
use ulocks_testkit::{Child, interrupt, task, watchdog};

/// A mutex on whose condition variables waiters spin for a few microseconds.
type Patient = ThreeState<Local, 10_000>;

/// `pairs` producers and as many consumers.
fn bounded_buffer<L: RawMutex + Send + Sync + 'static>(
    pairs: usize,
    items: usize,
    notify: Notify,
    patience: fn(&mut Random) -> Option<Duration>,
) {
    let buffer = Arc::new(Buffer::<L>::new());
    let _watchdog = {
        let buffer = Arc::clone(&buffer);
        watchdog::watch("bounded buffer", move || buffer.state())
    };
    let shared = Arc::clone(&buffer);
    let sums = together(2 * pairs, move |me| {
        let mut random = Random::new(me);
        let mut sum = 0;
        for nth in 0..items {
            if me % 2 == 0 {
                shared.put(me * items + nth, || patience(&mut random), &notify);
                sum += me * items + nth;
            } else {
                sum += shared.take(|| patience(&mut random), &notify);
            }
        }
        sum
    });
    let put: usize = sums.iter().step_by(2).sum();
    let taken: usize = sums.iter().skip(1).step_by(2).sum();
    assert_eq!(put, taken, "items were lost or came twice");
    buffer.check_at_rest();
}

#[test]
fn a_bounded_buffer_passes_everything_on() {
    for notify in WAYS {
        bounded_buffer::<Plain>(1, 5_000, notify, |_| None);
        bounded_buffer::<Plain>(4, 2_000, notify, |_| None);
        bounded_buffer::<Patient>(1, 20_000, notify, |_| None);
        bounded_buffer::<Patient>(4, 10_000, notify, |_| None);
    }
}

#[test]
fn deadlines_lose_nothing() {
    for notify in WAYS {
        // Half of the waits have no deadline: if a wait that expires takes a notification away,
        // they hang.
        let some = |random: &mut Random| {
            (random.below(2) == 0).then(|| Duration::from_nanos(random.below(100_000).into()))
        };
        bounded_buffer::<Plain>(4, 1_000, notify, some);
        bounded_buffer::<Patient>(4, 5_000, notify, some);
    }
}

/// Threads that wait for a round number, which one thread advances; all must see each round.
/// Requeues all the time.
#[test]
fn a_storm_of_notifications_reaches_everybody() {
    const WAITERS: usize = 16;
    const ROUNDS: usize = 300;
    struct Rounds {
        mutex: Plain,
        changed: RawCondvar<Plain>,
        /// The round, and how many have seen it. Accessed under the mutex.
        round: AtomicUsize,
        seen: AtomicUsize,
        notified: AtomicUsize,
    }
    for holding in [true, false] {
        let rounds = Arc::new(Rounds {
            mutex: Plain::new(),
            changed: RawCondvar::new(),
            round: AtomicUsize::new(0),
            seen: AtomicUsize::new(WAITERS),
            notified: AtomicUsize::new(0),
        });
        let _watchdog = {
            let rounds = Arc::clone(&rounds);
            watchdog::watch("storm", move || {
                let Rounds { changed, round, seen, .. } = &*rounds;
                format!("round {round:?} seen by {seen:?}, {changed:?}")
            })
        };
        let shared = Arc::clone(&rounds);
        together(WAITERS + 1, move |me| {
            let Rounds { mutex, changed, round, seen, notified } = &*shared;
            let wait_while = |condition: &dyn Fn() -> bool| {
                while condition() {
                    // SAFETY: the mutex is held, and again when `wait` returns.
                    let _ = unsafe { changed.wait(mutex, (), None) };
                }
            };
            for nth in 1..=ROUNDS {
                mutex.lock();
                if me < WAITERS {
                    wait_while(&|| round.load(Relaxed) < nth);
                    seen.fetch_add(1, Relaxed);
                } else {
                    wait_while(&|| seen.load(Relaxed) < WAITERS);
                    seen.store(0, Relaxed);
                    round.store(nth, Relaxed);
                }
                if holding {
                    notified.fetch_add(changed.notify_all(), Relaxed);
                }
                // SAFETY: locked above, or by the last `wait`.
                unsafe { mutex.unlock(()) };
                if !holding {
                    notified.fetch_add(changed.notify_all(), Relaxed);
                }
            }
        });
        assert_eq!(rounds.seen.load(Relaxed), WAITERS);
        assert!(rounds.notified.load(Relaxed) > 0, "nobody ever waited");
        assert_eq!(rounds.changed.notify_all(), 0);
    }
}

/// Five threads that wait once, and a mutex that was locked when all of them were waiting: none can
/// leave before its release.
struct Five {
    mutex: Plain,
    condvar: RawCondvar<Plain>,
    /// Their ids in the kernel.
    inside: UnsafeCell<Vec<i32>>,
}

// SAFETY: `inside` is accessed under `mutex` only.
unsafe impl Sync for Five {}
// SAFETY: its parts are `Send`.
unsafe impl Send for Five {}

impl Five {
    fn wait() -> (Arc<Self>, Vec<JoinHandle<Wakeup>>) {
        let five = Arc::new(Self {
            mutex: Plain::new(),
            condvar: RawCondvar::new(),
            inside: UnsafeCell::new(Vec::new()),
        });
        let waiters = (0..5)
            .map(|_| {
                with(&five, |five| {
                    five.mutex.lock();
                    // SAFETY: the mutex is held.
                    unsafe { (*five.inside.get()).push(task::id()) };
                    // SAFETY: the mutex is held.
                    let ((), wakeup) = unsafe { five.condvar.wait(&five.mutex, (), None) };
                    // SAFETY: `wait` returned holding it.
                    unsafe { five.mutex.unlock(()) };
                    wakeup
                })
            })
            .collect();
        five.mutex.lock();
        // SAFETY: the mutex is held.
        while unsafe { (*five.inside.get()).len() } < 5 {
            // SAFETY: locked above or below.
            unsafe { five.mutex.unlock(()) };
            std::thread::yield_now();
            five.mutex.lock();
        }
        (five, waiters)
    }

    /// Returns when the kernel says that all five sleep.
    fn until_asleep(&self) {
        // SAFETY: the mutex is held by the only thread that calls this.
        task::until_asleep(unsafe { &*self.inside.get() });
    }

    /// Lets them go.
    fn release(&self, waiters: Vec<JoinHandle<Wakeup>>) {
        // SAFETY: locked by `wait`.
        unsafe { self.mutex.unlock(()) };
        for waiter in waiters {
            assert_eq!(waiter.join().unwrap(), Wakeup::Notified);
        }
        assert!(!self.condvar.notify_one());
    }
}

/// The counts are exact when all waiters are asleep: a waiter on its way returns as well as the one
/// that is notified.
#[test]
fn notifications_are_counted() {
    let (five, waiters) = Five::wait();
    five.until_asleep();
    assert!(five.condvar.notify_one());
    assert!(five.condvar.notify_one());
    assert_eq!(five.condvar.notify_all(), 3);
    assert!(!five.condvar.notify_one());
    assert_eq!(five.condvar.notify_all(), 0);
    five.release(waiters);
}

/// One of the sleepers is woken; the others are moved to the mutex and do not notice.
#[test]
fn notify_all_requeues() {
    let (five, waiters) = Five::wait();
    let _watchdog = {
        let five = Arc::clone(&five);
        watchdog::watch("requeue", move || format!("{:?}", five.condvar))
    };
    five.until_asleep();
    assert_eq!(five.condvar.notify_all(), 5);
    // The mutex is held, so all are moved there, and none is woken.
    five.until_asleep();
    assert_eq!(format!("{:?}", five.condvar), "RawCondvar(waiting=5 spinning=0 granted=5 REQUEUED epoch=1)");
    five.release(waiters);
}

#[test]
fn a_wait_outlasts_its_deadline() {
    let (mutex, condvar) = (Plain::new(), RawCondvar::<Plain>::new());
    for timeout in [Duration::ZERO, Duration::from_millis(20)] {
        let deadline = Deadline::after(timeout);
        mutex.lock();
        loop {
            // SAFETY: the mutex is held, and again when `wait` returns.
            let ((), wakeup) = unsafe { condvar.wait(&mutex, (), Some(deadline)) };
            if wakeup == Wakeup::TimedOut {
                break;
            }
        }
        assert!(deadline.has_passed());
        // SAFETY: held since the last `wait`.
        unsafe { mutex.unlock(()) };
    }
    assert!(!condvar.notify_one());
}

/// Two mutexes with one condition variable, and a broadcast that may requeue: all return,
/// and both mutexes stay usable.
#[test]
fn two_mutexes_at_once() {
    struct Two {
        mutexes: [Plain; 2],
        condvar: RawCondvar<Plain>,
        open: [AtomicUsize; 2],
    }
    for _ in 0..100 {
        let two = Arc::new(Two {
            mutexes: [Plain::new(), Plain::new()],
            condvar: RawCondvar::new(),
            open: [const { AtomicUsize::new(0) }; 2],
        });
        let _watchdog = {
            let two = Arc::clone(&two);
            watchdog::watch("two mutexes", move || format!("{:?}", two.condvar))
        };
        let shared = Arc::clone(&two);
        together(9, move |me| {
            let Two { mutexes, condvar, open } = &*shared;
            if me < 8 {
                let mutex = &mutexes[me % 2];
                mutex.lock();
                while open[me % 2].load(Relaxed) == 0 {
                    // SAFETY: the mutex is held, and again when `wait` returns.
                    let _ = unsafe { condvar.wait(mutex, (), None) };
                }
                // SAFETY: as above.
                unsafe { mutex.unlock(()) };
            } else {
                for (mutex, open) in mutexes.iter().zip(open) {
                    mutex.lock();
                    open.store(1, Relaxed);
                    condvar.notify_all();
                    // SAFETY: locked above.
                    unsafe { mutex.unlock(()) };
                }
            }
        });
        assert_eq!(two.condvar.notify_all(), 0);
    }
}

/// A buffer in zeroed shared memory, never initialised; producers and consumers are forked
/// processes.
#[test]
fn processes_share_a_buffer() {
    const PAIRS: usize = 3;
    const ITEMS: usize = 1_000;
    for notify in WAYS {
        let mapping = Mapping::shared();
        // SAFETY: the page is zeroed: an unlocked mutex, two condition variables without waiters,
        // an empty ring.
        let buffer = unsafe { &*mapping.place::<Buffer<PlainShared>>() };
        let sums = Mapping::shared();
        // SAFETY: the page is zeroed and large enough.
        let sums = unsafe { &*sums.leak::<[AtomicUsize; 2 * PAIRS]>() };
        let address = std::ptr::from_ref(buffer).expose_provenance();
        let _watchdog = watchdog::watch("shared buffer", move || {
            // SAFETY: the mapping outlives the watchdog.
            unsafe { &*std::ptr::with_exposed_provenance::<Buffer<PlainShared>>(address) }.state()
        });
        forked(2 * PAIRS, |me| {
            let mut random = Random::new(me);
            let mut patience =
                || (random.below(4) == 0).then(|| Duration::from_nanos(random.below(100_000).into()));
            for nth in 0..ITEMS {
                let item = if me % 2 == 0 {
                    buffer.put(me * ITEMS + nth, &mut patience, &notify);
                    me * ITEMS + nth
                } else {
                    buffer.take(&mut patience, &notify)
                };
                sums[me].fetch_add(item, Relaxed);
            }
        });
        let of =
            |first: usize| sums.iter().skip(first).step_by(2).map(|sum| sum.load(Relaxed)).sum::<usize>();
        assert_eq!(of(0), of(1), "items were lost or came twice");
        buffer.check_at_rest();
    }
}

/// A condition variable whose count of waiters is wrong, because a waiter was killed, still works.
#[test]
fn a_killed_waiter_does_no_harm() {
    let mapping = Mapping::shared();
    // SAFETY: the page is zeroed.
    let buffer = unsafe { &*mapping.place::<Buffer<PlainShared>>() };
    let notify = WAYS[0];
    let child = Child::runs(|| _ = buffer.take(|| None, &notify));
    ulocks_testkit::limit::until("a thread waits", || buffer.waits.load(Relaxed) != 0);
    // The thread that gets the mutex now knows that the child has released it, hence is registered.
    buffer.mutex.lock();
    child.killed();
    // SAFETY: locked above.
    unsafe { buffer.mutex.unlock(()) };
    let _watchdog = watchdog::watch("killed waiter", || "after the kill".to_owned());
    forked(2, |me| {
        for nth in 0..1_000 {
            if me == 0 {
                buffer.put(nth, || None, &notify)
            } else {
                assert_eq!(buffer.take(|| None, &notify), nth)
            }
        }
    });
    assert!(!buffer.mutex.is_locked());
}

#[test]
fn a_handler_ends_a_wait_that_asks_for_it() {
    interrupt::condvar::<Plain>();
}
