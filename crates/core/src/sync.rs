//! Atomics, cells and the busy-wait: what lock code is made of, in the world it is compiled for.
//!
//! Code written on this module, on [`futex`](crate::futex) and on [`time`](crate::time) runs on the machine and,
//! unchanged, under loom (see [`model`](crate::model)). Three rules make that
//! possible:
//! - a constructor is declared with [`const_fn!`](crate::const_fn), a static with
//!   [`sync_static!`](crate::sync_static): the atomics of a model are born in an execution, not at compile time;
//! - [`spin_until`] is the only way to busy-wait: a bare loop cannot be model-checked with three threads;
//! - no `SeqCst` accesses: read-modify-writes on one word, or an explicit `fence(SeqCst)`.

pub use crate::world::atomic::*;
pub use crate::world::{UnsafeCell, interruption_point, pause, spin_until, yield_now};

#[cfg(all(ulocks_loom, feature = "loom"))]
#[doc(hidden)]
pub use crate::world::__loom;

/// Declares a function that is `const` on the machine and plain in the model worlds, whose atomics register
/// themselves with the running model and cannot be built at compile time.
///
/// ```
/// use ulocks_core::sync::{AtomicU32, Ordering::Relaxed};
///
/// struct Counter(AtomicU32);
/// impl Counter {
///     ulocks_core::const_fn! {
///         /// A counter at zero.
///         pub fn new() -> Self {
///             Self(AtomicU32::new(0))
///         }
///     }
/// }
///
/// ulocks_core::sync_static! {
///     static HITS: Counter = Counter::new();
/// }
/// HITS.0.fetch_add(1, Relaxed);
/// ```
#[cfg(not(all(ulocks_loom, feature = "loom")))]
#[macro_export]
macro_rules! const_fn {
    ($(#[$meta:meta])* $vis:vis fn $($rest:tt)*) => { $(#[$meta])* $vis const fn $($rest)* };
    ($(#[$meta:meta])* $vis:vis unsafe fn $($rest:tt)*) => { $(#[$meta])* $vis const unsafe fn $($rest)* };
}
/// Declares a function that is `const` on the machine and plain in the model worlds, whose atomics register
/// themselves with the running model and cannot be built at compile time.
#[cfg(all(ulocks_loom, feature = "loom"))]
#[macro_export]
macro_rules! const_fn {
    ($(#[$meta:meta])* $vis:vis fn $($rest:tt)*) => { $(#[$meta])* $vis fn $($rest)* };
    ($(#[$meta:meta])* $vis:vis unsafe fn $($rest:tt)*) => { $(#[$meta])* $vis unsafe fn $($rest)* };
}

/// Declares statics: plain ones on the machine, ones that live for a single execution in the model worlds.
///
/// Use them through references only; in a model the name is a value that dereferences to the static. See
/// [`const_fn!`](crate::const_fn) for an example.
#[cfg(not(all(ulocks_loom, feature = "loom")))]
#[macro_export]
macro_rules! sync_static {
    ($($(#[$meta:meta])* $vis:vis static $name:ident: $type:ty = $value:expr;)*) => {
        $($(#[$meta])* $vis static $name: $type = $value;)*
    };
}
/// Declares statics: plain ones on the machine, ones that live for a single execution in the model worlds.
///
/// Touch a static in the model's own thread before the others start: the first use of it by two threads orders one
/// after the other, which can hide a missing edge.
// The visibility is written out because a `vis` fragment is opaque to loom's macro.
#[cfg(all(ulocks_loom, feature = "loom"))]
#[macro_export]
macro_rules! sync_static {
    () => {};
    ($(#[$meta:meta])* static $name:ident: $type:ty = $value:expr; $($rest:tt)*) => {
        $crate::sync::__loom::lazy_static! { $(#[$meta])* static ref $name: $type = $value; }
        $crate::sync_static! { $($rest)* }
    };
    ($(#[$meta:meta])* pub static $name:ident: $type:ty = $value:expr; $($rest:tt)*) => {
        $crate::sync::__loom::lazy_static! { $(#[$meta])* pub static ref $name: $type = $value; }
        $crate::sync_static! { $($rest)* }
    };
    ($(#[$meta:meta])* pub($($scope:tt)+) static $name:ident: $type:ty = $value:expr; $($rest:tt)*) => {
        $crate::sync::__loom::lazy_static! { $(#[$meta])* pub($($scope)+) static ref $name: $type = $value; }
        $crate::sync_static! { $($rest)* }
    };
}

/// The initial value inside an `impl RawMutex` block: `raw_init!(Self::new())`.
#[cfg(not(all(ulocks_loom, feature = "loom")))]
#[macro_export]
macro_rules! raw_init {
    ($value:expr) => {
        #[allow(clippy::declare_interior_mutable_const)]
        const INIT: Self = $value;
    };
}
/// The initial value inside an `impl RawMutex` block: `raw_init!(Self::new())`.
#[cfg(all(ulocks_loom, feature = "loom"))]
#[macro_export]
macro_rules! raw_init {
    ($value:expr) => {
        fn init() -> Self {
            $value
        }
    };
}
