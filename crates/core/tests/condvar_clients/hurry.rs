//! Threads that hurry the waiters of a condition variable, which is about to be freed.

use std::sync::Arc;
use ulocks_core::condvar::RawCondvar;
use ulocks_core::futex::{FutexKey, Local};
use ulocks_core::raw::RawMutex;
use ulocks_core::sync::AtomicU32;
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_testkit::plain::ThreeState;
use ulocks_testkit::thread::spawn;

/// A mutex that has to be looked at before it is known whether sleepers may be requeued to it, as
/// those of `pthread.h`.
struct OfAKind<const NS: u32> {
    mutex: ThreeState<Local, NS>,
    kind: AtomicU32,
}

ulocks_core::initial!([const NS: u32] OfAKind<NS> =
    Self { mutex: ThreeState::new(), kind: AtomicU32::new(0) });

// SAFETY: every call is passed on.
unsafe impl<const NS: u32> RawMutex for OfAKind<NS> {
    type Scope = Local;
    type Token = ();
    type Condvar = ulocks_core::condvar::Sequence<Self>;
    const CONDVAR_NS: u32 = NS;
    ulocks_testkit::passes_on! { mutex: lock, try_lock, lock_until, unlock, is_locked }

    fn requeue_key(&self) -> Option<FutexKey<Local>> {
        (self.kind.load(Relaxed) == 0).then(|| self.mutex.requeue_key())?
    }

    fn mark_for_requeued(&self) -> bool {
        self.mutex.mark_for_requeued()
    }

    fn lock_requeued(&self) {
        self.mutex.lock_requeued();
    }
}

/// What a waiter frees after its wait.
struct Place<const NS: u32> {
    mutex: OfAKind<NS>,
    is_set: AtomicU32,
}

impl<const NS: u32> Place<NS> {
    fn boxed() -> *mut Self {
        let mutex = ulocks_testkit::new_lock::<OfAKind<NS>>();
        Box::into_raw(Box::new(Self { mutex, is_set: AtomicU32::new(0) }))
    }
}

/// A thread that waits with the mutex of `place` until it is set, and frees the place.
fn waiter<const NS: u32>(
    condvar: &Arc<RawCondvar<OfAKind<NS>>>,
    place: *mut Place<NS>,
) -> ulocks_testkit::thread::JoinHandle<()> {
    let condvar = Arc::clone(condvar);
    let address = place.expose_provenance();
    spawn(move || {
        // SAFETY: from `into_raw`; no other thread uses the place once `is_set` was seen under the
        // mutex.
        let place: Box<Place<NS>> = unsafe { Box::from_raw(std::ptr::with_exposed_provenance_mut(address)) };
        place.mutex.lock();
        while place.is_set.load(Relaxed) == 0 {
            // SAFETY: the mutex is held.
            _ = unsafe { condvar.wait(&place.mutex, (), None) };
        }
        // SAFETY: the mutex is held.
        unsafe { place.mutex.unlock(()) };
    })
}

/// Sets `place`. The caller does not use it any more.
fn set<const NS: u32>(place: *mut Place<NS>) {
    // SAFETY: the waiter frees the place after it has seen `is_set`, under the mutex.
    unsafe {
        (*place).mutex.lock();
        (*place).is_set.store(1, Relaxed);
        (*place).mutex.unlock(());
    }
}

/// A waiter frees its mutex after its wait, while another thread hurries the waiters.
pub fn while_the_mutex_goes<const NS: u32>() {
    let condvar = Arc::new(RawCondvar::<OfAKind<NS>>::new());
    let place = Place::boxed();
    let waiter = waiter(&condvar, place);
    set(place);
    condvar.notify_one();
    condvar.hurry();
    waiter.join().unwrap();
    assert!(!condvar.notify_one(), "{condvar:?}");
}

/// The mutex of the first waiter is gone, and a second one comes with another mutex while they are
/// hurried.
pub fn after_the_first_mutex_went<const NS: u32>() {
    let condvar = Arc::new(RawCondvar::<OfAKind<NS>>::new());
    for place in [Place::<NS>::boxed(), Place::boxed()] {
        let waiter = waiter(&condvar, place);
        condvar.hurry();
        set(place);
        condvar.notify_one();
        waiter.join().unwrap();
    }
    assert!(!condvar.notify_one(), "{condvar:?}");
}
