//! Declarations of statics, each of which lives for one execution.

/// Declares statics: plain ones on the machine, ones that live for a single execution in the model
/// worlds.
#[macro_export]
macro_rules! sync_static {
    ($($(#[$meta:meta])* $vis:vis static $name:ident: $type:ty = $value:expr;)*) => {
        $($(#[$meta])* $vis static $name: $crate::sync::__model::sync::PerRun<$type> =
            $crate::sync::__model::sync::PerRun::new(|| $value);)*
    };
}

/// Declares the tables of the family's locks, as [`sync_static!`](crate::sync_static), whose memory
/// serves the next execution. So each is `unsafe`: no reference to it may be used after the
/// execution in which it was taken.
#[doc(hidden)]
#[macro_export]
macro_rules! sync_table {
    ($($(#[$meta:meta])* unsafe static $name:ident: $type:ty = $value:expr;)*) => {
        $($(#[$meta])* static $name: $crate::sync::__model::sync::PerRun<$type> =
            // SAFETY: the declaration's promise.
            unsafe { $crate::sync::__model::sync::PerRun::reused(|| $value) };)*
    };
}
