//! What every checked lock has beside its methods: those of the typed lock inside, and the traits
//! of a plain lock.

/// `wrapper!(Checked<R: Raw, T> of Typed, read by method)`: a tuple of one `Typed`, with a
/// constructor `with_origin`. Without a method to read by it is not serialized, as the plain lock
/// is not.
macro_rules! wrapper {
    ($name:ident<R: $raw:ident, T> of $typed:ty $(, read by $read:ident)?) => {
        impl<R: $raw<Scope = Local>, T> $name<R, T> {
            /// An unlocked lock. Those around one type that one line makes are a class of the lock
            /// order. A function that wraps this one should be `#[track_caller]` too.
            #[track_caller]
            pub const fn new(value: T) -> Self {
                let place = core::panic::Location::caller();
                Self::with_origin(crate::seen::class::Origin::made::<T>(place), value)
            }

            /// An unlocked lock of a named class.
            pub const fn new_in(class: &'static crate::seen::class::Class, value: T) -> Self {
                Self::with_origin(crate::seen::class::Origin::named(class), value)
            }

            /// The data, out of its lock.
            pub fn into_inner(self) -> T {
                self.0.into_inner()
            }
        }

        impl<R: $raw<Scope = Local>, T: ?Sized> core::ops::Deref for $name<R, T> {
            type Target = $typed;

            #[inline]
            fn deref(&self) -> &Self::Target {
                &self.0
            }
        }

        impl<R: $raw<Scope = Local>, T: ?Sized> core::ops::DerefMut for $name<R, T> {
            #[inline]
            fn deref_mut(&mut self) -> &mut Self::Target {
                &mut self.0
            }
        }

        impl<R: $raw<Scope = Local>, T: Default> Default for $name<R, T> {
            #[track_caller]
            #[inline(never)]
            fn default() -> Self {
                let call = crate::locks::call::called(core::panic::Location::caller());
                Self::with_origin(crate::seen::class::Origin::called::<T>(call), T::default())
            }
        }

        impl<R: $raw<Scope = Local>, T> From<T> for $name<R, T> {
            #[track_caller]
            #[inline(never)]
            fn from(value: T) -> Self {
                let call = crate::locks::call::called(core::panic::Location::caller());
                Self::with_origin(crate::seen::class::Origin::called::<T>(call), value)
            }
        }

        impl<R: $raw<Scope = Local>, T: ?Sized + core::fmt::Debug> core::fmt::Debug for $name<R, T> {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                self.0.fmt(f)
            }
        }

        $(
        /// The data. This waits for the lock.
        #[cfg(feature = "serde")]
        #[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
        impl<R: $raw<Scope = Local>, T: ?Sized + serde::Serialize> serde::Serialize for $name<R, T> {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.0.$read().serialize(serializer)
            }
        }

        /// A lock around the data. It has no class, and an order of its own.
        #[cfg(feature = "serde")]
        #[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
        impl<'de, R: $raw<Scope = Local>, T: serde::Deserialize<'de>> serde::Deserialize<'de>
            for $name<R, T>
        {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                T::deserialize(deserializer)
                    .map(|value| Self::with_origin(crate::seen::class::Origin::unknown::<T>(), value))
            }
        }
        )?
    };
}

pub(crate) use wrapper;
