//! What the guards of tasks have in common.

/// What lock_api's guards have: access to the data, with its `Debug` and `Display`.
macro_rules! access {
    ($Guard:ident<$($lifetime:lifetime,)? $Raw:ident>) => {
        impl<L: $Raw, T: ?Sized> Deref for $Guard<$($lifetime,)? L, T> {
            type Target = T;

            #[inline]
            fn deref(&self) -> &T {
                &self.guard
            }
        }

        impl<L: $Raw, T: ?Sized + fmt::Debug> fmt::Debug for $Guard<$($lifetime,)? L, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                (**self).fmt(f)
            }
        }

        impl<L: $Raw, T: ?Sized + fmt::Display> fmt::Display for $Guard<$($lifetime,)? L, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                (**self).fmt(f)
            }
        }
    };
    (mut $Guard:ident<$($lifetime:lifetime,)? $Raw:ident>) => {
        access!($Guard<$($lifetime,)? $Raw>);

        impl<L: $Raw, T: ?Sized> DerefMut for $Guard<$($lifetime,)? L, T> {
            #[inline]
            fn deref_mut(&mut self) -> &mut T {
                &mut self.guard
            }
        }
    };
}

/// `mapped!(Guard(Inner) -> Mapped(Part), mut; Raw<Token>, Send)`: a guard that may be sent if the
/// data may, and one narrowed to a part of the data, over two of the typed face that may not.
macro_rules! mapped {
    (
        $Guard:ident($Inner:ident) -> $Mapped:ident($Part:ident) $(, $mutable:tt)?;
        $Raw:ident<$Token:ident>, $($data:ident)+
    ) => {
        mapped!(@functions $Guard($Inner) -> $Mapped: $Raw $(, $mutable)?);

        #[doc = concat!("A [`", stringify!($Guard), "`] narrowed to a part of the data.")]
        #[must_use = "if unused the lock will immediately unlock"]
        #[clippy::has_significant_drop]
        pub struct $Mapped<'a, L: $Raw, T: ?Sized> {
            guard: $Part<'a, L, T>,
        }

        // SAFETY: as that of the guard that it was made of, whose token it has. Of the data it
        // reaches the part only.
        unsafe impl<L: $Raw + Sync, T: ?Sized $(+ $data)+> Send for $Mapped<'_, L, T> where L::$Token: Send {}

        mapped!(@functions $Mapped($Part) -> $Mapped: $Raw $(, $mutable)?);
        access!($($mutable)? $Mapped<'_, $Raw>);
    };
    (@functions $Guard:ident($Inner:ident) -> $Mapped:ident: $Raw:ident $(, $mutable:tt)?) => {
        impl<'a, L: $Raw, T: ?Sized> $Guard<'a, L, T> {
            /// Narrows the guard to a part of the data.
            pub fn map<U: ?Sized>(
                s: Self,
                part: impl FnOnce(&$($mutable)? T) -> &$($mutable)? U,
            ) -> $Mapped<'a, L, U> {
                $Mapped { guard: $Inner::<L, T>::map(s.guard, part) }
            }

            /// Narrows the guard to a part of the data, if there is such a part.
            ///
            /// # Errors
            /// The guard, if `part` returns `None`.
            pub fn try_map<U: ?Sized>(
                s: Self,
                part: impl FnOnce(&$($mutable)? T) -> Option<&$($mutable)? U>,
            ) -> Result<$Mapped<'a, L, U>, Self> {
                match $Inner::<L, T>::try_map(s.guard, part) {
                    Ok(guard) => Ok($Mapped { guard }),
                    Err(guard) => Err(Self { guard }),
                }
            }
        }
    };
}
