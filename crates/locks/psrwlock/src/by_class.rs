//! What the typed lock has beside the methods of a reader-writer lock: classes, and handlers.

use crate::class::ThreadClass;
use crate::configuration::Configuration;
use crate::raw::RawPsRwLock;
use crate::word::State;
use crate::{PsRwLockReadGuard, PsRwLockUpgradableReadGuard, PsRwLockWith};
use core::convert::Infallible;
use core::panic::Location;
use core::time::Duration;
use std::time::Instant;
use ulocks_core::api;
use ulocks_core::interrupt::{Interrupted, WaitError};
use ulocks_core::policy::InOneProcess;
use ulocks_core::signal::Context;
use ulocks_core::task::{AsyncRwLockReadGuard, read_guard};
use ulocks_core::time::Deadline;

mod sealed {
    pub trait Sealed {}
}

impl<D: Configuration, T: ?Sized> sealed::Sealed for PsRwLockWith<T, D> {}
impl<D: Configuration, T: ?Sized> sealed::Sealed for PsRwLockUpgradableReadGuard<'_, T, D> {}

/// The raw lock of a typed one.
pub(crate) fn raw<D: Configuration, T: ?Sized>(lock: &PsRwLockWith<T, D>) -> &RawPsRwLock<D> {
    // SAFETY: what is done with it here releases nothing that a guard stands for.
    unsafe { lock.raw() }.inner()
}

/// Reading in a class, and reading in signal handlers.
///
/// The methods of a [`PsRwLock`](crate::PsRwLock) of any configuration. A class that the
/// lock does not have is an error of the compiler:
///
/// ```compile_fail
/// use ulocks_psrwlock::{BULK, ByClass, PsRwLockWith, Sifted, Urgent};
///
/// let lock: PsRwLockWith<u32, Sifted<BULK>> = PsRwLockWith::new(0);
/// lock.read_in::<Urgent>();
/// ```
pub trait ByClass: sealed::Sealed {
    /// What the lock protects.
    type Data: ?Sized;
    /// Its configuration.
    type Configuration: Configuration;

    /// Acquires for reading in a class, waiting as long as it takes.
    ///
    /// `bump` of the guard acquires again in the same class. `unlocked` and `unlocked_fair` acquire
    /// again as `read` does, in the class [`Bulk`](crate::Bulk): they are not for a guard beside
    /// another one of its thread.
    ///
    /// # Panics
    /// As `read`.
    fn read_in<C: ThreadClass>(&self) -> PsRwLockReadGuard<'_, Self::Data, Self::Configuration>;
    /// Acquires for reading in a class if that needs no waiting.
    fn try_read_in<C: ThreadClass>(&self) -> Option<PsRwLockReadGuard<'_, Self::Data, Self::Configuration>>;
    /// Acquires for reading in a class, or gives up after `timeout`.
    fn try_read_in_for<C: ThreadClass>(
        &self,
        timeout: Duration,
    ) -> Option<PsRwLockReadGuard<'_, Self::Data, Self::Configuration>>;
    /// Acquires for reading in a class, or gives up at `timeout`.
    fn try_read_in_until<C: ThreadClass>(
        &self,
        timeout: Instant,
    ) -> Option<PsRwLockReadGuard<'_, Self::Data, Self::Configuration>>;

    /// Acquires for reading in a class, or gives up when a signal handler runs while the thread
    /// sleeps; see [`interrupt`](ulocks_core::interrupt).
    ///
    /// # Errors
    /// If a handler has run.
    fn read_in_interruptible<C: ThreadClass>(
        &self,
    ) -> Result<PsRwLockReadGuard<'_, Self::Data, Self::Configuration>, Interrupted>;
    /// As [`read_in_interruptible`](Self::read_in_interruptible), giving up also at `deadline`.
    ///
    /// # Errors
    /// If the deadline has passed, or a handler has run.
    fn read_in_interruptible_until<C: ThreadClass>(
        &self,
        deadline: impl Into<Deadline>,
    ) -> Result<PsRwLockReadGuard<'_, Self::Data, Self::Configuration>, WaitError>;

    /// Acquires for reading in a class, by a task; see [`task`](ulocks_core::task).
    ///
    /// # Examples
    /// ```
    /// use ulocks_psrwlock::{ByClass, PsRwLock, Urgent};
    ///
    /// async fn first(routes: &PsRwLock<Vec<u32>>) -> Option<u32> {
    ///     routes.read_in_async::<Urgent>().await.first().copied()
    /// }
    /// # let routes = PsRwLock::new(vec![1]);
    /// # let mut future = std::pin::pin!(first(&routes));
    /// # let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    /// # assert_eq!(future.as_mut().poll(&mut context), std::task::Poll::Ready(Some(1)));
    /// ```
    fn read_in_async<C: ThreadClass>(
        &self,
    ) -> impl Future<Output = AsyncRwLockReadGuard<'_, RawPsRwLock<Self::Configuration>, Self::Data>>
    where
        Self::Configuration: Configuration<Policy: InOneProcess>;

    /// Acquires for reading in a signal handler, or fails if a writer has shut the class of
    /// [`Handler`](crate::Handler): after some microseconds at most, or at once if the signal is a
    /// synchronous one. No system call is made, here or by the drop of the guard.
    ///
    /// On a lock whose mask is [`Soft`](ulocks_core::signal::Soft) the handler is one of
    /// `signal::Handlers`. It never runs while its own thread writes, so if it fails, a writer on
    /// another CPU is in its last stage, or in its critical section.
    ///
    /// `bump` of the guard does nothing. `unlocked` and `unlocked_fair` acquire again as `read`
    /// does, and may sleep: they are not for handlers.
    fn read_handler<'a>(
        &'a self,
        context: &'a Context<'_>,
    ) -> Option<PsRwLockReadGuard<'a, Self::Data, Self::Configuration>>;

    /// The state at this moment.
    #[doc(hidden)]
    fn state(&self) -> State;
}

/// A read lock of a class, until `deadline` or a signal handler.
fn read_until<'a, C: ThreadClass, D: Configuration, T: ?Sized>(
    lock: &'a PsRwLockWith<T, D>,
    deadline: Deadline,
    at: &'static Location<'static>,
) -> Option<PsRwLockReadGuard<'a, T, D>> {
    let acquire = |raw: &RawPsRwLock<D>| {
        let token = raw.try_read_in::<C>(at);
        token.or_else(|| raw.read_in_until::<C>(deadline.interruptible(), at)).ok_or(())
    };
    // SAFETY: the token is of this lock, acquired here.
    unsafe { api::read_with(lock, acquire) }.ok()
}

impl<D: Configuration, T: ?Sized> ByClass for PsRwLockWith<T, D> {
    type Data = T;
    type Configuration = D;

    #[inline]
    #[track_caller]
    fn read_in<C: ThreadClass>(&self) -> PsRwLockReadGuard<'_, T, D> {
        let at = Location::caller();
        // SAFETY: the token is of this lock, acquired here.
        match unsafe { api::read_with(self, |raw| Ok::<_, Infallible>(raw.read_in::<C>(at))) } {
            Ok(guard) => guard,
        }
    }

    #[inline]
    #[track_caller]
    fn try_read_in<C: ThreadClass>(&self) -> Option<PsRwLockReadGuard<'_, T, D>> {
        let at = Location::caller();
        // SAFETY: as in `read_in`.
        unsafe { api::read_with(self, |raw| raw.try_read_in::<C>(at).ok_or(())) }.ok()
    }

    #[track_caller]
    fn try_read_in_for<C: ThreadClass>(&self, timeout: Duration) -> Option<PsRwLockReadGuard<'_, T, D>> {
        let at = Location::caller();
        // The clock is not read if there is nothing to wait for.
        let acquire = |raw: &RawPsRwLock<D>| {
            let token = raw.try_read_in::<C>(at);
            token.or_else(|| raw.read_in_until::<C>(Deadline::after(timeout), at)).ok_or(())
        };
        // SAFETY: as in `read_in`.
        unsafe { api::read_with(self, acquire) }.ok()
    }

    #[track_caller]
    fn try_read_in_until<C: ThreadClass>(&self, timeout: Instant) -> Option<PsRwLockReadGuard<'_, T, D>> {
        let at = Location::caller();
        let acquire = |raw: &RawPsRwLock<D>| {
            let token = raw.try_read_in::<C>(at);
            token.or_else(|| raw.read_in_until::<C>(Deadline::at(timeout), at)).ok_or(())
        };
        // SAFETY: as in `read_in`.
        unsafe { api::read_with(self, acquire) }.ok()
    }

    #[track_caller]
    fn read_in_interruptible<C: ThreadClass>(&self) -> Result<PsRwLockReadGuard<'_, T, D>, Interrupted> {
        read_until::<C, D, T>(self, Deadline::NEVER, Location::caller()).ok_or(Interrupted)
    }

    #[track_caller]
    fn read_in_interruptible_until<C: ThreadClass>(
        &self,
        deadline: impl Into<Deadline>,
    ) -> Result<PsRwLockReadGuard<'_, T, D>, WaitError> {
        let deadline = deadline.into();
        let guard = read_until::<C, D, T>(self, deadline, Location::caller());
        guard.ok_or_else(|| WaitError::at(deadline))
    }

    async fn read_in_async<C: ThreadClass>(&self) -> AsyncRwLockReadGuard<'_, RawPsRwLock<D>, T>
    where
        D: Configuration<Policy: InOneProcess>,
    {
        let token = raw(self).read_class_async::<C>().await;
        // SAFETY: the token is of this lock, acquired here.
        unsafe { read_guard(self, token) }
    }

    #[inline]
    fn read_handler<'a>(&'a self, context: &'a Context<'_>) -> Option<PsRwLockReadGuard<'a, T, D>> {
        // SAFETY: as in `read_in`.
        unsafe { api::read_with(self, |raw| raw.read_in_handler(context).ok_or(())) }.ok()
    }

    fn state(&self) -> State {
        raw(self).state()
    }
}

/// Exclusion of some classes of readers by an upgradable reader: a write in two phases.
///
/// In the first phase the upgradable reader shuts out slow readers and waits for them, while other
/// classes still read. The second phase, `upgrade`, is short. So is the time for which the other
/// classes may have to wait.
///
/// A write that ends with the upgradable guard opens all classes, also those that were shut out
/// before it: `with_upgraded`, and `downgrade_to_upgradable` of the write guard. To keep them out,
/// exclude them again. An attempt to upgrade that fails leaves them shut out.
///
/// ```
/// use ulocks_psrwlock::{Bulk, ByClass, Partial, PsRwLock, PsRwLockUpgradableReadGuard, Urgent};
///
/// let lock = PsRwLock::new(vec![1, 2, 3]);
/// let mut prepare = lock.upgradable_read();
/// Partial::exclude::<Bulk>(&mut prepare);
/// assert!(lock.try_read().is_none() && lock.try_read_in::<Urgent>().is_some());
/// let next: Vec<u32> = prepare.iter().map(|item| item * 10).collect();
/// *PsRwLockUpgradableReadGuard::upgrade(prepare) = next;
/// assert_eq!(*lock.read(), [10, 20, 30]);
/// ```
pub trait Partial: sealed::Sealed {
    /// Shuts out readers of the class and of all below it, and waits until they have left. They are
    /// shut out until [`admit`](Self::admit), or the end of the guard or of an upgrade.
    ///
    /// # Panics
    /// If this thread is such a reader itself, and the configuration [checks](crate::Nesting) that.
    #[track_caller]
    fn exclude<C: ThreadClass>(s: &mut Self);
    /// Shuts out readers of the class and of all below it, if there are none inside. False if there
    /// are; then no further class is closed.
    fn try_exclude<C: ThreadClass>(s: &mut Self) -> bool;
    /// Shuts out readers of the class and of all below it, and waits until they have left. False
    /// after `timeout`; then no further class is closed.
    fn try_exclude_for<C: ThreadClass>(s: &mut Self, timeout: Duration) -> bool;
    /// As [`try_exclude_for`](Self::try_exclude_for), until the instant `timeout`.
    fn try_exclude_until<C: ThreadClass>(s: &mut Self, timeout: Instant) -> bool;
    /// Opens all classes again. So does the end of a write that goes back to the upgradable guard.
    fn admit(s: &mut Self);
}

impl<D: Configuration, T: ?Sized> Partial for PsRwLockUpgradableReadGuard<'_, T, D> {
    fn exclude<C: ThreadClass>(s: &mut Self) {
        let raw = raw(PsRwLockUpgradableReadGuard::rwlock(s));
        raw.exclude::<C>(Location::caller());
    }

    fn try_exclude<C: ThreadClass>(s: &mut Self) -> bool {
        raw(PsRwLockUpgradableReadGuard::rwlock(s)).try_exclude::<C>()
    }

    fn try_exclude_for<C: ThreadClass>(s: &mut Self, timeout: Duration) -> bool {
        // The clock is not read if there is nothing to wait for.
        let raw = raw(PsRwLockUpgradableReadGuard::rwlock(s));
        raw.try_exclude::<C>() || raw.exclude_until::<C>(Deadline::after(timeout))
    }

    fn try_exclude_until<C: ThreadClass>(s: &mut Self, timeout: Instant) -> bool {
        let raw = raw(PsRwLockUpgradableReadGuard::rwlock(s));
        raw.try_exclude::<C>() || raw.exclude_until::<C>(Deadline::at(timeout))
    }

    fn admit(s: &mut Self) {
        raw(PsRwLockUpgradableReadGuard::rwlock(s)).reopen(0);
    }
}
