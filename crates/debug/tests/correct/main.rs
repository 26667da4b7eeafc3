//! Correct programs of which nothing is reported, and programs that are large.

#![cfg(not(any(ulocks_loom, ulocks_vm)))]

mod awaits;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/executor.rs"]
mod executor;
mod others;
mod pi;
mod promises;
#[cfg(feature = "shm")]
mod robust;
#[cfg(not(feature = "shm"))]
mod robust {
    pub const TABLE: &[(&str, fn())] = &[];
}
mod rwlocks;
mod signals;
mod tasks;

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use ulocks_debug::*;
use ulocks_testkit::Child;

static REPORTS: AtomicUsize = AtomicUsize::new(0);

fn count(report: &Report) {
    REPORTS.fetch_add(1, Relaxed);
    eprintln!("{report}");
}

/// Runs `program` in a child of a fork, of which nothing is reported either.
fn in_child(program: impl FnOnce()) {
    let child = Child::runs(|| {
        let before = REPORTS.load(Relaxed);
        program();
        assert_eq!(REPORTS.load(Relaxed), before, "reports of the child");
    });
    child.ends();
}

const TABLE: &[(&str, fn())] = &[
    ("one order in all threads", || {
        let (a, b) = (Mutex::new(0), FairMutex::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        let mut in_a = a.lock();
                        *b.lock() += 1;
                        *in_a += 1;
                    }
                });
            }
        });
        assert_eq!((a.into_inner(), b.into_inner()), (2000, 2000));
    }),
    ("an order by address", || {
        let accounts: Vec<Mutex<i64>> = (0..8).map(|_| Mutex::new(100)).collect();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let accounts = &accounts;
                scope.spawn(move || {
                    for round in 0..500 {
                        let (from, to) = ((round + thread) % 8, (round * 3 + 1) % 8);
                        if from == to {
                            continue;
                        }
                        let mut first = accounts[from.min(to)].lock();
                        let mut second = accounts[from.max(to)].lock();
                        *first -= 1;
                        *second += 1;
                    }
                });
            }
        });
        assert_eq!(accounts.iter().map(|account| *account.lock()).sum::<i64>(), 800);
    }),
    ("hand over hand", || {
        let nodes: Vec<BargingMutex<u32>> = (0..200).map(|_| BargingMutex::new(0)).collect();
        for _ in 0..3 {
            let mut guard = nodes[0].lock();
            for node in &nodes[1..] {
                let next = node.lock();
                *guard += 1;
                guard = next;
            }
        }
        assert_eq!(*nodes[7].lock(), 3);
    }),
    ("tries against the order", || {
        let (a, b) = (Mutex::new(()), Mutex::new(()));
        let (in_a, in_b) = (a.lock(), b.lock());
        drop((in_a, in_b));
        let (in_b, in_a) = (b.lock(), a.try_lock());
        assert!(in_a.is_some());
        drop((in_a, in_b));
    }),
    ("deadlines against the order", || {
        let (a, b) = (Calock::new(()), Mutex::new(()));
        let (in_a, in_b) = (a.lock(), b.lock());
        drop((in_a, in_b));
        let (in_b, in_a) = (b.lock(), a.try_lock_for(Duration::from_secs(1)));
        assert!(in_a.is_some());
        drop((in_a, in_b));
    }),
    ("a try of a lock that the thread holds", || {
        let a = Mutex::new(());
        let held = a.lock();
        assert!(a.try_lock().is_none());
        assert!(a.try_lock_for(Duration::from_millis(1)).is_none());
        drop(held);
        assert!(a.try_lock_checked().is_ok());
    }),
    ("releases in any order", || {
        let locks = [(); 5].map(|()| Mutex::new(()));
        let mut guards: Vec<_> = locks.iter().map(|lock| lock.lock()).collect();
        drop(guards.remove(1));
        drop(guards.remove(2));
        drop(guards);
        assert!(locks.iter().all(|lock| !lock.is_locked()));
    }),
    ("a guard that is unlocked for a while", || {
        let a = Mutex::new(1);
        let mut guard = a.lock();
        MutexGuard::unlocked(&mut guard, || *a.lock() += 1);
        assert_eq!(*guard, 2);
    }),
    ("condition variables", || {
        static FULL: Mutex<u32> = Mutex::new(0);
        static CHANGED: Condvar = Condvar::new();
        let takers: Vec<_> = (0..3)
            .map(|_| {
                std::thread::spawn(|| {
                    let mut full = FULL.lock();
                    while *full == 0 {
                        CHANGED.wait(&mut full);
                    }
                    *full -= 1;
                })
            })
            .collect();
        for _ in 0..3 {
            *FULL.lock() += 1;
            CHANGED.notify_all();
        }
        takers.into_iter().for_each(|taker| taker.join().unwrap());
        assert_eq!(*FULL.lock(), 0);
    }),
    ("a panic with a guard", || {
        let a = Arc::new(Mutex::new(()));
        let shared = Arc::clone(&a);
        let result = std::thread::spawn(move || {
            let _guard = shared.lock();
            std::panic::resume_unwind(Box::new(()));
        });
        assert!(result.join().is_err());
        assert!(!a.is_locked());
    }),
    ("locks that move while they are free", || {
        let mut locks = Vec::new();
        for round in 0..50 {
            locks.push(Mutex::new(round));
            *locks[0].lock() += 1;
        }
        assert_eq!(*locks.swap_remove(0).lock(), 50);
    }),
    ("a new lock at an old address", || {
        let other = FairMutex::new(());
        for round in 0..20 {
            if round % 2 == 0 {
                let lock = Box::new(Mutex::new(()));
                let _guard = (lock.lock(), other.lock());
            } else {
                let lock = Box::new(Mutex::new(()));
                let _guard = (other.lock(), lock.try_lock());
            }
        }
    }),
    ("a tree by subclasses", || {
        let nodes: Vec<Mutex<u32>> = (0..6).map(|_| Mutex::new(0)).collect();
        // The levels are ordered, the addresses are not.
        for (parent, child) in [(0, 3), (3, 1), (1, 0), (5, 2)] {
            let _parent = nodes[parent].lock();
            *nodes[child].lock_nested(1) += 1;
        }
    }),
    ("sixty-four locks", || {
        let locks: Vec<Mutex<()>> = (0..64).map(|_| Mutex::new(())).collect();
        for _ in 0..3 {
            let guards: Vec<_> = locks.iter().map(|lock| lock.lock()).collect();
            drop(guards);
        }
    }),
    ("fair releases and bumps", || {
        let a = FairMutex::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let mut guard = a.lock();
                        *guard += 1;
                        FairMutexGuard::bump(&mut guard);
                        *guard += 1;
                        FairMutexGuard::unlock_fair(guard);
                    }
                });
            }
        });
        assert_eq!(*a.lock(), 1200);
    }),
    ("a child of a fork", || {
        static A: Mutex<u32> = Mutex::new(0);
        *A.lock() += 1;
        in_child(|| assert!(*A.lock() == 1 && held().locks().is_empty()));
    }),
    ("many threads on a few locks", || {
        let locks = [(); 3].map(|()| Mutex::new(0_u64));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for round in 0..2000 {
                        let mut first = locks[round % 2].lock();
                        *locks[2].lock() += 1;
                        *first += 1;
                    }
                });
            }
        });
        assert_eq!(*locks[2].lock(), 16_000);
    }),
    ("a lock in a thread-local destructor", || {
        static LOG: Mutex<u32> = Mutex::new(0);
        struct Logs;
        impl Drop for Logs {
            fn drop(&mut self) {
                *LOG.lock() += 1;
            }
        }
        std::thread_local! { static LOGS: Logs = const { Logs }; }
        for _ in 0..3 {
            std::thread::spawn(|| {
                LOGS.with(|_| ());
                *LOG.lock() += 1;
            })
            .join()
            .unwrap();
        }
        assert_eq!(*LOG.lock(), 6);
    }),
    // The variable is made first, so its destructor runs after that of the checker.
    ("guards in a thread-local variable", || {
        static LOG: Mutex<u32> = Mutex::new(0);
        static TABLE: RwLock<u32> = RwLock::new(0);
        type Guards = (MutexGuard<'static, u32>, RwLockReadGuard<'static, u32>);
        std::thread_local! { static GUARDS: RefCell<Option<Guards>> = const { RefCell::new(None) }; }
        for _ in 0..3 {
            std::thread::spawn(|| {
                GUARDS.with(|guards| *guards.borrow_mut() = Some((LOG.lock(), TABLE.read())));
            })
            .join()
            .unwrap();
        }
        assert!(LOG.try_lock().is_some() && TABLE.try_write().is_some());
    }),
    ("a lock without a size", || {
        let boxed: Box<Mutex<[u8]>> = Box::new(Mutex::new([1, 2, 3]));
        boxed.lock()[1] = 5;
        assert_eq!(boxed.lock().iter().sum::<u8>(), 9);
    }),
    // Two locks take turns in one place of a thread's list, while another thread reads the list.
    ("a list of two locks in turn", || {
        const LEFT: &Class = &Class::new("left");
        const RIGHT: &Class = &Class::new("right");
        let (left, right) = (Mutex::new_in(LEFT, ()), Mutex::new_in(RIGHT, ()));
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Relaxed) {
                    drop(left.lock());
                    drop(right.lock());
                }
            });
            let address = |lock: &Mutex<()>| core::ptr::from_ref(lock) as usize;
            let (mut seen, mut torn) = ([0, 0], None);
            while seen.iter().any(|&seen| seen < 2_000) && torn.is_none() {
                for held in held().locks() {
                    let is_left = held.lock.name == "left";
                    // The raw lock is somewhere inside of the lock.
                    let lock = address(if is_left { &left } else { &right });
                    let inside = lock..lock + size_of::<Mutex<()>>();
                    torn = torn.or((!inside.contains(&held.lock.address)).then(|| held.lock.name.clone()));
                    seen[usize::from(is_left)] += 1;
                }
            }
            is_over.store(true, Relaxed);
            assert_eq!(torn, None, "it has the address of the other");
        });
    }),
];

#[test]
fn nothing_is_reported_of_correct_programs() {
    set_policy(Policy::Call(count));
    let table = [
        TABLE,
        rwlocks::TABLE,
        others::TABLE,
        pi::TABLE,
        signals::TABLE,
        awaits::TABLE,
        tasks::TABLE,
        robust::TABLE,
        promises::TABLE,
    ]
    .concat();
    for (name, program) in &table {
        std::thread::spawn(*program).join().unwrap_or_else(|_| panic!("{name}"));
        assert_eq!(REPORTS.load(Relaxed), 0, "{name}");
        assert!(held().locks().is_empty(), "{name}: {}", held());
    }
    println!("{} correct programs", table.len());
    large();
    assert_eq!(REPORTS.load(Relaxed), 0);
}

/// The resident memory of the process, in bytes.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

fn large() {
    // A million locks: the memory of a lock would be 48 MB of them.
    let make = |count: usize| {
        for _ in 0..count {
            let lock = Box::new(Mutex::new(()));
            drop(lock.lock());
        }
    };
    make(1000);
    let before = resident();
    make(1_000_000);
    let grown = resident().saturating_sub(before);
    assert!(grown < 8 << 20, "{grown} bytes more");

    // A thousand threads with forty locks each, all held at once.
    let all = Barrier::new(1001);
    std::thread::scope(|scope| {
        for _ in 0..1000 {
            let spawned = std::thread::Builder::new().stack_size(64 << 10).spawn_scoped(scope, || {
                let locks: Vec<Mutex<()>> = (0..40).map(|_| Mutex::new(())).collect();
                let guards: Vec<_> = locks.iter().map(|lock| lock.lock()).collect();
                all.wait();
                all.wait();
                drop(guards);
            });
            spawned.unwrap();
        }
        all.wait();
        assert_eq!(held().locks().len(), 40_000);
        all.wait();
    });
    assert!(held().locks().is_empty());
}
