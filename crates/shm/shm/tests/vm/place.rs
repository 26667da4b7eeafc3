//! What the models of the robust mutex share: the mutex, its table, and what it protects.

use std::sync::Arc;
use std::time::Duration;
use ulocks_core::Shared;
use ulocks_core::model::{Config, Deaths, Kernel, explore, thread};
use ulocks_core::spin::{Adaptive, NoSpin};
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_core::sync::{AtomicU32, spin_until, yield_now};
use ulocks_core::time::Deadline;
use ulocks_shm::robust::RawRobust;
use ulocks_shm::robust::fair_mutex::RawFairMutex;
use ulocks_shm::robust::mutex::Acquired;
use ulocks_shm::robust::mutex::raw::RawMutex;
use ulocks_shm::slots::Slot;
use ulocks_shm::{Member, Refused};
use ulocks_testkit::thread::with;

pub type Mutex = RawMutex<Shared<NoSpin>>;
pub type Spinning = RawMutex<Shared<Adaptive>>;
pub type Fair = RawFairMutex<Shared<NoSpin>>;

/// A mutex, and what it protects: which thread is inside.
pub struct Place<L, const THREADS: usize> {
    /// Two for each thread: one that looks for a free slot may pass each of them at a moment at
    /// which another thread has it.
    slots: [[Slot; 2]; THREADS],
    /// Whether waiters look again after a time.
    recheck: bool,
    pub mutex: L,
    inside: AtomicU32,
    /// How often a thread was told of a death.
    pub told: AtomicU32,
}

impl<L: RawRobust, const THREADS: usize> Place<L, THREADS> {
    pub fn new() -> Arc<Self> {
        Self::with(ulocks_core::initial!(L), false)
    }

    pub fn with(mutex: L, recheck: bool) -> Arc<Self> {
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

    /// Acquires once, beside a thread 1 that leaves inside.
    fn is_told(&self, name: u32) {
        let me = self.join();
        // SAFETY: all members are of the place's slots.
        let how = unsafe { self.mutex.lock(&me) }.expect("without a deadline");
        let left = u32::from(how == Acquired::OwnerDied);
        assert_eq!(self.inside.load(Relaxed), left, "what the last member did is not visible");
        self.critical(&me, name, how);
    }

    /// A thread that does so, a member in each round anew.
    pub fn client(self: &Arc<Self>, name: u32, rounds: u32, timed: bool) -> thread::JoinHandle<()> {
        with(self, move |place| {
            (0..rounds).for_each(|_| place.locks(&place.join(), name, timed.then(soon)));
        })
    }

    /// A thread that acquires so often, and goes on living: nobody is woken because it leaves.
    pub fn resident(self: &Arc<Self>, name: u32, rounds: u32, timed: bool) -> thread::JoinHandle<()> {
        with(self, move |place| {
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

pub fn soon() -> Deadline {
    Deadline::after(Duration::from_millis(1))
}

/// Each thread acquires `rounds` times; the last `timed` of them with a deadline.
pub fn clients<L: RawRobust, const THREADS: usize>(
    rounds: u32,
    timed: usize,
    recheck: bool,
) -> impl Fn() + 'static {
    move || {
        let place = Place::<L, THREADS>::with(ulocks_core::initial!(L), recheck);
        let client = |nth| place.client(nth as u32 + 1, rounds, nth + timed >= THREADS);
        let threads = (0..THREADS).map(client).collect();
        place.ends(threads, 0);
    }
}

/// A table of slots that no thread has.
pub fn slots<const N: usize>() -> [Slot; N] {
    [(); N].map(|()| Slot::new())
}

/// Takes part in the table of `place`, of which the thread has a share. It does not look again
/// after a time.
pub fn join<'a, T>(place: &'a T, slots: &'a [Slot]) -> Member<'a> {
    let start = std::ptr::from_ref(place).addr();
    // SAFETY: the place, and the slots in it, outlive the member, which borrows them.
    let me = unsafe { Member::join(slots, start..start + size_of::<T>()) }.unwrap();
    me.set_recheck(Duration::MAX);
    me
}

/// A lock in a place with a table of its own, and roles that threads can play with it.
pub trait Scene: Send + Sync + Sized + 'static {
    type Role: Copy + Send + 'static;

    fn new() -> Arc<Self>;
    fn join(&self) -> Member<'_>;

    /// Plays `role` once: acquires, looks and releases.
    fn plays(&self, me: &Member<'_>, role: Self::Role, name: u32);

    /// Acquires as `role` says, and calls `held` before the release.
    fn holds(&self, me: &Member<'_>, role: Self::Role, held: impl FnOnce());

    /// All threads end or have died. Then the lock works.
    fn ends(&self, threads: Vec<thread::JoinHandle<()>>);

    /// A thread that plays `role` once, and goes on living: no thread is woken because it leaves.
    fn resident(self: &Arc<Self>, role: Self::Role, name: u32) -> thread::JoinHandle<()> {
        with(self, move |place| {
            let me = place.join();
            place.plays(&me, role, name);
            std::mem::forget(me);
        })
    }
}

/// Threads that play these roles.
pub fn play<S: Scene, const N: usize>(roles: [S::Role; N]) -> impl Fn() + Clone + 'static {
    move || {
        let place = S::new();
        let threads = (1..).zip(roles).map(|(name, role)| place.resident(role, name)).collect();
        place.ends(threads);
    }
}

/// The same behind a thread that never dies, and that has the lock first.
pub fn behind<S: Scene, const N: usize>(first: S::Role, roles: [S::Role; N]) -> impl Fn() + Clone + 'static {
    move || {
        let place = S::new();
        let me = place.join();
        let mut threads = Vec::new();
        place.holds(&me, first, || {
            threads = (1..).zip(roles).map(|(name, role)| place.resident(role, name)).collect();
            // So many steps that all others are asleep, mostly.
            (0..40 * N).for_each(|_| yield_now());
        });
        std::mem::forget(me);
        place.ends(threads);
    }
}

/// `executions` by chance, half of them under each kernel. The kernels differ in some deaths only,
/// so each has executions of its own. No deadline passes: a waiter that depends on its next look
/// sleeps for ever.
pub fn under(kernel: Kernel, executions: u64) -> Config {
    Config { timeouts: false, kernel, seed: kernel as u64, ..Config::sampled(executions.div_ceil(2)) }
}

/// About as many steps for each number of threads.
pub fn sampled(threads: u64, kernel: Kernel) -> Config {
    under(kernel, 6_000 / threads)
}

/// The model's own thread, which never dies, holds the mutex first, so that all others sleep. Then
/// it releases, and `passes` once more if the mutex is free. Thread 1 may die at any step; the last
/// `timed` threads have deadlines.
pub fn held_first<L: RawRobust, const THREADS: usize>(passes: bool, timed: usize) -> impl Fn() + 'static {
    move || {
        let place = Place::<L, THREADS>::new();
        let me = place.join();
        // SAFETY: all members are of the place's slots.
        let how = unsafe { place.mutex.lock(&me) }.unwrap();
        // Thread 1 passes the others, if it acquires again at once.
        let rounds = |nth| if nth == 1 && passes { 3 } else { 1 };
        let client = |nth| place.resident(nth as u32, rounds(nth), nth + timed > THREADS);
        let threads = (1..=THREADS).map(client).collect();
        // So many steps that all others are asleep, mostly.
        (0..40 * THREADS).for_each(|_| yield_now());
        place.critical(&me, 100, how);
        // SAFETY: as above.
        if let Some(how) = passes.then(|| unsafe { place.mutex.try_lock(&me) }.ok()).flatten() {
            place.critical(&me, 100, how);
        }
        std::mem::forget(me);
        place.ends(threads, THREADS + 1);
    }
}

/// Explores `model` with a death of `thread` at each of its steps.
pub fn at_each_step(
    thread: usize,
    kernel: Kernel,
    timeouts: bool,
    executions: u64,
    model: impl Fn() + Clone + 'static,
) {
    let config = Config { timeouts, spurious: 0, ..under(kernel, executions) };
    dies_at_each_step(thread, &config, model);
}

/// The same, as `config` says.
pub fn dies_at_each_step(thread: usize, config: &Config, model: impl Fn() + Clone + 'static) {
    for step in 0.. {
        let deaths = Deaths::At { thread, step };
        if explore(Config { deaths, ..config.clone() }, model.clone()).deaths == 0 {
            assert!(step > 20, "{step} steps are too few");
            break;
        }
    }
}

/// The slot of a dead holder is claimed by a thread that then has nothing to do with the mutex, and
/// stays until all others have come to their end.
pub fn beside_a_bystander<L: RawRobust>() {
    let place = Place::<L, 3>::new();
    let done = Arc::new(ulocks_core::sync::AtomicU32::new(0));
    let dying = place.resident(1, 1, false);
    let waiter = place.resident(2, 1, false);
    let bystander = thread::spawn({
        let (place, done) = (Arc::clone(&place), Arc::clone(&done));
        move || {
            let me = place.join();
            spin_until(|| done.load(Relaxed) == 1);
            std::mem::forget(me);
        }
    });
    waiter.join().unwrap();
    done.store(1, ulocks_core::sync::Ordering::Relaxed);
    place.ends(vec![dying, bystander], 3);
}

/// Thread 1 leaves while it holds the mutex. Of the others, one is told and sees what it did. None
/// looks again after a time.
pub fn leaves_with_it<L: RawRobust>() {
    let place = Place::<L, 3>::new();
    let leaver = with(&place, |place| {
        let me = place.join();
        // SAFETY: all members are of the place's slots.
        assert_eq!(unsafe { place.mutex.lock(&me) }, Ok(Acquired::Clean));
        place.inside.store(1, Relaxed);
    });
    let other = |name| with(&place, move |place| place.is_told(name));
    let others = [other(2), other(3)];
    leaver.join().unwrap();
    others.into_iter().for_each(|other| other.join().unwrap());
    place.is_told(4);
    assert_eq!(place.told.load(Relaxed), 1, "it is told once");
    assert!(!place.slots.as_flattened().iter().any(Slot::is_taken), "a slot is lost");
}
