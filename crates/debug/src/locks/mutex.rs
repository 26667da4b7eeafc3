//! [`CheckedMutex`]: data behind a checked lock.

use crate::locks::checker::Checked;
use crate::locks::wrapper::wrapper;
use crate::rules::faults::TryLockError;
use crate::seen::class::{Origin, SUBCLASSES};
use core::panic::Location;
use std::sync::Arc;
use ulocks_core::api;
use ulocks_core::futex::Local;
use ulocks_core::lock_api;
use ulocks_core::raw::RawMutex;

/// Data behind a raw mutex of the family that enforces the rules of a mutex; see the
/// [crate](crate).
///
/// [`Mutex`](crate::Mutex), [`FairMutex`](crate::FairMutex) and the others are aliases of it.
///
/// # Methods
/// It dereferences to [lock_api]'s type around the lock, whose page lists the methods: `lock`,
/// `try_lock`, `try_lock_for`, `try_lock_until`, `is_locked`, `get_mut` and more. Its guards are
/// those of lock_api. They work with the condition variable of the same name.
///
/// It is a type of its own, since lock_api does not tell a lock where it is made.
///
/// [lock_api]: https://docs.rs/lock_api/0.5/lock_api/struct.Mutex.html
///
/// # Fairness and blocking
/// Those of the lock inside. An acquisition first tries once.
///
/// # Panics
/// If a rule is broken, unless [`set_policy`](crate::set_policy) says otherwise.
///
/// # Memory
/// Two words beside those of the plain lock. All-zero memory is an unlocked lock, if the data may
/// be zero; it has an order of its own. The first acquisition of a thread allocates, and the first
/// one in a new order. A checked lock can therefore not guard a global allocator.
///
/// # Signals and forks
/// A signal handler that uses checked locks makes a [`SignalContext`](crate::SignalContext). A fork
/// while the thread holds locks is reported as a warning. The child goes on with the locks that the
/// forking thread held.
///
/// # Examples
/// ```
/// use ulocks_debug::Mutex;
///
/// static HITS: Mutex<u64> = Mutex::new(0);
/// *HITS.lock() += 1;
///
/// let twice = std::thread::spawn(|| {
///     let _held = HITS.lock();
///     let _never = HITS.lock();
/// });
/// let panic = twice.join().unwrap_err();
/// assert!(panic.downcast_ref::<String>().unwrap().contains("self-deadlock"));
/// ```
#[repr(transparent)]
pub struct CheckedMutex<R: RawMutex<Scope = Local>, T: ?Sized>(api::Mutex<Checked<R>, T>);

impl<R: RawMutex<Scope = Local>, T> CheckedMutex<R, T> {
    const fn with_origin(origin: Origin, value: T) -> Self {
        Self(lock_api::Mutex::from_raw(api::Raw::new(Checked::with_origin(origin)), value))
    }
}

impl<R: RawMutex<Scope = Local>, T: ?Sized> CheckedMutex<R, T> {
    pub(super) fn share(self: &Arc<Self>) -> Arc<api::Mutex<Checked<R>, T>> {
        // SAFETY: the pointer comes from `into_raw`, and the two types have one layout.
        unsafe { Arc::from_raw(Arc::into_raw(Arc::clone(self)) as *const api::Mutex<Checked<R>, T>) }
    }

    fn checked(&self) -> &Checked<R> {
        // SAFETY: the lock is looked at, or acquired, which disturbs no guard.
        unsafe { self.0.raw() }.inner()
    }

    /// Acquires the mutex in a subclass of its class, 0 to 7. [`lock`](lock_api::Mutex::lock)
    /// acquires it in subclass 0.
    ///
    /// It is for locks of one class that are nested by level. A tree locks its levels in the
    /// subclasses 0, 1 and so on.
    ///
    /// # Panics
    /// If the subclass is greater than 7.
    ///
    /// # Examples
    /// ```
    /// use ulocks_debug::Mutex;
    ///
    /// let nodes = [(); 2].map(|()| Mutex::new(0));
    /// let parent = nodes[0].lock();
    /// let child = nodes[1].lock_nested(1);
    /// # drop((child, parent));
    /// ```
    #[track_caller]
    pub fn lock_nested(&self, subclass: u8) -> api::MutexGuard<'_, Checked<R>, T> {
        assert!(subclass < SUBCLASSES, "a class has the subclasses 0 to 7");
        let token = self.checked().lock_at(subclass, Location::caller());
        // SAFETY: the lock is held by this token, and this is the only guard made of it.
        unsafe { self.0.make_guard_unchecked(api::Token::new(token)) }
    }

    /// Acquires the mutex if that needs no waiting and breaks no rule.
    ///
    /// The rules are those of [`lock`](lock_api::Mutex::lock), the order included. The policy is
    /// not asked: the report is the error.
    ///
    /// # Errors
    /// The report, or that the mutex is held.
    ///
    /// # Examples
    /// ```
    /// use ulocks_debug::{Mutex, Rule, TryLockError};
    ///
    /// let mutex = Mutex::new(());
    /// let held = mutex.lock();
    /// let Err(TryLockError::Fault(report)) = mutex.try_lock_checked() else { panic!() };
    /// assert_eq!(report.rule(), Rule::NoRecursion);
    /// # drop(held);
    /// ```
    #[track_caller]
    pub fn try_lock_checked(&self) -> Result<api::MutexGuard<'_, Checked<R>, T>, TryLockError> {
        let token = self.checked().try_checked()?;
        // SAFETY: the lock is held by this token, and this is the only guard made of it.
        Ok(unsafe { self.0.make_guard_unchecked(api::Token::new(token)) })
    }

    /// The name of its class, or the name of the lock's type.
    #[track_caller]
    pub fn name(&self) -> &'static str {
        self.checked().0.class(Location::caller()).name()
    }
}

wrapper!(CheckedMutex<R: RawMutex, T> of api::Mutex<Checked<R>, T>, read by lock);
