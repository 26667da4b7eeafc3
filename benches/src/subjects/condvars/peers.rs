//! Pairs that need no place of their own: std, everything with lock_api's faces, usync, the PI
//! mutex.

use super::{Monitor, State};
use parking_lot::lock_api::{self, RawMutex};
use std::marker::PhantomData;
use std::sync::PoisonError;
use ulocks_pi::{PiCondvar, PiMutex, PiMutexGuard};

/// std's.
#[derive(Debug)]
pub struct Std;

/// A condition variable that lock_api 0.5 knows, with its mutex: parking_lot 0.13 and this family.
#[derive(Debug)]
pub struct Api<C>(PhantomData<C>);

/// usync's.
#[derive(Debug)]
pub struct Usync;

/// `PiMutex` with its own condition variable: a notification names the mutex.
#[derive(Debug)]
pub struct Pi;

/// For each pair its types, and what it does: `m` is the mutex, `c` the condition variable, `g` the
/// guard.
macro_rules! monitors {
    ($({$($generics:tt)*} $name:ty: $mutex:ty, $guard:ty, $condvar:ty;
       |$m:ident, $c:ident, $g:ident| $lock:expr, $wait:expr, $one:expr, $all:expr;)*) => {$(
        impl $($generics)* Monitor for $name {
            type Mutex = $mutex;
            type Guard<'a> = $guard;
            type Condvar = $condvar;

            #[inline]
            fn lock($m: &Self::Mutex) -> Self::Guard<'_> {
                $lock
            }

            #[inline]
            fn wait<'a>($c: &Self::Condvar, $g: Self::Guard<'a>) -> Self::Guard<'a> {
                $wait
            }

            #[inline]
            fn notify_one($c: &Self::Condvar, $m: &Self::Mutex) {
                let _ = ($m, $one);
            }

            #[inline]
            fn notify_all($c: &Self::Condvar, $m: &Self::Mutex) {
                let _ = ($m, $all);
            }
        }
    )*};
}

monitors! {
    {} Std: std::sync::Mutex<State>, std::sync::MutexGuard<'a, State>, std::sync::Condvar;
    |m, c, g| m.lock().unwrap_or_else(PoisonError::into_inner),
        c.wait(g).unwrap_or_else(PoisonError::into_inner),
        c.notify_one(), c.notify_all();

    {<C: lock_api::RawCondvar<RawMutex: RawMutex + Send + Sync> + Send + Sync + 'static>} Api<C>:
    lock_api::Mutex<C::RawMutex, State>, lock_api::MutexGuard<'a, C::RawMutex, State>, lock_api::Condvar<C>;
    |m, c, g| m.lock(), after(g, |g| c.wait(g)), c.notify_one(), c.notify_all();

    {} Usync: usync::Mutex<State>, usync::MutexGuard<'a, State>, usync::Condvar;
    |m, c, g| m.lock(), after(g, |g| c.wait(g)), c.notify_one(), c.notify_all();

    {} Pi: PiMutex<State>, PiMutexGuard<'a, State>, PiCondvar;
    |m, c, g| m.lock().unwrap_or_else(|error| panic!("PiMutex: {error}")),
        c.wait(g).unwrap_or_else(|error| panic!("PiCondvar: {error}")),
        c.notify_one(m).unwrap_or_else(|error| panic!("PiCondvar: {error}")),
        c.notify_all(m).unwrap_or_else(|error| panic!("PiCondvar: {error}"));
}

/// The guard after a wait that takes it by reference.
#[inline]
fn after<G>(mut guard: G, wait: impl FnOnce(&mut G)) -> G {
    wait(&mut guard);
    guard
}
