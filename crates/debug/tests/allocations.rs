//! In the steady state a checked lock allocates nothing, and locks that come and go leak nothing.
//!
//! Each thread counts its own allocations, so that the harness does not disturb. All allocations of
//! the process are balanced too, for the locks that come and go.

#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use ulocks_debug::*;
use ulocks_testkit::allocations::{Counting, during, live};

#[global_allocator]
static COUNTING: Counting = Counting;

/// How often this thread allocates in `work`.
fn allocations(work: impl FnOnce()) -> usize {
    during(work).times
}

/// By how many bytes the process has grown after `work`.
fn grown(work: impl FnOnce()) -> usize {
    let before = live();
    work();
    live().saturating_sub(before)
}

/// Holds `locks` all at once, one in the other.
fn nest(locks: &[Mutex<u64>]) {
    if let [first, rest @ ..] = locks {
        *first.lock() += 1;
        let _held = first.lock();
        nest(rest);
    }
}

/// A wait on a condition variable, while nothing notifies.
fn wait_shortly(mutex: &Mutex<u64>, changed: &Condvar) {
    let mut guard = mutex.lock();
    changed.wait_for(&mut guard, Duration::from_micros(1));
}

/// Eight locks of eight classes.
fn eight_classes() -> [Mutex<u64>; 8] {
    static CLASSES: [Class; 8] = [
        Class::new("first"),
        Class::new("second"),
        Class::new("third"),
        Class::new("fourth"),
        Class::new("fifth"),
        Class::new("sixth"),
        Class::new("seventh"),
        Class::new("eighth"),
    ];
    [0, 1, 2, 3, 4, 5, 6, 7].map(|class: usize| Mutex::new_in(&CLASSES[class], 0))
}

#[test]
fn the_steady_state_allocates_nothing() {
    assert!(allocations(|| drop(std::hint::black_box(Box::new(7)))) == 1, "the counter counts");
    let locks = eight_classes();
    let (fair, changed) = (FairMutex::new(0), Condvar::new());
    let known = || {
        for depth in 1..=8 {
            nest(&locks[8 - depth..]);
        }
        for _ in 0..3 {
            *fair.lock() += 1;
            drop(fair.try_lock());
            drop(fair.try_lock_for(Duration::from_millis(1)));
        }
        wait_shortly(&locks[3], &changed);
        // Released in another order than that of the acquisitions.
        let (a, b, c) = (locks[0].lock(), locks[1].lock(), locks[2].lock());
        drop(a);
        drop(c);
        drop(b);
    };
    assert!(allocations(known) > 0, "the first time allocates");
    assert_eq!(allocations(|| (0..1_000).for_each(|_| known())), 0);
    // Locks that are made and dropped, of classes that are known.
    let made = || {
        let (outer, inner) = (Mutex::new(0), FairMutex::new(0));
        let _held = (outer.lock(), inner.lock());
    };
    made();
    assert_eq!(allocations(|| (0..1_000).for_each(|_| made())), 0);
}

/// An order that was reported once is remembered, and what is known is not looked for again.
#[test]
fn an_order_that_was_reported_allocates_nothing() {
    fn ignore(_: &Report) {}
    set_policy(Policy::Call(ignore));
    let (first, second) = (Mutex::new(0), FairMutex::new(0));
    drop((first.lock(), second.lock()));
    let wrong = || drop((second.lock(), first.lock()));
    assert!(allocations(wrong) > 0, "the report allocates");
    assert_eq!(allocations(|| (0..1_000).for_each(|_| wrong())), 0);
}

/// The order of locks without a class goes with them.
#[test]
fn locks_of_their_own_order_leave_nothing() {
    let come_and_go = |count: usize| {
        for _ in 0..count {
            let [outer, inner] = [(); 2].map(|()| Box::<Mutex<u64>>::default());
            drop((outer.lock(), inner.lock()));
        }
    };
    come_and_go(1_000);
    let grown = grown(|| come_and_go(20_000));
    assert!(grown < 256 << 10, "{grown} bytes more");
}

/// So does an order that was reported, although the last of its locks has no other order then.
#[test]
fn reported_orders_of_locks_leave_nothing() {
    fn ignore(_: &Report) {}
    set_policy(Policy::Call(ignore));
    let come_and_go = |count: usize| {
        for _ in 0..count {
            let [first, second, third] = [(); 3].map(|()| Box::<Mutex<u64>>::default());
            for (outer, inner) in [(&first, &second), (&second, &third), (&third, &first)] {
                drop((outer.lock(), inner.lock()));
            }
            drop(second);
        }
    };
    come_and_go(100);
    let grown = grown(|| come_and_go(20_000));
    assert!(grown < 256 << 10, "{grown} bytes more");
}

#[test]
fn contention_allocates_nothing() {
    const THREADS: usize = 4;
    let locks = eight_classes();
    let start = Barrier::new(THREADS);
    let contended = AtomicUsize::new(0);
    let work = |rounds: usize| {
        for round in 0..rounds {
            nest(&locks[round % 8..]);
            if locks[0].is_locked() {
                contended.fetch_add(1, Relaxed);
            }
            if let Some(mut first) = locks[0].try_lock_for(Duration::from_micros(50)) {
                *first += 1;
            }
        }
    };
    let counts: Vec<usize> = std::thread::scope(|scope| {
        let spawned: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    work(16);
                    start.wait();
                    allocations(|| {
                        work(2_000);
                        // On a busy machine it may take a while until threads meet.
                        while contended.load(Relaxed) == 0 {
                            work(100);
                        }
                    })
                })
            })
            .collect();
        spawned.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(counts, [0; THREADS]);

    // A waiter that sleeps for certain: it asks while the lock is held, until it is seen to wait.
    let (ready, lock) = (Barrier::new(2), &locks[0]);
    let slept = std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            drop(lock.lock());
            ready.wait();
            ready.wait();
            allocations(|| drop(lock.lock()))
        });
        ready.wait();
        let guard = lock.lock();
        ready.wait();
        ulocks_testkit::limit::until("a thread waits for a lock", || {
            held().locks().iter().any(|held| held.waiters != 0)
        });
        drop(guard);
        sleeper.join().unwrap()
    });
    assert_eq!(slept, 0);
}

#[test]
fn a_million_locks_and_their_threads_leave_nothing() {
    let come_and_go = |count: usize| {
        for _ in 0..count {
            let lock = Box::new(Mutex::new(0));
            *lock.lock() += 1;
        }
    };
    let threads = |count: usize| {
        for _ in 0..count {
            std::thread::spawn(move || come_and_go(10)).join().unwrap();
        }
    };
    come_and_go(10);
    threads(10);
    // The other tests run beside this one, and keep a little.
    let grown = grown(|| {
        come_and_go(1_000_000);
        threads(1_000);
    });
    assert!(grown < 256 << 10, "{grown} bytes more");
}
