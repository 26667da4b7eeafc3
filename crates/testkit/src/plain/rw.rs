//! A plain futex reader-writer lock.
//!
//! It is as simple as it gets: a count, three bits, and all sleepers are woken whenever something
//! has changed for a waiter. It prefers no thread. Tests that need some reader-writer lock use it
//! as [`PlainRw`].
//!
//! # State
//! | bits | meaning | set by | cleared by |
//! |---|---|---|---|
//! | 0 `WRITER` | held alone | a writer; an upgrade | its release, its downgrade |
//! | 1 `UPGRADABLE` | held beside readers, by a thread that may upgrade | that one | its release, downgrade, upgrade |
//! | 2 `PARKED` | a thread may sleep | a thread that goes to sleep | a release, which wakes all |
//! | 3.. | readers | | |
//!
//! Every step is one exchange of the whole word: a release that clears `PARKED` need not touch the
//! word again, and a wake is by its address. All exchanges that take are acquire, all that give up
//! are release; between them there are exchanges only, so that a writer comes after all the readers
//! before it.

use ulocks_core::const_fn;
use ulocks_core::futex::{Futex, Scope, Waited};
use ulocks_core::raw::{
    RawInterruptible, RawRwLock, RawRwLockDowngrade, RawRwLockFair, RawRwLockUpgrade, RawRwLockUpgradeFair,
};
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::time::Deadline;

const WRITER: u32 = 1;
const UPGRADABLE: u32 = 2;
const PARKED: u32 = 4;
const ONE_READER: u32 = 8;

/// A futex reader-writer lock.
#[derive(Debug)]
#[repr(transparent)]
pub struct CountedRw<S: Scope>(Futex<S>);

/// A futex reader-writer lock for one process.
pub type PlainRw = CountedRw<ulocks_core::futex::Local>;
/// A futex reader-writer lock for every process that maps it.
pub type PlainRwShared = CountedRw<ulocks_core::futex::Global>;

/// What a step makes of the word, if it can be taken now.
type Step = fn(u32) -> Option<u32>;

fn reads(word: u32) -> Option<u32> {
    (word & WRITER == 0).then(|| word + ONE_READER)
}

fn writes(word: u32) -> Option<u32> {
    (word & !PARKED == 0).then_some(word | WRITER)
}

fn reads_upgradable(word: u32) -> Option<u32> {
    (word & (WRITER | UPGRADABLE) == 0).then_some(word | UPGRADABLE)
}

fn upgrades(word: u32) -> Option<u32> {
    (word & !PARKED == UPGRADABLE).then_some(word & !UPGRADABLE | WRITER)
}

impl<S: Scope> CountedRw<S> {
    const_fn! {
        /// An unlocked lock.
        pub fn new() -> Self {
            Self(Futex::new(0))
        }
    }

    /// Takes `step` if that needs no waiting. Otherwise the word that stands in its way.
    fn attempt(&self, step: Step) -> Result<(), u32> {
        let mut word = self.0.load(Relaxed);
        loop {
            let next = step(word).ok_or(word)?;
            match self.0.compare_exchange(word, next, Acquire, Relaxed) {
                Ok(_) => return Ok(()),
                Err(now) => word = now,
            }
        }
    }

    /// Takes `step`, sleeping while it cannot be taken. `None` if the deadline passed first.
    fn wait(&self, step: Step, deadline: Option<Deadline>) -> Option<()> {
        while let Err(word) = self.attempt(step) {
            let parked = word | PARKED;
            if word != parked && self.0.compare_exchange(word, parked, Relaxed, Relaxed).is_err() {
                continue;
            }
            if self.0.wait(parked, deadline) == Waited::TimedOut {
                return None;
            }
        }
        Some(())
    }

    /// Replaces the word by what `left` makes of it, less `PARKED`, and wakes the sleepers. The
    /// exchange is the last access to the lock.
    fn give_up(&self, left: fn(u32) -> u32) {
        let key = self.0.key();
        let mut word = self.0.load(Relaxed);
        while let Err(now) = self.0.compare_exchange(word, left(word) & !PARKED, Release, Relaxed) {
            word = now;
        }
        if word & PARKED != 0 {
            key.wake(u32::MAX);
        }
    }
}

impl<S: Scope> Default for CountedRw<S> {
    fn default() -> Self {
        Self::new()
    }
}

ulocks_core::initial!([S: Scope] CountedRw<S> = Self::new());

impl<S: Scope> RawInterruptible for CountedRw<S> {}

// SAFETY: `WRITER` is set only in a word without holders, by one atomic exchange, and while it is
// set no other step can be taken; acquire and release order the exchanges (header). The word is all
// there is: tokens may be forgotten, the lock moved or dropped.
unsafe impl<S: Scope> RawRwLock for CountedRw<S> {
    type Scope = S;
    type ReadToken = ();
    type WriteToken = ();

    fn read(&self) {
        if self.try_read().is_none() {
            self.wait(reads, None);
        }
    }

    fn try_read(&self) -> Option<()> {
        self.attempt(reads).ok()
    }

    fn read_until(&self, deadline: Deadline) -> Option<()> {
        self.try_read().or_else(|| self.wait(reads, Some(deadline)))
    }

    unsafe fn unlock_read(&self, (): ()) {
        self.give_up(|word| word - ONE_READER);
    }

    fn write(&self) {
        self.wait(writes, None);
    }

    fn try_write(&self) -> Option<()> {
        self.attempt(writes).ok()
    }

    fn write_until(&self, deadline: Deadline) -> Option<()> {
        self.wait(writes, Some(deadline))
    }

    unsafe fn unlock_write(&self, (): ()) {
        self.give_up(|word| word & !WRITER);
    }

    fn is_locked(&self) -> bool {
        self.0.load(Relaxed) & !PARKED != 0
    }

    fn is_write_locked(&self) -> bool {
        self.0.load(Relaxed) & WRITER != 0
    }
}

// SAFETY: the writer becomes a reader in one exchange, which releases.
unsafe impl<S: Scope> RawRwLockDowngrade for CountedRw<S> {
    unsafe fn downgrade(&self, (): ()) {
        self.give_up(|word| (word & !WRITER) + ONE_READER);
    }
}

// SAFETY: `UPGRADABLE` is set by one exchange in a word without it and without a writer, and shuts
// writers out; it becomes `WRITER` by an exchange that acquires, in a word without readers.
unsafe impl<S: Scope> RawRwLockUpgrade for CountedRw<S> {
    type UpgradableToken = ();

    fn upgradable(&self) {
        self.wait(reads_upgradable, None);
    }

    fn try_upgradable(&self) -> Option<()> {
        self.attempt(reads_upgradable).ok()
    }

    fn upgradable_until(&self, deadline: Deadline) -> Option<()> {
        self.wait(reads_upgradable, Some(deadline))
    }

    unsafe fn unlock_upgradable(&self, (): ()) {
        self.give_up(|word| word & !UPGRADABLE);
    }

    unsafe fn upgrade(&self, (): ()) {
        self.wait(upgrades, None);
    }

    unsafe fn try_upgrade(&self, (): ()) -> Result<(), ()> {
        self.attempt(upgrades).map_err(|_| ())
    }

    unsafe fn upgrade_until(&self, (): (), deadline: Deadline) -> Result<(), ()> {
        self.wait(upgrades, Some(deadline)).ok_or(())
    }

    unsafe fn downgrade_upgradable(&self, (): ()) {
        self.give_up(|word| (word & !UPGRADABLE) + ONE_READER);
    }

    unsafe fn downgrade_to_upgradable(&self, (): ()) {
        self.give_up(|word| word & !WRITER | UPGRADABLE);
    }
}

// SAFETY: a release is a release. It is not fair at all, which none of the tests needs.
unsafe impl<S: Scope> RawRwLockFair for CountedRw<S> {
    unsafe fn unlock_read_fair(&self, (): ()) {
        // SAFETY: the caller's promise.
        unsafe { self.unlock_read(()) };
    }

    unsafe fn unlock_write_fair(&self, (): ()) {
        // SAFETY: the caller's promise.
        unsafe { self.unlock_write(()) };
    }
}

// SAFETY: as above.
unsafe impl<S: Scope> RawRwLockUpgradeFair for CountedRw<S> {
    unsafe fn unlock_upgradable_fair(&self, (): ()) {
        // SAFETY: the caller's promise.
        unsafe { self.unlock_upgradable(()) };
    }
}
