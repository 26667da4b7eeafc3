//! [`Robust`]: a robust lock of a region, checked in this process.
//!
//! The lock lies in shared memory, where no pointer of a process may be. So nothing of the checker
//! is in it: a handle of this process has the class, and the list of the thread has the holder. The
//! lock is known by its address in this process.

mod mutex;
mod rwlock;

use crate::locks::listed::{Listed, check};
use crate::rules::current::current;
use crate::rules::handler;
use crate::rules::order;
use crate::rules::waiting::waiting;
use crate::seen::access::Access;
use crate::seen::asked::Asked;
use crate::seen::class::{Class, Origin, fold};
use crate::seen::identity::Identity;
use crate::seen::thread::Record;
use core::fmt;
use core::ops::{Deref, DerefMut};
use core::panic::Location;
use core::ptr;
use ulocks_shm::{LockError, Mends, Refused};

/// A robust lock of a region with a checker of this process around it.
///
/// `L` is a [`ulocks_shm::Mutex`], also with the fair protocol, or a [`ulocks_shm::RwLock`]. The
/// methods are those of the lock. Other objects of a region have [`waits`](Self::waits) and
/// [`locks`](Self::locks). A process makes one handle for each lock, and its threads share that.
///
/// # What is checked
/// What this process does: recursion, the order together with all other checked locks, deadlocks
/// among the threads of the process, a thread that ends or forks with the lock held. The lists of
/// held locks and of waiters have it. A holder in another process is not seen: `ulocks-region`
/// lists the holders of all processes.
///
/// The guard of a mutex waits on a [`ulocks_shm::Condvar`] itself: `guard.wait(&condvar)`, also
/// `wait_until` and `wait_while`. The acquisition at the end of such a wait is no wait in the lists
/// and in deadlocks.
///
/// # Fairness and blocking
/// Those of the lock. An acquisition first tries once.
///
/// # Errors
/// Those of the lock. The error of a dead owner has a checked guard, so [`OrRepair`] and
/// [`OrRepairBy`] serve as for the lock itself.
///
/// [`OrRepair`]: ulocks_shm::OrRepair
/// [`OrRepairBy`]: ulocks_shm::OrRepairBy
///
/// # Panics
/// If a rule is broken, unless [`set_policy`](crate::set_policy) says otherwise; and as the lock.
/// If the policy goes on after a recursion, the lock refuses it with `Refused::Deadlock`.
///
/// # Process-shared
/// The lock is, and this handle is not. Handles of one lock at one address are one lock to the
/// checker. The order of the lock with others of its class is forgotten when a handle is dropped. A
/// region that is mapped twice in a process has two addresses, and so two locks.
///
/// # Signals and forks
/// A signal handler must not use it. A fork while the thread holds the lock is reported as a
/// warning. The child does not hold what its parent holds, and takes part in the region by itself.
///
/// # Examples
/// ```
/// use ulocks_debug::Robust;
/// use ulocks_shm::{Mutex, Region};
///
/// let region = Region::<Mutex<u64>>::options().anonymous()?;
/// let hits = Robust::new(&*region);
/// region.with_member(|me| {
///     *hits.lock(me).expect("no holder has died") += 1;
///     assert_eq!(*hits.lock(me).expect("no holder has died"), 1);
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
pub struct Robust<'a, L: ?Sized> {
    lock: &'a L,
    identity: Identity,
}

/// Another region may lie at this address later.
impl<L: ?Sized> Drop for Robust<'_, L> {
    fn drop(&mut self) {
        order::dropped(self.number());
    }
}

/// Numbers above that are hashes of addresses. Other locks have small numbers.
const BY_ADDRESS: u64 = 1 << 39;

impl<'a, L: ?Sized> Robust<'a, L> {
    /// A handle for `lock`. The locks of all handles that one line makes are a class.
    #[track_caller]
    pub const fn new(lock: &'a L) -> Self {
        Self { lock, identity: Identity::new(Origin::made::<L>(Location::caller())) }
    }

    /// A handle for `lock`, which is of a named class.
    pub const fn new_in(class: &'static Class, lock: &'a L) -> Self {
        Self { lock, identity: Identity::new(Origin::named(class)) }
    }

    /// The lock that is checked.
    pub const fn inner(&self) -> &'a L {
        self.lock
    }

    /// The name of its class, or the name of the lock's type.
    #[track_caller]
    pub fn name(&self) -> &'static str {
        self.identity.find::<L>(Location::caller()).0.name()
    }

    /// The number of the lock, for all handles of it.
    fn number(&self) -> u64 {
        let address = ptr::from_ref(self.lock).cast::<()>().addr();
        BY_ADDRESS | (fold(address as u64) % BY_ADDRESS)
    }

    /// Calls `wait` with the object, and lists the thread as a waiter meanwhile. For what has no
    /// holder: a [`Semaphore`](ulocks_shm::Semaphore), a [`SemArray`](ulocks_shm::SemArray), a
    /// [`Queue`](ulocks_shm::Queue).
    ///
    /// It adds nothing to the order of locks, as no wait for permits does.
    ///
    /// # Examples
    /// ```
    /// use ulocks_debug::{Robust, waiters};
    /// use ulocks_shm::{Queue, Region};
    ///
    /// let region = Region::<Queue<u64, 4>>::options().anonymous()?;
    /// let jobs = Robust::new(&*region);
    /// std::thread::scope(|scope| {
    ///     let taker = scope.spawn(|| region.with_member(|me| jobs.waits(|jobs| jobs.pop(me))));
    ///     while waiters().is_empty() {
    ///         std::thread::yield_now();
    ///     }
    ///     assert_eq!(waiters()[0].lock.name, "Queue");
    ///     region.with_member(|me| region.push(me, 7)).expect("a member").expect("a place");
    ///     assert_eq!(taker.join().unwrap().expect("a member"), Ok(7));
    /// });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn waits<R>(&self, wait: impl FnOnce(&'a L) -> R) -> R {
        let Some(me) = current() else { return wait(self.lock) };
        waiting(me, &self.asked(Access::Permits), false, || wait(self.lock))
    }

    /// Calls `work` with the object, and checks that as the acquisition of a mutex which the thread
    /// holds until `work` returns. For what locks itself while it calls a closure, as
    /// [`HashMap::update`](ulocks_shm::HashMap::update) and `for_each` do; and for what locks
    /// itself while another thread is in such a closure.
    ///
    /// The wait for that lock is no wait in the lists and in deadlocks: the thread is listed as a
    /// holder from the call on.
    ///
    /// # Panics
    /// If a rule is broken, unless [`set_policy`](crate::set_policy) says otherwise; and as `work`.
    #[track_caller]
    pub fn locks<R>(&self, work: impl FnOnce(&'a L) -> R) -> R {
        let Some(me) = current() else { return work(self.lock) };
        let asked = self.asked(Access::Exclusive);
        check(me, &asked);
        let _entry = Listed::new(Some((me, &asked)));
        work(self.lock)
    }

    #[track_caller]
    fn asked(&self, access: Access) -> Asked {
        let address = ptr::from_ref(self.lock).addr();
        let asked = self.identity.asked::<L>(address, access, 0, Location::caller());
        // Handles of one lock are one lock also to the order within its class.
        Asked { instance: self.number(), ..asked }
    }

    /// Acquires without a deadline: `attempt` does not wait, and `wait` does.
    #[track_caller]
    fn acquire<G>(
        &self,
        access: Access,
        attempt: impl FnOnce() -> Result<G, LockError<G>>,
        wait: impl FnOnce() -> Result<G, LockError<G>>,
    ) -> Result<RobustGuard<G>, LockError<RobustGuard<G>>> {
        let Some(me) = current() else { return entered(wait(), None) };
        let asked = self.asked(access);
        check(me, &asked);
        let result = match attempt() {
            Err(LockError::Refused(Refused::TimedOut)) => waiting(me, &asked, false, wait),
            result => result,
        };
        entered(result, Some((me, &asked)))
    }

    /// Acquires without waiting, or by `wait` with a deadline. No order is asked for.
    #[track_caller]
    fn attempt<G>(
        &self,
        access: Access,
        attempt: impl FnOnce() -> Result<G, LockError<G>>,
        wait: Option<impl FnOnce() -> Result<G, LockError<G>>>,
    ) -> Result<RobustGuard<G>, LockError<RobustGuard<G>>> {
        let me = current();
        let asked = self.asked(access);
        if let Some(me) = me {
            handler::look(me, &asked, false);
        }
        let result = match (attempt(), wait, me) {
            (Err(LockError::Refused(Refused::TimedOut)), Some(wait), Some(me)) => {
                waiting(me, &asked, true, wait)
            }
            (Err(LockError::Refused(Refused::TimedOut)), Some(wait), None) => wait(),
            (result, ..) => result,
        };
        entered(result, me.map(|me| (me, &asked)))
    }
}

/// Enters an acquisition that the lock has made, and one that found a dead owner.
fn entered<G>(
    result: Result<G, LockError<G>>,
    how: Option<(&'static Record, &Asked)>,
) -> Result<RobustGuard<G>, LockError<RobustGuard<G>>> {
    let checked = |guard| RobustGuard { entry: Listed::new(how), guard };
    match result {
        Ok(guard) => Ok(checked(guard)),
        Err(error) => Err(error.map(checked)),
    }
}

/// The result of an acquisition that gives the guard whatever the data is like.
fn only_refused<G>(result: Result<G, LockError<G>>) -> Result<G, Refused> {
    match result {
        Ok(guard) | Err(LockError::OwnerDied(guard)) => Ok(guard),
        Err(LockError::Refused(refused)) => Err(refused),
        Err(_) => unreachable!("a reset makes the lock recoverable"),
    }
}

/// Access to the data of a lock behind a [`Robust`], until it is dropped.
///
/// It dereferences to the data. Its methods are those of the guard inside.
#[must_use = "dropped at once, it releases the lock"]
pub struct RobustGuard<G> {
    // Dropped first: a thread is taken off the list before it releases.
    entry: Listed,
    guard: G,
}

impl<G: Deref> Deref for RobustGuard<G> {
    type Target = G::Target;

    #[inline]
    fn deref(&self) -> &G::Target {
        &self.guard
    }
}

impl<G: DerefMut> DerefMut for RobustGuard<G> {
    #[inline]
    fn deref_mut(&mut self) -> &mut G::Target {
        &mut self.guard
    }
}

/// So the result of an acquisition has `or_repair`, and that of a wait `or_repair_by`.
impl<G: Mends> Mends for RobustGuard<G> {
    fn mended(&mut self) {
        self.guard.mended();
    }
}

impl<G: Deref<Target: fmt::Debug>> fmt::Debug for RobustGuard<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<L: ?Sized + fmt::Debug> fmt::Debug for Robust<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lock.fmt(f)
    }
}

/// The methods of a guard that may find the data dirty.
macro_rules! repairs {
    ($guard:ident, $([const $n:ident: usize],)? $p:ident: $bound:path) => {
        impl<T: ?Sized $(, const $n: usize)?, $p: $bound> RobustGuard<$guard<'_, T $(, $n)?, $p>> {
            /// Whether a holder died or panicked, and the data was not repaired since.
            #[must_use]
            pub fn is_dirty(&self) -> bool {
                self.guard.is_dirty()
            }

            /// Says that the data is whole again.
            pub fn mark_consistent(&mut self) {
                self.guard.mark_consistent();
            }

            /// Releases, and makes the lock not recoverable: the data cannot be repaired.
            pub fn abandon(self) {
                let Self { entry, guard } = self;
                drop(entry);
                guard.abandon();
            }
        }
    };
}
use repairs;

/// The ways to acquire a lock as one `$access`, with the methods of the lock inside: for as long as
/// it takes, without waiting, until a deadline, and perhaps for a time; and perhaps its reset.
macro_rules! acquisitions {
    ($lock:ident, $guard:ty, $access:ident:
        $wait:ident $attempt:ident $until:ident $($for:ident $($reset:ident)?)?) => {
        #[doc = concat!("As [`", stringify!($lock), "::", stringify!($wait), "`].")]
        ///
        /// # Errors
        #[doc = concat!("As [`", stringify!($lock), "::", stringify!($wait), "`].")]
        #[track_caller]
        pub fn $wait<'b>(&'b self, me: &'b Member<'_>) -> Result<$guard, LockError<$guard>> {
            self.acquire($access, || self.lock.$attempt(me), || self.lock.$wait(me))
        }

        #[doc = concat!("As [`", stringify!($lock), "::", stringify!($attempt), "`].")]
        ///
        /// # Errors
        #[doc = concat!("As [`", stringify!($lock), "::", stringify!($attempt), "`].")]
        #[track_caller]
        pub fn $attempt<'b>(&'b self, me: &'b Member<'_>) -> Result<$guard, LockError<$guard>> {
            self.attempt($access, || self.lock.$attempt(me), None::<fn() -> _>)
        }

        #[doc = concat!("As [`", stringify!($lock), "::", stringify!($until), "`].")]
        ///
        /// # Errors
        #[doc = concat!("As [`", stringify!($lock), "::", stringify!($until), "`].")]
        #[track_caller]
        pub fn $until<'b>(
            &'b self,
            me: &'b Member<'_>,
            deadline: Deadline,
        ) -> Result<$guard, LockError<$guard>> {
            let wait = || self.lock.$until(me, deadline);
            self.attempt($access, || self.lock.$attempt(me), Some(wait))
        }

        $(
        #[doc = concat!("As [`", stringify!($lock), "::", stringify!($for), "`].")]
        ///
        /// # Errors
        #[doc = concat!("As [`", stringify!($lock), "::", stringify!($for), "`].")]
        #[track_caller]
        pub fn $for<'b>(
            &'b self,
            me: &'b Member<'_>,
            timeout: Duration,
        ) -> Result<$guard, LockError<$guard>> {
            self.$until(me, Deadline::after(timeout))
        }

        $(
        #[doc = concat!("As [`", stringify!($lock), "::", stringify!($reset), "`].")]
        ///
        /// # Errors
        #[doc = concat!("As [`", stringify!($lock), "::", stringify!($reset), "`].")]
        #[track_caller]
        pub fn $reset<'b>(&'b self, me: &'b Member<'_>) -> Result<$guard, Refused> {
            let reset = || self.lock.$reset(me).map_err(LockError::Refused);
            // An attempt would leave a lock that is not recoverable as it is.
            let blocked = || Err(LockError::Refused(Refused::TimedOut));
            super::only_refused(self.acquire($access, blocked, reset))
        }

        /// Whether a thread has the lock, living or dead, at the moment of the look.
        #[must_use]
        pub fn is_locked(&self) -> bool {
            self.lock.is_locked()
        }
        )?
        )?
    };
}
use acquisitions;
