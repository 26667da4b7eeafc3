//! The one type parameter of a lock beside its data: where it lives, how its waiters spin, what it
//! counts.
//!
//! ```
//! use ulocks_core::meter::Counted;
//! use ulocks_core::spin::{Adaptive, NoSpin, Patience};
//! use ulocks_core::{Policy, Private, Shared};
//!
//! fn lock_with<P: Policy>() {}
//! lock_with::<Private>(); // in this process, default spinning, no counters
//! lock_with::<Private<NoSpin>>(); // waiters sleep at once
//! lock_with::<Private<Patience<3_000>>>(); // waiters spin three microseconds
//! lock_with::<Shared>(); // between processes
//! lock_with::<Private<Adaptive, Counted>>(); // with counters inside the lock
//! ```

use crate::lock::meter::{Meter, Off};
use crate::lock::spin::{Adaptive, Spin};
use crate::sys::futex::{self, Scope};
use core::fmt;
use core::marker::PhantomData;

/// Where a lock lives, how its waiters spin, what it counts. Zero-sized; chosen by type.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no policy of a lock",
    label = "write `Private` or `Shared` of `ulocks` here, such as `Private<NoSpin>`"
)]
pub trait Policy: Send + Sync + 'static {
    /// Which threads may sleep on the lock's futex.
    type Scope: Scope;
    /// How waiters spin before they sleep.
    type Spin: Spin;
    /// What is counted.
    type Meter: Meter;
}

/// A lock for the threads of one process.
pub struct Private<W = Adaptive, M = Off>(PhantomData<(W, M)>);

/// A lock in memory that several processes map, at whatever addresses.
pub struct Shared<W = Adaptive, M = Off>(PhantomData<(W, M)>);

impl<W: Spin, M: Meter> Policy for Private<W, M> {
    type Scope = futex::Local;
    type Spin = W;
    type Meter = M;
}

impl<W: Spin, M: Meter> Policy for Shared<W, M> {
    type Scope = futex::Global;
    type Spin = W;
    type Meter = M;
}

/// A policy of one process: every [`Private`] one.
///
/// Some locks ask for it, because they keep addresses, or because a waiter that is killed would
/// strand the others:
///
/// ```compile_fail
/// use ulocks_core::Shared;
/// use ulocks_core::policy::InOneProcess;
///
/// fn lock_with<P: InOneProcess>() {}
/// lock_with::<Shared>();
/// ```
#[diagnostic::on_unimplemented(
    message = "this lock is for the threads of one process, and `{Self}` is no policy of one process",
    label = "the policy of a lock for one process is `Private`",
    note = "between processes use `unfair::BargingMutexWith<T, Shared>`, which any thread may take next",
    note = "if a process may be killed use `Mutex` or `SemArray` of `ulocks-shm`"
)]
pub trait InOneProcess: Policy<Scope = futex::Local> {}

impl<W: Spin, M: Meter> InOneProcess for Private<W, M> {}

impl<W, M> fmt::Debug for Private<W, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Private")
    }
}

impl<W, M> fmt::Debug for Shared<W, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shared")
    }
}
