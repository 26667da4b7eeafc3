//! The protocol of [`PsRwLock`](crate::PsRwLock), and its readers' part. `PROTOCOL.md` beside this
//! folder tells it step by step. The writers' is in [`writer`](super::writer) and
//! [`release`](super::release), how those take turns in [`line`](super::line), readers that are
//! counted elsewhere in [`readers`](super::readers), writes in steps in
//! [`pending`](super::pending).
//!
//! # Properties
//! - Exclusion of a writer and anybody else; what a holder did happens before whatever excludes it.
//! - *Sifting*: a writer shuts readers out class by class, the lowest first, and the next class
//!   only when the readers of the lower ones have left. So a reader never waits for a writer that
//!   waits for readers of a lower class.
//! - Hence *nesting upward*: a thread that holds a read lock may take one of a higher class,
//!   whatever writers wait.
//! - A reader in line waits for at most one write phase, or for `BATCH`, by type; in the top class
//!   of several for one in any case. An owner waits for at most one read phase of each class.
//! - One writer sifts at a time. The others wait before they have shut out anybody, so they do not
//!   add up for readers.
//! - A writer that spins while another one writes is left the lock with the lowest class shut,
//!   unless readers are in line. So those who have not waited for long, or not at all, wait for it,
//!   too, and go in together; see "Who spins".
//! - The release is the last touch of the lock; a wake-up goes by address (law 2).
//! - All-zero is an unlocked lock. Nothing is allocated and no address is stored.
//!
//! # State
//! Three words: the state ([`State`]), the lines (`Lines`), and the event, a futex on which
//! everybody sleeps and which counts the openings of the gate. `g` is the gate, `c` the index of a
//! class, `N` their number.
//!
//! | label | from | to | by |
//! |---|---|---|---|
//! | (A) | any | one more of `c`; inside if `g <= c` | a reader; who finds `g > c` goes out again by (D) |
//! | (A) | `g <= c` | one more of `c` | an attempt, which leaves no trace in the state if it fails |
//! | (D) | any | one less of `c` | a reader |
//! | (O) | not `OWNED` | `OWNED`; `WRITERS` if it has slept | a writer; an upgradable reader, which opens the gate if it is shut |
//! | (O) | `OWNED`, `GRANTED` among the lines | not `GRANTED`; the gate opens meanwhile | a writer that has slept, after a fair release; (T) in [`pending`](super::pending) |
//! | (C) | `OWNED`, `g = c < N` | `g = c + 1` | the owner, when all below `c` have left and the line of `c` is empty |
//! | (F) | 0; or `OWNED` without readers and lines | `OWNED`, `g = N` | a writer; the owner. All of (O) and (C) at once |
//! | (U) | `OWNED`; no flag of one who waits for this | not `OWNED`, `g = 0` | the owner, by an exchange: its last touch |
//! | (A) | `OWNED`, any `g` | one more of the lowest class | the owner, which is about to downgrade |
//! | (U) | `OWNED` | not `OWNED`, `g = 0` | the same, which is a reader from then on |
//! | (N) | `OWNED`, `g = N`, no counts, nobody in line | `g = NEXT` | a writer that spins, and has found the same word for some time |
//! | (N) | `OWNED`, `g = NEXT` | `g = N` | a writer that has done that, before it sleeps or gives up |
//! | (H) | `OWNED`, `g = NEXT`, no flag of one in line | not `OWNED`, `g = 1` | the owner, in place of (U): its last touch |
//! | (L) | `OWNED`, `g = 0` | `DRAINING` | the owner, about to leave: nobody falls asleep from here on |
//! | (L) | `OWNED`, `g = N` or `NEXT` | `g = NEXT`, `DRAINING` | the same |
//! | (U) | what (L) has made, whatever has come since | not `OWNED`, not `WRITERS`, not `DRAINING`, `g = 0` | the same, by one `fetch_and`: its last touch |
//! | (R) | not `OWNED`, `g = 1` | `g = 0`, one more of the lowest class | a reader of that class: an attempt at once, another after a moment in which nobody was the owner |
//! | (G) | `OWNED`, `WRITERS`, `g = 0` | `g = 1` until it is handed over | the owner, which releases fairly |
//! | (G) | `OWNED` | `g` less, with `OWNED` or without | the owner, when it gives up or admits readers again |
//! | (M) | | `LOW` or `TOP`; `WRITERS`; `DRAINING` | who is about to sleep |
//! | (W) | | one more of the writers that sleep, or one less | a writer, by one addition, before its first sleep, and when it is the owner or gives up |
//!
//! # Invariants
//! 1. At most one thread is the owner: (O) and (F) need a word without `OWNED`, which only the
//!    owner takes out, or take `GRANTED`, which the owner sets to stop being it.
//! 2. Only the owner changes the gate, but for (N), which shuts out nobody and lets nobody in, and
//!    for (R), where there is no owner. It shuts class `c` only when all counts below `c` have been
//!    seen at zero since their classes were shut; by (F) all counts are zero at that moment. What
//!    (H) leaves shut the next owner has shut, as far as this goes.
//! 3. *Exclusion.* Once class `c` is shut and its count has been seen at zero, the count is made of
//!    readers that are about to go out again, and of the owner if it is about to downgrade, until
//!    the gate opens. When this holds for all classes, the owner is alone.
//! 4. *Nobody inside waits for a class above its own*, unless that one is full: it is shut only
//!    when all below have left.
//! 5. A reader that has gone in by (A) while its class was open is seen by the owner: both are
//!    read-modify-writes of one word. One that is about to go out again keeps an owner waiting only
//!    in the stage of its class, or makes an exchange fail that is tried again or was a shortcut.
//! 6. *No reader is forgotten.* A reader sleeps only with its line's flag set and its class shut by
//!    an owner, all seen by one read-modify-write after it has read the event. (H) comes only if
//!    the flag has not been seen. An opening of the gate takes the flag out and then counts an
//!    event, and opens only if the flag has not come back; or it opens, finds the flag, and then
//!    counts; or it is (L), see 10. It wakes all after that. Otherwise the flag is cleared by the
//!    owner only, while the class is open and nobody is in line.
//! 7. *No writer is forgotten.* One sleeps only with `WRITERS` and `OWNED` set, likewise. A release
//!    that finds `WRITERS` takes it out and wakes one. That one, on its way, leaves it behind again
//!    in (O) or (M). If it gives up it sets it, too, for the owner to find; if there is no owner,
//!    it has not given up, but is the owner.
//! 8. *The owner is not forgotten* while it waits for a line: it sets `DRAINING` and then reads the
//!    line by a read-modify-write; the last to leave the line changes it by one, and then reads
//!    `DRAINING`. One of them sees the other.
//!
//! 9. *A lock that is left is not lost.* Who has set `NEXT` looks once more before it sleeps or
//!    gives up, and takes the mark back, or the lock if it has been left. If it does not come,
//!    because it has no CPU or has died, the next reader opens the gate, or the next writer takes
//!    the lock. Those who sleep are told at (H) as at (U).
//! 10. *Nobody falls asleep on an owner that leaves.* A waiter that sets its flag and finds the
//!     owner about to leave, (L), does not sleep without a timer. So every sleeper has set its flag
//!     before (L), and (L) returns that flag. Between (L) and (U) only the owner changes the gate,
//!     `OWNED` and `DRAINING`: a writer takes a mark (N) back only if `DRAINING` is clear, and sets
//!     none.
//! 11. A reader in line, a sleeping writer, and an owner that sifts do not unwind. The line would
//!     never be empty, or the gate stay shut. If the kernel refuses the wait, the process aborts.
//!     The process aborts, too, if a mask panics.
//!
//! # Releases
//! Readers change the state all the time, by (A) and (D). So an owner must not repeat a
//! compare-exchange until no reader comes between: with 64 CPUs that took ten times as long as it
//! takes one after the other to change the word. Nor can it leave by one `fetch_and` at once. If a
//! waiter sets its flag just before, the owner would have to count an event after its last touch.
//! Hence every release and every transition of the owner is a fixed number of read-modify-writes:
//!
//! 1. A release tries `(U)` by a compare-exchange, [`ATTEMPTS`](super::release::ATTEMPTS) times at
//!    most. Nobody sleeps, as a rule.
//! 2. If each attempt has failed, it says by (L) that it leaves. It learns by the same step who may
//!    sleep.
//! 3. It counts an event if a waiter may sleep. That waiter has read an older count, or is asleep.
//! 4. It leaves by (U), a `fetch_and`: its last touch. Then it wakes by address, as after the
//!    compare-exchange.
//!
//! A waiter that sets its flag between steps 2 and 4 sees both marks of (L), and naps until they
//! are gone. Otherwise it would read the new count, sleep after step 4, and nobody would know of
//! it. A reader that comes between needs no care. A release behind a partial gate opens the gate
//! first, and is then an owner without a gate. An owner that opens a gate in part does so by a
//! subtraction; at `g = N`, where a mark (N) may come or go, between (L) and its end.
//!
//! # Who spins
//! Two readers that hold the lock together take half of the time of two that hold it one after the
//! other; so it pays to let those who want to read gather while somebody writes. A writer that
//! spins helps them: at the end of the section it waits for, (H) keeps out a reader that has just
//! come, which would read alone, with the writer behind it. A reader that has spun for its patience
//! joins the line, and (H) does not pass the line. It goes on spinning there, if it is the first,
//! since the section that is on is the last that it waits for, unless the type has batches. A
//! writer spins twice as long as a reader if it has set a mark, and three times if it has set
//! another, which it mostly does when the lock has changed hands: if it slept, each release would
//! make a system call to wake it, only to take the lock again before it has woken up.
//!
//! # The drain
//! (D) is the last touch of a reader, which therefore cannot count an event for an owner that it
//! has let in; it can only wake by address. If that happens between the owner's last look and its
//! sleep, the wake-up is lost. So the owner sleeps with a timer, [fifty
//! microseconds](ulocks_core::futex::Futex::naps) at first, later a millisecond at most: it looks
//! by itself, and a departing reader cuts its nap short. Readers in signal handlers do not even
//! that: they make no system call, and the owner looks every fifty microseconds.
//!
//! # Ordering
//! All transitions of the state are read-modify-writes of one word and continue each other's
//! release sequences. (A) is Acquire and pairs with (U); (D) is Release and pairs with the drain's
//! look and with (F), Acquire. (C) is Relaxed: the word orders it with the counts. (O) is Acquire:
//! an upgradable reader reads what the last writer wrote. `GRANTED` is set (Release) and taken
//! (Acquire) for the same. The event is read (Acquire) before (M). Where it is counted after (U) or
//! (G), Release, who reads the new count sees the gate open; where it is counted before (U), who
//! reads the new count sets a flag that the exchange sees. A line is joined (`lines`, a
//! read-modify-write) before its flag is set (Release), and looked at after the flag was seen
//! (Acquire).
//!
//! # Overflow
//! A class that is half full admits nobody: `read` panics, an attempt fails. The other half is room
//! for those that have come in and are about to learn it. The event has 32 bits: a waiter misses a
//! wake-up if between its look and the kernel's comparison exactly a multiple of 2^32 are counted.
//!
//! # Sources
//! M. Desnoyers, "Priority Sifting Reader-Writer Lock" (LKML, September 2008), for classes, sifting
//! and raise-before-close. That one has three words with all readers in one count, a queue under a
//! spin bit, and its writers' mutex last: each has a price that its own figures show. Here one word
//! has the gate and a count for each class, and the mutex comes first. B. Brandenburg and J.
//! Anderson, "Spin-based reader-writer synchronization for multiprocessor real-time systems"
//! (2010), for phases.

use crate::class::Class;
use crate::readers::Slot;
use crate::sifted::{Discipline, Sifted};
use crate::word::{DRAINED, Layout, State, readers};
use core::{fmt, mem};
use ulocks_core::futex::{Futex, FutexKey, Scope, Waited};
use ulocks_core::meter::{Event, Meter};
use ulocks_core::spin::{self, Look, Spin};
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::sync::{AtomicU32, AtomicU64, interruption_point, pause, without_unwinding};
use ulocks_core::time::Deadline;
use ulocks_core::{Policy, raw};

pub(crate) type PolicyOf<D> = <D as Discipline>::Policy;
type ScopeOf<D> = <PolicyOf<D> as Policy>::Scope;
type MeterOf<D> = <PolicyOf<D> as Policy>::Meter;

/// The raw lock, without data: the state, the event, the lines, and what the discipline adds.
#[repr(C)]
pub struct RawPsRwLock<D: Discipline = Sifted> {
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

impl<D: Discipline> RawPsRwLock<D> {
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

    /// The state at this moment, but for what it says of writers that sleep or spin.
    pub fn state(&self) -> State {
        Self::LAYOUT.without_next(Self::LAYOUT.without_sleepers(self.look()))
    }

    /// How many classes are shut out.
    #[inline(always)]
    pub(crate) fn gate(&self) -> u32 {
        Self::LAYOUT.gate(self.look())
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

    /// (A): whether the reader is inside. Counted it is in any case.
    #[inline(always)]
    fn arrive(&self, index: u32) -> Result<(), State> {
        let was = State(self.state.fetch_add(Self::LAYOUT.one(index), Acquire));
        interruption_point();
        if Self::LAYOUT.admits(was, index) { Ok(()) } else { Err(was) }
    }

    /// (A), and (D) if that was in vain. One that may give up and come again looks first, so as not
    /// to keep the owner waiting each time.
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
        let was = State(self.state.fetch_sub(Self::LAYOUT.one(index), Release));
        // Handlers make no system call: their stage is polled.
        if was.has(State::DRAINING) && !Self::LAYOUT.is_handler(index) {
            Self::depart_last(event, was, index);
        }
    }

    /// Cuts the owner's nap short, if this was the last reader that it waited for.
    #[cold]
    fn depart_last(event: FutexKey<ScopeOf<D>>, was: State, index: u32) {
        let is_last = Self::LAYOUT.gate(was) == index + 1 && Self::LAYOUT.count(was, index) == 1;
        if is_last && !was.is_leaving() {
            event.wake_bits(u32::MAX, DRAINED);
        }
    }

    /// Acquires for reading in the class of that index, a class of threads. False if `deadline`
    /// passed first.
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
            let gate = if Self::is_left(was, index) { 0 } else { was.gate() };
            if !Self::LAYOUT.admits(was.with_gate(gate), index) {
                return false;
            }
            let now = was.with_gate(gate).0 + Self::LAYOUT.one(index);
            match self.state.compare_exchange_weak(was.0, now, Acquire, Relaxed) {
                Ok(_) => break,
                Err(other) => was = State(other),
            }
        }
        self.meter.count(Event::Acquired);
        true
    }

    /// Acquires for reading in a signal handler: up to `looks` attempts, and nothing but loads and
    /// read-modify-writes.
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

    /// A reader that has found its class shut, and is not counted: looks for a while, and joins the
    /// line.
    #[cold]
    #[inline(never)]
    fn read_contended(&self, index: u32, was: State, deadline: Option<Deadline>) -> bool {
        if was.gate() <= index {
            Self::too_many(index);
        }
        self.meter.count(Event::ReaderContended);
        let line = Self::LAYOUT.line(index);
        let goes_in = |was| Self::LAYOUT.admits(was, index) && self.arrive_at(index, None).is_ok();
        let look = || match self.look() {
            was if goes_in(was) => Look::Acquired,
            was if Self::is_left(was, index) => {
                // That writer is about to take it, or another reader opens it.
                spin::give_way();
                if self.open_to_oneself(index) || goes_in(self.look()) { Look::Acquired } else { Look::Taken }
            }
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
        // Invariant 11.
        let inside = without_unwinding(|| {
            let inside = self.read_in_line(index, line, deadline);
            self.leave_line(line);
            inside
        });
        inside.unwrap_or_else(|TooMany| Self::too_many(index))
    }

    /// Whether the class of that index is shut, without an owner, for a writer that is about to
    /// take the lock.
    #[inline(always)]
    fn is_left(was: State, index: u32) -> bool {
        !was.is_owned() && was.gate() > index
    }

    /// (R), if there is no owner. Nobody is inside by that class, so it is not full.
    fn open_to_oneself(&self, index: u32) -> bool {
        let mut was = self.look();
        while Self::is_left(was, index) {
            let now = was.with_gate(0).0 + Self::LAYOUT.one(index);
            match self.state.compare_exchange(was.0, now, Acquire, Relaxed) {
                Ok(_) => return true,
                Err(other) => was = State(other),
            }
        }
        false
    }

    /// Sleeps until the class is open; see invariant 6. False if `deadline` passed first.
    fn read_in_line(&self, index: u32, flag: u64, deadline: Option<Deadline>) -> Result<bool, TooMany> {
        let look = || match Self::LAYOUT.admits(self.look(), index) {
            true if self.arrive_at(index, None).is_ok() => Look::Acquired,
            _ => Look::Taken,
        };
        let patience = <PolicyOf<D> as Policy>::Spin::FIRST_NS;
        let (mut timed_out, mut has_spun) = (false, false);
        loop {
            let event = self.event.load(Acquire);
            if self.look().gate() <= index {
                match self.arrive(index) {
                    Ok(()) => return Ok(true),
                    Err(was) => self.depart_in_vain(index, was)?,
                }
            }
            if self.open_to_oneself(index) {
                return Ok(true);
            }
            if timed_out {
                return Ok(false);
            }
            let was = State(self.state.fetch_or(flag, Release));
            if was.gate() <= index || !was.is_owned() {
                continue;
            }
            // From here on no other writer comes before it, batches apart. If nobody else is in
            // line, the end of this section is near.
            if patience > 0 && !mem::replace(&mut has_spun, true) && !was.has(flag) {
                if spin::closely_for::<PolicyOf<D>>(patience, look) {
                    return Ok(true);
                }
                continue;
            }
            if was.is_leaving() {
                // Invariant 10.
                timed_out = !self.nap_until_left(readers(index), index + 1, deadline);
                continue;
            }
            self.meter.count(Event::Slept);
            timed_out = self.event.wait_bits(event, readers(index), deadline) == Waited::TimedOut;
            // An opening is near, or has been; not to sleep at once again spares it a further round
            // of telling.
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

impl<D: Discipline> raw::Metered for RawPsRwLock<D> {
    type Meter = MeterOf<D>;

    fn meter(&self) -> &MeterOf<D> {
        &self.meter
    }
}

impl<D: Discipline> Default for RawPsRwLock<D> {
    fn default() -> Self {
        Self::new()
    }
}

impl<D: Discipline<Policy: Policy<Meter: fmt::Debug>>> fmt::Debug for RawPsRwLock<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawPsRwLock").field("state", &self.state()).field("meter", &self.meter).finish()
    }
}
