//! A crowd: ten thousand threads that wait for one lock at the same moment, what waiting makes them
//! allocate, and how often they wake while the lock is held.
//!
//! A lock of the family allocates nothing, however many wait. And a sleeper sleeps: a few of a
//! crowd may wake by themselves now and then, to see whether another is dead, but not each of them.
//! The test names the allocator that looks:
//!
//! ```no_run
//! use ulocks_testkit::allocations::Counting;
//! use ulocks_testkit::crowd;
//! use ulocks_testkit::plain::Plain;
//!
//! #[global_allocator]
//! static COUNTING: Counting = Counting;
//!
//! fn main() {
//!     crowd::ten_thousand_wait::<Plain>().check();
//! }
//! ```

use super::allocations::during;
use super::limit::until;
use super::stress::Protected;
use super::task;
use super::watchdog::watch;
use std::hint::black_box;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use ulocks_core::raw::RawMutex;

/// How many a lock must bear.
pub const TEN_THOUSAND: usize = 10_000;

/// For how long the sleepers of a held lock are looked at: for longer than one that polls sleeps.
const LOOK: Duration = Duration::from_millis(1_500);

/// The stack of each: the default would take 20 GiB of addresses for all of them.
const STACK_BYTES: usize = 32 << 10;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

/// Runs `body` with this thread's allocations counted.
fn watched(body: impl FnOnce()) {
    ALLOCATIONS.fetch_add(during(body).times, Relaxed);
}

/// What became of a crowd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crowd {
    /// Threads that were wanted.
    pub wanted: usize,
    /// Threads that were asleep at the same moment, and came through: as many as the machine
    /// permits.
    pub waited: usize,
    /// What they allocated meanwhile.
    pub allocations: usize,
    /// How often they woke while the lock was held, in a second and a half.
    pub wake_ups: u64,
}

impl Crowd {
    /// # Panics
    /// If one of them allocated, if more than one in ten woke while the lock was held, or unless a
    /// hundred came together.
    pub fn check(self) {
        self.check_sleep();
        assert_eq!(self.allocations, 0, "waiting allocates: {self:?}");
        assert!(self.waited >= self.wanted.min(100), "this machine permits too few threads: {self:?}");
    }

    /// # Panics
    /// If more than one in ten woke while the lock was held; a hundred may, of however few.
    pub fn check_sleep(self) {
        let permitted = self.waited.max(1_000) as u64 / 10;
        assert!(self.wake_ups <= permitted, "sleepers of a held lock wake by themselves: {self:?}");
    }
}

/// Ten thousand threads sleep on one locked `L` at once; then it is released, and all get it one
/// after the other.
///
/// # Panics
/// If one does not count, or if the test does not run on
/// [`Counting`](super::allocations::Counting).
pub fn ten_thousand_wait<L: RawMutex + Send + Sync + 'static>() -> Crowd {
    wait_for_lock::<L>(TEN_THOUSAND)
}

/// As [`ten_thousand_wait`], with another number.
///
/// # Panics
/// As there.
pub fn wait_for_lock<L: RawMutex + Send + Sync + 'static>(threads: usize) -> Crowd {
    let protected = Arc::new(Protected::<L>::new());
    let held = protected.lock.lock();
    let crowd = wait(
        threads,
        {
            let protected = Arc::clone(&protected);
            move || {
                let token = protected.lock.lock();
                protected.count(0);
                // SAFETY: the token is from the acquisition above.
                unsafe { protected.lock.unlock(token) };
            }
        },
        // SAFETY: the token is from the acquisition above.
        || unsafe { protected.lock.unlock(held) },
    );
    assert!(!protected.lock.is_locked(), "the lock is locked although everybody has left");
    assert_eq!(protected.counter(), crowd.waited, "updates were lost");
    crowd
}

/// `threads` threads run `pass`, which is to put each of them to sleep and to lead all of them
/// through once `open` was called; `open` is called when all are asleep. For locks of any kind.
///
/// # Panics
/// If a thread does, or if the test does not run on [`Counting`](super::allocations::Counting).
pub fn wait(threads: usize, pass: impl Fn() + Send + Sync + 'static, open: impl FnOnce()) -> Crowd {
    // Two crowds at once might be more than the machine permits.
    static ONE_CROWD: Mutex<()> = Mutex::new(());
    let _alone = ONE_CROWD.lock().unwrap_or_else(PoisonError::into_inner);
    ALLOCATIONS.store(0, Relaxed);
    watched(|| drop(black_box(Box::new(0))));
    assert_eq!(ALLOCATIONS.swap(0, Relaxed), 1, "the test has no `#[global_allocator]` of type `Counting`");

    let came_through = Arc::new(AtomicUsize::new(0));
    let _watchdog = {
        let came_through = Arc::clone(&came_through);
        watch("crowd", move || format!("{} of {threads} came through", came_through.load(Relaxed)))
    };
    let ids: Arc<[AtomicI32]> = (0..threads).map(|_| AtomicI32::new(0)).collect();
    let pass = Arc::new(pass);
    let mut crowd = Vec::with_capacity(threads);
    for me in 0..threads {
        let (ids, pass, came_through) = (Arc::clone(&ids), Arc::clone(&pass), Arc::clone(&came_through));
        let spawned = thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
            // From here on it sleeps nowhere but in `pass`.
            ids[me].store(task::id(), Relaxed);
            watched(&*pass);
            came_through.fetch_add(1, Relaxed);
        });
        match spawned {
            Ok(thread) => crowd.push(thread),
            Err(error) => {
                println!(
                    "crowd: {} threads of {threads}, for this machine permits no more: {error}",
                    crowd.len()
                );
                break;
            }
        }
    }
    let waited = crowd.len();
    let ids = || ids[..waited].iter().map(|id| id.load(Relaxed));
    until("each of the crowd has begun", || ids().all(|id| id != 0));
    let ids: Vec<_> = ids().collect();
    task::until_asleep(&ids);
    let slept = task::sleeps(&ids);
    thread::sleep(LOOK);
    let wake_ups = task::sleeps(&ids) - slept;
    assert_eq!(came_through.load(Relaxed), 0, "somebody came through before it was opened");
    watched(open);
    for thread in crowd {
        thread.join().expect("one of the crowd panicked");
    }
    Crowd { wanted: threads, waited, allocations: ALLOCATIONS.swap(0, Relaxed), wake_ups }
}
