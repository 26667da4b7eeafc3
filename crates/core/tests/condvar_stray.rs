//! A wake-up that comes from elsewhere, as users of futexes must expect, without a notification.
#![cfg(all(world = "machine", not(miri)))]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;
use ulocks_core::condvar::RawCondvar;
use ulocks_core::futex::{Futex, FutexKey, Local};
use ulocks_core::raw::RawMutex;
use ulocks_testkit::plain::Plain;

static MUTEX: Plain = ulocks_core::initial!(Plain);
static CONDVAR: RawCondvar<Plain> = RawCondvar::new();
static OPEN: AtomicBool = AtomicBool::new(false);
/// How often a wait ended.
static RETURNS: AtomicUsize = AtomicUsize::new(0);

fn wait_until_open() {
    MUTEX.lock();
    while !OPEN.load(Relaxed) {
        // SAFETY: this thread holds the mutex.
        let _ = unsafe { CONDVAR.wait(&MUTEX, (), None) };
        RETURNS.fetch_add(1, Relaxed);
    }
    // SAFETY: held, by `lock` or by the last `wait`.
    unsafe { MUTEX.unlock(()) };
}

/// It ends one wait, or one for each sleeper if they hand it on; but they do not hand it to and fro
/// for ever.
#[test]
fn a_stray_wake_up_does_not_go_round() {
    const WAITERS: usize = 3;
    const STRAYS: usize = 5;
    let waiters = [(); WAITERS].map(|()| thread::spawn(wait_until_open));
    // The word they sleep on is the first.
    let key = FutexKey::<Local>::of((&raw const CONDVAR).cast::<Futex<Local>>());
    let mut sent = 0;
    while sent < STRAYS {
        sent += key.wake(1) as usize;
        thread::sleep(Duration::from_millis(20));
    }
    let returns = RETURNS.load(Relaxed);
    OPEN.store(true, Relaxed);
    MUTEX.lock();
    CONDVAR.notify_all();
    // SAFETY: locked above.
    unsafe { MUTEX.unlock(()) };
    waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
    assert!((1..=STRAYS * WAITERS).contains(&returns), "{STRAYS} stray wake-ups ended {returns} waits");
}
