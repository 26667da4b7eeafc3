//! The protocol of [`PsRwLock`](crate::PsRwLock), and its readers' part. The writers' is in [`writer`](super::writer) and
//! [`release`](super::release), how those take turns in [`line`](super::line), readers that are counted elsewhere in [`readers`](super::readers).
//!
//! # Properties
//! - Exclusion of a writer and anybody else; what a holder did happens before whatever excludes it.
//! - *Sifting*: a writer shuts readers out class by class, the lowest first, and the next class only when the readers of
//!   the lower ones have left. So a reader never waits for a writer that waits for readers of a lower class.
//! - Hence *nesting upward*: a thread that holds a read lock may take one of a higher class, whatever writers wait.
//! - A reader in line waits for at most one write phase, or for `BATCH`, by type; in the top class of several for one in any case.
//!   An owner waits for at most one read phase of each class.
//! - One writer sifts at a time. The others wait before they have shut out anybody, so they do not add up for readers.
//! - The release is the last touch of the lock; a wake-up goes by address (law 2).
//! - All-zero is an unlocked lock. Nothing is allocated and no address is stored.
//!
//! # State
//! Three words: the state ([`State`]), the lines (`Lines`), and the event, a futex on which everybody sleeps and which
//! counts the openings of the gate. `g` is the gate, `c` the index of a class, `N` their number.
//!
//! | label | from | to | by |
//! |---|---|---|---|
//! | (A) | any | one more of `c`; inside if `g <= c` | a reader; who finds `g > c` goes out again by (D) |
//! | (A) | `g <= c` | one more of `c` | an attempt, which leaves no trace in the state if it fails |
//! | (D) | any | one less of `c` | a reader |
//! | (O) | not `OWNED` | `OWNED`; `WRITERS` if it has slept | a writer, an upgradable reader |
//! | (O) | `OWNED`, `GRANTED` among the lines | not `GRANTED`; the gate opens meanwhile | a writer that has slept, after a fair release |
//! | (C) | `OWNED`, `g = c < N` | `g = c + 1` | the owner, when all below `c` have left and the line of `c` is empty |
//! | (F) | 0; or `OWNED` without readers and lines | `OWNED`, `g = N` | a writer; the owner. All of (O) and (C) at once |
//! | (U) | `OWNED`; no flag of one who waits for this | not `OWNED`, `g = 0` | the owner, by an exchange: its last touch |
//! | (U) | `OWNED` | not `OWNED`, `g = 0`, one more of the lowest class | the owner, which downgrades |
//! | (G) | `OWNED`, `WRITERS`, `g = 0` | `g = 1` until it is handed over | the owner, which releases fairly |
//! | (G) | `OWNED` | `g` less, with `OWNED` or without | the owner, when it gives up or admits readers again |
//! | (M) | | `LOW` or `TOP`; `WRITERS`; `DRAINING` | who is about to sleep |
//! | (W) | | one more of the writers that sleep, or one less | a writer, before its first sleep, and when it is the owner or gives up |
//!
//! # Invariants
//! 1. At most one thread is the owner: (O) and (F) need a word without `OWNED`, which only the owner takes out, or take
//!    `GRANTED`, which the owner sets to stop being it.
//! 2. Only the owner changes the gate. It shuts class `c` only when all counts below `c` have been seen at zero since their
//!    classes were shut; by (F) all counts are zero at that moment.
//! 3. *Exclusion.* Once class `c` is shut and its count has been seen at zero, the count is made of readers that are about to
//!    go out again, until the gate opens. When this holds for all classes, the owner is alone.
//! 4. *Nobody inside waits for a class above its own*, unless that one is full: it is shut only when all below have left.
//! 5. A reader that has gone in by (A) while its class was open is seen by the owner: both are read-modify-writes of one
//!    word. One that is about to go out again keeps an owner waiting only in the stage of its class, or makes an exchange fail
//!    that is tried again or was a shortcut.
//! 6. *No reader is forgotten.* A reader sleeps only with its line's flag set and its class shut, both seen by one
//!    read-modify-write after it has read the event. An opening of the gate takes the flag out and then counts an event, and opens only
//!    if the flag has not come back; or it opens, finds the flag, and then counts. It wakes all after that. Otherwise the flag is
//!    cleared by the owner only, while the class is open and nobody is in line.
//! 7. *No writer is forgotten.* One sleeps only with `WRITERS` and `OWNED` set, likewise. A release that finds `WRITERS`
//!    takes it out and wakes one. That one, on its way, leaves it behind again in (O) or (M). If it gives up it sets it, too, for
//!    the owner to find; if there is no owner, it has not given up, but is the owner.
//! 8. *The owner is not forgotten* while it waits for a line: it sets `DRAINING` and then reads the line by a
//!    read-modify-write; the last to leave the line changes it by one, and then reads `DRAINING`. One of them sees the other.
//!
//! # The drain
//! (D) is the last touch of a reader, which therefore cannot count an event for an owner that it has let in; it can only wake
//! by address. If that happens between the owner's last look and its sleep, the wake-up is lost. So the owner sleeps with a
//! timer, [fifty microseconds](ulocks_core::futex::Futex::naps) at first, later a millisecond at most: it looks by itself, and a
//! departing reader cuts its nap short. Readers in signal handlers do not even that: they make no system call, and the owner looks
//! every fifty microseconds.
//!
//! # Ordering
//! All transitions of the state are read-modify-writes of one word and continue each other's release sequences. (A) is
//! Acquire and pairs with (U); (D) is Release and pairs with the drain's look and with (F), Acquire. (C) is Relaxed: the word
//! orders it with the counts. (O) is Acquire: an upgradable reader reads what the last writer wrote. `GRANTED` is set (Release) and
//! taken (Acquire) for the same. The event is read (Acquire) before (M). Where it is counted after (U) or (G), Release, who reads the new
//! count sees the gate open; where it is counted before (U), who reads the new count sets a flag that the exchange sees. A line is
//! joined (`lines`, a read-modify-write) before its flag is set (Release), and looked at after the flag was seen (Acquire).
//!
//! # Overflow
//! A class that is half full admits nobody: `read` panics, an attempt fails. The other half is room for those that have come in
//! and are about to learn it. The event has 32 bits: a waiter misses a wake-up if between its look and the kernel's
//! comparison exactly a multiple of 2^32 are counted.
//!
//! # Sources
//! M. Desnoyers, "Priority Sifting Reader-Writer Lock" (LKML, September 2008), for classes, sifting and raise-before-close. That
//! one has three words with all readers in one count, a queue under a spin bit, and its writers' mutex last: each has a
//! price that its own figures show. Here one word has the gate and a count for each class, and the mutex comes first. B.
//! Brandenburg and J. Anderson, "Spin-based reader-writer synchronization for multiprocessor real-time systems" (2010), for
//! phases.

use crate::class::Class;
use crate::readers::Slot;
use crate::seeded;
use crate::sifted::{Discipline, Sifted};
use crate::word::{Layout, OWNER, State, readers};
use core::fmt;
use ulocks_core::futex::{Futex, FutexKey, Scope, Waited};
use ulocks_core::meter::{Event, Meter};
use ulocks_core::spin::{self, Look, Spin};
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::sync::{AtomicU32, AtomicU64, interruption_point, pause};
use ulocks_core::time::Deadline;
use ulocks_core::{Policy, raw};

pub(crate) type PolicyOf<D> = <D as Discipline>::Policy;
type ScopeOf<D> = <PolicyOf<D> as Policy>::Scope;
type MeterOf<D> = <PolicyOf<D> as Policy>::Meter;

/// The raw lock, without data: the state, the event, the lines, and what the discipline adds.
///
/// `BUG` is for the models, which must find each of the bugs that have a number. Number zero has none.
#[repr(C)]
pub struct RawPsRwLock<D: Discipline = Sifted, const BUG: u8 = 0> {
    pub(crate) state: AtomicU64,
    pub(crate) event: Futex<ScopeOf<D>>,
    pub(crate) lines: AtomicU32,
    pub(crate) readers: D::Readers,
    pub(crate) meter: MeterOf<D>,
}

/// What a reader gives back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadToken {
    pub(crate) index: u8,
    /// Where it is counted, if not in the state.
    pub(crate) slot: Option<Slot>,
}

impl<D: Discipline, const BUG: u8> RawPsRwLock<D, BUG> {
    pub(crate) const LAYOUT: Layout = {
        let layout = Layout::of(D::CLASSES);
        assert!(
            <ScopeOf<D> as Scope>::PRIVATE || !layout.is_handler(layout.classes() - 1),
            "signal handlers can read a lock of one process only: what keeps them off is a matter of one process"
        );
        layout
    };
    pub(crate) const CLASSES: u32 = Self::LAYOUT.classes();

    ulocks_core::const_fn! {
        /// An unlocked lock; its bytes are all zero.
        pub fn new() -> Self {
            Self {
                state: AtomicU64::new(State::UNLOCKED.0),
                event: Futex::new(0),
                lines: AtomicU32::new(0),
                readers: ulocks_core::part!(D::Readers),
                meter: MeterOf::<D>::INIT,
            }
        }
    }

    /// The counters.
    pub fn meter(&self) -> &MeterOf<D> {
        &self.meter
    }

    /// The state at this moment, but for the number of writers that sleep.
    pub fn state(&self) -> State {
        Self::LAYOUT.without_sleepers(self.look())
    }

    /// The state at this moment.
    #[inline(always)]
    pub(crate) fn look(&self) -> State {
        State(self.state.load(Relaxed))
    }

    /// The index of a class, which the lock must have.
    pub(crate) const fn index<C: Class>() -> u32 {
        assert!(Self::LAYOUT.contains(C::RANK), "the lock has no such class of readers: see its `Sifted`");
        Self::LAYOUT.index(C::RANK)
    }

    const ARRIVAL: ulocks_core::sync::Ordering =
        if BUG == seeded::RELAXED_ARRIVAL { Relaxed } else { Acquire };
    const DEPARTURE: ulocks_core::sync::Ordering =
        if BUG == seeded::RELAXED_DEPARTURE { Relaxed } else { Release };

    /// (A): whether the reader is inside. Counted it is in any case.
    #[inline(always)]
    fn arrive(&self, index: u32) -> Result<(), State> {
        let was = State(self.state.fetch_add(Self::LAYOUT.one(index), Self::ARRIVAL));
        interruption_point();
        if Self::LAYOUT.admits(was, index) { Ok(()) } else { Err(was) }
    }

    /// (A), and (D) if that was in vain. One that may give up and come again looks first, so as not to keep the owner waiting
    /// each time.
    #[inline(always)]
    fn arrive_at(&self, index: u32, deadline: Option<Deadline>) -> Result<(), State> {
        if deadline.is_some() {
            let was = self.look();
            if !Self::LAYOUT.admits(was, index) {
                return Err(was);
            }
        }
        self.arrive(index).inspect_err(|_| self.depart(index))
    }

    /// (D): the last touch of the lock.
    #[inline(always)]
    pub(crate) fn depart(&self, index: u32) {
        interruption_point();
        let event = self.event.key();
        let was = State(self.state.fetch_sub(Self::LAYOUT.one(index), Self::DEPARTURE));
        // Handlers make no system call: their stage is polled.
        if was.has(State::DRAINING) && !Self::LAYOUT.is_handler(index) && BUG != seeded::DEPARTS_QUIETLY {
            Self::depart_last(event, was, index);
        }
        if BUG == seeded::TOUCHES_AFTER {
            core::hint::black_box(self.state.load(Relaxed));
        }
    }

    /// Cuts the owner's nap short, if this was the last reader that it waited for.
    #[cold]
    fn depart_last(event: FutexKey<ScopeOf<D>>, was: State, index: u32) {
        if was.gate() == index + 1 && Self::LAYOUT.count(was, index) == 1 {
            event.wake_bits(1, OWNER);
        }
    }

    /// Acquires for reading in the class of that index, a class of threads. False if `deadline` passed first.
    #[inline(always)]
    pub(crate) fn read_at(&self, index: u32, deadline: Option<Deadline>) -> bool {
        let inside = match self.arrive_at(index, deadline) {
            Ok(()) => true,
            Err(was) => self.read_contended(index, was, deadline),
        };
        if inside {
            self.meter.count(Event::Acquired);
        }
        inside
    }

    /// As [`read_at`](Self::read_at), without waiting and without a trace if it fails.
    #[inline]
    pub(crate) fn try_read_at(&self, index: u32) -> bool {
        let mut was = self.look();
        loop {
            if !Self::LAYOUT.admits(was, index) {
                return false;
            }
            let now = was.0 + Self::LAYOUT.one(index);
            match self.state.compare_exchange_weak(was.0, now, Self::ARRIVAL, Relaxed) {
                Ok(_) => break,
                Err(other) => was = State(other),
            }
        }
        self.meter.count(Event::Acquired);
        true
    }

    /// Acquires for reading in a signal handler: up to `looks` attempts, and nothing but loads and read-modify-writes.
    pub(crate) fn read_handler(&self, index: u32, looks: u32) -> bool {
        let inside = (0..looks).any(|look| {
            if look > 0 {
                pause();
            }
            Self::LAYOUT.admits(self.look(), index) && self.arrive_at(index, None).is_ok()
        });
        if inside {
            self.meter.count(Event::Acquired);
        }
        inside
    }

    /// A reader that has found its class shut, and is not counted: looks for a while, and joins the line.
    #[cold]
    #[inline(never)]
    fn read_contended(&self, index: u32, was: State, deadline: Option<Deadline>) -> bool {
        if was.gate() <= index {
            Self::too_many(index);
        }
        self.meter.count(Event::ReaderContended);
        let line = Self::LAYOUT.line(index);
        let look = || match self.look() {
            was if Self::LAYOUT.admits(was, index) && self.arrive_at(index, None).is_ok() => Look::Acquired,
            // Others sleep, and are woken first.
            was if was.has(line) => Look::Saturated,
            _ => Look::Taken,
        };
        let patience = <PolicyOf<D> as Policy>::Spin::FIRST_NS;
        if spin::closely_for::<PolicyOf<D>>(patience, look) || spin::backing_off::<PolicyOf<D>>(look) {
            self.meter.count(Event::Spun);
            return true;
        }
        if deadline.is_some_and(|deadline| deadline.has_passed()) {
            return false;
        }
        self.join_line(line);
        let inside = self.read_in_line(index, line, deadline);
        self.leave_line(line);
        inside.unwrap_or_else(|TooMany| Self::too_many(index))
    }

    /// Sleeps until the class is open; see invariant 6. False if `deadline` passed first.
    fn read_in_line(&self, index: u32, flag: u64, deadline: Option<Deadline>) -> Result<bool, TooMany> {
        let mut timed_out = false;
        loop {
            let mut event = self.event.load(Acquire);
            if self.look().gate() <= index {
                match self.arrive(index) {
                    Ok(()) => return Ok(true),
                    Err(was) => self.depart_in_vain(index, was)?,
                }
            }
            if timed_out {
                return Ok(false);
            }
            let was = State(self.state.fetch_or(flag, Release));
            if was.gate() <= index {
                continue;
            }
            if BUG == seeded::READS_LATE {
                event = self.event.load(Acquire);
            }
            self.meter.count(Event::Slept);
            timed_out = self.event.wait_bits(event, readers(index), deadline) == Waited::TimedOut;
            // An opening is near, or has been; not to sleep at once again spares it a further round of telling.
            let look = || match Self::LAYOUT.admits(self.look(), index) {
                true if self.arrive_at(index, None).is_ok() => Look::Acquired,
                _ => Look::Taken,
            };
            if spin::closely::<PolicyOf<D>>(look) {
                return Ok(true);
            }
        }
    }

    /// (D) of a reader that has found its class shut, or full.
    fn depart_in_vain(&self, index: u32, was: State) -> Result<(), TooMany> {
        self.depart(index);
        if was.gate() <= index { Err(TooMany) } else { Ok(()) }
    }

    #[cold]
    pub(crate) fn too_many(index: u32) -> ! {
        panic!(
            "too many {} readers of one lock: {} at once may be",
            Self::LAYOUT.name(index),
            Self::LAYOUT.full(index) / Self::LAYOUT.one(index)
        );
    }
}

/// A class is open, and full.
struct TooMany;

impl<D: Discipline, const BUG: u8> raw::Metered for RawPsRwLock<D, BUG> {
    type Meter = MeterOf<D>;

    fn meter(&self) -> &MeterOf<D> {
        &self.meter
    }
}

impl<D: Discipline, const BUG: u8> Default for RawPsRwLock<D, BUG> {
    fn default() -> Self {
        Self::new()
    }
}

impl<D: Discipline<Policy: Policy<Meter: fmt::Debug>>, const BUG: u8> fmt::Debug for RawPsRwLock<D, BUG> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawPsRwLock").field("state", &self.state()).field("meter", &self.meter).finish()
    }
}
