//! What the model worlds have in common: declarations. Nothing is a constant,
//! since an atomic is born in an execution; it is said to be made where the function is called.

/// Declares a function that is `const` on the machine and plain in the model worlds, whose atomics
/// register themselves with the running model and cannot be built at compile time.
#[macro_export]
macro_rules! const_fn {
    ($(#[$meta:meta])* $vis:vis fn $($rest:tt)*) => { $(#[$meta])* #[track_caller] $vis fn $($rest)* };
    ($(#[$meta:meta])* $vis:vis unsafe fn $($rest:tt)*) => { $(#[$meta])* #[track_caller] $vis unsafe fn $($rest)* };
}

/// Declares items that the machine has and the model worlds have not.
#[doc(hidden)]
#[macro_export]
macro_rules! on_machine {
    ($($item:item)*) => {};
}

/// Runs `f`. On the machine a panic would abort; in a model it ends the execution, and has to be
/// seen.
#[inline(always)]
#[cfg_attr(world = "vm", track_caller)]
pub fn without_unwinding<R>(f: impl FnOnce() -> R) -> R {
    f()
}

/// Whether a panic ends the execution of a model: then what a guard would release has no owner any
/// more, and another operation would panic in a destructor. On the machine a panic is no reason not
/// to release.
#[inline(always)]
#[must_use]
pub fn is_abandoned() -> bool {
    std::thread::panicking()
}

/// The [initial value](crate::raw::Initial) of a type: `initial!([P: Policy] RawLock<P> =
/// Self::new());` declares it, with the generic parameters in brackets; `initial!(RawLock<P>)` is
/// the value.
#[macro_export]
macro_rules! initial {
    ([$($generics:tt)*] $type:ty = $value:expr) => {
        impl<$($generics)*> $crate::raw::Initial for $type {
            #[track_caller]
            fn init() -> Self {
                $value
            }
        }
    };
    ($type:ty) => {
        <$type as $crate::raw::Initial>::init()
    };
}

/// An array of so many equal values: `each!(Slot::new(); 8)`.
#[macro_export]
macro_rules! each {
    ($value:expr; $count:expr) => {
        ::core::array::from_fn::<_, { $count }, _>(|_| $value)
    };
}
