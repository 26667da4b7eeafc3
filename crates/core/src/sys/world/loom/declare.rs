//! Declarations of statics, each of which lives for one execution.

/// Declares statics: plain ones on the machine, ones that live for a single execution in the model
/// worlds.
///
/// Touch a static in the model's own thread before the others start: the first use of it by two
/// threads orders one after the other, which can hide a missing edge.
// The visibility is written out because a `vis` fragment is opaque to loom's macro.
#[macro_export]
macro_rules! sync_static {
    () => {};
    ($(#[$meta:meta])* static $name:ident: $type:ty = $value:expr; $($rest:tt)*) => {
        $crate::sync::__model::lazy_static! { $(#[$meta])* static ref $name: $type = $value; }
        $crate::sync_static! { $($rest)* }
    };
    ($(#[$meta:meta])* pub static $name:ident: $type:ty = $value:expr; $($rest:tt)*) => {
        $crate::sync::__model::lazy_static! { $(#[$meta])* pub static ref $name: $type = $value; }
        $crate::sync_static! { $($rest)* }
    };
    ($(#[$meta:meta])* pub($($scope:tt)+) static $name:ident: $type:ty = $value:expr; $($rest:tt)*) => {
        $crate::sync::__model::lazy_static! { $(#[$meta])* pub($($scope)+) static ref $name: $type = $value; }
        $crate::sync_static! { $($rest)* }
    };
}

/// Declares the tables of the family's locks.
#[doc(hidden)]
#[macro_export]
macro_rules! sync_table {
    ($($(#[$meta:meta])* unsafe static $name:ident: $type:ty = $value:expr;)*) => {
        $crate::sync_static! { $($(#[$meta])* static $name: $type = $value;)* }
    };
}
