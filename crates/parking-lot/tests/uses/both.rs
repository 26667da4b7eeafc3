// What versions 0.12 and 0.13 have in common. Included by `main.rs`, which names `lot`.

use lock_api::RawMutex as _;
use lock_api::RawRwLock as _;
use lot::{
    Condvar, FairMutex, FairMutexGuard, MappedFairMutexGuard, MappedMutexGuard, MappedReentrantMutexGuard,
    MappedRwLockReadGuard, MappedRwLockWriteGuard, Mutex, MutexGuard, Once, OnceState, RawFairMutex, RawMutex,
    RawRwLock, RawThreadId, ReentrantMutex, ReentrantMutexGuard, RwLock, RwLockReadGuard,
    RwLockUpgradableReadGuard, RwLockWriteGuard, WaitTimeoutResult,
};
use std::cell::Cell;
use std::time::{Duration, Instant};

const NOW: Duration = Duration::from_millis(1);

fn soon() -> Instant {
    Instant::now() + NOW
}

static MUTEX: Mutex<(u32, u32)> = Mutex::new((0, 0));
static FAIR: FairMutex<u32> = FairMutex::new(0);
static REENTRANT: ReentrantMutex<Cell<u32>> = ReentrantMutex::new(Cell::new(0));
static RWLOCK: RwLock<(u32, u32)> = RwLock::new((0, 0));
static CONDVAR: Condvar = Condvar::new();
static ONCE: Once = Once::new();

#[test]
fn mutex() {
    let mutex = Mutex::new((1, 2));
    {
        let guard: MutexGuard<'_, (u32, u32)> = mutex.lock();
        assert!(mutex.is_locked() && mutex.try_lock().is_none());
        assert!(mutex.try_lock_for(NOW).is_none() && mutex.try_lock_until(soon()).is_none());
        let part: MappedMutexGuard<'_, u32> = MutexGuard::map(guard, |pair| &mut pair.1);
        assert_eq!(*part, 2);
        MappedMutexGuard::unlock_fair(part);
    }
    let mut guard = mutex.try_lock_for(NOW).unwrap();
    MutexGuard::bump(&mut guard);
    MutexGuard::unlocked(&mut guard, || assert!(!mutex.is_locked()));
    MutexGuard::unlocked_fair(&mut guard, || assert!(!mutex.is_locked()));
    assert!(std::ptr::eq(MutexGuard::mutex(&guard), &mutex));
    MutexGuard::unlock_fair(guard);
    assert!(mutex.data_ptr() as usize != 0);
    assert_eq!(format!("{mutex:?}"), "Mutex { data: (1, 2) }");
    // SAFETY: nothing is released.
    assert!(!unsafe { mutex.raw() }.is_locked());
    assert_eq!(Mutex::from(3).into_inner() + *Mutex::<u32>::default().get_mut(), 3);
    let _: (RawMutex, u32) = (RawMutex::INIT, MUTEX.lock().0);
}

#[test]
fn fair_mutex() {
    let guard: FairMutexGuard<'_, u32> = FAIR.lock();
    assert!(FAIR.try_lock().is_none() && FAIR.try_lock_until(soon()).is_none());
    let part: MappedFairMutexGuard<'_, u32> = FairMutexGuard::map(guard, |all| all);
    drop(part);
    let mut guard = FAIR.lock();
    FairMutexGuard::bump(&mut guard);
    FairMutexGuard::unlock_fair(guard);
    assert!(!RawFairMutex::INIT.is_locked());
}

#[test]
fn reentrant_mutex() {
    let guard: ReentrantMutexGuard<'_, Cell<u32>> = REENTRANT.lock();
    let again = REENTRANT.try_lock().unwrap();
    again.set(again.get() + 1);
    let again: MappedReentrantMutexGuard<'_, Cell<u32>> = ReentrantMutexGuard::map(again, |all| all);
    assert_eq!(again.get(), guard.get());
    drop(again);
    assert!(REENTRANT.is_owned_by_current_thread());
    std::thread::scope(|scope| _ = scope.spawn(|| assert!(REENTRANT.try_lock_for(NOW).is_none())));
    ReentrantMutexGuard::unlock_fair(guard);
    use lock_api::GetThreadId as _;
    assert_eq!(RawThreadId::INIT.nonzero_thread_id(), RawThreadId.nonzero_thread_id());
}

#[test]
fn rwlock() {
    let rwlock = RwLock::new((1, 2));
    {
        let one: RwLockReadGuard<'_, (u32, u32)> = rwlock.read();
        let two: MappedRwLockReadGuard<'_, u32> = RwLockReadGuard::map(rwlock.try_read().unwrap(), |pair| &pair.1);
        assert!(rwlock.try_write().is_none() && rwlock.try_write_for(NOW).is_none());
        assert!(rwlock.try_write_until(soon()).is_none() && rwlock.is_locked() && !rwlock.is_locked_exclusive());
        assert_eq!(one.0 + *two, 3);
        assert!(rwlock.try_read_for(NOW).is_some() && rwlock.try_read_until(soon()).is_some());
        RwLockReadGuard::unlock_fair(one);
    }
    {
        let guard: RwLockWriteGuard<'_, (u32, u32)> = rwlock.write();
        assert!(rwlock.try_read().is_none() && rwlock.is_locked_exclusive());
        let part: MappedRwLockWriteGuard<'_, u32> = RwLockWriteGuard::map(guard, |pair| &mut pair.1);
        assert_eq!(*part, 2);
    }
    let guard = RwLockWriteGuard::downgrade_to_upgradable(rwlock.write());
    drop(rwlock.read());
    let guard: RwLockWriteGuard<'_, _> = RwLockUpgradableReadGuard::upgrade(guard);
    let guard: RwLockReadGuard<'_, _> = RwLockWriteGuard::downgrade(guard);
    drop(guard);
    let guard: RwLockUpgradableReadGuard<'_, _> = rwlock.upgradable_read();
    assert!(rwlock.try_upgradable_read().is_none() && rwlock.try_upgradable_read_for(NOW).is_none());
    assert!(rwlock.try_upgradable_read_until(soon()).is_none());
    let reader = rwlock.read();
    let guard = RwLockUpgradableReadGuard::try_upgrade(guard).unwrap_err();
    let guard = RwLockUpgradableReadGuard::try_upgrade_for(guard, NOW).unwrap_err();
    drop(reader);
    let mut guard = RwLockUpgradableReadGuard::try_upgrade_until(guard, soon()).unwrap();
    RwLockWriteGuard::bump(&mut guard);
    RwLockWriteGuard::unlock_fair(guard);
    let mut guard = rwlock.upgradable_read();
    RwLockUpgradableReadGuard::bump(&mut guard);
    guard.with_upgraded(|pair| pair.0 = 5);
    drop(RwLockUpgradableReadGuard::downgrade(guard));
    RwLockUpgradableReadGuard::unlock_fair(rwlock.upgradable_read());
    assert!(!<RawRwLock>::INIT.is_locked() && RWLOCK.read().0 == 0);
    assert_eq!(rwlock.into_inner(), (5, 2));
}

#[test]
fn a_thread_reads_twice() {
    let _guards = (RWLOCK.read(), RWLOCK.read());
}

#[test]
fn condvar() {
    assert!(!CONDVAR.notify_one());
    assert_eq!(CONDVAR.notify_all(), 0);
    let mut guard = MUTEX.lock();
    let result: WaitTimeoutResult = CONDVAR.wait_for(&mut guard, NOW);
    assert!(result.timed_out() && CONDVAR.wait_until(&mut guard, soon()).timed_out());
    assert!(CONDVAR.wait_while_for(&mut guard, |_| true, NOW).timed_out());
    assert!(CONDVAR.wait_while_until(&mut guard, |_| true, soon()).timed_out());
    CONDVAR.wait_while(&mut guard, |_| false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _held = MUTEX.lock();
            assert!(CONDVAR.notify_one());
        });
        CONDVAR.wait(&mut guard);
    });
    assert_eq!(format!("{:?}", Condvar::default()), "Condvar { .. }");
}

#[test]
#[should_panic(expected = "attempted to use a condition variable with more than one mutex")]
fn a_condvar_with_two_mutexes() {
    let (one, two, condvar) = (Mutex::new(false), Mutex::new(()), Condvar::new());
    std::thread::scope(|scope| {
        let mut has_come = one.lock();
        let (one, condvar) = (&one, &condvar);
        scope.spawn(move || {
            let mut has_come = one.lock();
            *has_come = true;
            condvar.notify_one();
            condvar.wait(&mut has_come);
        });
        condvar.wait(&mut has_come);
        drop(has_come);
        drop(one.lock()); // The other thread waits.
        let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| condvar.wait(&mut two.lock())));
        assert!(condvar.notify_one() && two.try_lock().is_some());
        std::panic::resume_unwind(refused.unwrap_err());
    });
}

#[test]
fn once() {
    assert!(ONCE.state() == OnceState::New);
    let poisoned = std::panic::catch_unwind(|| ONCE.call_once(|| std::panic::resume_unwind(Box::new(()))));
    assert!(poisoned.is_err() && ONCE.state() == OnceState::Poisoned && ONCE.state().poisoned());
    assert!(std::panic::catch_unwind(|| ONCE.call_once(|| {})).is_err());
    ONCE.call_once_force(|state| {
        assert!(state.poisoned() && !state.done());
        assert_eq!(ONCE.state(), OnceState::InProgress);
    });
    ONCE.call_once(|| unreachable!());
    assert!(ONCE.state().done());
    assert_eq!(format!("{:?}", Once::default()), "Once { state: New }");
}

#[cfg(feature = "arc_lock")]
#[test]
fn guards_that_own_their_lock() {
    use lot::{
        ArcMutexGuard, ArcReentrantMutexGuard, ArcRwLockReadGuard, ArcRwLockUpgradableReadGuard, ArcRwLockWriteGuard,
    };
    use std::sync::Arc;
    let _: ArcMutexGuard<RawMutex, u32> = Arc::new(Mutex::new(1)).lock_arc();
    let _: ArcReentrantMutexGuard<RawMutex, RawThreadId, u32> = Arc::new(ReentrantMutex::new(1)).lock_arc();
    let rwlock = Arc::new(RwLock::new(1));
    let read: ArcRwLockReadGuard<RawRwLock, u32> = rwlock.read_arc();
    let upgradable: ArcRwLockUpgradableReadGuard<RawRwLock, u32> = rwlock.upgradable_read_arc();
    drop(read);
    let _: ArcRwLockWriteGuard<RawRwLock, u32> = ArcRwLockUpgradableReadGuard::upgrade(upgradable);
}
