//! What the models of the robust mutex share: the mutex, its table, and what it protects.

use std::sync::Arc;
use std::time::Duration;
use ulocks_core::Shared;
use ulocks_core::model::{Config, Kernel, thread};
use ulocks_core::spin::{NoSpin, Spin};
use ulocks_core::sync::AtomicU32;
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_core::time::Deadline;
use ulocks_shm::robust::mutex::raw::RawRobustMutex;
use ulocks_shm::robust::mutex::{Acquired, Refused};
use ulocks_shm::slots::{Member, Slot};

pub type Mutex<W = NoSpin> = RawRobustMutex<Shared<W>>;

/// A mutex, and what it protects: which thread is inside.
pub struct Place<const THREADS: usize, W: Spin = NoSpin> {
    /// Two for each thread: one that looks for a free slot may pass each of them at a moment at
    /// which another thread has it.
    slots: [[Slot; 2]; THREADS],
    /// Whether waiters look again after a time.
    recheck: bool,
    pub mutex: Mutex<W>,
    inside: AtomicU32,
    /// How often a thread was told of a death.
    pub told: AtomicU32,
}

impl<const THREADS: usize, W: Spin> Place<THREADS, W> {
    pub fn new() -> Arc<Self> {
        Self::with(Mutex::new(), false)
    }

    pub fn with(mutex: Mutex<W>, recheck: bool) -> Arc<Self> {
        Arc::new(Self {
            slots: [(); THREADS].map(|()| [Slot::new(), Slot::new()]),
            recheck,
            mutex,
            inside: AtomicU32::new(0),
            told: AtomicU32::new(0),
        })
    }

    /// Takes part.
    pub fn join(&self) -> Member<'_> {
        // SAFETY: the place outlives the member: its thread has a share of it.
        let me = unsafe { Member::join(self.slots.as_flattened(), 0..0) }.unwrap();
        if !self.recheck {
            me.set_recheck(Duration::MAX);
        }
        me
    }

    /// Inside of the mutex, alone: what the last holder left is visible, and whole unless it died.
    /// Then the release.
    pub fn critical(&self, me: &Member<'_>, name: u32, how: Acquired) {
        let left = self.inside.load(Relaxed);
        match how {
            Acquired::Clean => assert_eq!(left, 0, "another thread is inside, or has died there in silence"),
            Acquired::OwnerDied => _ = self.told.fetch_add(1, Relaxed),
        }
        self.inside.store(name, Relaxed);
        assert_eq!(self.inside.load(Relaxed), name, "another thread came in");
        self.inside.store(0, Relaxed);
        // SAFETY: the caller has acquired.
        unsafe { self.mutex.unlock(me) };
    }

    /// Acquires once, until `deadline` if there is one, and releases.
    pub fn locks(&self, me: &Member<'_>, name: u32, deadline: Option<Deadline>) {
        let how = match deadline {
            // SAFETY: all members are of the place's slots.
            None => unsafe { self.mutex.lock(me) },
            // SAFETY: as above.
            Some(deadline) => unsafe { self.mutex.lock_until(me, deadline) },
        };
        match how {
            Ok(how) => self.critical(me, name, how),
            Err(error) => assert_eq!(error, Refused::TimedOut),
        }
    }

    /// A thread that does so, a member in each round anew.
    pub fn client(self: &Arc<Self>, name: u32, rounds: u32, timed: bool) -> thread::JoinHandle<()> {
        let place = Arc::clone(self);
        thread::spawn(move || {
            (0..rounds).for_each(|_| place.locks(&place.join(), name, timed.then(soon)));
        })
    }

    /// A thread that acquires so often, and goes on living: nobody is woken because it leaves.
    pub fn resident(self: &Arc<Self>, name: u32, rounds: u32, timed: bool) -> thread::JoinHandle<()> {
        let place = Arc::clone(self);
        thread::spawn(move || {
            let me = place.join();
            (0..rounds).for_each(|_| place.locks(&me, name, timed.then(soon)));
            std::mem::forget(me);
        })
    }

    /// All threads come to their end or have died; `residents` of them stay members if they live.
    /// Then nobody was told of a death that was none, the mutex works, and no slot is lost.
    pub fn ends(&self, threads: Vec<thread::JoinHandle<()>>, residents: usize) {
        let died = threads.into_iter().filter_map(|thread| thread.join().err()).count();
        assert!(self.told.load(Relaxed) as usize <= died, "a thread was told of a death that was none");
        self.locks(&self.join(), 100, None);
        let taken = self.slots.as_flattened().iter().filter(|slot| slot.is_taken()).count();
        assert_eq!(taken, residents.saturating_sub(died), "a slot is lost");
    }
}

fn soon() -> Deadline {
    Deadline::after(Duration::from_millis(1))
}

/// Each thread acquires `rounds` times; the last `timed` of them with a deadline.
pub fn clients<const THREADS: usize>(rounds: u32, timed: usize, recheck: bool) -> impl Fn() + 'static {
    clients_that_spin::<THREADS, NoSpin>(rounds, timed, recheck)
}

/// The same with another spin strategy.
pub fn clients_that_spin<const THREADS: usize, W: Spin>(
    rounds: u32,
    timed: usize,
    recheck: bool,
) -> impl Fn() + 'static {
    move || {
        let place = Place::<THREADS, W>::with(Mutex::new(), recheck);
        let client = |nth| place.client(nth as u32 + 1, rounds, nth + timed >= THREADS);
        let threads = (0..THREADS).map(client).collect();
        place.ends(threads, 0);
    }
}

/// About as many steps for each number of threads. No deadline passes, so that a waiter that
/// depends on its next look sleeps for ever.
pub fn sampled(threads: u64, kernel: Kernel) -> Config {
    Config { timeouts: false, kernel, ..Config::sampled(6_000 / threads) }
}
