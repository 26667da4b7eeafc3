//! What people hold: data behind a lock, guards, condition variables.
//!
//! A lock crate writes a [`RawMutex`](crate::raw::RawMutex) and names its typed face by an alias:
//!
//! ```
//! # // A lock to show it with; lock crates have better ones.
//! # pub struct RawLock(ulocks_core::futex::Futex<ulocks_core::futex::Local>);
//! # use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
//! # ulocks_core::initial!([] RawLock = Self(ulocks_core::futex::Futex::new(0)));
//! # // SAFETY: the exchange of 0 for 1 admits one holder; acquire and release order them.
//! # unsafe impl ulocks_core::raw::RawMutex for RawLock {
//! #     type Scope = ulocks_core::futex::Local;
//! #     type Token = ();
//! #     type Condvar = ulocks_core::condvar::Sequence<Self>;
//! #     fn lock(&self) { ulocks_core::sync::spin_until(|| self.try_lock().is_some()) }
//! #     fn try_lock(&self) -> Option<()> { self.0.compare_exchange(0, 1, Acquire, Relaxed).ok().map(drop) }
//! #     fn lock_until(&self, _: ulocks_core::time::Deadline) -> Option<()> { self.try_lock() }
//! #     unsafe fn unlock(&self, (): ()) { self.0.store(0, Release) }
//! #     fn is_locked(&self) -> bool { self.0.load(Relaxed) == 1 }
//! # }
//! pub type Mutex<T> = ulocks_core::api::Mutex<RawLock, T>;
//!
//! static HITS: Mutex<u64> = Mutex::new(0);
//! *HITS.lock() += 1;
//! assert_eq!(*HITS.lock(), 1);
//! ```
//!
//! # Two implementations of one face
//! On the machine these types are those of [`lock_api` 0.5](https://docs.rs/lock_api/0.5). They
//! have mapped guards, guards that own an `Arc` (feature `arc_lock`), serde (feature `serde`), and
//! timed and fair operations where the raw lock has them. [`Raw`] is the one newtype that adapts
//! our raw locks to its traits.
//!
//! In a model world they are types of our own with the same names, parameters and methods. From the
//! making of a guard to its release, the model's race detection watches the protected data. A crate
//! that uses the locks is therefore model-checked as it stands. There it may not rely on `const`
//! constructors ([`sync_static!`] declares a static in each world), nor on lock_api's traits. It
//! may not rely on unlocking while a panic unwinds either: a panic ends a model.
//!
//! [`sync_static!`]: crate::sync_static
//!
//! # Readers and writers
//! A [`RawRwLock`](crate::raw::RawRwLock) gets [`RwLock`], its guards, and with the traits beside
//! it upgrades, downgrades and fair releases, in the same way. [`read_with`] acquires it in ways
//! that lock_api does not know, for an extension trait that has a class of readers, say.
//!
//! # Guards
//! A guard is not `Send`: the thread that locked unlocks. It is `Sync` if what it gives access to
//! is.
//!
//! ```compile_fail,E0277
//! # use ulocks_core::raw::RawMutex;
//! fn is_send<T: Send>(_: T) {}
//! fn check<L: RawMutex>(mutex: &ulocks_core::api::Mutex<L, u32>) {
//!     is_send(mutex.lock());
//! }
//! ```
//! ```compile_fail,E0277
//! # use ulocks_core::raw::RawMutex;
//! # use ulocks_core::api::MutexGuard;
//! fn is_send<T: Send>(_: T) {}
//! fn check<L: RawMutex>(mutex: &ulocks_core::api::Mutex<L, [u32; 2]>) {
//!     is_send(MutexGuard::map(mutex.lock(), |pair| &mut pair[0]));
//! }
//! ```
//! ```compile_fail,E0277
//! # use ulocks_core::raw::RawRwLock;
//! fn is_send<T: Send>(_: T) {}
//! fn check<L: RawRwLock>(rwlock: &ulocks_core::api::RwLock<L, u32>) {
//!     is_send(rwlock.read());
//! }
//! ```
//!
//! # Panics and aborts
//! A panic releases the guards it unwinds past; there is no poisoning. If a lock cannot be acquired
//! again where a guard must come back to life (`MutexGuard::unlocked`, `bump`, `Condvar::wait`),
//! the process aborts.

#[cfg(not(world = "machine"))]
#[path = "checked/mod.rs"]
mod imp;
#[cfg(world = "machine")]
#[path = "machine/mod.rs"]
mod imp;

mod metered;
mod raw;

pub use imp::*;
pub use raw::{Raw, RawCondvar, Token};
