//! [`Condvar`]: a condition variable for the robust mutexes.
//!
//! # Properties
//! - A notification wakes a waiter that waited before it, the one that has waited longest.
//! - If a notified waiter dies before it has the mutex again, the waiter behind it returns, as if
//!   it were notified. If that one was notified, too, no other takes its place: a notification may
//!   be lost to a death where several are given at once.
//! - A thread that dies while it waits, or while it notifies, strands no waiter. In the second case
//!   a notified waiter may sleep for [`RECHECK`](crate::slots::RECHECK) before it looks.
//! - A wait whose time is over lets one other wait return without a notification, at most.
//! - A call that panics leaves no waiter behind, which would use up a notification.
//!
//! # Protocol
//! The waiters are requests in a `Queue` that grants nothing by itself. A waiter checks that its
//! guard has the mutex (check), enqueues, and then releases the mutex. So the release does not
//! panic. A notification grants the first request.
//!
//! Each waiter watches the one that was before it when it came. If that one dies, or leaves the
//! queue since its time is over, the waiter looks again. If others wait before it, none of them was
//! notified: it watches the last of these, and sleeps on. If it is the head now, one that was
//! notified before it may have died, and nobody else would notice. So it returns, as if it were
//! notified. The waiter behind watches it, as one that was notified: that one need not be told.
//!
//! A waiter that let the one behind it return whenever it returns would start a ring: those that
//! wait again are behind the last one.

use crate::robust::RawRobust;
use crate::robust::mutex::{LockError, MutexGuard};
use crate::robust::queue::{Granted, Queue, Rule};
use crate::slots::{Member, Owner};
use core::time::Duration;
use ulocks_core::time::Deadline;
use ulocks_core::{Policy, Shared, futex};

/// A condition variable between processes, of which any may be killed: for a
/// [`Mutex`](super::mutex::Mutex) or a
/// [`FairMutex`](super::fair_mutex::FairMutex). 16 bytes.
///
/// # Fairness
/// A notification wakes the waiter that has waited longest. It then competes for the mutex.
///
/// # Blocking
/// A wait sleeps in the kernel (`futex_waitv`) until it is notified, until the waiter before it
/// dies, or until its deadline. It may return for no reason, so check the condition again. A
/// notification never waits for a waiter; if no thread waits, it is one load. `notify_all` wakes
/// each waiter.
///
/// # Errors
/// Those of the mutex, which a wait acquires again. After [`LockError::OwnerDied`] the guard has
/// the mutex, and the data is to be repaired: [`OrRepairBy`](super::OrRepairBy). After the
/// others it has none, and panics if it is used.
///
/// # Panics
/// If the member is not of this variable's region, or is that of the process's parent. A wait by a
/// guard without its mutex panics before it begins: the thread is no waiter then.
///
/// # Process-shared
/// That is what it is for. All threads that use it take part in one region.
///
/// # Signals and forks
/// A signal handler must not use it. A signal does not end a wait.
///
/// # Sources
/// This project's.
///
/// # Examples
/// ```
/// use ulocks_shm::{Condvar, Mutex, Region, SharedSafe};
///
/// #[derive(SharedSafe)]
/// #[repr(C)]
/// struct Mailbox {
///     letters: Mutex<u64>,
///     arrived: Condvar,
/// }
///
/// let region = Region::<Mailbox>::options().anonymous()?;
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         region.with_member(|me| {
///             *region.letters.lock(me).unwrap() += 1;
///             region.arrived.notify_one(me);
///         })
///     });
///     region.with_member(|me| {
///         let mut letters = region.letters.lock(me).unwrap();
///         region.arrived.wait_while(&mut letters, |letters| *letters == 0).unwrap();
///         *letters -= 1;
///     })
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[repr(transparent)]
pub struct Condvar<P: Policy<Scope = futex::Global> = Shared>(Queue<P>);

/// How a wait ended, beside a mutex that it has acquired again. With [`LockError::OwnerDied`] the
/// data is to be repaired; after the other errors the guard has no mutex.
pub type WaitResult<T = ()> = Result<T, LockError<T>>;

impl<P: Policy<Scope = futex::Global>> Condvar<P> {
    ulocks_core::const_fn! {
        /// A condition variable without waiters; its bytes are all zero.
        #[allow(clippy::new_without_default)]
        pub fn new() -> Self {
            Self(Queue::new())
        }
    }

    /// Releases the mutex, waits for a notification, and acquires the mutex again.
    ///
    /// A dirty guard that was not marked consistent makes the mutex not recoverable, as its drop
    /// does.
    ///
    /// # Errors
    /// See [the type](Self#errors).
    ///
    /// # Panics
    /// See [the type](Self#panics).
    pub fn wait<T: ?Sized, L: RawRobust>(&self, guard: &mut MutexGuard<'_, T, L>) -> WaitResult {
        self.release_and_wait(guard, None).map(drop).map_err(|error| error.map(drop))
    }

    /// The same, for at most `timeout`. Whether it ended before that.
    ///
    /// # Errors
    /// As [`wait`](Self::wait). The end of the time is no error.
    ///
    /// # Panics
    /// As [`wait`](Self::wait).
    pub fn wait_for<T: ?Sized, L: RawRobust>(
        &self,
        guard: &mut MutexGuard<'_, T, L>,
        timeout: Duration,
    ) -> WaitResult<bool> {
        self.release_and_wait(guard, Some(Deadline::after(timeout)))
    }

    /// The same, until `deadline`. Whether it ended before that.
    ///
    /// # Errors
    /// As [`wait_for`](Self::wait_for).
    ///
    /// # Panics
    /// As [`wait`](Self::wait).
    pub fn wait_until<T: ?Sized, L: RawRobust>(
        &self,
        guard: &mut MutexGuard<'_, T, L>,
        deadline: Deadline,
    ) -> WaitResult<bool> {
        self.release_and_wait(guard, Some(deadline))
    }

    /// Waits as long as the `condition` holds: it is checked with the mutex held, at first and
    /// after each wake-up.
    ///
    /// # Errors
    /// As [`wait`](Self::wait). After [`LockError::OwnerDied`] the condition was not checked.
    ///
    /// # Panics
    /// As [`wait`](Self::wait), and if the condition does.
    pub fn wait_while<T: ?Sized, L: RawRobust>(
        &self,
        guard: &mut MutexGuard<'_, T, L>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> WaitResult {
        while condition(guard) {
            self.wait(guard)?;
        }
        Ok(())
    }

    /// The same, until `deadline`. Whether the condition has ceased to hold.
    ///
    /// # Errors
    /// As [`wait_while`](Self::wait_while). The end of the time is no error.
    ///
    /// # Panics
    /// As [`wait_while`](Self::wait_while).
    pub fn wait_while_until<T: ?Sized, L: RawRobust>(
        &self,
        guard: &mut MutexGuard<'_, T, L>,
        deadline: Deadline,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> WaitResult<bool> {
        let mut in_time = true;
        while condition(guard) {
            if !in_time {
                return Ok(false);
            }
            in_time = self.wait_until(guard, deadline)?;
        }
        Ok(true)
    }

    /// Whether it ended before the deadline, if there is one.
    pub(crate) fn release_and_wait<T: ?Sized, L: RawRobust>(
        &self,
        guard: &mut MutexGuard<'_, T, L>,
        deadline: Option<Deadline>,
    ) -> WaitResult<bool> {
        let (mutex, me) = (guard.mutex(), guard.member());
        me.check_region(self);
        guard.check_held(); // (check)
        let ended = self.0.wait(me, &NoHolders, deadline, || guard.release()).map_err(LockError::Refused)?;
        // The former guard has no mutex, so that its drop does nothing.
        match mutex.lock(me) {
            Ok(again) => *guard = again,
            Err(LockError::OwnerDied(again)) => {
                *guard = again;
                return Err(LockError::OwnerDied(ended));
            }
            Err(error) => return Err(error.map(|_| ended)),
        }
        Ok(ended)
    }

    /// Wakes the waiter that has waited longest. Whether there was one.
    ///
    /// # Panics
    /// See [the type](Self#panics).
    pub fn notify_one(&self, me: &Member<'_>) -> bool {
        me.check_region(self);
        self.0.notify(me, &NoHolders, 1) > 0
    }

    /// Wakes all waiters. How many there were.
    ///
    /// # Panics
    /// See [the type](Self#panics).
    pub fn notify_all(&self, me: &Member<'_>) -> usize {
        me.check_region(self);
        self.0.notify(me, &NoHolders, usize::MAX)
    }

    /// Notifies as many waiters, those that have waited longest, but of many a part. The caller
    /// wakes them after the mutex.
    #[inline]
    pub(crate) fn grant<'s>(&self, me: &Member<'s>, most: usize) -> Option<Granted<'s>> {
        if most > 0 && self.0.may_have_waiters() { self.0.grant(me, &NoHolders, most) } else { None }
    }

    /// Wakes the waiters that a thread has notified which has died since.
    pub(crate) fn wake_granted(&self, me: &Member<'_>) {
        if let Ok(section) = self.0.enter(me, &NoHolders) {
            section.wake_granted();
        }
    }

    /// How many threads wait, at the moment of the look.
    #[must_use]
    pub fn waiters(&self, me: &Member<'_>) -> usize {
        self.0.waiters(me)
    }

    /// Empties it, if no thread uses it.
    #[cfg(regions)]
    pub(crate) fn reset(&self) {
        self.0.reset();
    }
}

/// The rule of a queue in which requests are granted by notifications only.
struct NoHolders;

impl Rule for NoHolders {
    fn grant(&self, _owner: Owner, _want: u32) -> bool {
        false
    }

    fn holders(&self, _each: &mut dyn FnMut(Owner)) {}

    /// So no waiter is given another thread to watch.
    fn is_held_only_by(&self, _owner: Owner) -> bool {
        true
    }

    fn reap(&self, _gone: Owner) {}
}
