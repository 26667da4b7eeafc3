//! What spares programs words: repairs, waits for a condition, and more types in a region.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use ulocks_core::sync::AtomicU32;
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_core::time::Deadline;
use ulocks_shm::{
    Condvar, LockError, Member, Mutex, MutexGuard, Op, OrRepair, Region, RwLock, RwLockWriteGuard, Set,
    Shared, SharedSafe,
};
use ulocks_testkit as _;
use ulocks_unfair::BargingMutexWith;

#[derive(SharedSafe)]
#[repr(C)]
struct Root {
    pair: Mutex<[u64; 2]>,
    table: RwLock<[u64; 2]>,
    changed: Condvar,
}

fn region() -> Region<Root> {
    Region::options().anonymous().expect("a region")
}

#[test]
fn data_is_repaired_once() {
    let region = region();
    let broken = catch_unwind(|| {
        region.with_member(|me| {
            region.pair.lock(me).expect("clean")[0] = 7;
            let mut pair = region.pair.lock(me).expect("clean");
            let mut table = region.table.write(me).expect("clean");
            (pair[0], table[0]) = (8, 9);
            panic!("half done");
        })
    });
    assert!(broken.is_err());
    region
        .with_member(|me| {
            let mut repairs = 0;
            for _ in 0..2 {
                let pair = region.pair.lock(me).or_repair(|pair| {
                    pair[1] = pair[0];
                    repairs += 1;
                });
                assert_eq!(*pair.expect("repaired"), [8, 8]);
                let table = region.table.write(me).or_repair(|table| {
                    table[1] = table[0];
                    repairs += 1;
                });
                assert_eq!(*table.expect("repaired"), [9, 9]);
            }
            assert_eq!(repairs, 2);
        })
        .expect("a member");
}

/// A destructor may hand its guard on while the thread unwinds.
#[test]
fn a_downgrade_by_a_thread_that_panics_leaves_the_data_dirty() {
    struct Shares<'a>(Option<RwLockWriteGuard<'a, [u64; 2]>>);
    impl Drop for Shares<'_> {
        fn drop(&mut self) {
            drop(self.0.take().map(RwLockWriteGuard::downgrade));
        }
    }
    let region = region();
    let broken = catch_unwind(|| {
        region.with_member(|me| {
            let mut shares = Shares(Some(region.table.write(me).expect("clean")));
            shares.0.as_mut().expect("it has the guard")[0] = 7;
            panic!("half done");
        })
    });
    assert!(broken.is_err());
    let found = region.with_member(|me| region.table.read(me).map(|table| *table).map_err(|e| e.map(drop)));
    assert!(matches!(found, Ok(Err(LockError::OwnerDied(())))), "{found:?}");
}

/// Data that could not be repaired is not had by others.
#[test]
fn a_repair_that_panics_leaves_the_lock_not_recoverable() {
    let region = region();
    let lock = |what: &'static str| {
        catch_unwind(|| {
            region.with_member(|me| {
                let _pair = region.pair.lock(me).or_repair(|_| panic!("the repair"));
                panic!("{what}");
            })
        })
    };
    assert!(lock("the holder").is_err() && lock("behind a repair").is_err());
    let end = region.with_member(|me| match region.pair.lock(me).or_repair(|_| ()) {
        Err(LockError::NotRecoverable) => {}
        other => panic!("{:?}", other.map(|pair| *pair)),
    });
    end.expect("a member");
}

#[test]
fn a_wait_ends_with_its_condition_or_its_time() {
    let region = region();
    let waits = AtomicU32::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            region.with_member(|me| {
                let mut pair = region.pair.lock(me).expect("clean");
                let waited = region.changed.wait_while(&mut pair, |pair| {
                    waits.store(1, Relaxed);
                    pair[0] < 2
                });
                waited.expect("clean");
                assert_eq!(pair[0], 2);
                let soon = Deadline::after(Duration::from_millis(2));
                let ended = region.changed.wait_while_until(&mut pair, soon, |pair| pair[0] < 3);
                assert_eq!((pair[0], ended.expect("clean")), (2, false));
                let passed = Deadline::after(Duration::ZERO);
                let ended = region.changed.wait_while_until(&mut pair, passed, |_| false);
                assert!(ended.expect("clean"), "the condition did not hold");
            })
        });
        ulocks_testkit::limit::until("the condition was checked", || waits.load(Relaxed) == 1);
        for _ in 0..2 {
            let end = region.with_member(|me| {
                region.pair.lock(me).expect("clean")[0] += 1;
                region.changed.notify_one(me);
            });
            end.expect("a member");
        }
    });
}

/// Otherwise each one that returns and waits again would let the next one return, for ever.
#[test]
fn a_wait_whose_time_is_over_lets_one_other_return_at_most() {
    const WAITERS: u32 = 16;
    let region = region();
    let (waits, returned) = (AtomicU32::new(0), AtomicU32::new(0));
    let waits_for_the_pair = || {
        region.with_member(|me| {
            let mut pair = region.pair.lock(me).expect("clean");
            waits.fetch_add(1, Relaxed);
            while pair[0] == 0 {
                region.changed.wait(&mut pair).expect("clean");
                returned.fetch_add(1, Relaxed);
            }
        })
    };
    let end = region.with_member(|me| {
        std::thread::scope(|scope| {
            let mut pair = region.pair.lock(me).expect("clean");
            (0..WAITERS).for_each(|_| _ = scope.spawn(waits_for_the_pair));
            let mut timeouts = 0;
            // They come behind a wait whose time is over, and then have the time to go round.
            while waits.load(Relaxed) < WAITERS || timeouts < 200 {
                _ = region.changed.wait_for(&mut pair, Duration::from_millis(1)).expect("clean");
                timeouts += 1;
            }
            let returned = returned.load(Relaxed);
            pair[0] = 1;
            drop(pair);
            // One that comes later sees the change.
            region.changed.notify_all(me);
            assert!(returned <= timeouts, "{returned} waits have ended without a notification");
        });
    });
    end.expect("a member");
}

#[test]
fn more_types_may_be_in_a_region() {
    type Handles = (Mutex<(f32, f64)>, PhantomData<fn() -> String>, [MaybeUninit<u8>; 4], u128);
    let region = Region::<Handles>::options().anonymous().expect("a region");
    let end = region.with_member(|me| {
        *region.0.lock(me).expect("clean") = (1.5, -2.5);
        assert_eq!(*region.0.lock(me).expect("clean"), (1.5, -2.5));
    });
    end.expect("a member");
    assert_ne!(<(u8, u32)>::LAYOUT, <(u32, u8)>::LAYOUT);
    assert_ne!(<(u8,)>::LAYOUT, <(u8, u8)>::LAYOUT);
    assert_ne!(f32::LAYOUT, u32::LAYOUT);
}

/// The locks in a tuple are unlocked with the region's.
#[test]
fn a_tuple_resets_its_locks() {
    type Pair = (u32, BargingMutexWith<u32, Shared>);
    let mut pair: Pair = (1, BargingMutexWith::new(2));
    std::mem::forget(pair.1.lock());
    // SAFETY: a valid place, and this test's alone.
    unsafe { Pair::reset_locks(&raw mut pair) };
    assert_eq!((pair.0, *pair.1.try_lock().expect("unlocked")), (1, 2));
    let set: Set = [Op::sub(0, 1)].into_iter().collect();
    assert_eq!(set.len(), 1);
}

/// Calls `f` with a guard whose wait could not acquire the mutex again.
fn with_a_lost_guard(f: impl FnOnce(&Region<Root>, &Member<'_>, &mut MutexGuard<'_, [u64; 2]>) + Send) {
    let region = region();
    let waits = AtomicU32::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            region.with_member(|me| {
                let mut pair = region.pair.lock(me).expect("clean");
                waits.store(1, Relaxed);
                let ended = region.changed.wait(&mut pair);
                assert!(matches!(ended, Err(LockError::NotRecoverable)), "{ended:?}");
                f(&region, me, &mut pair);
            })
        });
        ulocks_testkit::limit::until("the other one waits", || waits.load(Relaxed) == 1);
        let end = region.with_member(|me| {
            // The other one has the mutex until it waits.
            region.pair.lock(me).expect("clean").abandon();
            assert!(matches!(region.pair.lock(me), Err(LockError::NotRecoverable)));
            region.changed.notify_one(me);
        });
        end.expect("a member");
    });
    // The drop of the lost guard has released nothing.
    let end = region.with_member(|me| {
        let mut held = region.pair.reset(me).expect("no thread has it");
        held.mark_consistent();
    });
    end.expect("a member");
}

/// Checks that `f` panics, because the guard has no mutex.
fn refused(f: impl FnOnce()) {
    let text = catch_unwind(AssertUnwindSafe(f)).expect_err("it has no mutex");
    let text = text.downcast_ref::<&str>().expect("a text");
    assert!(text.contains("could not acquire it again"), "{text}");
}

#[test]
fn a_guard_that_a_wait_has_lost_lends_nothing() {
    with_a_lost_guard(|_, _, pair| {
        refused(|| _ = pair[0]);
        assert!(!pair.has_mutex(), "the guard says that it has one");
    });
}

/// The data is another thread's by then, or nobody has repaired it.
#[test]
fn a_guard_that_a_wait_has_lost_says_nothing_of_the_data() {
    with_a_lost_guard(|region, me, pair| {
        refused(|| pair.mark_consistent());
        assert!(matches!(region.pair.lock(me), Err(LockError::NotRecoverable)), "it says that it is whole");
        let mut other = region.pair.reset(me).expect("no thread has it");
        other.mark_consistent();
        drop(other);
        // SAFETY: the guard has no mutex, so the drop of its copy does nothing.
        let copy = unsafe { core::ptr::read(pair) };
        refused(|| copy.abandon());
        drop(region.pair.lock(me).expect("it says that the data is lost"));
    });
}

/// Otherwise the next notification is its, and a thread that waits by another mutex sleeps on.
#[test]
fn a_wait_by_a_lost_guard_is_no_waiter() {
    with_a_lost_guard(|region, me, pair| {
        let (changed, soon) = (&region.changed, Duration::from_millis(1));
        let no_waiter = |how: &str| {
            assert_eq!(changed.waiters(me), 0, "a waiter is left by {how}");
            assert!(!changed.notify_one(me), "a notification is lost to {how}");
        };
        refused(|| _ = changed.wait(pair));
        no_waiter("wait");
        refused(|| _ = changed.wait_for(pair, soon));
        no_waiter("wait_for");
        refused(|| _ = changed.wait_until(pair, Deadline::after(soon)));
        no_waiter("wait_until");
        refused(|| _ = changed.wait_while(pair, |_| true));
        no_waiter("wait_while");
        refused(|| _ = changed.wait_while_until(pair, Deadline::after(soon), |_| true));
        no_waiter("wait_while_until");
    });
}
