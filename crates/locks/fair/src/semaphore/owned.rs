//! Permits that own a share of their semaphore, so that they can go where a borrow cannot.

use super::SemaphoreWith;
use ulocks_core::Private;
use ulocks_core::policy::InOneProcess;

/// Declares owned permits of `$semaphore`, which is a [`SemaphoreWith`] or derefs to one: the
/// permit, the future, and the methods, whose docs refer to those of `$of`. A checked semaphore
/// contains a semaphore that is no `Arc` of its own, so its permits are of another type.
#[doc(hidden)]
#[macro_export]
macro_rules! owned_permits {
    (
        $semaphore:ty, $policy:ty, $of:literal, [$($generics:tt)*];
        $(#[$doc:meta])*
        $permit:ident $(<$parameter:ident: $bound:path = $default:ty>)?, $future:ident
    ) => {
        $(#[$doc])*
        #[must_use = "if unused the permits go back at once"]
        #[clippy::has_significant_drop]
        pub struct $permit $(<$parameter: $bound = $default>)? {
            semaphore: ::std::sync::Arc<$semaphore>,
            count: u32,
        }

        impl<$($generics)*> $permit $(<$parameter>)? {
            /// How many permits these are.
            pub fn count(&self) -> u32 {
                self.count
            }

            /// The semaphore whose permits these are.
            pub fn semaphore(&self) -> &::std::sync::Arc<$semaphore> {
                &self.semaphore
            }

            /// Keeps the permits from going back: the semaphore has so many fewer, until others are
            /// released. The share of the semaphore is given up.
            pub fn forget(mut self) {
                self.count = 0;
            }

            /// Takes `count` of these permits out, as permits of their own. `None` if these are
            /// fewer.
            pub fn split(&mut self, count: u32) -> Option<Self> {
                self.count = self.count.checked_sub(count)?;
                Some(Self { semaphore: ::std::sync::Arc::clone(&self.semaphore), count })
            }

            /// Adds `other` to these permits.
            ///
            /// # Panics
            /// If `other` is of another semaphore, or if these are more than `MAX_PERMITS`
            /// together. That cannot be unless permits were released that were not acquired.
            #[track_caller]
            pub fn merge(&mut self, other: Self) {
                assert!(
                    ::std::sync::Arc::ptr_eq(&self.semaphore, &other.semaphore),
                    "permits of different semaphores cannot be merged"
                );
                // More would find no room when they go back.
                let count = self.count.checked_add(other.count);
                let count = count.filter(|&count| count <= $crate::RawSemaphore::<$policy>::MAX_PERMITS);
                self.count = count.expect("permits beyond MAX_PERMITS cannot be merged: drop or split some");
                other.forget();
            }
        }

        impl<$($generics)*> Drop for $permit $(<$parameter>)? {
            fn drop(&mut self) {
                if self.count > 0 {
                    // If they find no room, they are lost, as those of a `Permit`.
                    _ = self.semaphore.release(self.count);
                }
            }
        }

        impl<$($generics)*> ::core::fmt::Debug for $permit $(<$parameter>)? {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.debug_struct("OwnedPermit").field("count", &self.count).finish()
            }
        }

        $crate::owned_permits! {
            @ways [$($generics)*] $semaphore, $of, $permit $(<$parameter>)?;

            /// # Panics
            /// As the one without `owned` in its name.
            acquire_owned: acquire() -> $permit $(<$parameter>)?, ::core::convert::identity;

            /// # Panics
            /// As the one without `owned` in its name.
            acquire_many_owned: acquire_many(count: u32)
                -> $permit $(<$parameter>)?, ::core::convert::identity;

            /// # Errors
            #[doc = concat!("If the semaphore is [closed](", $of, "close), or is while the thread waits.")]
            ///
            /// # Panics
            /// As the one without `owned` in its name.
            acquire_owned_unless_closed: acquire_unless_closed()
                -> Result<$permit $(<$parameter>)?, $crate::Closed>, Ok, ?;

            /// # Errors
            #[doc = concat!("If the semaphore is [closed](", $of, "close), or is while the thread waits.")]
            ///
            /// # Panics
            /// As the one without `owned` in its name.
            acquire_many_owned_unless_closed: acquire_many_unless_closed(count: u32)
                -> Result<$permit $(<$parameter>)?, $crate::Closed>, Ok, ?;

            try_acquire_owned: try_acquire() -> Option<$permit $(<$parameter>)?>, Some, ?;

            try_acquire_many_owned: try_acquire_many(count: u32)
                -> Option<$permit $(<$parameter>)?>, Some, ?;

            /// # Panics
            /// As the one without `owned` in its name.
            try_acquire_owned_for: try_acquire_for(timeout: ::core::time::Duration)
                -> Option<$permit $(<$parameter>)?>, Some, ?;

            /// # Panics
            /// As the one without `owned` in its name.
            try_acquire_owned_until: try_acquire_until(deadline: impl Into<::ulocks_core::time::Deadline>)
                -> Option<$permit $(<$parameter>)?>, Some, ?;

            /// # Panics
            /// As the one without `owned` in its name.
            try_acquire_many_owned_for: try_acquire_many_for(count: u32, timeout: ::core::time::Duration)
                -> Option<$permit $(<$parameter>)?>, Some, ?;

            /// # Panics
            /// As the one without `owned` in its name.
            try_acquire_many_owned_until: try_acquire_many_until(
                count: u32, deadline: impl Into<::ulocks_core::time::Deadline>
            ) -> Option<$permit $(<$parameter>)?>, Some, ?;
        }

        #[doc = concat!("The future of [`acquire_owned_async`](", $of, "acquire_owned_async) and")]
        #[doc = concat!("[`acquire_many_owned_async`](", $of, "acquire_many_owned_async).")]
        #[must_use = "a future does nothing unless it is polled"]
        pub struct $future $(<$parameter: $bound>)? {
            // Dropped before the semaphore.
            acquire: $crate::AcquireAsync<'static, $policy>,
            semaphore: ::std::sync::Arc<$semaphore>,
            count: u32,
        }

        impl<$($generics)*> Future for $future $(<$parameter>)? {
            type Output = Result<$permit $(<$parameter>)?, $crate::Closed>;

            fn poll(
                self: ::core::pin::Pin<&mut Self>,
                context: &mut ::core::task::Context<'_>,
            ) -> ::core::task::Poll<Self::Output> {
                let (semaphore, count) = (::std::sync::Arc::clone(&self.semaphore), self.count);
                // SAFETY: `acquire` is not moved until it is dropped in its place.
                let acquire = unsafe { self.map_unchecked_mut(|this| &mut this.acquire) };
                acquire.poll(context).map_ok(|permit| {
                    permit.forget();
                    $permit { semaphore, count }
                })
            }
        }

        impl<$($generics)*> ::core::fmt::Debug for $future $(<$parameter>)? {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.debug_struct(stringify!($future)).field("count", &self.count).finish_non_exhaustive()
            }
        }

        /// Owned permits for tasks.
        impl<$($generics)*> $semaphore {
            #[doc = concat!("[`acquire_async`](", $of, "acquire_async), for an owned permit.")]
            ///
            /// # Errors
            #[doc = concat!("If the semaphore is [closed](", $of, "close), or is while the task waits.")]
            ///
            /// # Panics
            /// As the one without `owned` in its name.
            pub fn acquire_owned_async(self: ::std::sync::Arc<Self>) -> $future $(<$parameter>)? {
                self.acquire_many_owned_async(1)
            }

            #[doc = concat!("[`acquire_many_async`](", $of, "acquire_many_async), for an owned permit.")]
            ///
            /// # Errors
            #[doc = concat!("If the semaphore is [closed](", $of, "close), or is while the task waits.")]
            ///
            /// # Panics
            /// As the one without `owned` in its name.
            pub fn acquire_many_owned_async(
                self: ::std::sync::Arc<Self>,
                count: u32,
            ) -> $future $(<$parameter>)? {
                let shared: &$crate::SemaphoreWith<$policy> = &self;
                // SAFETY: the share lives as long as the future, and is dropped after it; what it
                // owns does not move.
                let shared = unsafe { &*::core::ptr::from_ref(shared) };
                $future { acquire: shared.acquire_many_async(count), semaphore: self, count }
            }
        }
    };
    (
        @ways [$($generics:tt)*] $semaphore:ty, $of:literal, $permit:ident $(<$parameter:ident>)?; $(
            $(#[$doc:meta])*
            $name:ident: $plain:ident($($argument:ident: $type:ty),*)
                -> $result:ty, $makes:path $(, $fails:tt)?;
        )*
    ) => {
        /// Permits that own a share of the semaphore. Each method waits, fails and panics as the
        /// one without `owned` in its name does.
        impl<$($generics)*> $semaphore {$(
            #[doc = concat!("[`", stringify!($plain), "`](", $of, stringify!($plain), "),")]
            /// for an owned permit.
            ///
            $(#[$doc])*
            #[track_caller]
            pub fn $name(self: ::std::sync::Arc<Self>, $($argument: $type),*) -> $result {
                let permit = self.$plain($($argument),*)$($fails)?;
                let count = permit.count();
                permit.forget();
                $makes($permit { semaphore: self, count })
            }
        )*}
    };
}

owned_permits! {
    SemaphoreWith<P>, P, "SemaphoreWith::", [P: InOneProcess];

    /// A [`Permit`](crate::Permit) that owns a share of its semaphore: for a thread that is not
    /// scoped, or a struct without a lifetime.
    ///
    /// Its permits go back when it is dropped. If the semaphore is full then, they are lost, as
    /// those of a [`Permit`](crate::Permit).
    ///
    /// # Examples
    /// ```
    /// use std::sync::Arc;
    /// use ulocks_fair::{OwnedPermit, Semaphore};
    ///
    /// struct Connection {
    ///     number: u32,
    ///     _slot: OwnedPermit,
    /// }
    ///
    /// let slots = Arc::new(Semaphore::new(2));
    /// let connections: Vec<_> = (0..2)
    ///     .map(|number| Connection { number, _slot: slots.clone().acquire_owned() })
    ///     .collect();
    /// assert!(slots.clone().try_acquire_owned().is_none());
    ///
    /// let served = std::thread::spawn(move || connections.iter().map(|it| it.number).sum::<u32>());
    /// assert_eq!(served.join().unwrap(), 1);
    /// assert_eq!(slots.available_permits(), 2);
    /// ```
    OwnedPermit<P: InOneProcess = Private>, AcquireOwnedAsync
}
