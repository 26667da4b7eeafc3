//! Each lock of the family once between two threads: a small program to try a target or a profile
//! with.
//!
//! ```sh
//! CARGO_PROFILE_RELEASE_LTO=fat cargo run --release --target x86_64-unknown-linux-musl \
//!     -p ulocks --example each_lock
//! ```

use std::cell::Cell;
use ulocks::calock::Calock;
use ulocks::fair::FairMutex;
use ulocks::pi::PiMutex;
use ulocks::semarray::{Op, SemArray};
use ulocks::unfair::AsymMutex;
use ulocks::{Condvar, Mutex, ReentrantMutex, RwLock, Semaphore};

const TURNS: u32 = 10_000;

/// Runs `turn` on two threads, and checks that `count` says so.
fn twice(name: &str, turn: impl Fn() + Sync, count: impl FnOnce() -> u32) {
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..TURNS).for_each(|_| turn()));
        }
    });
    assert_eq!(count(), 2 * TURNS, "{name}");
    println!("{name}: ok");
}

fn main() {
    let lock = Mutex::new(0);
    twice("Mutex", || *lock.lock() += 1, || *lock.lock());
    let lock = FairMutex::new(0);
    twice("FairMutex", || *lock.lock() += 1, || *lock.lock());
    let lock = Calock::new(0);
    twice("Calock", || *lock.lock() += 1, || *lock.lock());
    let lock = AsymMutex::new(0);
    twice("AsymMutex", || *lock.lock() += 1, || *lock.lock());
    let lock = PiMutex::new(0);
    twice("PiMutex", || *lock.lock().unwrap() += 1, || *lock.lock().unwrap());
    let lock = RwLock::new(0);
    twice("RwLock", || *lock.write() += 1, || *lock.read());

    let lock = ReentrantMutex::new(Cell::new(0));
    let turn = || {
        let outer = lock.lock();
        outer.set(lock.lock().get() + 1);
    };
    twice("ReentrantMutex", turn, || lock.lock().get());

    let (lock, permits) = (Mutex::new(0), Semaphore::new(1));
    let turn = || {
        let _permit = permits.acquire();
        *lock.try_lock().expect("there is one permit") += 1;
    };
    twice("Semaphore", turn, || *lock.lock());

    let (lock, permits) = (Mutex::new(0), SemArray::with_values([1, 1]));
    let turn = || {
        let _permit = permits.acquire([Op::sub(0, 1), Op::sub(1, 1)]).expect("the array stays");
        *lock.try_lock().expect("there is one permit of each kind") += 1;
    };
    twice("SemArray", turn, || *lock.lock());

    // Two threads take turns by the parity of the count.
    let (count, changed) = (Mutex::new(0), Condvar::new());
    std::thread::scope(|scope| {
        for parity in 0..2 {
            let (count, changed) = (&count, &changed);
            scope.spawn(move || {
                for _ in 0..TURNS / 10 {
                    let mut count = count.lock();
                    changed.wait_while(&mut count, |count| *count % 2 != parity);
                    *count += 1;
                    changed.notify_one();
                }
            });
        }
    });
    assert_eq!(*count.lock(), 2 * (TURNS / 10), "Condvar");
    println!("Condvar: ok");

    #[cfg(feature = "debug")]
    {
        let lock = ulocks::debug::Mutex::new(0);
        twice("debug::Mutex", || *lock.lock() += 1, || *lock.lock());
    }
}
