//! [`CheckedRwLock`]: data behind a checked reader-writer lock.

use super::{CheckedReadToken, CheckedRw};
use crate::locks::wrapper::wrapper;
use crate::rules::faults::TryLockError;
use crate::seen::access::Access;
use crate::seen::class::Origin;
use core::panic::Location;
use std::sync::Arc;
use ulocks_core::api::{self, Raw};
use ulocks_core::futex::Local;
use ulocks_core::lock_api;
use ulocks_core::raw::RawRwLock;

/// Data behind a raw reader-writer lock of the family that enforces the rules of such a lock; see
/// the [crate](crate).
///
/// [`RwLock`](crate::RwLock) and [`PsRwLock`](crate::PsRwLock) are aliases of it.
///
/// # Methods
/// It dereferences to [lock_api]'s type around the lock, whose page lists the methods: `read`,
/// `write`, `upgradable_read`, each with `try_` and time limits, `get_mut` and more. Its guards are
/// those of lock_api, with `upgrade`, `downgrade` and so on. `read_in` reads a `PsRwLock` in a
/// class. For tasks it has the methods of [`AsyncRwLock`](ulocks_core::task::AsyncRwLock), and
/// `read_in_async`. What they acquire is in no list.
///
/// It is a type of its own, since lock_api does not tell a lock where it is made.
///
/// [lock_api]: https://docs.rs/lock_api/0.5/lock_api/struct.RwLock.html
///
/// # Fairness and blocking
/// Those of the lock inside. An acquisition first tries once.
///
/// # Panics
/// If a rule is broken, unless [`set_policy`](crate::set_policy) says otherwise. An upgrade that
/// panics has released the lock.
///
/// # Memory
/// Two words beside those of the plain lock; otherwise as [`CheckedMutex`](crate::CheckedMutex).
///
/// # Signals and forks
/// As [`CheckedMutex`](crate::CheckedMutex).
///
/// # Examples
/// ```
/// use ulocks_debug::RwLock;
///
/// static LIMITS: RwLock<[u32; 2]> = RwLock::new([1, 10]);
/// LIMITS.write()[1] = 20;
/// assert_eq!(LIMITS.read()[1], 20);
///
/// let twice = std::thread::spawn(|| {
///     let first = LIMITS.read();
///     first[0] + LIMITS.read()[1]
/// });
/// let panic = twice.join().unwrap_err();
/// assert!(panic.downcast_ref::<String>().unwrap().contains("if a writer comes between"));
/// ```
#[repr(transparent)]
pub struct CheckedRwLock<R: RawRwLock<Scope = Local>, T: ?Sized>(api::RwLock<CheckedRw<R>, T>);

impl<R: RawRwLock<Scope = Local>, T> CheckedRwLock<R, T> {
    const fn with_origin(origin: Origin, value: T) -> Self {
        Self(lock_api::RwLock::from_raw(Raw::new(CheckedRw::with_origin(origin)), value))
    }
}

impl<R: RawRwLock<Scope = Local>, T: ?Sized> CheckedRwLock<R, T> {
    pub(in crate::locks) fn share(self: &Arc<Self>) -> Arc<api::RwLock<CheckedRw<R>, T>> {
        // SAFETY: the pointer comes from `into_raw`, and the two types have one layout.
        unsafe { Arc::from_raw(Arc::into_raw(Arc::clone(self)) as *const api::RwLock<CheckedRw<R>, T>) }
    }

    pub(super) fn checked(&self) -> &CheckedRw<R> {
        // SAFETY: the lock is looked at, or acquired, which disturbs no guard.
        unsafe { self.0.raw() }.inner()
    }

    /// The guard of a token of `self.checked()`.
    ///
    /// # Safety
    /// The token is of an acquisition of this lock, and no guard was made of it.
    pub(super) unsafe fn guard(
        &self,
        token: CheckedReadToken<R::ReadToken>,
    ) -> api::RwLockReadGuard<'_, CheckedRw<R>, T> {
        // SAFETY: the caller's promise.
        unsafe { self.0.make_read_guard_unchecked(api::Token::new(token)) }
    }

    /// Reads in a subclass of its class, 0 to 7. [`read`](lock_api::RwLock::read) acquires it in
    /// subclass 0.
    ///
    /// It is for locks of one class that are nested by level. A tree locks its levels in the
    /// subclasses 0, 1 and so on.
    ///
    /// # Panics
    /// If the subclass is greater than 7.
    ///
    /// # Examples
    /// ```
    /// use ulocks_debug::RwLock;
    ///
    /// let nodes = [(); 2].map(|()| RwLock::new(0));
    /// let parent = nodes[0].read();
    /// *nodes[1].write_nested(1) += 1;
    /// assert_eq!(*nodes[1].read_nested(1), 1);
    /// # drop(parent);
    /// ```
    #[track_caller]
    pub fn read_nested(&self, subclass: u8) -> api::RwLockReadGuard<'_, CheckedRw<R>, T> {
        let access = Access::Read(0);
        let token = self.checked().acquire((access, subclass), R::try_read, R::read);
        // SAFETY: the token is of this acquisition.
        unsafe { self.guard(CheckedReadToken::of_thread(token, access)) }
    }

    /// Writes in a subclass of its class, as [`read_nested`](Self::read_nested).
    ///
    /// # Panics
    /// If the subclass is greater than 7.
    #[track_caller]
    pub fn write_nested(&self, subclass: u8) -> api::RwLockWriteGuard<'_, CheckedRw<R>, T> {
        let token = self.checked().acquire((Access::Write, subclass), R::try_write, R::write);
        // SAFETY: the lock is held by this token, and this is the only guard made of it.
        unsafe { self.0.make_write_guard_unchecked(api::Token::new(token)) }
    }

    /// Reads if that needs no waiting and breaks no rule.
    ///
    /// The rules are those of [`read`](lock_api::RwLock::read), the order included. The policy is
    /// not asked: the report is the error.
    ///
    /// # Errors
    /// The report, or that a writer has the lock, or waits for it.
    ///
    /// # Examples
    /// ```
    /// use ulocks_debug::{Rule, RwLock, TryLockError};
    ///
    /// let lock = RwLock::new(());
    /// let held = lock.try_read_checked().unwrap();
    /// let Err(TryLockError::Fault(report)) = lock.try_write_checked() else { panic!() };
    /// assert_eq!(report.rule(), Rule::NoRecursion);
    /// # drop(held);
    /// ```
    #[track_caller]
    pub fn try_read_checked(&self) -> Result<api::RwLockReadGuard<'_, CheckedRw<R>, T>, TryLockError> {
        let access = Access::Read(0);
        let token = self.checked().0.try_checked(access, R::try_read)?;
        // SAFETY: the token is of this acquisition.
        Ok(unsafe { self.guard(CheckedReadToken::of_thread(token, access)) })
    }

    /// Writes if that needs no waiting and breaks no rule, as
    /// [`try_read_checked`](Self::try_read_checked).
    ///
    /// # Errors
    /// The report, or that another thread has the lock.
    #[track_caller]
    pub fn try_write_checked(&self) -> Result<api::RwLockWriteGuard<'_, CheckedRw<R>, T>, TryLockError> {
        let token = self.checked().0.try_checked(Access::Write, R::try_write)?;
        // SAFETY: the lock is held by this token, and this is the only guard made of it.
        Ok(unsafe { self.0.make_write_guard_unchecked(api::Token::new(token)) })
    }

    /// The name of its class, or the name of the lock's type.
    #[track_caller]
    pub fn name(&self) -> &'static str {
        self.checked().0.class(Location::caller()).name()
    }
}

wrapper!(CheckedRwLock<R: RawRwLock, T> of api::RwLock<CheckedRw<R>, T>, read by read);
