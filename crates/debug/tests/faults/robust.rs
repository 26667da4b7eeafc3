//! Robust locks of a region.

use crate::Fault;
use crate::common::{blocked, interrupt};
use crate::deadlocks::await_waiters;
use crate::harness::{breaks, circle, fault};
use std::sync::Barrier;
use std::time::Duration;
use ulocks_core::time::Deadline;
use ulocks_debug::*;
use ulocks_shm::robust::fair_mutex::RawFairMutex;
use ulocks_shm::{self as shm, LockError, Member, Refused, Region, SharedSafe};

pub const TABLE: &[Fault] = &[
    ("a robust mutex is acquired twice", || {
        let region = region::<shm::Mutex<u32>>();
        member(&region, |me| {
            let mutex = Robust::new(&*region);
            let (held, l1) = (mutex.lock(me).unwrap(), line!());
            breaks(|| drop(mutex.lock(me)));
            let l2 = line!() - 1;
            assert!(matches!(mutex.try_lock(me), Err(LockError::Refused(Refused::Deadlock))));
            assert_eq!(mutex.name(), "Mutex");
            drop(held);
            vec![fault(Rule::NoRecursion, l2, l1)]
        })
    }),
    ("a robust fair mutex is acquired twice, by two handles", || {
        let region = region::<shm::Mutex<u32, RawFairMutex>>();
        member(&region, |me| {
            let (one, other) = (Robust::new(&*region), Robust::new(&*region));
            let (held, l1) = (one.lock(me).unwrap(), line!());
            breaks(|| drop(other.lock(me)));
            let l2 = line!() - 1;
            drop(held);
            assert!(held_is_empty());
            vec![fault(Rule::NoRecursion, l2, l1)]
        })
    }),
    ("inversion of a robust mutex and a mutex", || {
        static LOG: Class = Class::new("log");
        let region = region::<shm::Mutex<u32>>();
        member(&region, |me| {
            let (log, table) = (Robust::new_in(&LOG, &*region), Mutex::new(0));
            let (in_log, h1) = (log.lock(me).unwrap(), line!());
            let (in_table, a1) = (table.lock(), line!());
            assert_eq!(held().locks().iter().filter(|held| held.lock.name == "log").count(), 1);
            drop((in_table, in_log));
            let (in_table, h2) = (table.lock(), line!());
            breaks(|| drop(log.lock(me)));
            let a2 = line!() - 1;
            // An attempt does not wait.
            *log.try_lock(me).unwrap() += 1;
            *log.try_lock_for(me, Duration::from_secs(1)).unwrap() += 1;
            drop(in_table);
            assert_eq!(*log.lock(me).unwrap(), 2);
            vec![circle(Rule::Order, &[(h2, a2), (h1, a1)])]
        })
    }),
    ("inversion of a map of a region and a mutex", || {
        let region = region::<shm::HashMap<u32, u32, 4>>();
        member(&region, |me| {
            let (map, mutex) = (Robust::new(&*region), Mutex::new(0));
            let mut a1 = 0;
            let update = |map: &shm::HashMap<u32, u32, 4>| {
                let changed = map.update(me, 1, |_| {
                    a1 = line!() + 1;
                    Some(*mutex.lock())
                });
                assert_eq!(changed, Ok(None));
            };
            let h1 = line!() + 1;
            map.locks(update);
            let (in_mutex, h2) = (mutex.lock(), line!());
            breaks(|| _ = map.locks(|map| map.get(me, &1)));
            let a2 = line!() - 1;
            drop(in_mutex);
            assert_eq!(map.locks(|map| map.get(me, &1)), Ok(Some(0)));
            vec![circle(Rule::Order, &[(h2, a2), (h1, a1)])]
        })
    }),
    ("a closure of a map uses the map", || {
        let region = region::<shm::HashMap<u32, u32, 4>>();
        member(&region, |me| {
            let map = Robust::new(&*region);
            let l1 = line!() + 1;
            let seen = map.locks(|held| {
                held.update(me, 1, |_| {
                    breaks(|| _ = map.locks(|map| map.get(me, &1)));
                    Some(1)
                })
            });
            assert_eq!((seen, held_is_empty()), (Ok(None), true));
            vec![fault(Rule::NoRecursion, l1 + 2, l1)]
        })
    }),
    // With deadlines, so that it ends. No order is asked for.
    ("deadlock of two robust mutexes", || {
        let (a, b) = (region::<shm::Mutex<u32>>(), region::<shm::Mutex<u32>>());
        let (in_a, in_b) = (Robust::new(&*a), Robust::new(&*b));
        let both = Barrier::new(2);
        let start = line!();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                members(&a, &b, |mine, theirs| {
                    let _held = in_a.lock(mine).unwrap();
                    both.wait();
                    // Until the other one has given up.
                    drop(in_b.lock_until(theirs, Deadline::after(Duration::from_secs(60))).unwrap());
                });
            });
            members(&a, &b, |theirs, mine| {
                let held = in_b.lock(mine).unwrap();
                both.wait();
                await_waiters(1);
                let timeout = Duration::from_millis(20);
                assert!(in_a.try_lock_for(theirs, timeout).is_err());
                drop(held);
            });
        });
        vec![circle(Rule::Deadlock, &[(start + 11, start + 15), (start + 4, start + 7)])]
    }),
    // The kernel tells the next owner, whose guard is checked, too.
    ("a thread ends with a robust mutex", || {
        let region = region::<shm::Mutex<u32>>();
        let mutex = Robust::new(&*region);
        let l1 = line!() + 3;
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                member(&region, |me| std::mem::forget(mutex.lock(me).unwrap()));
            });
            thread.join().unwrap();
        });
        member(&region, |me| {
            let Err(LockError::OwnerDied(mut guard)) = mutex.lock(me) else { panic!("the owner has died") };
            assert_eq!(held().locks().len(), 1);
            assert!(guard.is_dirty());
            guard.mark_consistent();
            drop(guard);
            assert!(held_is_empty());
            mutex.lock(me).unwrap().abandon();
            assert!(held_is_empty());
            assert!(matches!(mutex.lock(me), Err(LockError::NotRecoverable)));
            mutex.reset(me).unwrap().mark_consistent();
            assert!(held_is_empty());
            vec![fault(Rule::NoExit, None, l1)]
        })
    }),
    ("a robust reader writes", || {
        let region = region::<shm::RwLock<u32>>();
        member(&region, |me| {
            let lock = Robust::new(&*region);
            let (reads, l1) = (lock.read(me).unwrap(), line!());
            breaks(|| drop(lock.write(me)));
            let l2 = line!() - 1;
            drop(reads);
            assert!(held_is_empty());
            *lock.write(me).unwrap() += 1;
            assert_eq!(*lock.read_urgent(me).unwrap(), 1);
            vec![fault(Rule::NoRecursion, l2, l1)]
        })
    }),
    ("a robust reader reads again", || {
        let region = region::<shm::RwLock<u32>>();
        member(&region, |me| {
            let lock = Robust::new(&*region);
            let (reads, l1) = (lock.read(me).unwrap(), line!());
            // The lock has room for one reader of a thread, whatever the class.
            breaks(|| drop(lock.read_urgent(me)));
            let l2 = line!() - 1;
            drop(reads);
            vec![fault(Rule::NoReadAgain, l2, l1)]
        })
    }),
    ("a robust writer that has become a reader writes", || {
        let region = region::<shm::RwLock<u32>>();
        member(&region, |me| {
            let lock = Robust::new(&*region);
            let (writes, l1) = (lock.write(me).unwrap(), line!());
            let reads = writes.downgrade();
            assert!(held().locks().iter().all(|held| held.lock.access == Access::Read(0)));
            breaks(|| drop(lock.write(me)));
            let l2 = line!() - 1;
            drop(reads);
            assert!(held_is_empty());
            vec![fault(Rule::NoRecursion, l2, l1)]
        })
    }),
    ("inversion of two robust reader-writer locks", || {
        let (a, b) = (region::<shm::RwLock<u32>>(), region::<shm::RwLock<u32>>());
        members(&a, &b, |of_a, of_b| {
            let in_a = Robust::new(&*a);
            let in_b = Robust::new(&*b);
            let (reads, h1) = (in_a.read(of_a).unwrap(), line!());
            let (writes, a1) = (in_b.write(of_b).unwrap(), line!());
            drop((writes, reads));
            let (reads, h2) = (in_b.read(of_b).unwrap(), line!());
            breaks(|| drop(in_a.write(of_a)));
            let a2 = line!() - 1;
            drop(reads);
            vec![circle(Rule::Order, &[(h2, a2), (h1, a1)])]
        })
    }),
    ("a wait with another lock: Condvar of a region", || {
        let region = region::<(shm::Mutex<u32>, shm::Condvar)>();
        member(&region, |me| {
            let (mutex, other) = (Robust::new(&region.0), Mutex::new(0));
            let (_other, before) = (other.lock(), line!());
            let (mut guard, here) = (mutex.lock(me).unwrap(), line!());
            for _ in 0..2 {
                assert!(!guard.wait_until(&region.1, Deadline::after(Duration::from_millis(1))).unwrap());
            }
            assert_eq!(held().locks().len(), 2);
            vec![fault(Rule::NoLockInWait, here, before)]
        })
    }),
    ("a robust mutex of the class of a handler, with the signal open", || {
        static CLASS: Class = Class::new("of a handler");
        let region = region::<shm::Mutex<u32>>();
        member(&region, |me| {
            let mutex = Robust::new_in(&CLASS, &*region);
            let of_handler: &Mutex<()> = Box::leak(Box::new(Mutex::new_in(&CLASS, ())));
            let before = line!() + 1;
            interrupt(libc::SIGUSR1, || drop(of_handler.lock()));
            drop(blocked(&[libc::SIGUSR1], || mutex.lock(me).unwrap()));
            breaks(|| drop(mutex.lock(me)));
            let here = line!() - 1;
            breaks(|| drop(mutex.try_lock(me)));
            vec![fault(Rule::NoOpenSignal, here, before)]
        })
    }),
];

fn region<L: SharedSafe>() -> Region<L> {
    Region::options().anonymous().expect("a region")
}

/// What `f` returns as a member.
fn member<L: SharedSafe, O>(region: &Region<L>, f: impl FnOnce(&Member<'_>) -> O) -> O {
    region.with_member(f).expect("a slot")
}

/// The same as a member of two regions.
fn members<L: SharedSafe, O>(
    a: &Region<L>,
    b: &Region<L>,
    f: impl FnOnce(&Member<'_>, &Member<'_>) -> O,
) -> O {
    member(a, |of_a| member(b, |of_b| f(of_a, of_b)))
}

fn held_is_empty() -> bool {
    held().locks().is_empty()
}
