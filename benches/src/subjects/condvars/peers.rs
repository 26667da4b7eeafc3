//! Pairs that need no place of their own: std, everything with lock_api's faces, usync, the PI
//! mutex.

use super::Monitor;
use anyhow::Result;
use parking_lot::lock_api::{self, RawCondvarTimed, RawMutexTimed};
use std::marker::PhantomData;
use std::sync::PoisonError;
use std::time::Duration;
use ulocks_core::condvar::Wakeup;
use ulocks_pi::{PiCondvar, PiMutex, PiMutexGuard};

/// std's.
#[derive(Debug)]
pub struct Std;

impl Monitor for Std {
    type Mutex<T: Send + 'static> = std::sync::Mutex<T>;
    type Guard<'a, T: Send + 'static> = std::sync::MutexGuard<'a, T>;
    type Condvar = std::sync::Condvar;

    fn mutex<T: Send + 'static>(value: T) -> Result<Self::Mutex<T>> {
        Ok(std::sync::Mutex::new(value))
    }

    fn condvar() -> Result<Self::Condvar> {
        Ok(std::sync::Condvar::new())
    }

    #[inline]
    fn lock<T: Send + 'static>(mutex: &Self::Mutex<T>) -> Self::Guard<'_, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    fn wait<'a, T: Send + 'static>(condvar: &Self::Condvar, guard: Self::Guard<'a, T>) -> Self::Guard<'a, T> {
        condvar.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    fn wait_for<'a, T: Send + 'static>(
        condvar: &Self::Condvar,
        guard: Self::Guard<'a, T>,
        timeout: Duration,
    ) -> (Self::Guard<'a, T>, bool) {
        let (guard, ended) = condvar.wait_timeout(guard, timeout).unwrap_or_else(PoisonError::into_inner);
        (guard, ended.timed_out())
    }

    #[inline]
    fn notify_one<T: Send + 'static>(condvar: &Self::Condvar, _: &Self::Mutex<T>) {
        condvar.notify_one();
    }

    #[inline]
    fn notify_all<T: Send + 'static>(condvar: &Self::Condvar, _: &Self::Mutex<T>) {
        condvar.notify_all();
    }
}

/// A condition variable that lock_api 0.5 knows, with its mutex: parking_lot 0.13 and this family.
#[derive(Debug)]
pub struct Api<C>(PhantomData<C>);

/// Pairs whose `wait` takes the guard by reference.
macro_rules! by_reference {
    ($({$($generics:tt)*} $name:ty $(where {$($bounds:tt)*})?: $mutex:ty, $guard:ty, $condvar:ty;)*) => {$(
        impl $($generics)* Monitor for $name
        $(where $($bounds)*)?
        {
            type Mutex<T: Send + 'static> = $mutex;
            type Guard<'a, T: Send + 'static> = $guard;
            type Condvar = $condvar;

            fn mutex<T: Send + 'static>(value: T) -> Result<Self::Mutex<T>> {
                Ok(<$mutex>::new(value))
            }

            fn condvar() -> Result<Self::Condvar> {
                Ok(<$condvar>::new())
            }

            #[inline]
            fn lock<T: Send + 'static>(mutex: &Self::Mutex<T>) -> Self::Guard<'_, T> {
                mutex.lock()
            }

            #[inline]
            fn wait<'a, T: Send + 'static>(
                condvar: &Self::Condvar,
                mut guard: Self::Guard<'a, T>,
            ) -> Self::Guard<'a, T> {
                condvar.wait(&mut guard);
                guard
            }

            #[inline]
            fn wait_for<'a, T: Send + 'static>(
                condvar: &Self::Condvar,
                mut guard: Self::Guard<'a, T>,
                timeout: Duration,
            ) -> (Self::Guard<'a, T>, bool) {
                let ended = condvar.wait_for(&mut guard, timeout);
                (guard, ended.timed_out())
            }

            #[inline]
            fn notify_one<T: Send + 'static>(condvar: &Self::Condvar, _: &Self::Mutex<T>) {
                condvar.notify_one();
            }

            #[inline]
            fn notify_all<T: Send + 'static>(condvar: &Self::Condvar, _: &Self::Mutex<T>) {
                condvar.notify_all();
            }
        }
    )*};
}

/// usync's.
#[derive(Debug)]
pub struct Usync;

by_reference! {
    {<C>} Api<C> where {
        C: RawCondvarTimed + Send + Sync + 'static,
        C::RawMutex: RawMutexTimed<Duration = Duration> + Send + Sync + 'static,
    }: lock_api::Mutex<C::RawMutex, T>, lock_api::MutexGuard<'a, C::RawMutex, T>, lock_api::Condvar<C>;
    {} Usync: usync::Mutex<T>, usync::MutexGuard<'a, T>, usync::Condvar;
}

/// `PiMutex` with its own condition variable: a notification names the mutex.
#[derive(Debug)]
pub struct Pi;

impl Monitor for Pi {
    type Mutex<T: Send + 'static> = PiMutex<T>;
    type Guard<'a, T: Send + 'static> = PiMutexGuard<'a, T>;
    type Condvar = PiCondvar;

    fn mutex<T: Send + 'static>(value: T) -> Result<Self::Mutex<T>> {
        Ok(PiMutex::new(value))
    }

    fn condvar() -> Result<Self::Condvar> {
        Ok(PiCondvar::new())
    }

    #[inline]
    fn lock<T: Send + 'static>(mutex: &Self::Mutex<T>) -> Self::Guard<'_, T> {
        mutex.lock().unwrap_or_else(|error| panic!("PiMutex: {error}"))
    }

    #[inline]
    fn wait<'a, T: Send + 'static>(condvar: &Self::Condvar, guard: Self::Guard<'a, T>) -> Self::Guard<'a, T> {
        condvar.wait(guard).unwrap_or_else(|error| panic!("PiCondvar: {error}"))
    }

    #[inline]
    fn wait_for<'a, T: Send + 'static>(
        condvar: &Self::Condvar,
        guard: Self::Guard<'a, T>,
        timeout: Duration,
    ) -> (Self::Guard<'a, T>, bool) {
        let (guard, ended) =
            condvar.wait_for(guard, timeout).unwrap_or_else(|error| panic!("PiCondvar: {error}"));
        (guard, ended == Wakeup::TimedOut)
    }

    #[inline]
    fn notify_one<T: Send + 'static>(condvar: &Self::Condvar, mutex: &Self::Mutex<T>) {
        condvar.notify_one(mutex).unwrap_or_else(|error| panic!("PiCondvar: {error}"));
    }

    #[inline]
    fn notify_all<T: Send + 'static>(condvar: &Self::Condvar, mutex: &Self::Mutex<T>) {
        condvar.notify_all(mutex).unwrap_or_else(|error| panic!("PiCondvar: {error}"));
    }
}
