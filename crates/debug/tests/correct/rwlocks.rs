//! Correct programs with reader-writer locks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use ulocks_debug::*;
use ulocks_psrwlock::{Bulk, Nested, Urgent};
use ulocks_testkit::Child;

pub const TABLE: &[(&str, fn())] = &[
    ("reads of one lock, upwards", || {
        let lock = RwLock::new(1);
        let (bulk, urgent, nested) = (lock.read(), lock.read_in::<Urgent>(), lock.read_in::<Nested>());
        drop(bulk);
        drop(nested);
        let nested = lock.read_in::<Nested>();
        drop(urgent);
        drop(nested);
        drop(lock.read_in::<Bulk>());
        *lock.write() += 1;
        assert_eq!(lock.into_inner(), 2);
    }),
    ("attempts and deadlines of one thread", || {
        const SHORT: Duration = Duration::from_millis(1);
        let lock = RwLock::new(());
        let held = lock.read();
        assert!(lock.try_read().is_some() && lock.try_read_for(SHORT).is_some());
        assert!(lock.try_read_in::<Urgent>().is_some() && lock.try_read_in_for::<Bulk>(SHORT).is_some());
        assert!(lock.try_read_in_until::<Nested>(Instant::now()).is_some());
        assert!(lock.try_write().is_none() && lock.try_write_for(SHORT).is_none());
        assert!(lock.try_write_until(Instant::now()).is_none());
        drop(held);
        let held = lock.try_upgradable_read_for(SHORT).unwrap();
        assert!(lock.try_upgradable_read().is_none() && lock.try_upgradable_read_for(SHORT).is_none());
        let reads = lock.read();
        let held = RwLockUpgradableReadGuard::try_upgrade(held).unwrap_err();
        let held = RwLockUpgradableReadGuard::try_upgrade_for(held, SHORT).unwrap_err();
        drop(reads);
        drop(RwLockUpgradableReadGuard::try_upgrade_for(held, SHORT).unwrap());
        let held = lock.write();
        assert!(
            lock.try_read().is_none() && lock.try_read_for(SHORT).is_none() && lock.try_write().is_none()
        );
        drop(held);
        assert!(!lock.is_locked());
    }),
    // It passes writers that wait for the other readers, so it closes no circle.
    ("a reader of a higher class against the order", || {
        let (table, log) = (RwLock::new(0), Mutex::new(0));
        let in_table = table.read();
        drop(log.lock());
        drop(in_table);
        let in_log = log.lock();
        assert_eq!(*table.read_in::<Nested>(), *in_log);
    }),
    // The same two orders, the other one first.
    ("an order against that of a reader of a higher class", || {
        let (table, log) = (RwLock::new(0), Mutex::new(0));
        let in_log = log.lock();
        assert_eq!(*table.read_in::<Nested>(), *in_log);
        drop(in_log);
        let in_table = table.read();
        assert_eq!(*log.lock(), *in_table);
    }),
    // No writer closes the lock as long as there is an upgradable reader.
    ("a reader beside an upgradable one, against the order", || {
        let (table, log) = (RwLock::new(0), Mutex::new(0));
        let in_table = table.upgradable_read();
        drop(log.lock());
        drop(in_table);
        let in_log = log.lock();
        assert_eq!(*table.read(), *in_log);
    }),
    // No other thread is upgradable at the same time.
    ("an upgrade with a lock that was acquired between", || {
        let (table, log) = (RwLock::new(0), Mutex::new(0));
        for _ in 0..2 {
            let in_table = table.upgradable_read();
            let in_log = log.lock();
            *RwLockUpgradableReadGuard::upgrade(in_table) += 1 + *in_log;
        }
        assert_eq!(*table.read(), 2);
    }),
    // The first read lock keeps the lock open for the second.
    ("a second read with a lock that was acquired between", || {
        let (table, log) = (RwLock::new(0), Mutex::new(0));
        let in_table = table.read_in::<Urgent>();
        drop(log.lock());
        drop(in_table);
        let in_table = table.read();
        let in_log = log.lock();
        assert_eq!(*table.read_in::<Urgent>(), *in_log);
        drop(in_table);
    }),
    ("upgrades and downgrades", || {
        let lock = RwLock::new(0);
        let mut written = lock.write();
        *written += 1;
        let upgradable = RwLockWriteGuard::downgrade_to_upgradable(written);
        drop(lock.read());
        let mut upgradable = RwLockUpgradableReadGuard::upgrade(upgradable);
        *upgradable += 1;
        let mut upgradable = RwLockWriteGuard::downgrade_to_upgradable(upgradable);
        upgradable.with_upgraded(|value| *value += 1);
        assert_eq!(upgradable.try_with_upgraded(|value| *value), Some(3));
        let read = RwLockUpgradableReadGuard::downgrade(upgradable);
        drop(lock.read_in::<Nested>());
        drop(read);
        let read = RwLockWriteGuard::downgrade(lock.write());
        assert_eq!(*read, 3);
        drop(read);
        drop(lock.write());
    }),
    ("a tree of readers", || {
        let nodes: Vec<RwLock<u32>> = (0..6).map(|_| RwLock::new(0)).collect();
        // The levels are ordered, the addresses are not.
        for (parent, child) in [(0, 3), (3, 1), (1, 0), (5, 2)] {
            let _parent = nodes[parent].read();
            *nodes[child].write_nested(1) += 1;
            assert!(*nodes[child].read_nested(1) > 0);
        }
    }),
    ("hand over hand, as readers", || {
        let nodes: Vec<RwLock<u32>> = (0..100).map(|_| RwLock::new(0)).collect();
        for _ in 0..3 {
            let mut guard = nodes[0].read();
            for node in &nodes[1..] {
                let next = node.read();
                assert_eq!(*guard, 0);
                guard = next;
            }
        }
        *nodes[7].write() += 1;
    }),
    ("readers that are unlocked for a while, and fair releases", || {
        let lock = RwLock::new(1);
        let mut reads = lock.read();
        RwLockReadGuard::unlocked(&mut reads, || *lock.write() += 1);
        RwLockReadGuard::unlock_fair(reads);
        let mut writes = lock.write();
        RwLockWriteGuard::bump(&mut writes);
        RwLockWriteGuard::unlocked_fair(&mut writes, || drop(lock.read()));
        RwLockWriteGuard::unlock_fair(writes);
        let upgradable = lock.upgradable_read();
        assert_eq!(*upgradable, 2);
        RwLockUpgradableReadGuard::unlock_fair(upgradable);
        assert!(!lock.is_locked());
    }),
    ("a nested reader that lets others in stays what it is", || {
        let lock = RwLock::new(1);
        let outer = lock.read();
        let mut nested = lock.read_in::<Nested>();
        RwLockReadGuard::bump(&mut nested);
        assert_eq!(*outer, *nested);
    }),
    ("mapped guards", || {
        let lock = RwLock::new([1, 2]);
        let part: MappedRwLockReadGuard<'_, i32> = RwLockReadGuard::map(lock.read(), |pair| &pair[0]);
        assert_eq!(*part, 1);
        drop(part);
        let mut part: MappedRwLockWriteGuard<'_, i32> =
            RwLockWriteGuard::map(lock.write(), |pair| &mut pair[1]);
        *part = 3;
        drop(part);
        assert_eq!(lock.into_inner(), [1, 3]);
    }),
    ("readers and writers that move while they are free", || {
        let mut locks = Vec::new();
        for round in 0..50 {
            locks.push(RwLock::new(round));
            *locks[0].write() += 1;
            drop(locks[0].read());
        }
        assert_eq!(*locks.swap_remove(0).read(), 50);
        drop(locks[0].read());
    }),
    ("a panic with a read guard", || {
        let lock = Arc::new(RwLock::new(()));
        let shared = Arc::clone(&lock);
        let result = std::thread::spawn(move || {
            let _reads = (shared.read(), shared.read_in::<Urgent>());
            std::panic::resume_unwind(Box::new(()));
        });
        assert!(result.join().is_err());
        assert!(!lock.is_locked());
    }),
    ("a read in a thread-local destructor", || {
        static LOG: RwLock<u32> = RwLock::new(0);
        struct Logs;
        impl Drop for Logs {
            fn drop(&mut self) {
                drop(LOG.read());
                *LOG.write() += 1;
                let upgradable = LOG.upgradable_read();
                *RwLockUpgradableReadGuard::upgrade(upgradable) += 1;
                let read = RwLockWriteGuard::downgrade(LOG.write());
                drop(read);
            }
        }
        std::thread_local! { static LOGS: Logs = const { Logs }; }
        for _ in 0..3 {
            std::thread::spawn(|| {
                LOGS.with(|_| ());
                drop(LOG.write());
            })
            .join()
            .unwrap();
        }
        assert_eq!(*LOG.write(), 6);
    }),
    ("a child of a fork, with readers", || {
        static A: RwLock<u32> = RwLock::new(0);
        drop(A.read());
        crate::in_child(|| {
            *A.write() += 1;
            assert!(*A.read() == 1 && held().locks().is_empty() && waiters().is_empty());
        });
    }),
    ("many threads that read, write and upgrade", || {
        let (lock, log) = (RwLock::new(0_u64), Mutex::new(0_u64));
        std::thread::scope(|scope| {
            for thread in 0..6_usize {
                let (lock, log) = (&lock, &log);
                scope.spawn(move || {
                    for round in 0..600_usize {
                        match (thread + round) % 6 {
                            0 => *lock.write() += 1,
                            1 => {
                                let upgradable = lock.upgradable_read();
                                *log.lock() += 1;
                                *RwLockUpgradableReadGuard::upgrade(upgradable) += 1;
                            }
                            2 => drop((lock.read(), lock.read_in::<Urgent>(), lock.read_in::<Nested>())),
                            3 => {
                                let mut written = lock.write();
                                *written += 1;
                                let read = RwLockWriteGuard::downgrade(written);
                                *log.lock() += 1;
                                drop(read);
                            }
                            4 => drop(lock.try_read_for(Duration::from_micros(10))),
                            _ => {
                                let read = lock.read();
                                *log.lock() += *read & 1;
                            }
                        }
                    }
                });
            }
        });
        assert_eq!(*lock.read(), 1800);
    }),
    // Readers and writers that wait for each other in chains, which all end.
    ("readers behind waiting writers", || {
        let (table, log) = (RwLock::new(0_u32), Mutex::new(0_u32));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| (0..200).for_each(|_| *table.write() += 1));
                scope.spawn(|| {
                    for _ in 0..200 {
                        let read = table.read();
                        *log.lock() = *read;
                    }
                });
                scope.spawn(|| {
                    for _ in 0..200 {
                        let logged = log.lock();
                        assert!(*table.read_in::<Nested>() >= *logged);
                    }
                });
            }
        });
        assert_eq!(*table.read(), 600);
    }),
    // An upgradable reader waits for another one, and for readers only behind a writer.
    ("a reader that an upgradable one does not wait for", || {
        let (table, log, ready) = (RwLock::new(()), Mutex::new(()), std::sync::Barrier::new(3));
        std::thread::scope(|scope| {
            let upgradable = table.upgradable_read();
            scope.spawn(|| {
                let _reads = table.read();
                ready.wait();
                assert!(log.try_lock_for(std::time::Duration::from_secs(60)).is_some());
            });
            scope.spawn(|| {
                let _in_log = log.lock();
                ready.wait();
                drop(table.upgradable_read());
            });
            ready.wait();
            ulocks_testkit::limit::until("both wait", || waiters().len() == 2);
            assert_eq!(deadlocks().len(), 0);
            drop(upgradable);
        });
    }),
    // The child does not have the writer's thread, and its copy of the lock is its own to drop.
    ("a fork while another thread writes", || {
        let lock = RwLock::new(());
        let (is_held, done) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _writes = lock.write();
                is_held.store(true, Relaxed);
                ulocks_testkit::limit::until("the child has ended", || done.load(Relaxed));
            });
            ulocks_testkit::limit::until("the writer has the lock", || is_held.load(Relaxed));
            let child = Child::runs(|| {
                // SAFETY: the child has one thread, which does not use the lock any more.
                unsafe { core::ptr::drop_in_place((&raw const lock).cast_mut()) };
                assert_eq!(crate::REPORTS.load(Relaxed), 0, "reports of the child");
            });
            let status = child.waited();
            done.store(true, Relaxed);
            assert_eq!(status, 0);
        });
    }),
    // Each reader is in the list of held locks, with its class.
    ("lists of readers", || {
        let lock = RwLock::new(());
        let (done, ready) = (AtomicBool::new(false), std::sync::Barrier::new(3));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let _reads = lock.read_in::<Urgent>();
                    ready.wait();
                    ulocks_testkit::limit::until("the test is done", || done.load(Relaxed));
                });
            }
            ready.wait();
            let reads = lock.read();
            let all = held();
            let accesses: Vec<Access> = all.locks().iter().map(|held| held.lock.access).collect();
            let count = |access| accesses.iter().filter(|&&each| each == access).count();
            assert_eq!((count(Access::Read(0)), count(Access::Read(1)), accesses.len()), (1, 2, 3), "{all}");
            assert!(all.to_string().contains("to read in class 1"), "{all}");
            let writer = scope.spawn(|| drop(lock.write()));
            ulocks_testkit::limit::until("a thread waits", || !waiters().is_empty());
            let waits = waiters();
            assert_eq!((waits.len(), waits[0].lock.access), (1, Access::Write));
            assert!(waits[0].to_string().contains("to write at"), "{}", waits[0]);
            assert!(held().locks().iter().all(|held| held.waiters == 1));
            done.store(true, Relaxed);
            drop(reads);
            writer.join().unwrap();
        });
    }),
];
