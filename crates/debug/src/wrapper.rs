//! What every checked lock has beside its methods: those of the typed lock inside, and the traits
//! of a plain lock.

/// `wrapper!(Checked<R: Raw, T> of Typed)`: a tuple of one `Typed`, with a constructor `new`.
macro_rules! wrapper {
    ($name:ident<R: $raw:ident, T> of $typed:ty) => {
        impl<R: $raw<Scope = Private>, T: ?Sized> core::ops::Deref for $name<R, T> {
            type Target = $typed;

            #[inline]
            fn deref(&self) -> &Self::Target {
                &self.0
            }
        }

        impl<R: $raw<Scope = Private>, T: ?Sized> core::ops::DerefMut for $name<R, T> {
            #[inline]
            fn deref_mut(&mut self) -> &mut Self::Target {
                &mut self.0
            }
        }

        impl<R: $raw<Scope = Private>, T: Default> Default for $name<R, T> {
            #[track_caller]
            fn default() -> Self {
                Self::new(T::default())
            }
        }

        impl<R: $raw<Scope = Private>, T> From<T> for $name<R, T> {
            #[track_caller]
            fn from(value: T) -> Self {
                Self::new(value)
            }
        }

        impl<R: $raw<Scope = Private>, T: ?Sized + core::fmt::Debug> core::fmt::Debug for $name<R, T> {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

pub(crate) use wrapper;
