//! Declarations: constants, where the machine allows it.

/// Declares a function that is `const` on the machine and plain in the model worlds, whose atomics
/// register themselves with the running model and cannot be built at compile time.
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
    ($(#[$meta:meta])* $vis:vis fn $($rest:tt)*) => { $(#[$meta])* $vis const fn $($rest)* };
    ($(#[$meta:meta])* $vis:vis unsafe fn $($rest:tt)*) => { $(#[$meta])* $vis const unsafe fn $($rest)* };
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

/// The initial value inside an `impl RawMutex` block: `raw_init!(Self::new())`.
#[macro_export]
macro_rules! raw_init {
    ($value:expr) => {
        #[allow(clippy::declare_interior_mutable_const)]
        const INIT: Self = $value;
    };
}

/// The initial value of a raw mutex type, for constructors of locks that are made of one:
/// `raw_initial!(Inner)`.
#[macro_export]
macro_rules! raw_initial {
    ($type:ty) => {
        <$type as $crate::raw::RawMutex>::INIT
    };
}

/// An array of `membarrier::SLOTS` equal values, for a static: `each_slot!(Gate::new())`.
#[macro_export]
macro_rules! each_slot {
    ($value:expr) => {
        [const { $value }; $crate::membarrier::SLOTS]
    };
}

/// The initial value of a [`Part`](crate::part::Part) of a lock: `part!(Slots)`.
#[macro_export]
macro_rules! part {
    ($type:ty) => {
        <$type as $crate::part::Part>::INIT
    };
}

/// An array of so many equal values: `each!(Slot::new(); 8)`.
#[macro_export]
macro_rules! each {
    ($value:expr; $count:expr) => {
        [const { $value }; $count]
    };
}
