//! Reading a [`PsRwLock`](crate::PsRwLock) in a class.

use super::{CheckedReadToken, CheckedRw, CheckedRwLock};
use crate::seen::access::Access;
use core::panic::Location;
use core::time::Duration;
use std::time::Instant;
use ulocks_core::Policy;
use ulocks_core::api::RwLockReadGuard;
use ulocks_core::futex::Local;
use ulocks_core::interrupt::{Interrupted, WaitError};
use ulocks_core::policy::InOneProcess;
use ulocks_core::task::{AsyncRwLockReadGuard, read_guard};
use ulocks_core::time::Deadline;
use ulocks_psrwlock::{Configuration, RawPsRwLock, ThreadClass};

type Raw<D> = CheckedRw<RawPsRwLock<D>>;
type Guard<'a, D, T> = RwLockReadGuard<'a, Raw<D>, T>;

mod sealed {
    pub trait Sealed {}
}

impl<D, T: ?Sized> sealed::Sealed for CheckedRwLock<RawPsRwLock<D>, T>
where
    D: Configuration,
    D::Policy: Policy<Scope = Local>,
{
}

/// Reading in a class: the methods of `ulocks_psrwlock::ByClass` that name one.
///
/// `checked::ByClass` is this trait where locks are checked, and that one where they are plain.
pub trait ByClass: sealed::Sealed {
    /// What the lock protects.
    type Data: ?Sized;
    /// The configuration of the lock without its checker.
    type Configuration: Configuration<Policy: Policy<Scope = Local>>;

    /// Acquires for reading in a class, waiting as long as it takes.
    ///
    /// A thread that reads may read again in a higher class.
    ///
    /// # Panics
    /// As `read`.
    ///
    /// # Examples
    /// ```
    /// use ulocks_debug::{ByClass, RwLock};
    /// use ulocks_psrwlock::Nested;
    ///
    /// let routes = RwLock::new([1, 2, 3]);
    /// let report = routes.read();
    /// assert_eq!(routes.read_in::<Nested>().len(), report.len());
    /// ```
    fn read_in<C: ThreadClass>(&self) -> Guard<'_, Self::Configuration, Self::Data>;

    /// Acquires for reading in a class if that needs no waiting.
    fn try_read_in<C: ThreadClass>(&self) -> Option<Guard<'_, Self::Configuration, Self::Data>>;

    /// Acquires for reading in a class, or gives up after `timeout`.
    fn try_read_in_for<C: ThreadClass>(
        &self,
        timeout: Duration,
    ) -> Option<Guard<'_, Self::Configuration, Self::Data>>;

    /// Acquires for reading in a class, or gives up at `timeout`.
    fn try_read_in_until<C: ThreadClass>(
        &self,
        timeout: Instant,
    ) -> Option<Guard<'_, Self::Configuration, Self::Data>>;

    /// Acquires for reading in a class, or gives up when a signal handler runs while the thread
    /// sleeps.
    ///
    /// # Errors
    /// If a handler has run.
    fn read_in_interruptible<C: ThreadClass>(
        &self,
    ) -> Result<Guard<'_, Self::Configuration, Self::Data>, Interrupted>;

    /// As [`read_in_interruptible`](Self::read_in_interruptible), giving up also at `deadline`.
    ///
    /// # Errors
    /// If the deadline has passed, or a handler has run.
    fn read_in_interruptible_until<C: ThreadClass>(
        &self,
        deadline: impl Into<Deadline>,
    ) -> Result<Guard<'_, Self::Configuration, Self::Data>, WaitError>;

    /// Acquires for reading in a class, by a task; see [`task`](ulocks_core::task).
    ///
    /// # Examples
    /// ```
    /// use ulocks_debug::{ByClass, RwLock};
    /// use ulocks_psrwlock::Urgent;
    ///
    /// async fn first(routes: &RwLock<Vec<u32>>) -> Option<u32> {
    ///     routes.read_in_async::<Urgent>().await.first().copied()
    /// }
    /// # let routes = RwLock::new(vec![1]);
    /// # let mut future = std::pin::pin!(first(&routes));
    /// # let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    /// # assert_eq!(future.as_mut().poll(&mut context), std::task::Poll::Ready(Some(1)));
    /// ```
    fn read_in_async<C: ThreadClass>(
        &self,
    ) -> impl Future<Output = AsyncRwLockReadGuard<'_, Raw<Self::Configuration>, Self::Data>>
    where
        Self::Configuration: Configuration<Policy: InOneProcess>;
}

impl<D, T: ?Sized> ByClass for CheckedRwLock<RawPsRwLock<D>, T>
where
    D: Configuration,
    D::Policy: Policy<Scope = Local>,
{
    type Data = T;
    type Configuration = D;

    #[inline]
    #[track_caller]
    fn read_in<C: ThreadClass>(&self) -> Guard<'_, D, T> {
        let at = Location::caller();
        let (access, lock) = (Access::Read(C::RANK as u8), self.checked());
        // SAFETY: both are acquisitions of the lock that they get, and this is their only guard.
        unsafe {
            self.guard(lock.read_as(access, |raw| raw.try_read_in::<C>(at), |raw| raw.read_in::<C>(at)))
        }
    }

    #[inline]
    #[track_caller]
    fn try_read_in<C: ThreadClass>(&self) -> Option<Guard<'_, D, T>> {
        self.read_in_before::<C>(None)
    }

    #[track_caller]
    fn try_read_in_for<C: ThreadClass>(&self, timeout: Duration) -> Option<Guard<'_, D, T>> {
        self.read_in_before::<C>(Some(Deadline::after(timeout)))
    }

    #[track_caller]
    fn try_read_in_until<C: ThreadClass>(&self, timeout: Instant) -> Option<Guard<'_, D, T>> {
        self.read_in_before::<C>(Some(Deadline::at(timeout)))
    }

    #[track_caller]
    fn read_in_interruptible<C: ThreadClass>(&self) -> Result<Guard<'_, D, T>, Interrupted> {
        self.read_in_before::<C>(Some(Deadline::NEVER.interruptible())).ok_or(Interrupted)
    }

    #[track_caller]
    fn read_in_interruptible_until<C: ThreadClass>(
        &self,
        deadline: impl Into<Deadline>,
    ) -> Result<Guard<'_, D, T>, WaitError> {
        let deadline = deadline.into();
        self.read_in_before::<C>(Some(deadline.interruptible())).ok_or_else(|| WaitError::at(deadline))
    }

    async fn read_in_async<C: ThreadClass>(&self) -> AsyncRwLockReadGuard<'_, Raw<D>, T>
    where
        D: Configuration<Policy: InOneProcess>,
    {
        let token = self.checked().inner().read_class_async::<C>().await;
        // SAFETY: the token is of this lock, acquired here.
        unsafe { read_guard(self, CheckedReadToken::of_task(token)) }
    }
}

impl<D, T: ?Sized> CheckedRwLock<RawPsRwLock<D>, T>
where
    D: Configuration,
    D::Policy: Policy<Scope = Local>,
{
    #[track_caller]
    fn read_in_before<C: ThreadClass>(&self, deadline: Option<Deadline>) -> Option<Guard<'_, D, T>> {
        let at = Location::caller();
        let (access, lock) = (Access::Read(C::RANK as u8), self.checked());
        let wait = deadline.map(|deadline| move |raw: &RawPsRwLock<D>| raw.read_in_until::<C>(deadline, at));
        // SAFETY: as in `read_in`.
        unsafe { Some(self.guard(lock.try_read_as(access, |raw| raw.try_read_in::<C>(at), wait)?)) }
    }
}
