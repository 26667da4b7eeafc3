//! Clients of what only a priority-inheriting mutex has: deaths and circles that are told.

use ulocks_core::futex::PiError;
use ulocks_core::raw::RawMutex as _;
use ulocks_core::{Policy, Private};
use ulocks_pi::{RawPiMutex, Taken};
use ulocks_testkit::thread::{Arc, with};

/// Releases `lock`, which the calling thread has acquired.
pub fn release<P: Policy>(lock: &RawPiMutex<P>) {
    // SAFETY: every caller in these models has just acquired it.
    unsafe { lock.unlock(()) };
}

/// Two threads that take two mutexes in opposite orders: if they meet, one of them is told, and
/// backs out; both end. Returns how many were told.
pub fn opposite_orders() -> usize {
    let locks: Arc<[RawPiMutex<Private>; 2]> = Arc::new([RawPiMutex::new(), RawPiMutex::new()]);
    let other = with(&locks, |locks| both(&locks[1], &locks[0]));
    let told = both(&locks[0], &locks[1]) + other.join().expect("nobody dies");
    assert!(told <= 1, "{told} threads were told of one circle");
    assert_eq!((locks[0].state().0, locks[1].state().0), (0, 0));
    told
}

fn both(first: &RawPiMutex<Private>, second: &RawPiMutex<Private>) -> usize {
    assert_eq!(first.acquire(None), Ok(Taken::Sound));
    let told = match second.acquire(None) {
        Ok(_) => {
            release(second);
            0
        }
        Err(error) => {
            assert_eq!(error, PiError::Deadlock);
            1
        }
    };
    release(first);
    told
}

/// A thread that ends with the mutex in its hand, and others that want it: each is told of the
/// death, by the mark or by an error, unless it came before.
pub fn owner_ends(others: usize) {
    let lock = Arc::new(RawPiMutex::<Private>::new());
    let owner = with(&lock, |lock| assert!(lock.acquire(None).is_ok()));
    let others: Vec<_> = (0..others)
        .map(|_| {
            with(&lock, |lock| {
                let taken = lock.acquire(None);
                if taken.is_ok() {
                    release(lock);
                }
                taken
            })
        })
        .collect();
    owner.join().expect("it ends, but does not die");
    let told: Vec<_> = others.into_iter().map(|other| other.join().expect("nobody dies")).collect();
    let heirs = told.iter().filter(|told| **told == Ok(Taken::OwnerDied)).count();
    let gone = told.iter().filter(|told| **told == Err(PiError::OwnerGone)).count();
    let free = lock.try_acquire() == Ok(Some(Taken::Sound));
    // Either a thread inherited, and then the mutex lives on, or no thread was there, and it is
    // lost.
    assert_eq!(heirs, usize::from(free), "{told:?}");
    assert!(free || gone <= told.len(), "{told:?}");
    assert!(told.iter().all(|told| matches!(told, Ok(_) | Err(PiError::OwnerGone))), "{told:?}");
}

/// The owner of the mutex asks for it again.
pub fn asks_again() {
    let lock = RawPiMutex::<Private>::new();
    assert_eq!(lock.acquire(None), Ok(Taken::Sound));
    assert_eq!(lock.acquire(None), Err(PiError::Deadlock));
    assert_eq!(lock.try_acquire(), Ok(None));
    release(&lock);
    assert_eq!(lock.state().0, 0);
}
