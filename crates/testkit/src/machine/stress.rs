//! Clients of many operations. Each returns what it counted; the test asserts on the counts. None
//! looks at a clock to decide whether the lock is right.

use super::storm::{Storm, Target};
use super::task;
use super::watchdog::watch;
use crate::model::lock_within;
use crate::new_lock;
use crate::order::Recorder;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;
use ulocks_core::raw::{Initial, Metered, RawInterruptible, RawMutex};
use ulocks_core::time::Deadline;

/// How hard to press.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Threads, or processes.
    pub threads: usize,
    /// Operations of each.
    pub operations: usize,
    /// Rounds of a short loop inside the critical section are drawn from `0..=hold`.
    pub hold: u32,
    /// Whether every thread moves to another CPU now and then.
    pub shuffle: bool,
    /// Whether a further thread showers them with `SIGUSR1`, so that waits in the kernel end by
    /// `EINTR`.
    pub signals: bool,
}

impl Default for Load {
    fn default() -> Self {
        Self { threads: 4, operations: 10_000, hold: 50, shuffle: false, signals: false }
    }
}

/// What happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Acquisitions, by thread.
    pub acquired: Vec<usize>,
    /// What the protected counter says: the sum of `acquired` if the lock excludes.
    pub counter: usize,
    /// Signals that were handled.
    pub signals: usize,
}

impl Counts {
    pub(super) fn new<L: RawMutex>(protected: &Protected<L>, acquired: Vec<usize>, signals: usize) -> Self {
        assert!(!protected.lock.is_locked(), "the lock is locked although everybody has left");
        Self { acquired, counter: protected.counter(), signals }
    }

    /// All acquisitions.
    pub fn total(&self) -> usize {
        self.acquired.iter().sum()
    }

    /// # Panics
    /// Unless every acquisition is in the counter.
    pub fn check(&self) {
        assert_eq!(self.counter, self.total(), "updates were lost: {self:?}");
    }
}

/// A lock and a counter in two halves, written one after the other, so that two threads inside
/// disturb one another.
pub(super) struct Protected<L> {
    pub(super) lock: L,
    halves: UnsafeCell<[usize; 2]>,
}

// SAFETY: `halves` is accessed by holders of `lock`, or when all threads were joined. That there is
// one holder at a time is what the tests are about; the accesses are volatile, so a broken lock
// yields wrong numbers.
unsafe impl<L: Sync> Sync for Protected<L> {}

impl<L: RawMutex> Protected<L> {
    pub(super) fn new() -> Self {
        Self { lock: new_lock(), halves: UnsafeCell::new([0; 2]) }
    }

    /// Adds one to both halves, with `rounds` of nothing in between.
    pub(super) fn count(&self, rounds: u32) {
        let halves = self.halves.get().cast::<usize>();
        // SAFETY: the pointer is to a live array of two; the caller holds the lock.
        unsafe {
            let first = halves.read_volatile() + 1;
            halves.write_volatile(first);
            for _ in 0..rounds {
                std::hint::spin_loop();
            }
            let second = halves.add(1);
            second.write_volatile(second.read_volatile() + 1);
        }
    }

    /// The counter: its lesser half, should they differ.
    pub(super) fn counter(&self) -> usize {
        // SAFETY: no other thread is at it any more.
        let [first, second] = unsafe { self.halves.get().read_volatile() };
        first.min(second)
    }
}

/// A small generator (xorshift) that begins with the thread's number: runs are repeatable as far as
/// the scheduler allows.
pub struct Random(u64);

impl Random {
    /// The generator of thread `seed`.
    pub fn new(seed: usize) -> Self {
        Self((seed as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// A number in `0..bound`; zero if `bound` is.
    pub fn below(&mut self, bound: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((u128::from(self.0 as u32) * u128::from(bound)) >> 32) as u32
    }
}

/// One operation on a lock: true if the lock was had.
type Operation<L> = fn(&Protected<L>, &mut Random, u32) -> bool;

pub(super) fn unlock<L: RawMutex>(protected: &Protected<L>, token: L::Token, hold: u32) {
    protected.count(hold);
    // SAFETY: the token is from the acquisition that the caller just made.
    unsafe { protected.lock.unlock(token) };
}

fn run<L: RawMutex + Send + Sync + 'static>(name: &str, load: Load, operation: Operation<L>) -> Counts {
    let protected = Arc::new(Protected::<L>::new());
    let (acquired, signals) = drive(
        name,
        load,
        &protected,
        |protected| format!("locked {}", protected.lock.is_locked()),
        operation,
    );
    Counts::new(&protected, acquired, signals)
}

/// Puts `load` on what is `shared`, and watches. How many operations of each thread returned true,
/// and how many signals were handled.
pub(super) fn drive<S: Send + Sync + 'static>(
    name: &str,
    load: Load,
    shared: &Arc<S>,
    describe: fn(&S) -> String,
    operation: impl Fn(&S, &mut Random, u32) -> bool + Copy + Send + 'static,
) -> (Vec<usize>, usize) {
    let progress: Arc<[AtomicUsize]> = (0..load.threads).map(|_| AtomicUsize::new(0)).collect();
    let _watchdog = {
        let (progress, shared) = (Arc::clone(&progress), Arc::clone(shared));
        watch(name, move || format!("operations done {progress:?}, {}", describe(&shared)))
    };
    let start = Arc::new(Barrier::new(load.threads));
    let storm = load.signals.then(|| Storm::begin(0));
    let threads: Vec<_> = (0..load.threads)
        .map(|me| {
            let (shared, progress, start) = (Arc::clone(shared), Arc::clone(&progress), Arc::clone(&start));
            let target = storm.as_ref().map(Storm::target);
            thread::spawn(move || {
                let _hit = target.map(Target::join);
                let mut random = Random::new(me);
                let mut acquired = 0;
                start.wait();
                for nth in 0..load.operations {
                    if load.shuffle && nth % 64 == 0 {
                        move_to_a_cpu(&mut random);
                    }
                    let hold = random.below(load.hold + 1);
                    acquired += usize::from(operation(&shared, &mut random, hold));
                    progress[me].store(nth + 1, Relaxed);
                }
                acquired
            })
        })
        .collect();
    let acquired = threads.into_iter().map(|thread| thread.join().expect("a client panicked")).collect();
    (acquired, storm.map_or(0, Storm::end))
}

/// `lock`, and now and then `try_lock`: at most one thread is inside.
pub fn exclusion<L: RawMutex + Send + Sync + 'static>(load: Load) -> Counts {
    run::<L>("exclusion", load, |protected, random, hold| {
        let token =
            if random.below(4) == 0 { protected.lock.try_lock() } else { Some(protected.lock.lock()) };
        token.map(|token| unlock(protected, token, hold)).is_some()
    })
}

/// `lock_until` with deadlines from already passed to a millisecond, mixed with `lock`: a thread
/// gives up when its deadline has passed, and strands no thread.
pub fn timed<L: RawMutex + Send + Sync + 'static>(load: Load) -> Counts {
    run::<L>("timed", load, |protected, random, hold| {
        let token = match random.below(8) {
            0 => Some(protected.lock.lock()),
            _ => lock_within(&protected.lock, Duration::from_nanos(random.below(1_000_000).into())),
        };
        token.map(|token| unlock(protected, token, hold)).is_some()
    })
}

/// Acquisitions of which most give up when a signal handler runs, for a load with signals: a
/// handler before, after or during the wait strands no thread.
pub fn interrupted<L: RawMutex + RawInterruptible + Send + Sync + 'static>(load: Load) -> Counts {
    run::<L>("interrupted", load, |protected, random, hold| {
        let token = match random.below(4) {
            0 => Some(protected.lock.lock()),
            _ => protected.lock.lock_until(Deadline::NEVER.interruptible()),
        };
        token.map(|token| unlock(protected, token, hold)).is_some()
    })
}

/// Nearly every wait is given up at once, so that giving up meets the release, while others wait in
/// earnest.
pub fn cancel<L: RawMutex + Send + Sync + 'static>(load: Load) -> Counts {
    run::<L>("cancel", load, |protected, random, hold| {
        let token = match random.below(4) {
            0 => Some(protected.lock.lock()),
            _ => lock_within(&protected.lock, Duration::from_nanos(random.below(20_000).into())),
        };
        token.map(|token| unlock(protected, token, hold)).is_some()
    })
}

/// Eight threads for each CPU, all of which want the lock all the time.
pub fn oversubscribed<L: RawMutex + Send + Sync + 'static>(operations: usize) -> Counts {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let load = Load { threads: 8 * cpus, operations, ..Load::default() };
    run::<L>("oversubscribed", load, |protected, _, hold| {
        unlock(protected, protected.lock.lock(), hold);
        true
    })
}

/// The first to come is served first: by `lock`, by `try_lock`, and half of the time by
/// `lock_until` with deadlines from already passed to 200 us, after which a waiter gives its place
/// up.
///
/// # Panics
/// If a thread is overtaken by a later arrival.
pub fn order<L: RawMutex + Metered<Meter = Recorder> + Send + Sync + 'static>(load: Load) -> Counts {
    run::<L>("order", load, |protected, random, hold| {
        let lock = &protected.lock;
        let token = match random.below(8) {
            0 => lock.try_lock(),
            1..=4 => lock_within(lock, Duration::from_nanos(random.below(200_000).into())),
            _ => Some(lock.lock()),
        };
        let Some(token) = token else { return false };
        lock.meter().served();
        unlock(protected, token, hold);
        true
    })
}

/// A waiter whose deadline is far away waits until the lock is released, and then has it.
///
/// # Panics
/// If it leaves without the lock.
pub fn waits_for_the_release<L: RawMutex + Sync>() {
    let lock = new_lock::<L>();
    let held = lock.lock();
    let _watchdog = watch("waits_for_the_release", String::new);
    thread::scope(|scope| {
        task::asleep(scope, || {
            let deadline = Deadline::after(Duration::from_secs(3_600));
            let token = lock.lock_until(deadline).expect("a waiter left before its deadline");
            // SAFETY: the token is from the line before.
            unsafe { lock.unlock(token) };
        });
        // SAFETY: the token is from the acquisition of this thread.
        unsafe { lock.unlock(held) };
    });
    assert!(!lock.is_locked(), "the lock is locked although everybody has left");
}

/// A lock alone on a page, `threads` users, and the last of them unmaps the page as soon as
/// `unlock` has returned to it. A release that touches the lock once more meets no memory and the
/// process dies of it. Returns the pages unmapped.
pub fn last_unlocker_unmaps<L: RawMutex + Send + Sync + 'static>(threads: usize, rounds: usize) -> usize {
    last_user_unmaps::<L>(threads, rounds, |lock, _, is_last| {
        let token = lock.lock();
        let last = is_last();
        // SAFETY: the token is from the acquisition above.
        unsafe { lock.unlock(token) };
        last
    })
}

/// Puts an `L` on a page in each of `rounds`. `user` says, of each of `users`, whether the page is
/// its to unmap; it asks whether it is the last. Returns in how many rounds a user unmapped it.
pub(super) fn last_user_unmaps<L: Initial + Send + Sync + 'static>(
    users: usize,
    rounds: usize,
    user: impl Fn(&L, usize, &dyn Fn() -> bool) -> bool + Copy + Send + Sync + 'static,
) -> usize {
    struct Page<L> {
        lock: L,
        done: AtomicUsize,
    }
    let round = Arc::new(AtomicUsize::new(0));
    let _watchdog = {
        let round = Arc::clone(&round);
        watch("last_unlocker_unmaps", move || format!("round {}", round.load(Relaxed)))
    };
    let mut unmapped = 0;
    for nth in 0..rounds {
        round.store(nth, Relaxed);
        let page = super::shared::Mapping::private().leak::<Page<L>>();
        // SAFETY: a fresh page, writable, larger than a `Page` and aligned to more than it needs.
        unsafe { page.write(Page { lock: new_lock(), done: AtomicUsize::new(0) }) };
        let address = page.expose_provenance();
        let start = Arc::new(Barrier::new(users));
        let outcomes = crate::thread::together(users, move |me| {
            start.wait();
            // SAFETY: this user is not done yet, so the page is mapped.
            let page = unsafe { &*std::ptr::with_exposed_provenance::<Page<L>>(address) };
            let last = user(&page.lock, me, &|| page.done.fetch_add(1, Relaxed) + 1 == users);
            if last {
                super::shared::unmap(address);
            }
            usize::from(last)
        });
        let by_users: usize = outcomes.into_iter().sum();
        if by_users == 0 {
            super::shared::unmap(address);
        }
        unmapped += by_users;
    }
    unmapped
}

/// Restricts the calling thread to one CPU of those it was allowed when the process began.
fn move_to_a_cpu(random: &mut Random) {
    // Of the first thread: this one may be restricted already.
    let cpus = task::cpus_of(std::process::id() as i32);
    if !cpus.is_empty() {
        task::bind(0, &[cpus[random.below(cpus.len() as u32) as usize]]);
    }
}
