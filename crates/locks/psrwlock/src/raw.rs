//! The protocol of [`PsRwLock`](crate::PsRwLock), and its readers' part. `PROTOCOL.md` beside this
//! folder has a picture and traces.
//!
//! | file | what of the protocol |
//! |---|---|
//! | `raw.rs` | properties, states, invariants, orderings; how readers acquire and release |
//! | [`writer`](super::writer) | how a writer becomes the owner |
//! | [`sift`](super::sift) | how the owner closes the classes and waits for readers |
//! | [`release`](super::release) | how the owner leaves, or opens classes again |
//! | [`queue`](super::queue) | how queued readers and writers take turns |
//! | [`readers`](super::readers) | readers that are counted in slots |
//! | [`exits`](super::exits) | where an owner sleeps until readers have left |
//! | [`task`](super::task) | waiters that are tasks |
//! | [`first`](super::first) | readers that join others, whatever writers wait: (ask), (close asked) |
//!
//! # Properties
//! - Exclusion between a writer and every other holder. What a holder did happens before the
//!   acquisition of every holder that it excludes.
//! - *Sifting*: a writer closes the classes one after the other, the lowest first. It closes the
//!   next class only when the readers of the lower ones have left. So a reader never waits for a
//!   writer that waits for readers of a lower class.
//! - Hence *nesting upward*: a thread that holds a read lock may take one of a higher class,
//!   whatever writers wait.
//! - A queued reader waits for at most one write phase. An owner waits for at most one read phase
//!   of each class, but for [`first`](super::first).
//! - One writer sifts at a time. The others wait before they have closed a class. So the delays of
//!   several writers do not add up for readers.
//! - The release is the last touch (law 2 of ARCHITECTURE.md); a wake-up goes by address.
//! - All-zero is an unlocked lock. Nothing is allocated and no address is stored.
//!
//! # State
//! Three words: the state ([`State`]); the queues of readers and what belongs to them (`Queues`);
//! and the *event*, a futex on which all waiters sleep. The event counts whatever a sleeper must
//! learn: classes that open, a write side that is free or granted, a queue that is empty.
//!
//! The *owner* is the thread that has the write side. It writes, or sifts, or is an upgradable
//! reader. `L` is the closed level, `c` the index of a class, `N` the number of classes.
//!
//! | step | from | to | by |
//! |---|---|---|---|
//! | (arrive) | any | one more of `c`; inside if `L <= c` | a reader; if `L > c`, it leaves again by (depart) |
//! | (attempt) | `L <= c` | one more of `c` | an attempt, which leaves no trace if it fails |
//! | (depart) | any | one less of `c` | a reader |
//! | (own) | not `OWNED` | `OWNED`; `WRITERS` if it has slept | a writer; an upgradable reader |
//! | (take grant) | `GRANTED` | not `GRANTED`: the thread is the owner | a writer that has slept, after a fair release |
//! | (close) | `OWNED`, `L = c < N` | `L = c + 1` | the owner, when all below `c` have left and the queue of `c` is empty |
//! | (close all) | 0; or `OWNED`, no readers, empty queues | `OWNED`, `L = N` | a writer; the owner. All of (own) and (close) at once |
//! | (unlock) | `OWNED`, no flag of a waiter to be told | not `OWNED`, `L = 0` | the owner, by a CAS: its last touch |
//! | (count itself) | `OWNED`, any `L` | one more of the lowest class | the owner, which is about to downgrade |
//! | (step down) | `OWNED`, after (count itself) | not `OWNED`, `L = 0` | the same thread, which is a reader from then on |
//! | (announce) | `OWNED`, `L = 0` or `N` | `DRAINING`; `L = LEAVING` unless it is 0 | the owner, about to leave: no waiter falls asleep from here on |
//! | (leave) | after (announce), whatever has come since | not `OWNED`, `WRITERS`, `DRAINING`; `L = 0`; a fair release keeps the first two | the same thread, by one `fetch_and`: its last touch |
//! | (reopen) | `OWNED` | `L` less, with `OWNED` or without | the owner, when it gives up or admits readers again |
//! | (flag) | | `LOW` or `TOP`; `WRITERS`; `DRAINING` | a thread that is about to sleep |
//! | (count sleeper) | | one more sleeping writer, or one less | a writer, by one addition: before its first sleep, and when it is the owner or gives up |
//!
//! A *release* is (unlock), (step down), (leave), or a (reopen) after which the thread
//! is not the owner.
//!
//! # Invariants
//! 1. At most one thread is the owner. (own) and (close all) need a word without `OWNED`, which
//!    only the owner clears. (take grant) needs `GRANTED`, which the owner sets to stop being it.
//! 2. Only the owner changes the level, but for (close asked), for which it has asked; without an
//!    owner the level is 0. The owner closes class `c` only when all counts below `c` have been
//!    seen at zero since their classes were closed. At (close all) and (close asked) all counts are
//!    zero.
//! 3. *Exclusion.* Once class `c` is closed and its count has been seen at zero, the count has only
//!    readers that are about to leave again, and the owner if it is about to downgrade, until the
//!    class opens. When this holds for all classes, the owner is alone.
//! 4. *No holder waits for a class above its own*, unless that one is full. A class is closed only
//!    when all readers below have left.
//! 5. The owner sees a reader that entered by (arrive) while its class was open: both are
//!    read-modify-writes of one word. A reader that is about to leave again delays an owner only in
//!    the stage of its class. Or it makes a CAS fail that is tried again or was a shortcut.
//! 6. *No reader is forgotten.* A reader sleeps only if one read-modify-write, after it has read
//!    the event, sets its queue's flag and sees its class closed by an owner. An owner opens the
//!    class in one of three ways. It clears the flag, then counts an event, and opens only if the
//!    flag has not come back. Or it opens, finds the flag, and then counts. Or it is (announce):
//!    see 9. After the count it wakes all readers of the queue. Otherwise only the owner clears
//!    the flag, while the class is open and the queue is empty. A reader that joins meanwhile sees
//!    at (flag) that the class is open.
//! 7. *No writer is forgotten.* A writer sleeps only if one read-modify-write, after it has read
//!    the event, sets `WRITERS` and sees `OWNED`. A release that finds `WRITERS` clears it, counts
//!    an event and wakes one writer. That writer sets it again in (own) or (flag). If the wake-up
//!    meets no sleeper, each writer that set the bit has read an old event: it does not fall
//!    asleep, and sets the bit again. A writer that gives up sets it, too, for the owner to find.
//!    If there is no owner, it has not given up: it is the owner.
//! 8. *The owner is not forgotten* while it waits for a queue. It sets `DRAINING` and then reads
//!    the queue by a read-modify-write. The last reader to leave the queue changes it by one, and
//!    then reads `DRAINING`. One of the two sees the other.
//! 9. *No waiter falls asleep on an owner that leaves.* A waiter that sets its flag and sees
//!    (announce) sleeps at the [exit](super::exits), and (leave) finds its flag and tells the exit
//!    after that. So does each other step that clears `DRAINING`, or the flag of a thread that may
//!    sleep there, at level 0 or `LEAVING`. Each time it wakes there the waiter sets its flag
//!    again, since the next owner may be leaving by then. Between processes it sleeps with a timer.
//!    So every other sleeper has set its flag before (announce), and (announce) returns that flag,
//!    or an attempt has cleared it and counted. Between (announce) and (leave) only the owner
//!    changes the level, `OWNED` and `DRAINING`.
//! 10. A queued reader, a sleeping writer, and an owner that sifts do not unwind. The queue would
//!     never be empty, or the class stay closed. If the kernel refuses the wait, or a mask panics,
//!     the process aborts.
//!
//! # Releases
//! Readers change the state all the time, by (arrive) and (depart). So an owner must not repeat a
//! CAS until no reader comes between: with 64 CPUs that took ten times as long as one change of the
//! word on each. Nor can it leave by one `fetch_and` at once: for a waiter that has just set its
//! flag it would have to count an event after its last touch. Hence every release and every
//! transition of the owner is a bounded number of read-modify-writes:
//!
//! 1. A release makes [`RELEASES`](super::release::RELEASES) attempts at most. If flags are set, an
//!    attempt clears them and counts an event. Otherwise it tries (unlock) by a CAS. Mostly no
//!    thread sleeps, and the first CAS succeeds.
//! 2. If no attempt has left, the owner says by (announce) that it leaves. The same step tells it
//!    which waiters may sleep.
//! 3. It counts an event if a waiter may sleep. That waiter has read an older count, or is asleep.
//! 4. It leaves by (leave), a `fetch_and`: its last touch. Then it wakes by address, as after
//!    (unlock).
//!
//! A waiter that sets its flag between steps 2 and 4 sees (announce), and sleeps at the exit until
//! (leave). Otherwise it would read the new count, sleep after step 4, and no thread would know of
//! it. A release with a partial level opens the classes first, and is then an owner at level 0. An
//! owner that opens some classes subtracts.
//!
//! # Which threads spin
//! Two readers that hold the lock together take half of the time of two in turn. So it pays to let
//! readers gather while a writer writes. A reader that has spun for its patience joins the
//! queue. The first queued reader goes on spinning, since the present section is the last that it
//! waits for. A writer spins for as long as a reader.
//!
//! What failed: a spinning writer that marks the word, and to which a release hands the lock with
//! the lowest class closed. It gained 5 % at most, and lost 3 % in a cell
//! (`benches/results/NOTES-2026-11-27.md`).
//!
//! # The drain
//! (depart) is the last touch of a reader. So a reader cannot count an event of the lock for an
//! owner that it has let in. It counts one in a table of the process, and wakes the owner there:
//! [`exits`](super::exits) has the argument that no wake-up is lost. Between processes there is no
//! such table: a reader can only wake by address, and if that happens between the owner's last look
//! and its sleep, the wake-up is lost. So there the owner [polls with a
//! timer](ulocks_core::futex::Futex::poll_until), of fifty microseconds at first, later a
//! millisecond at most. Readers in signal handlers make no system call, so in their stage the owner
//! polls every fifty microseconds.
//!
//! # Ordering
//! All transitions of the state are read-modify-writes of one word and continue each other's
//! release sequences.
//! - (arrive), (attempt) are Acquire and pair with the releases. (depart) is Release and pairs with
//!   the looks of a drain, with an attempt's look at a class that it has closed, and with (close
//!   all), Acquire. (close), (ask) are Relaxed: the word orders them with the counts.
//! - (own) is Acquire and pairs with the releases: an upgradable reader reads what the last writer
//!   wrote. `GRANTED` is set with Release, and (take grant) is Acquire, for the same.
//! - A reader reads the event before (flag), Release. A thread that counts an event for readers has
//!   changed the state before, by an Acquire. A writer reads the event with Acquire, since the
//!   count is Release, and since it then looks at `GRANTED`; its (flag) is Relaxed. So a waiter
//!   that has read the new count makes (flag) after that change
//!   (`xtask/litmus/psrwlock-event.litmus`). Where the event is counted after (step down) or
//!   (reopen), the waiter then finds the class open. Where it is counted before (unlock), the CAS
//!   finds the flag.
//! - A reader joins a queue before it sets the flag, Release. An owner looks at `queues` after it
//!   has seen the flag, Acquire. Invariant 8: the owner's read of `queues` is Release and the last
//!   reader's subtraction Acquire, so that reader sees `DRAINING`.
//!
//! # Overflow
//! A class that is half full admits no reader: `read` panics, an attempt fails. The other half is
//! room for readers that have arrived and are about to learn that. The event has 32 bits: a waiter
//! misses a wake-up if between its look and the kernel's comparison exactly a multiple of 2^32 are
//! counted.
//!
//! # Sources
//! M. Desnoyers, "Priority Sifting Reader-Writer Lock" (LKML, September 2008), for classes, sifting
//! and raise-before-close. That lock has all readers in one count, a queue under a spin bit, and
//! takes its writers' mutex last. Here one word has the level and a count for each class, and the
//! mutex comes first. B. Brandenburg and J. Anderson, "Spin-based reader-writer synchronization for
//! multiprocessor real-time systems" (2010), for phases.

use crate::class::Class;
use crate::configuration::{Configuration, Sifted};
use crate::exits::Exit;
use crate::readers::{Readers, Slot};
use crate::rows::PERIOD;
use crate::word::{Layout, OWNER, State, readers};
use core::{mem, ptr};
use ulocks_core::Policy;
use ulocks_core::futex::{Futex, FutexKey, Scope, Waited};
use ulocks_core::meter::{Event, Meter};
use ulocks_core::spin::{self, Look, Spin};
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::sync::{self, AtomicU32, AtomicU64, interruption_point, pause, without_unwinding};
use ulocks_core::time::Deadline;

/// How often a step is tried by a CAS that another thread may make fail, before a longer way is
/// taken that cannot fail. Nothing rests on the number: any bound keeps the steps of a call
/// bounded. With eight as many threads have to change the word, each between a look and its
/// exchange.
pub(crate) const ATTEMPTS: u32 = 8;

pub(crate) type PolicyOf<D> = <D as Configuration>::Policy;
type ScopeOf<D> = <PolicyOf<D> as Policy>::Scope;
type MeterOf<D> = <PolicyOf<D> as Policy>::Meter;

/// The raw lock, without data: the state, the event, the queues, and what the configuration adds.
#[repr(C)]
pub struct RawPsRwLock<D: Configuration = Sifted> {
    pub(crate) state: AtomicU64,
    pub(crate) event: Futex<ScopeOf<D>>,
    pub(crate) queues: AtomicU32,
    pub(crate) meter: MeterOf<D>,
}

/// What a reader passes to its release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadToken {
    /// That of the class, and [`RawPsRwLock::NOT_IN_TABLE`].
    pub(crate) index: u8,
    /// The slot where it is counted, if not in the state.
    pub(crate) slot: Option<Slot>,
}

impl<D: Configuration> RawPsRwLock<D> {
    pub(crate) const LAYOUT: Layout = {
        let layout = Layout::of(D::CLASSES);
        assert!(!Self::READERS_FIRST || layout.classes() == 1, "ReadersFirst is for one class of readers");
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
                queues: AtomicU32::new(0),
                meter: MeterOf::<D>::INIT,
            }
        }
    }

    /// The counters.
    pub fn meter(&self) -> &MeterOf<D> {
        &self.meter
    }

    /// The state at this moment, without what it says of sleeping writers, or of an owner that
    /// leaves.
    #[doc(hidden)]
    pub fn state(&self) -> State {
        // Acquire: a reader that has left may have got the lock the row that others are in.
        let was = Self::LAYOUT.without_sleepers(State(self.state.load(Acquire)));
        was.with_level(Self::LAYOUT.level(was))
    }

    /// How many classes are closed.
    #[inline(always)]
    pub(crate) fn level(&self) -> u32 {
        Self::LAYOUT.level(self.look())
    }

    #[inline(always)]
    pub(crate) fn look(&self) -> State {
        State(self.state.load(Relaxed))
    }

    /// The index of a class. The lock must have it.
    pub(crate) const fn index<C: Class>() -> u32 {
        assert!(Self::LAYOUT.contains(C::RANK), "the lock has no such class of readers: see its `Sifted`");
        Self::LAYOUT.index(C::RANK)
    }

    /// (arrive). The reader is counted in any case; `Ok` if it is inside.
    #[inline(always)]
    fn arrive(&self, index: u32) -> Result<(), State> {
        // The read is counted before the addition, beside the look for rows. What is loaded after a
        // read-modify-write, and before the next one, takes its time beside that of both.
        let asks = Self::HAS_ROWS && index == 0 && (D::Readers::EAGER || sync::is_nth_read(PERIOD));
        let was = State(self.state.fetch_add(Self::LAYOUT.one(index), Acquire));
        interruption_point();
        if !Self::admits(was, index) {
            return Err(was);
        }
        if asks {
            self.ask_for_row(was);
        }
        Ok(())
    }

    /// (arrive), and (depart) if the class is closed. A reader with a deadline may come again and
    /// again, so it looks first: each (arrive) may delay an owner.
    #[inline(always)]
    pub(crate) fn arrive_at(&self, index: u32, deadline: Option<Deadline>) -> Result<(), State> {
        if deadline.is_some() {
            let was = self.look();
            if !Self::admits(was, index) {
                return Err(was);
            }
        }
        self.arrive(index).inspect_err(|_| self.depart(index))
    }

    /// (depart): the last touch of the lock.
    #[inline(always)]
    pub(crate) fn depart(&self, index: u32) {
        interruption_point();
        if Self::READERS_FIRST && self.depart_first(index) {
            return;
        }
        let (event, address) = (self.event.key(), ptr::from_ref(self).addr());
        let was = State(self.state.fetch_sub(Self::LAYOUT.one(index), Release));
        // Handlers make no system call: the owner polls in their stage.
        if was.has(State::DRAINING) && !Self::LAYOUT.is_handler(index) {
            Self::depart_last(event, address, was, index);
        }
    }

    /// Wakes the owner, if this was the last reader that it waited for.
    #[cold]
    pub(crate) fn depart_last(event: FutexKey<ScopeOf<D>>, address: usize, was: State, index: u32) {
        let is_last = Self::LAYOUT.level(was) == index + 1 && Self::LAYOUT.count(was, index) == 1;
        if !is_last || was.is_leaving() {
            return;
        }
        if Self::HAS_EXIT {
            Exit::of(address).tell_last();
        } else {
            event.wake_bits(u32::MAX, OWNER);
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
        self.meter.ended(inside);
        inside
    }

    /// As [`read_at`](Self::read_at), for as long as it takes.
    #[inline(always)]
    pub(crate) fn read_for_ever(&self, index: u32) {
        if let Err(was) = self.arrive_at(index, None) {
            self.wait_to_read(index, was);
        }
        self.meter.ended(true);
    }

    /// Apart from its caller: there the compiler stores the deadline before the read-modify-write,
    /// which waits for the store. (Two CPUs of a Xeon, `cargo bench -- promises`: a write took 1.38
    /// of std's time, and takes 1.03.)
    #[cold]
    #[inline(never)]
    fn wait_to_read(&self, index: u32, was: State) {
        self.read_contended(index, was, None);
    }

    /// (attempt): as [`read_at`](Self::read_at), without waiting and without a trace if it fails.
    #[inline]
    pub(crate) fn try_read_at(&self, index: u32) -> bool {
        // A guess. A look waits for the read-modify-write before it, and the next one for the look.
        // (`examples/pairs.c` of ulocks-pthread, a Xeon: 15.3 ns a pair with such a look here and
        // in the release, 11.9 without.)
        let mut was = State::UNLOCKED;
        loop {
            if !Self::admits(was, index) {
                return false;
            }
            let now = was.0 + Self::LAYOUT.one(index);
            match self.state.compare_exchange_weak(was.0, now, Acquire, Relaxed) {
                Ok(_) => break,
                Err(other) => was = State(other),
            }
        }
        self.meter.count(Event::Acquired);
        true
    }

    /// Acquires for reading in a signal handler: up to `looks` attempts, with loads and
    /// read-modify-writes only.
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

    /// For a reader that has found its class closed, and is not counted: polls for a while, and
    /// then joins the queue.
    #[cold]
    #[inline(never)]
    fn read_contended(&self, index: u32, was: State, deadline: Option<Deadline>) -> bool {
        if was.level() <= index {
            Self::too_many(index);
        }
        self.meter.count(Event::ReaderContended);
        let queue = Self::LAYOUT.queue(index);
        let look = || self.look_to_read(index, queue);
        let patience = <PolicyOf<D> as Policy>::Spin::FIRST_NS;
        if spin::closely_for::<PolicyOf<D>>(patience, look) || spin::backing_off::<PolicyOf<D>>(look) {
            self.meter.count(Event::Spun);
            return true;
        }
        if deadline.is_some_and(|deadline| deadline.has_passed()) {
            return false;
        }
        self.join_queue(queue);
        // Invariant 10.
        let inside = without_unwinding(|| {
            let inside = self.read_queued(index, queue, deadline);
            self.leave_queue(queue);
            inside
        });
        inside.unwrap_or_else(|TooMany| Self::too_many(index))
    }

    /// (arrive) by a reader that spins, and is not queued.
    pub(crate) fn look_to_read(&self, index: u32, queue: u64) -> Look {
        match self.look() {
            was if Self::admits(was, index) && self.arrive_at(index, None).is_ok() => Look::Acquired,
            // Other readers sleep, and are woken first.
            was if was.has(queue) => Look::Saturated,
            _ => Look::Taken,
        }
    }

    /// Sleeps until the class is open: invariant 6. False if `deadline` passed first.
    fn read_queued(&self, index: u32, flag: u64, deadline: Option<Deadline>) -> Result<bool, TooMany> {
        let look = || match Self::admits(self.look(), index) {
            true if self.arrive_at(index, None).is_ok() => Look::Acquired,
            _ => Look::Taken,
        };
        let patience = <PolicyOf<D> as Policy>::Spin::FIRST_NS;
        let (mut timed_out, mut has_spun) = (false, false);
        loop {
            let Wait { event, exit, was } = match self.read_step(index, flag, timed_out)? {
                Next::Done => return Ok(true),
                Next::GaveUp => return Ok(false),
                Next::Wait(wait) => wait,
            };
            // From here on no other writer comes first. If no other reader is queued, the end of
            // this section is near.
            if patience > 0 && !mem::replace(&mut has_spun, true) && !was.has(flag) {
                if spin::closely_for::<PolicyOf<D>>(patience, look) {
                    return Ok(true);
                }
                continue;
            }
            if was.is_leaving() {
                timed_out = !self.wait_until_left(exit, readers(index), index + 1, deadline);
                continue;
            }
            self.meter.count(Event::Slept);
            timed_out = self.event.wait_bits(event, readers(index), deadline) == Waited::TimedOut;
            // The class is about to open, or was open. A poll before the next sleep may spare the
            // owner another wake-up.
            if spin::closely::<PolicyOf<D>>(look) {
                return Ok(true);
            }
        }
    }

    /// What a queued reader does before it sleeps: once more if it is the last look, too.
    #[inline(always)]
    pub(crate) fn read_step(&self, index: u32, flag: u64, is_last: bool) -> Result<Next, TooMany> {
        loop {
            let (event, exit) = (self.event.load(Relaxed), self.seen());
            let was = self.look();
            if was.level() <= index || Self::admits(was, index) {
                match self.arrive(index) {
                    Ok(()) => return Ok(Next::Done),
                    Err(was) => self.depart_again(index, was)?,
                }
            }
            if is_last {
                return Ok(Next::GaveUp);
            }
            let was = State(self.state.fetch_or(flag, Release));
            if was.level() <= index {
                continue;
            }
            if Self::READERS_FIRST && was.is_asked() {
                // A reader that slept here could be behind readers that come later.
                self.close_asked();
                continue;
            }
            return Ok(Next::Wait(Wait { event, exit, was }));
        }
    }

    /// (depart) by a reader that has found its class closed, or full.
    fn depart_again(&self, index: u32, was: State) -> Result<(), TooMany> {
        self.depart(index);
        if was.level() <= index { Err(TooMany) } else { Ok(()) }
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

/// The class is open, and full.
pub(crate) struct TooMany;

/// What a waiter does next.
pub(crate) enum Next {
    /// It is inside, or the owner.
    Done,
    /// It gives up.
    GaveUp,
    Wait(Wait),
}

/// What a waiter has found that is about to sleep: on the event, or at the exit if the owner was
/// about to leave (invariant 9).
pub(crate) struct Wait {
    pub event: u32,
    pub exit: u32,
    pub was: State,
}
