//! Declarations in the model worlds: nothing is a constant, since an atomic is born in an execution;
//! it is said to be made where the function is called.

/// Declares a function that is `const` on the machine and plain in the model worlds, whose atomics register
/// themselves with the running model and cannot be built at compile time.
#[macro_export]
macro_rules! const_fn {
    ($(#[$meta:meta])* $vis:vis fn $($rest:tt)*) => { $(#[$meta])* #[track_caller] $vis fn $($rest)* };
    ($(#[$meta:meta])* $vis:vis unsafe fn $($rest:tt)*) => { $(#[$meta])* #[track_caller] $vis unsafe fn $($rest)* };
}

/// The initial value inside an `impl RawMutex` block: `raw_init!(Self::new())`.
#[macro_export]
macro_rules! raw_init {
    ($value:expr) => {
        #[track_caller]
        fn init() -> Self {
            $value
        }
    };
}
