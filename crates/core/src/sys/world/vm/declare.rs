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
