//! The protocol of [`ThroughputMutex`](crate::ThroughputMutex): Long's throughput-optimised futex,
//! in user space.
//!
//! # Properties
//! - Exclusion; what a holder did happens before the next acquisition returns.
//! - Whoever finds the mutex free takes it, past others that wait, unless it is reserved.
//! - *Bounded waiting.* A waiter is woken when it is its turn by the kernel's queue, and from then
//!   on keeps its place in a line; the head of the line reserves the mutex when it has been there
//!   for the bound, and then nobody overtakes it.
//! - One read-modify-write to acquire and one to release when nobody waits; no system call unless
//!   somebody sleeps. The release never loops.
//! - The release is the last touch: what must be woken is read off the value it replaced, and named
//!   by address (law 2).
//! - All-zero is an unlocked mutex. Nothing is allocated or registered, no address is stored (laws
//!   1, 7, 9).
//!
//! # Who waits where
//! ```text
//! arrivals          outsiders                     the line                        the holder
//! spin, steal  -->  asleep on the first word, -->  those woken once that found -->
//!                   in the kernel's order          it taken, by tickets; only
//!                                                  the head spins, is woken,
//!                                                  and reserves
//! ```
//! A futex alone puts who was woken in vain at the end of its queue, and with that no bound holds.
//! Here a waiter that was woken in vain gets a ticket, and further wake-ups go to the head of the
//! line; the outsiders keep their places in the kernel's queue meanwhile. While the head is awake
//! an outsider that falls asleep has another one woken; if that loses, too, it gets in line behind
//! the head only once the bound has passed since it first lost: until then it goes back to sleep
//! outside, where a release can wake it soon. A line of all that lost would idle the CPUs of a
//! mutex that is merely busy.
//!
//! # State
//! The bits are those of [`ThroughputState`](crate::ThroughputState); *open* means neither `LOCKED`
//! nor `RESERVED`. Each transition is one read-modify-write:
//!
//! | from | to | by | label |
//! |---|---|---|---|
//! | 0 | `LOCKED` | an arrival | (L1) |
//! | open | `LOCKED` and nothing else but a hint | an arrival that finds more than 0, or spins | (L2) |
//! | open | `LOCKED`, `MARKED` and a hint | an outsider that has slept | (L3) |
//! | not `LOCKED` | `LOCKED`, a hint, and `MARKED` unless another is in line | the head | (L4) |
//! | not open | with `MARKED` | an outsider about to sleep, or to give up; a notification that moves an outsider here | (S1) |
//! | `LOCKED` | with `ASLEEP` | the head, about to sleep | (S2) |
//! | `LOCKED` | with `RESERVED` | the head, its time being up | (R) |
//! | `LOCKED` | with `MARKED`, without `ASLEEP` and `RESERVED` | the head, giving up | (T) |
//! | `LOCKED` | without `LOCKED`, all else as it was | the holder, who then wakes whom the old value says | (U) |
//! | any | without `ASLEEP` and `RESERVED`, with `MARKED` if `LOCKED` | between processes: a waiter, see *Deaths* | (D) |
//! | line | one more | an outsider that was woken in vain; between processes also one that was not woken for long | (Q1) |
//! | line | one less, at the head | the head, after (L4) or (T), who then wakes the next; or (D) | (Q2) |
//!
//! Whom (U) wakes: if `ASLEEP`, the head of the line; otherwise, if `MARKED`, an outsider.
//!
//! # Invariants
//! 1. At most one thread holds the mutex: only transitions out of a word without `LOCKED` acquire.
//! 2. Nobody sleeps unless the word had the value the sleeper left or read, at that moment.
//! 3. *In an open word the marks are receipts*: (U) has sent the wake-up or is about to. So an
//!    acquisition clears them, and threads that come and go while the woken one is on its way find
//!    a clean word (Molnar's rule).
//! 4. *No head is forgotten.* While the head sleeps, the word is `LOCKED` and `ASLEEP`, or a
//!    wake-up is on its way that only the head can take. `ASLEEP` is set by the head alone, so the
//!    value it sleeps on does not come back.
//! 5. *No outsider is forgotten.* Who has slept owes a mark: it leaves `MARKED` when it acquires or
//!    gives up, and when it sleeps outside again. While an outsider sleeps, `MARKED` is set on a
//!    mutex that is not open, or a wake-up for an outsider is on its way, or there is a debtor: an
//!    outsider that was woken, or somebody in line. A debtor is awake, or itself not forgotten; so
//!    in the end it pays.
//! 6. Who is in line and not the head sleeps on the second word and is woken by (Q2). It has no
//!    deadline, so it is in line until it is the head; so a head with somebody behind it need not
//!    pay (L4).
//! 7. `RESERVED` implies a head that set it. It is set and given up on a locked mutex only, so a
//!    free reserved mutex has a head that is awake, or asleep with the wake-up of (U) on its way,
//!    and which acquires.
//! 8. A waiter that may have to sleep does not unwind: its ticket would stay in the line, or its
//!    debt unpaid. If the kernel refuses the wait, the process aborts.
//!
//! # The bound
//! Let `h` be the longest hold and `w` the time in which a woken thread comes to run. The head
//! acquires with the first release after it reserved, within `bound + h + w`; from (R) to (L4)
//! nobody else acquires. An outsider is woken after those asleep before it. It may lose its place
//! to them until it is overdue, `bound` after it first lost; then it keeps it. So with `k` other
//! waiters it waits `bound + (k + 1) * (bound + 2h + 2w)` at most, and the first term only if
//! several were woken at once. Reservations are `bound` apart, which keeps their price, an idle `w`
//! each, at `w / bound` of the throughput. Exempt are waiters with a deadline that find somebody in
//! line, because from behind the head one could not leave: they sleep outside again; and those
//! whose sleep a signal ends, for which the kernel forgets their places.
//!
//! With [`HandOff`](crate::HandOff) the bound is zero: every waiter that was woken in vain
//! reserves.
//!
//! # The waiting rule
//! Spinning is as in [`Mutex`](crate::Mutex), but that an arrival has all of its patience also if
//! the release has to wake somebody: one that goes to sleep sooner ends up in the line, and
//! reserves. The head that has just reserved looks closely for 40 us, about as long as a sleep and
//! a wake-up take, because while it sleeps the mutex idles.
//!
//! All of them stop at once when the hint names their own CPU: then the holder is not running. Only
//! an acquisition that had to wait leaves a hint, in the same compare-exchange. To leave one at
//! each would cost 2 ns of 12 in a word of its own, since the release waits for the store, and 4 ns
//! in this one.
//!
//! # Deaths
//! In memory shared between processes a waiter may be killed at any step, and take with it what
//! invariants 4 to 7 rest on. So no waiter there sleeps for longer than a *watch*, at whose end it
//! looks whether the head is dead, and then takes it out of the line (D). An outsider without a
//! deadline that slept for a whole watch gets in line. Should a head that was taken for dead live
//! after all, a place is lost, exclusion is not. The rules are in `deaths.rs`.
//!
//! # Ordering
//! Each (L) is Acquire and pairs with (U), which is Release; all transitions of the first word are
//! read-modify-writes, so the others continue the release sequence and are Relaxed. The second word
//! carries no data. A futex call carries no ordering, and what it returns decides only who gets in
//! line.
//!
//! # Sources
//! W. Long, "futex: Throughput-optimized (TO) futexes" (LKML, 2016): steal, one top waiter that
//! spins on the owner, hand-off to it. Linux `kernel/locking/mutex.c`: the first waiter asks for
//! the hand-off. I. Molnar, "Generic Mutex Subsystem" (2005). Here: a reservation of the free mutex
//! in place of the hand-off, so that no ownership is in flight; a bound in time; the line.

use super::bound::{After, Bound};
use super::deaths::Watch;
use super::word::{HEAD, Line, OUTSIDE, ThroughputState as State, Ticket};
use core::fmt;
use core::marker::PhantomData;
use core::time::Duration;
use ulocks_core::futex::{Futex, FutexKey, Waited};
use ulocks_core::meter::{Event, Meter};
use ulocks_core::spin::{self, Look};
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::sync::without_unwinding;
use ulocks_core::time::Deadline;
use ulocks_core::{Policy, Private, cpu, raw};

const LOCKED: u32 = State::LOCKED;
pub(super) const MARKED: u32 = State::MARKED;
pub(super) const ASLEEP: u32 = State::ASLEEP;
pub(super) const RESERVED: u32 = State::RESERVED;

/// The raw mutex, without data: two words, and the counters if the policy has any.
#[repr(C)]
pub struct RawThroughputMutex<P: Policy = Private, B: Bound = After> {
    pub(super) futex: Futex<P::Scope>,
    pub(super) line: Futex<P::Scope>,
    pub(super) meter: P::Meter,
    bound: PhantomData<fn() -> B>,
}

/// What a waiter with a ticket comes to.
pub(super) enum Turn {
    /// It holds the mutex.
    Acquired,
    /// Its deadline has passed, and it is not in line any more.
    GaveUp,
    /// It was taken for dead and is not in line any more.
    PassedOver,
}

impl<P: Policy, B: Bound> RawThroughputMutex<P, B> {
    ulocks_core::const_fn! {
        /// An unlocked mutex; its bytes are all zero.
        pub fn new() -> Self {
            Self {
                futex: Futex::new(State::UNLOCKED.0),
                line: Futex::new(0),
                meter: P::Meter::INIT,
                bound: PhantomData,
            }
        }
    }

    /// The counters.
    pub fn meter(&self) -> &P::Meter {
        &self.meter
    }

    /// The first word at this moment.
    pub fn state(&self) -> State {
        State(self.futex.load(Relaxed))
    }

    pub(super) fn line(&self) -> Line {
        Line(self.line.load(Relaxed))
    }

    /// (L1)
    #[inline(always)]
    fn take_at_once(&self) -> bool {
        self.futex.compare_exchange(State::UNLOCKED.0, LOCKED, Acquire, Relaxed).is_ok()
    }

    /// A transition of the first word.
    pub(super) fn change(&self, was: State, now: State, learns: bool) -> Result<(), State> {
        let order = if learns { Acquire } else { Relaxed };
        self.futex.compare_exchange(was.0, now.0, order, Relaxed).map_err(State)?;
        if now.owes_wake() && !was.owes_wake() {
            // Counted here, because the release must not touch the mutex any more.
            self.meter.count(Event::Woke);
        }
        Ok(())
    }

    /// (L2): an arrival acquires an open mutex.
    fn steal(&self, was: State, cpu: Option<u32>) -> Result<(), State> {
        self.change(was, State::held_on(cpu), true)?;
        self.meter.count(if was.has(MARKED | ASLEEP) { Event::Stolen } else { Event::Spun });
        Ok(())
    }

    /// (L3): an outsider that has slept acquires an open mutex, and pays what it owes.
    fn take_awake(&self, was: State) -> Result<(), State> {
        self.change(was, State::held_on(cpu::current()).with(MARKED), true)?;
        self.meter.count(Event::Woken);
        Ok(())
    }

    /// What a spinner without a ticket sees; `take` takes an open mutex.
    #[inline]
    fn look(&self, take: impl FnOnce(State) -> Result<(), State>) -> Look {
        let was = self.state();
        if was.is_open() {
            if take(was).is_ok() { Look::Acquired } else { Look::Taken }
        } else if Self::holder_was_here(was) {
            Look::Hopeless
        } else if was.owes_wake() {
            Look::Saturated
        } else {
            Look::Taken
        }
    }

    /// What an arrival sees, which does not care whether the release has to wake somebody.
    #[inline]
    fn look_in_passing(&self) -> Look {
        match self.look(|was| self.steal(was, cpu::current())) {
            Look::Saturated => Look::Taken,
            seen => seen,
        }
    }

    /// Whether the holder cannot be running, because the caller is, where the holder was.
    pub(super) fn holder_was_here(was: State) -> bool {
        was.is_locked() && was.hint().is_some() && was.hint() == cpu::current()
    }

    /// Takes a mutex that is open but not zero.
    fn take_if_open(&self) -> bool {
        let mut was = self.state();
        while was.is_open() {
            match self.steal(was, None) {
                Ok(()) => return true,
                Err(now) => was = now,
            }
        }
        false
    }

    /// An arrival that found something else than zero. False if `deadline` passed first.
    #[cold]
    #[inline(never)]
    fn lock_contended(&self, deadline: Option<Deadline>) -> bool {
        self.meter.count(Event::Contended);
        self.take_if_open()
            || spin::backing_off::<P>(|| self.look_in_passing())
            || without_unwinding(|| self.lock_outside(deadline, false)) // invariant 8
    }

    /// A waiter without a ticket. `owes`: it has slept on this futex (invariant 5). False if
    /// `deadline` passed first.
    fn lock_outside(&self, deadline: Option<Deadline>, mut owes: bool) -> bool {
        let mut woken = owes;
        let mut gives_up = false;
        let mut overdue = None;
        let mut watch = Watch::NEW;
        loop {
            if owes && !gives_up && spin::closely::<P>(|| self.look(|was| self.take_awake(was))) {
                return true;
            }
            if woken && let Some(ticket) = self.get_in_line(deadline, &mut overdue) {
                match self.lock_in_line(ticket, &mut watch, deadline) {
                    Turn::Acquired => return true,
                    Turn::GaveUp => return false,
                    Turn::PassedOver => {
                        self.disown();
                        continue;
                    }
                }
            }
            let Some(marked) = self.mark(owes) else { return true };
            if gives_up {
                return false;
            }
            let (until, watches) = self.watch(&mut watch, marked, self.line(), deadline);
            self.meter.count(Event::Slept);
            let waited = self.futex.wait_bits(marked.0, OUTSIDE, until);
            owes = true;
            woken = waited == Waited::Woken;
            gives_up = waited == Waited::TimedOut && !watches;
            if waited == Waited::TimedOut && watches {
                self.end_watch(&mut watch);
                // As one that was woken in vain for long: outside again it would sleep behind all
                // others.
                (woken, overdue) = (true, Some(Deadline::after(Duration::ZERO)));
            }
        }
    }

    /// (S1): leaves `MARKED` in a word that is not open, and returns that word; `None` if it
    /// acquired instead.
    fn mark(&self, owes: bool) -> Option<State> {
        let mut was = self.state();
        loop {
            let done = if was.is_open() {
                if owes { self.take_awake(was) } else { self.steal(was, cpu::current()) }.map(|()| None)
            } else {
                // Also if it is marked already: a load may be out of date.
                let marked = was.with(MARKED);
                self.change(was, marked, false).map(|()| Some(marked))
            };
            match done {
                Ok(done) => return done,
                Err(now) => was = now,
            }
        }
    }

    /// (Q1): the ticket of an outsider that was woken in vain. None if the line is full; and behind
    /// others only if its wait is `overdue`, that is the bound has passed since it was woken in
    /// vain for the first time, and if it has no deadline (invariant 6).
    fn get_in_line(&self, deadline: Option<Deadline>, overdue: &mut Option<Deadline>) -> Option<Ticket> {
        let mut line = self.line();
        loop {
            if line.length() > 0 && (deadline.is_some() || !Self::is_overdue(overdue)) {
                return None;
            }
            let (longer, ticket) = line.with_one_more()?;
            match self.line.compare_exchange(line.0, longer.0, Relaxed, Relaxed) {
                Ok(_) => return Some(ticket),
                Err(now) => line = Line(now),
            }
        }
    }

    /// Whether the bound has passed since this was asked first.
    fn is_overdue(overdue: &mut Option<Deadline>) -> bool {
        B::NS == 0
            || overdue
                .replace(overdue.unwrap_or_else(|| Deadline::after(Duration::from_nanos(B::NS))))
                .is_some_and(|overdue| overdue.has_passed())
    }

    /// The wake-up a release owes. By key: the mutex may be gone.
    #[cold]
    #[inline(never)]
    fn wake(key: FutexKey<P::Scope>, was: State) {
        if !was.has(ASLEEP) {
            key.wake_bits(1, OUTSIDE);
        } else {
            key.wake_bits(1, HEAD);
        }
    }
}

impl<P: Policy, B: Bound> raw::Metered for RawThroughputMutex<P, B> {
    type Meter = P::Meter;

    fn meter(&self) -> &P::Meter {
        &self.meter
    }
}

impl<P: Policy, B: Bound> Default for RawThroughputMutex<P, B> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Policy<Meter: fmt::Debug>, B: Bound> fmt::Debug for RawThroughputMutex<P, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawThroughputMutex")
            .field("state", &self.state())
            .field("meter", &self.meter)
            .finish()
    }
}

// SAFETY:
// * One token at a time: invariant 1.
// * A release happens before the next acquisition returns: section "Ordering".
// * The token is nothing and no address is kept, so it may be forgotten and the mutex moved or
//   dropped.
unsafe impl<P: Policy, B: Bound> raw::RawMutex for RawThroughputMutex<P, B> {
    ulocks_core::raw_init!(Self::new());

    type Scope = P::Scope;
    type Token = ();
    const CONDVAR_NS: u32 = <P::Spin as spin::Spin>::CONDVAR_NS;

    #[inline]
    fn lock(&self) {
        if !self.take_at_once() {
            self.lock_contended(None);
        }
        self.meter.count(Event::Acquired);
    }

    #[inline]
    fn try_lock(&self) -> Option<()> {
        let taken = self.take_at_once() || self.take_if_open();
        if taken {
            self.meter.count(Event::Acquired);
        }
        taken.then_some(())
    }

    #[inline]
    fn lock_until(&self, deadline: Deadline) -> Option<()> {
        let taken = self.take_at_once()
            || self.take_if_open()
            || (!deadline.has_passed() && self.lock_contended(Some(deadline)));
        if taken {
            self.meter.count(Event::Acquired);
        }
        taken.then_some(())
    }

    #[inline]
    unsafe fn unlock(&self, (): ()) {
        let key = self.futex.key();
        // (U); from here on the mutex may be gone.
        let was = State(self.futex.fetch_sub(LOCKED, Release));
        if was.has(MARKED | ASLEEP) {
            Self::wake(key, was);
        }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.state().is_locked()
    }

    #[inline]
    fn requeue_key(&self) -> Option<FutexKey<P::Scope>> {
        Some(self.futex.key())
    }

    fn mark_for_requeued(&self) -> bool {
        let mut was = self.state();
        while !was.is_open() {
            // (S1)
            match self.change(was, was.with(MARKED), false) {
                Ok(()) => return true,
                Err(now) => was = now,
            }
        }
        false
    }

    fn lock_requeued(&self) {
        self.meter.count(Event::Contended);
        without_unwinding(|| self.lock_outside(None, true)); // invariant 8
        self.meter.count(Event::Acquired);
    }
}
