//! Statics that are made at their first use in each execution, and dropped when the model's closure
//! has returned.

pub use crate::thread::AccessError;
use core::fmt;
use ulocks_vm::sync::DroppedPerRun;

/// What the macro [`lazy_static!`](crate::lazy_static!) declares.
pub struct Lazy<T>(DroppedPerRun<T>);

impl<T> Lazy<T> {
    /// A static that `make` makes.
    #[must_use]
    pub const fn new(make: fn() -> T) -> Self {
        Self(DroppedPerRun::new(make))
    }
}

impl<T: 'static> Lazy<T> {
    /// The value.
    #[track_caller]
    pub fn get(&'static self) -> &'static T {
        self.0.get()
    }
}

impl<T> fmt::Debug for Lazy<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lazy { .. }")
    }
}

/// As `lazy_static::lazy_static!`.
#[macro_export]
macro_rules! lazy_static {
    () => {};
    ($(#[$attr:meta])* $vis:vis static ref $name:ident: $t:ty = $make:expr; $($rest:tt)*) => {
        #[allow(non_camel_case_types, dead_code, missing_docs)]
        $(#[$attr])*
        $vis struct $name {
            private: (),
        }
        #[allow(missing_docs)]
        $vis static $name: $name = $name { private: () };
        impl ::core::ops::Deref for $name {
            type Target = $t;
            #[track_caller]
            fn deref(&self) -> &$t {
                fn make() -> $t {
                    $make
                }
                static VALUE: $crate::lazy_static::Lazy<$t> = $crate::lazy_static::Lazy::new(make);
                VALUE.get()
            }
        }
        $crate::lazy_static! { $($rest)* }
    };
}
