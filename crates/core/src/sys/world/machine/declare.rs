//! Declarations: constants, where the machine allows it.

/// Declares a function that is `const` on the machine and plain in the model worlds, whose atomics
/// register themselves with the running model and cannot be built at compile time. Its panics name
/// the line of the caller.
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
#[macro_export]
macro_rules! const_fn {
    ($(#[$meta:meta])* $vis:vis fn $($rest:tt)*) => { $(#[$meta])* #[track_caller] $vis const fn $($rest)* };
    ($(#[$meta:meta])* $vis:vis unsafe fn $($rest:tt)*) => {
        $(#[$meta])* #[track_caller] $vis const unsafe fn $($rest)*
    };
}

/// Declares items that the machine has and the model worlds have not.
#[doc(hidden)]
#[macro_export]
macro_rules! on_machine {
    ($($item:item)*) => { $($item)* };
}

/// Declares statics: plain ones on the machine, ones that live for a single execution in the model
/// worlds.
///
/// Use them through references only; in a model the name is a value that dereferences to the
/// static. See [`const_fn!`](crate::const_fn) for an example.
#[macro_export]
macro_rules! sync_static {
    ($($(#[$meta:meta])* $vis:vis static $name:ident: $type:ty = $value:expr;)*) => {
        $($(#[$meta])* $vis static $name: $type = $value;)*
    };
}

/// Declares the tables of the family's locks, as [`sync_static!`](crate::sync_static), whose memory
/// serves the next execution of a model. So each is `unsafe`: no reference to it may be used after
/// the execution in which it was taken.
#[doc(hidden)]
#[macro_export]
macro_rules! sync_table {
    ($($(#[$meta:meta])* unsafe static $name:ident: $type:ty = $value:expr;)*) => {
        $crate::sync_static! { $($(#[$meta])* static $name: $type = $value;)* }
    };
}

/// The [initial value](crate::raw::Initial) of a type: `initial!([P: Policy] RawLock<P> =
/// Self::new());` declares it, with the generic parameters in brackets; `initial!(RawLock<P>)` is
/// the value.
#[macro_export]
macro_rules! initial {
    ([$($generics:tt)*] $type:ty = $value:expr) => {
        impl<$($generics)*> $crate::raw::Initial for $type {
            #[allow(clippy::declare_interior_mutable_const)]
            const INIT: Self = $value;
        }
    };
    ($type:ty) => {
        <$type as $crate::raw::Initial>::INIT
    };
}

/// An array of so many equal values: `each!(Slot::new(); 8)`.
#[macro_export]
macro_rules! each {
    ($value:expr; $count:expr) => {
        [const { $value }; $count]
    };
}
