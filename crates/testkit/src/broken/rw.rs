//! A plain futex reader-writer lock, sound, and the same with one seeded bug.
//!
//! The sound one is as simple as it gets: a count, three bits, and everybody is woken whenever something has changed
//! for a waiter. It prefers nobody. Tests that need some reader-writer lock use it as [`PlainRw`].
//!
//! # State
//! | bits | meaning | set by | cleared by |
//! |---|---|---|---|
//! | 0 `WRITER` | held alone | a writer; an upgrade | its release, its downgrade |
//! | 1 `UPGRADABLE` | held beside readers, by one who may upgrade | that one | its release, downgrade, upgrade |
//! | 2 `PARKED` | somebody may sleep | who goes to sleep | a release, which wakes all |
//! | 3.. | readers | | |
//!
//! Every step is one exchange of the whole word: a release that clears `PARKED` need not touch the word again, and a wake
//! is by its address. All exchanges that take are acquire, all that give up are release; between them there are
//! exchanges only, so that a writer comes after all the readers before it.

use ulocks_core::futex::{Futex, Scope, Waited};
use ulocks_core::raw::{
    RawRwLock, RawRwLockDowngrade, RawRwLockFair, RawRwLockUpgrade, RawRwLockUpgradeFair,
};
use ulocks_core::sync::Ordering::{self, Acquire, Relaxed, Release};
use ulocks_core::time::Deadline;
use ulocks_core::{const_fn, raw_init};

const WRITER: u32 = 1;
const UPGRADABLE: u32 = 2;
const PARKED: u32 = 4;
const ONE_READER: u32 = 8;

/// No bug.
pub const SOUND: u8 = 0;
/// A reader looks at the word and counts itself in two steps: a writer can pass between them.
pub const READ_LOAD_THEN_ADD: u8 = 1;
/// A writer does not look whether there are readers.
pub const WRITE_IGNORES_READERS: u8 = 2;
/// The release of a reader publishes nothing: what it read may have been overwritten.
pub const RELAXED_UNLOCK_READ: u8 = 3;
/// The release of a writer publishes nothing.
pub const RELAXED_UNLOCK_WRITE: u8 = 4;
/// The last reader wakes nobody.
pub const NO_WAKE_READ: u8 = 5;
/// The release of a writer wakes one of those who sleep and forgets the others.
pub const WAKES_ONE: u8 = 6;
/// A reader that had to wait takes the lock alone, so that readers who wait for one another never meet.
pub const LATE_READER_IS_ALONE: u8 = 7;
/// A waiter that gives up clears `PARKED`, as if it had been the only one.
pub const TIMEOUT_CLEARS_PARKED: u8 = 8;
/// A writer that gives up leaves its bit behind.
pub const TIMEOUT_LEAVES_TRACE: u8 = 22;
/// The release of a reader looks at the word once more afterwards.
pub const TOUCH_AFTER_UNLOCK_READ: u8 = 9;
/// The release of a writer looks at the word once more afterwards.
pub const TOUCH_AFTER_UNLOCK_WRITE: u8 = 10;
/// An upgradable holder does not exclude another.
pub const TWO_UPGRADABLES: u8 = 11;
/// An upgradable holder does not exclude writers.
pub const UPGRADABLE_ADMITS_WRITERS: u8 = 12;
/// An upgradable holder excludes readers.
pub const UPGRADABLE_EXCLUDES_READERS: u8 = 13;
/// An upgrade does not wait for the readers.
pub const UPGRADE_IGNORES_READERS: u8 = 14;
/// An upgrade lets go of the lock and takes it as a writer: others get in between.
pub const UPGRADE_LETS_GO: u8 = 15;
/// A downgrade lets go of the lock and takes it as a reader: a writer gets in between.
pub const DOWNGRADE_LETS_GO: u8 = 16;
/// A downgrade publishes nothing.
pub const RELAXED_DOWNGRADE: u8 = 17;
/// A downgrade wakes nobody.
pub const NO_WAKE_DOWNGRADE: u8 = 18;
/// An upgrade does not come after what the readers did.
pub const RELAXED_UPGRADE: u8 = 19;
/// A failed upgrade loses the upgradable access.
pub const FAILED_UPGRADE_LETS_GO: u8 = 20;
/// `try_write` succeeds beside readers.
pub const TRY_WRITE_IGNORES_READERS: u8 = 21;

/// A futex reader-writer lock with the bug `BUG`.
#[derive(Debug)]
#[repr(transparent)]
pub struct CountedRw<S: Scope, const BUG: u8>(Futex<S>);

/// A futex reader-writer lock without a bug, for one process.
pub type PlainRw = CountedRw<ulocks_core::futex::Private, SOUND>;
/// A futex reader-writer lock without a bug, for every process that maps it.
pub type PlainRwShared = CountedRw<ulocks_core::futex::Shared, SOUND>;

/// What a step makes of the word, if it can be taken now.
type Step = fn(u32) -> Option<u32>;

fn reads<const BUG: u8>(word: u32) -> Option<u32> {
    let closed = if BUG == UPGRADABLE_EXCLUDES_READERS { WRITER | UPGRADABLE } else { WRITER };
    (word & closed == 0).then(|| word + ONE_READER)
}

fn writes<const BUG: u8>(word: u32) -> Option<u32> {
    let harmless = match BUG {
        UPGRADABLE_ADMITS_WRITERS => PARKED | UPGRADABLE,
        WRITE_IGNORES_READERS => !(WRITER | UPGRADABLE),
        _ => PARKED,
    };
    (word & !harmless == 0).then_some(word | WRITER)
}

fn reads_upgradable<const BUG: u8>(word: u32) -> Option<u32> {
    let closed = if BUG == TWO_UPGRADABLES { WRITER } else { WRITER | UPGRADABLE };
    (word & closed == 0).then_some(word | UPGRADABLE)
}

fn upgrades<const BUG: u8>(word: u32) -> Option<u32> {
    let alone = word & !PARKED == UPGRADABLE || BUG == UPGRADE_IGNORES_READERS;
    alone.then_some(word & !UPGRADABLE | WRITER)
}

/// How a release fails to do its work.
#[derive(Default)]
struct Flaws {
    publishes_nothing: bool,
    wakes_nobody: bool,
    touches_late: bool,
}

impl<S: Scope, const BUG: u8> CountedRw<S, BUG> {
    const UPGRADE: Ordering = if BUG == RELAXED_UPGRADE { Relaxed } else { Acquire };

    const_fn! {
        /// An unlocked lock.
        pub fn new() -> Self {
            Self(Futex::new(0))
        }
    }

    /// Takes `step` if that needs no waiting. Otherwise the word that stands in its way.
    fn attempt(&self, step: Step, order: Ordering) -> Result<(), u32> {
        let mut word = self.0.load(Relaxed);
        loop {
            let next = step(word).ok_or(word)?;
            match self.0.compare_exchange(word, next, order, Relaxed) {
                Ok(_) => return Ok(()),
                Err(now) => word = now,
            }
        }
    }

    /// Takes `step`, sleeping while it cannot be taken. `None` if the deadline passed first.
    fn wait(&self, step: Step, order: Ordering, deadline: Option<Deadline>) -> Option<()> {
        while let Err(word) = self.attempt(step, order) {
            let parked = word | PARKED;
            if word != parked && self.0.compare_exchange(word, parked, Relaxed, Relaxed).is_err() {
                continue;
            }
            if self.0.wait(parked, deadline) == Waited::TimedOut {
                if BUG == TIMEOUT_CLEARS_PARKED {
                    let _ = self.0.compare_exchange(parked, word & !PARKED, Relaxed, Relaxed);
                }
                return None;
            }
        }
        Some(())
    }

    fn wait_to_read(&self, deadline: Option<Deadline>) -> Option<()> {
        let step = if BUG == LATE_READER_IS_ALONE { writes::<BUG> } else { reads::<BUG> };
        self.wait(step, Acquire, deadline)
    }

    /// Replaces the word by what `left` makes of it, less `PARKED`, and wakes those who sleep. The exchange is the last
    /// access to the lock.
    fn give_up(&self, left: fn(u32) -> u32, flaws: Flaws) {
        let key = self.0.key();
        let order = if flaws.publishes_nothing { Relaxed } else { Release };
        let mut word = self.0.load(Relaxed);
        while let Err(now) = self.0.compare_exchange(word, left(word) & !PARKED, order, Relaxed) {
            word = now;
        }
        if flaws.touches_late {
            super::late(key.address());
            // The box keeps the compiler from leaving out a read that nobody uses.
            core::hint::black_box(self.0.fetch_add(0, Relaxed));
        }
        if word & PARKED != 0 && !flaws.wakes_nobody {
            key.wake(if BUG == WAKES_ONE { 1 } else { u32::MAX });
        }
    }
}

impl<S: Scope, const BUG: u8> Default for CountedRw<S, BUG> {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: with `SOUND`, `WRITER` is set only in a word without holders, by one atomic exchange, and while it is set no
// other step can be taken; acquire and release order the exchanges (header). The word is all there is: tokens may be
// forgotten, the lock moved or dropped. The bugs are for tests that expect to fail.
unsafe impl<S: Scope, const BUG: u8> RawRwLock for CountedRw<S, BUG> {
    raw_init!(Self::new());
    type Scope = S;
    type ReadToken = ();
    type WriteToken = ();

    fn read(&self) {
        if self.try_read().is_none() {
            self.wait_to_read(None);
        }
    }

    fn try_read(&self) -> Option<()> {
        if BUG == READ_LOAD_THEN_ADD {
            let open = reads::<BUG>(self.0.load(Acquire)).is_some();
            return open.then(|| {
                self.0.fetch_add(ONE_READER, Acquire);
            });
        }
        self.attempt(reads::<BUG>, Acquire).ok()
    }

    fn read_until(&self, deadline: Deadline) -> Option<()> {
        self.try_read().or_else(|| self.wait_to_read(Some(deadline)))
    }

    unsafe fn unlock_read(&self, (): ()) {
        let left = |word: u32| match BUG {
            LATE_READER_IS_ALONE if word & WRITER != 0 => word & !WRITER,
            _ => word.wrapping_sub(ONE_READER),
        };
        self.give_up(
            left,
            Flaws {
                publishes_nothing: BUG == RELAXED_UNLOCK_READ,
                wakes_nobody: BUG == NO_WAKE_READ,
                touches_late: BUG == TOUCH_AFTER_UNLOCK_READ,
            },
        );
    }

    fn write(&self) {
        self.wait(writes::<BUG>, Acquire, None);
    }

    fn try_write(&self) -> Option<()> {
        let step =
            if BUG == TRY_WRITE_IGNORES_READERS { writes::<WRITE_IGNORES_READERS> } else { writes::<BUG> };
        self.attempt(step, Acquire).ok()
    }

    fn write_until(&self, deadline: Deadline) -> Option<()> {
        let written = self.wait(writes::<BUG>, Acquire, Some(deadline));
        if BUG == TIMEOUT_LEAVES_TRACE && written.is_none() {
            self.0.fetch_or(WRITER, Relaxed);
        }
        written
    }

    unsafe fn unlock_write(&self, (): ()) {
        self.give_up(
            |word| word & !WRITER,
            Flaws {
                publishes_nothing: BUG == RELAXED_UNLOCK_WRITE,
                wakes_nobody: false,
                touches_late: BUG == TOUCH_AFTER_UNLOCK_WRITE,
            },
        );
    }

    fn is_locked(&self) -> bool {
        self.0.load(Relaxed) & !PARKED != 0
    }

    fn is_write_locked(&self) -> bool {
        self.0.load(Relaxed) & WRITER != 0
    }
}

// SAFETY: with `SOUND`, the writer becomes a reader in one exchange, which releases.
unsafe impl<S: Scope, const BUG: u8> RawRwLockDowngrade for CountedRw<S, BUG> {
    unsafe fn downgrade(&self, (): ()) {
        if BUG == DOWNGRADE_LETS_GO {
            // SAFETY: the caller's promise.
            unsafe { self.unlock_write(()) };
            return self.read();
        }
        self.give_up(
            |word| (word & !WRITER) + ONE_READER,
            Flaws {
                publishes_nothing: BUG == RELAXED_DOWNGRADE,
                wakes_nobody: BUG == NO_WAKE_DOWNGRADE,
                touches_late: false,
            },
        );
    }
}

// SAFETY: with `SOUND`, `UPGRADABLE` is set by one exchange in a word without it and without a writer, and shuts writers
// out; it becomes `WRITER` by an exchange that acquires, in a word without readers.
unsafe impl<S: Scope, const BUG: u8> RawRwLockUpgrade for CountedRw<S, BUG> {
    type UpgradableToken = ();

    fn upgradable(&self) {
        self.wait(reads_upgradable::<BUG>, Acquire, None);
    }

    fn try_upgradable(&self) -> Option<()> {
        self.attempt(reads_upgradable::<BUG>, Acquire).ok()
    }

    fn upgradable_until(&self, deadline: Deadline) -> Option<()> {
        self.wait(reads_upgradable::<BUG>, Acquire, Some(deadline))
    }

    unsafe fn unlock_upgradable(&self, (): ()) {
        self.give_up(|word| word & !UPGRADABLE, Flaws::default());
    }

    unsafe fn upgrade(&self, (): ()) {
        if BUG == UPGRADE_LETS_GO {
            // SAFETY: the caller's promise.
            unsafe { self.unlock_upgradable(()) };
            return self.write();
        }
        self.wait(upgrades::<BUG>, Self::UPGRADE, None);
    }

    unsafe fn try_upgrade(&self, (): ()) -> Result<(), ()> {
        self.attempt(upgrades::<BUG>, Self::UPGRADE).map_err(|_| {
            if BUG == FAILED_UPGRADE_LETS_GO {
                // SAFETY: the caller's promise.
                unsafe { self.unlock_upgradable(()) };
            }
        })
    }

    unsafe fn upgrade_until(&self, (): (), deadline: Deadline) -> Result<(), ()> {
        self.wait(upgrades::<BUG>, Self::UPGRADE, Some(deadline)).ok_or(())
    }

    unsafe fn downgrade_upgradable(&self, (): ()) {
        self.give_up(|word| (word & !UPGRADABLE) + ONE_READER, Flaws::default());
    }

    unsafe fn downgrade_to_upgradable(&self, (): ()) {
        self.give_up(|word| word & !WRITER | UPGRADABLE, Flaws::default());
    }
}

// SAFETY: a release is a release. It is not fair at all, which none of the tests needs.
unsafe impl<S: Scope, const BUG: u8> RawRwLockFair for CountedRw<S, BUG> {
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
unsafe impl<S: Scope, const BUG: u8> RawRwLockUpgradeFair for CountedRw<S, BUG> {
    unsafe fn unlock_upgradable_fair(&self, (): ()) {
        // SAFETY: the caller's promise.
        unsafe { self.unlock_upgradable(()) };
    }
}
