//! Locks for the models: a futex mutex in three states, ticket, test-and-test-and-set.

use std::sync::Arc;
use ulocks_vm::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_vm::sync::{AtomicU32, UnsafeCell, spin_until};
use ulocks_vm::{futex, thread};

/// A lock around a number, which it is there to protect.
pub(crate) trait Lock: Default + Send + Sync + 'static {
    fn locked<R>(&self, body: impl FnOnce() -> R) -> R;
}

/// Molnar's, Drepper's: 0 free, 1 locked, 2 locked and a thread may sleep.
#[derive(Default)]
pub(crate) struct ThreeStates(AtomicU32);

impl Lock for ThreeStates {
    fn locked<R>(&self, body: impl FnOnce() -> R) -> R {
        if self.0.compare_exchange(0, 1, Acquire, Relaxed).is_err() {
            while self.0.swap(2, Acquire) != 0 {
                futex::wait(&self.0, 2, u32::MAX, None, true);
            }
        }
        let result = body();
        let key = std::ptr::from_ref(&self.0).addr();
        if self.0.swap(0, Release) == 2 {
            futex::wake(key, 1, u32::MAX, true);
        }
        result
    }
}

/// First come, first served.
#[derive(Default)]
pub(crate) struct Ticket {
    next: AtomicU32,
    serving: AtomicU32,
}

impl Lock for Ticket {
    fn locked<R>(&self, body: impl FnOnce() -> R) -> R {
        let mine = self.next.fetch_add(1, Relaxed);
        spin_until(|| self.serving.load(Acquire) == mine);
        let result = body();
        self.serving.store(mine + 1, Release);
        result
    }
}

/// Looks before it tries.
#[derive(Default)]
pub(crate) struct Ttas(AtomicU32);

impl Lock for Ttas {
    fn locked<R>(&self, body: impl FnOnce() -> R) -> R {
        spin_until(|| self.0.load(Relaxed) == 0 && self.0.compare_exchange(0, 1, Acquire, Relaxed).is_ok());
        let result = body();
        self.0.store(0, Release);
        result
    }
}

/// Tries at once, and says so in one word.
#[derive(Default)]
pub(crate) struct Tas(AtomicU32);

impl Lock for Tas {
    fn locked<R>(&self, body: impl FnOnce() -> R) -> R {
        spin_until(|| self.0.swap(1, Acquire) == 0);
        let result = body();
        self.0.store(0, Release);
        result
    }
}

struct Client<L> {
    lock: L,
    count: UnsafeCell<u32>,
}
unsafe impl<L: Sync> Sync for Client<L> {}

/// Threads that count under the lock; the count is a race unless the lock excludes and publishes.
pub(crate) fn counting<L: Lock>(threads: usize, rounds: usize) -> impl Fn() + 'static {
    move || {
        let client = Arc::new(Client { lock: L::default(), count: UnsafeCell::new(0) });
        let started: Vec<_> = (0..threads)
            .map(|_| {
                let client = Arc::clone(&client);
                thread::spawn(move || {
                    for _ in 0..rounds {
                        client.lock.locked(|| client.count.with_mut(|count| unsafe { *count += 1 }));
                    }
                })
            })
            .collect();
        started.into_iter().for_each(|thread| thread.join().expect("nobody dies"));
        assert_eq!(client.count.with(|count| unsafe { *count }), (threads * rounds) as u32);
    }
}
