//! Waiters that die at each of their steps, and survivors that have to be served on a lock that is
//! never free.
//!
//! The property is a bound, so exclusion and the absence of deadlock are not enough: on a lock that
//! others keep busy a waiter that is never chosen does not deadlock. Here thread 0 holds the lock,
//! and releases it only when it sees that a waiter has asked for it. If no survivor ever asks, the
//! execution never ends.

use crate::new_lock;
use crate::thread::{Arc, id, spawn};
use std::sync::atomic::{AtomicUsize as Count, Ordering::Relaxed};
use ulocks_core::meter::{Event, Meter, sealed};
use ulocks_core::model::{Config, Deaths, Strategy, explore};
use ulocks_core::raw::{Metered, RawMutex};

/// The thread that dies.
const DOOMED: usize = 1;

/// A meter that knows the thread that acquired last. A lock counts an acquisition in the step that
/// acquires, so no death comes between the two.
#[derive(Debug)]
pub struct Holder(Count);

// SAFETY: a store; `id` does not panic on a thread of the model, and only those use it.
unsafe impl sealed::Sealed for Holder {}

impl Meter for Holder {
    const INIT: Self = Self(Count::new(usize::MAX));

    fn count(&self, event: Event) {
        if matches!(event, Event::Acquired | Event::Spun | Event::Stolen | Event::Woken | Event::Reserved) {
            self.0.store(id(), Relaxed);
        }
    }
}

/// What the client has to know of a lock.
pub struct Face<L> {
    /// Whether a thread holds the lock, which may not be so although it is locked: it may be kept
    /// for a waiter.
    pub is_held: fn(&L) -> bool,
    /// Called by the holder: returns when a waiter has asked for the lock, or the second argument
    /// says that no waiter is left.
    pub until_asked: fn(&L, &dyn Fn() -> bool),
}

impl<L> Clone for Face<L> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<L> Copy for Face<L> {}

/// How the client runs.
#[derive(Clone, Copy, Debug)]
pub struct Scene {
    /// The waiters that do not die.
    pub survivors: usize,
    /// How often thread 0 releases the lock and takes it again before it waits for a request, so
    /// that waiters are woken in vain.
    pub barges: usize,
    /// Whether thread 0 then releases the lock for waiters only that have asked for it. Else it
    /// does not come again, and the survivors have to find a free lock.
    pub keeps: bool,
}

/// One waiter that may die, beside survivors, on a lock that thread 0 holds: it releases the lock
/// and takes it again a few times, and then releases it only for a waiter that has asked, or for
/// good.
///
/// If the doomed waiter dies as the holder, the lock is released in its place: that is not what is
/// tested here.
fn survivors_are_served<L>(face: Face<L>, scene: Scene)
where
    L: RawMutex<Token = ()> + Metered<Meter = Holder> + Send + Sync + 'static,
{
    // SAFETY: each caller holds the lock, or acts for a dead thread that does; the token is
    // nothing.
    let unlock = |lock: &L| unsafe { lock.unlock(()) };
    let lock = Arc::new(new_lock::<L>());
    lock.lock();
    let one = move |lock: Arc<L>| {
        spawn(move || {
            lock.lock();
            unlock(&lock);
        })
    };
    let doomed = one(Arc::clone(&lock));
    let undertaker = {
        let lock = Arc::clone(&lock);
        spawn(move || {
            let died = doomed.join().is_err();
            // An old value may be read a few times in a row.
            let is_held = (0..64).fold(false, |_, _| (face.is_held)(&lock));
            if died && is_held && lock.meter().0.load(Relaxed) == DOOMED {
                unlock(&lock);
            }
        })
    };
    let served = Arc::new(Count::new(0));
    let survivors: Vec<_> = (0..scene.survivors)
        .map(|_| {
            let (lock, served) = (Arc::clone(&lock), Arc::clone(&served));
            spawn(move || {
                lock.lock();
                served.fetch_add(1, Relaxed);
                unlock(&lock);
            })
        })
        .collect();
    let again = || {
        unlock(&lock);
        lock.lock();
    };
    (0..scene.barges).for_each(|_| again());
    let nobody_waits = || served.load(Relaxed) == scene.survivors;
    while scene.keeps && !nobody_waits() {
        (face.until_asked)(&lock, &nobody_waits);
        again();
    }
    unlock(&lock);
    undertaker.join().expect("nobody else dies");
    survivors.into_iter().for_each(|survivor| survivor.join().expect("nobody else dies"));
}

/// Lets a waiter die in place of each of its first `steps` steps, each time in some executions of
/// `scene`.
///
/// # Panics
/// If the survivors of one of them are not served, and if there was no death at all.
pub fn each_step_of_a_waiter_may_be_its_last<L>(face: Face<L>, scene: Scene, steps: u32, config: &Config)
where
    L: RawMutex<Token = ()> + Metered<Meter = Holder> + Send + Sync + 'static,
{
    let deaths: u64 = (0..steps)
        .map(|step| {
            let deaths = Deaths::At { thread: DOOMED, step };
            // By chance: priorities would let time pass while a thread of the lowest does nothing.
            let config = Config {
                deaths,
                strategy: Strategy::Random,
                seed: config.seed + u64::from(step),
                ..config.clone()
            };
            explore(config, move || survivors_are_served::<L>(face, scene)).deaths
        })
        .sum();
    assert!(deaths > 0, "nobody died");
}
