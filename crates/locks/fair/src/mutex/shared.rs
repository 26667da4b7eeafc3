//! The protocol of a [`FairMutex`](crate::FairMutex) between processes: tickets, and a word that
//! says which is served. `PROTOCOL.md` beside this file tells it step by step; `tickets.rs` has the
//! two words, and the near and far waiters.
//!
//! # Properties
//! - Exclusion; what a holder did happens before the next acquisition returns.
//! - Strict first in, first out, by ticket. A thread without a ticket never holds the mutex.
//!   `try_lock` draws one only if it is the next to be served (by its look; the exception is under
//!   *What it cannot do*).
//! - No pointers, no addresses: two words, which processes may map wherever they like.
//! - A release wakes the waiter it serves, whatever the number of waiters, and the next one ahead
//!   of its turn. Of the far waiters it wakes a few: two on average at a thousand waiters.
//! - A waiter with a deadline draws a ticket only if at most eleven others are in front of it,
//!   beside the holder. Then it keeps its place, and can abandon its ticket. Otherwise it waits
//!   *outside*, without a ticket, until the queue is shorter.
//! - The releasing compare-exchange of `serving` is the last access (law 2 of ARCHITECTURE.md); the
//!   wake-ups that follow use the address only.
//!
//! # State
//! Two futexes: `dispenser`, a `Dispenser`, and `serving`, a `Serving` with three flags. The mutex
//! is free when the next ticket to be drawn is the one that is served.
//!
//! | flag of `serving` | meaning | set by | cleared by |
//! |---|---|---|---|
//! | `FIRST` | the first waiter sleeps, and knows that it is the first | that waiter | each release, which then wakes it; that waiter, when it leaves |
//! | `LATE` | a waiter further behind may have come too late for the release to see its ticket | that waiter | each release, which then wakes the second |
//! | `WATCHED` | a waiter waits outside | that waiter | a release that leaves a short queue, and wakes one of them |
//!
//! | word | transition | by | step |
//! |---|---|---|---|
//! | `dispenser` | one ticket drawn, if there is room | an arriving thread | (draw) |
//! | `dispenser` | `near` moved forwards | the holder, which then wakes the waiters that would sleep elsewhere now | (move near) |
//! | `serving` | the next ticket that was not abandoned is served, `FIRST` and `LATE` cleared | the holder | (serve) |
//! | `serving` | `FIRST` or `LATE` set | a waiter that is about to sleep | (flag) |
//! | `serving` | a ticket abandoned | a waiter whose time is up | (abandon) |
//! | `serving` | `WATCHED` set | a waiter outside | (watch) |
//!
//! # Which waiters sleep where, and which are woken
//! The first waiter spins, then sets `FIRST` and sleeps on `serving`. All others sleep at once:
//! near ones on `serving`, far ones on `dispenser`. A group is 16 tickets; two groups are near. The
//! last bit on `serving` is that of the waiters outside. So of the 32 near tickets two share a bit,
//! and a wake-up for one of them wakes both. Step 5 of a release in `PROTOCOL.md` says which
//! waiters it wakes.
//!
//! # Invariants
//! Beside those of `tickets.rs`:
//! 1. `serving` passes a ticket only by its holder's (serve), or if it was abandoned (abandon),
//!    after which it is not served. So there is at most one holder.
//! 2. The tickets drawn and not served stay fewer than 2^16: (draw) makes sure. `dispenser` is read
//!    before `serving` and has the same value at (draw); `serving` can only have advanced since. So
//!    there is room at (draw) if there was at the look. But the value may be the same 2^16 draws
//!    later, if the thread stood still for so long. So `serving` is read again after (draw), where
//!    it cannot be older than the look of the thread that drew the ticket before. The room has
//!    4,096 places to spare for such threads.
//! 3. `near` is at most the ticket that is served. The first waiter sleeps on `serving` even if it
//!    is far; then the tickets between it and the served one were abandoned, and no other waiter
//!    sleeps there.
//! 4. A waiter sleeps only after its own (flag), which follows its draw, even if another waiter has
//!    set the flag. So the next release sees the flag, even if it does not see the ticket in
//!    `dispenser`, which it reads before (serve). Later releases see the ticket. A waiter sleeps on
//!    `serving` only if that has not changed since (flag).
//! 5. Whether to sleep on `dispenser` is decided by the very value that the kernel compares. The
//!    holder that moves `near` wakes all waiters that become near. Each release that sees a far
//!    ticket moves it.
//! 6. A waiter that sleeps as the first is woken by the next release: `FIRST`. A waiter that sleeps
//!    further behind is woken when it has become the first, or when it is served, if it became the
//!    first because tickets before it were abandoned.
//! 7. No ticket is far in an empty queue: a release that sees a far ticket is never the short one.
//!    (Otherwise `near` would stay behind by one more with each acquisition of an uncontended
//!    mutex, until 2^15 later it seemed to be ahead and could not be moved.)
//! 8. `WATCHED` is cleared by a release that wakes one of the waiters outside. That waiter sets it
//!    again before it goes anywhere.
//! 9. A waiter with a ticket does not unwind. Only the twelve tickets after the served one can be
//!    abandoned; any other would be served, and no thread would release the mutex. If the kernel
//!    refuses the wait, the process aborts.
//!
//! # Ordering
//! - (serve) releases, and a waiter that reads its own ticket in `serving` acquires. All changes of
//!   `serving` are read-modify-writes and continue its releases.
//! - (draw) and the look at `dispenser` before it acquire, and (draw) releases, so that the look at
//!   `serving` that follows is not older than the last draw (invariant 2).
//! - (flag) and (abandon) release and (serve) acquires, also if it fails: later holders see the
//!   ticket in `dispenser`. A release that finds `LATE` has acquired the (flag) that set it. So its
//!   read-modify-write of `dispenser` comes after that waiter's draw, and sees the ticket. A model
//!   puts a read-modify-write behind all stores that were made before it, so none can show that a
//!   failed (serve) has to acquire.
//! - All else is Relaxed. (watch) tells nothing but the flag, (move near) nothing but `near`: the
//!   kernel compares the `dispenser` by which a waiter has decided where it sleeps. A release that
//!   looks at an old `dispenser` without `LATE` misses only tickets whose waiters set a flag later,
//!   and then (serve) fails.
//!
//! # What it cannot do
//! It is not robust: a process that is killed while it waits or holds the mutex keeps its ticket
//! for ever, and one that is killed between (serve) and its wake-ups leaves those waiters asleep.
//!
//! A thread that stands still between its look and (draw) for 2^16 draws, exactly, has a ticket in
//! a queue that it took for empty (invariant 2). If it came with `try_lock` or a deadline, it
//! abandons the ticket, or waits until it is served if more than twelve are ahead.
//!
//! # Sources
//! D. P. Reed and R. K. Kanodia, "Synchronization with eventcounts and sequencers" (1979): the
//! ticket and the number that is served. U. Drepper, "Futexes Are Tricky" (2003). Here: the flags,
//! which let a release decide in one step and touch nothing afterwards; wake-ahead; tickets that
//! can be abandoned; near and far.

use crate::tickets::{Dispenser, Groups, ROOM, Serving, Ticket};
use core::fmt;
use core::time::Duration;
use ulocks_core::futex::{self, Bits, Futex, Waited};
use ulocks_core::meter::{Event, Meter};
use ulocks_core::spin;
use ulocks_core::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use ulocks_core::sync::without_unwinding;
use ulocks_core::time::Deadline;
use ulocks_core::{Policy, raw};

/// How many tickets may be drawn and not served, if the next one may be abandoned.
const ROOM_TO_LEAVE: u16 = Serving::ABANDONABLE + 1;
/// Two groups of 16 tickets are near. (With groups of 8 a release wakes twice as many far waiters.)
const GROUPS: Groups = Groups::new(16, 32);
/// The bit on `serving` of the waiters outside.
const OUTSIDE: u32 = 31;
/// How many near waiters may share a bit.
const OF_A_BIT: u32 = 2;
/// The flags of `serving`.
const FIRST: u32 = Serving::extra_bit(0);
const LATE: u32 = Serving::extra_bit(1);
const WATCHED: u32 = Serving::extra_bit(2);
/// How long a waiter without a deadline sleeps before it looks again whether there is room for
/// another 2^16.
const POLL: Duration = Duration::from_millis(1);

/// The raw mutex between processes.
#[repr(C)]
pub struct Protocol<P: Policy> {
    dispenser: Futex<P::Scope>,
    serving: Futex<P::Scope>,
    meter: P::Meter,
}

/// There is no room; what `serving` was.
struct Full(Serving);

/// The bit on `serving` of a near waiter.
fn near_bit(ticket: Ticket) -> Bits {
    let bit = GROUPS.near_bit(ticket);
    if bit == Bits::one(OUTSIDE) { Bits::one(OUTSIDE - 1) } else { bit }
}

/// `serving` after a release.
#[inline(always)]
fn released(serving: Serving) -> Serving {
    serving.advanced().without(FIRST | LATE)
}

/// `serving` with `ticket` abandoned.
fn abandoned(serving: Serving, ticket: Ticket) -> Serving {
    let was_first = if serving.first() == ticket { FIRST } else { 0 };
    serving.without(was_first).with_abandoned(ticket)
}

impl<P: Policy> Protocol<P> {
    ulocks_core::const_fn! {
        /// An unlocked mutex.
        #[allow(clippy::new_without_default)]
        pub fn new() -> Self {
            Self { dispenser: Futex::new(0), serving: Futex::new(0), meter: P::Meter::INIT }
        }
    }

    /// `serving`; if it is the caller's ticket, the caller holds the mutex.
    #[inline(always)]
    fn look(&self) -> Serving {
        Serving(self.serving.load(Acquire))
    }

    /// Changes `serving` from `now` to `next`; `serving` as it is if that is not `now`.
    #[inline(always)]
    fn change(&self, now: Serving, next: Serving) -> Result<(), Serving> {
        self.serving.compare_exchange(now.0, next.0, Release, Acquire).map(drop).map_err(Serving)
    }

    /// (draw): draws a ticket if fewer than `room` are not served; with it, `serving` shortly
    /// after.
    #[inline(always)]
    fn draw(&self, room: u16) -> Result<(Ticket, Serving), Full> {
        // Mutant: Acquire -> Relaxed: for a look at `serving` that is 2^16 tickets old only.
        let mut dispenser = Dispenser(self.dispenser.load(Acquire));
        loop {
            let serving = self.look();
            if serving.ahead_of(dispenser.ticket()) < room {
                let empty = serving.ahead_of(dispenser.ticket()) == 0;
                match self.draw_by(dispenser) {
                    Ok(serving) => {
                        let lost = empty && dispenser.has_far(GROUPS);
                        debug_assert!(!lost, "invariant 7: far in an empty queue");
                        return Ok((dispenser.ticket(), serving));
                    }
                    Err(now) => dispenser = now,
                }
            } else {
                // If `serving` is newer than `dispenser`, it says nothing about the room.
                // Mutant: Acquire -> Relaxed: as above.
                let now = Dispenser(self.dispenser.load(Acquire));
                if now == dispenser {
                    return Err(Full(serving));
                }
                dispenser = now;
            }
        }
    }

    /// (draw) if the word still has the value `seen`; returns `serving` shortly after (invariant
    /// 2), or the value that the word has.
    #[inline(always)]
    fn draw_by(&self, seen: Dispenser) -> Result<Serving, Dispenser> {
        // Mutant: AcqRel -> Acquire, Release, Relaxed: no model draws 2^16 tickets (invariant 2).
        // Mutant: failure Acquire -> Relaxed: as the look before it.
        let step = || self.dispenser.compare_exchange(seen.0, seen.drawn().0, AcqRel, Acquire);
        self.meter.arrive(step).map(|_| self.look()).map_err(Dispenser)
    }

    /// Takes the mutex if it is free. A thread that finds after (draw) that it is not waits until
    /// `deadline`.
    #[inline(always)]
    fn take(&self, deadline: impl FnOnce() -> Option<Deadline>) -> bool {
        self.draw(1).is_ok_and(|(ticket, serving)| {
            serving.ahead_of(ticket) == 0 || self.wait_after_all(ticket, serving, deadline())
        })
    }

    /// Waits with a ticket that was drawn by a look at `serving`. If that was out of date
    /// (invariant 2), so many may be ahead that the ticket cannot be abandoned; then it waits until
    /// it is served.
    #[cold]
    fn wait_after_all(&self, ticket: Ticket, serving: Serving, deadline: Option<Deadline>) -> bool {
        let deadline = deadline.filter(|_| serving.ahead_of(ticket) < ROOM_TO_LEAVE);
        without_unwinding(|| self.await_turn(ticket, serving, deadline)) // invariant 9
    }

    /// An arrival that may have to wait. False if `deadline` passed first.
    #[cold]
    #[inline(never)]
    fn lock_contended(&self, deadline: Option<Deadline>) -> bool {
        self.meter.count(Event::Contended);
        let room = if deadline.is_some() { ROOM_TO_LEAVE } else { ROOM };
        let mut outside = false;
        let mut expired = false;
        loop {
            match self.draw(room) {
                Ok((ticket, serving)) => {
                    if outside {
                        self.serving.fetch_or(WATCHED, Relaxed); // (watch), invariant 8
                    }
                    return serving.ahead_of(ticket) == 0 || self.wait_after_all(ticket, serving, deadline);
                }
                Err(Full(_)) if expired => return false,
                Err(Full(serving)) => {
                    let watched = serving.with(WATCHED);
                    if serving == watched || self.change(serving, watched).is_ok() {
                        self.meter.count(Event::Slept);
                        let deadline_or_poll = deadline.unwrap_or_else(|| Deadline::after(POLL));
                        let waited =
                            self.serving.wait_bits(watched.0, Bits::one(OUTSIDE), Some(deadline_or_poll));
                        outside |= waited == Waited::Woken;
                        expired = waited == Waited::TimedOut && deadline.is_some();
                    }
                }
            }
        }
    }

    /// Waits with `ticket`. False if `deadline` passed and the ticket was abandoned.
    fn await_turn(&self, ticket: Ticket, mut serving: Serving, deadline: Option<Deadline>) -> bool {
        let mut slept = false;
        loop {
            if serving.ahead_of(ticket) == 0 {
                if !slept {
                    self.meter.count(Event::Spun);
                }
                return true;
            }
            let first = serving.first() == ticket;
            if first
                && spin::head_waiter::<P>(slept, || {
                    serving = self.look();
                    serving.ahead_of(ticket) == 0
                })
            {
                continue;
            }
            let dispenser = Dispenser(self.dispenser.load(Relaxed));
            let flag = if first { FIRST } else { LATE };
            let marked = serving.with(flag);
            // (flag). Even if the flag is set already: the next release has to learn of this
            // ticket.
            if let Err(now) = self.change(serving, marked) {
                serving = now;
                continue;
            }
            self.meter.count(Event::Slept);
            slept = true;
            let waited = if first || GROUPS.are_near(dispenser.near(), ticket) {
                self.serving.wait_bits(marked.0, near_bit(ticket), deadline)
            } else {
                self.dispenser.wait_bits(dispenser.0, GROUPS.far_bit(ticket), deadline)
            };
            if waited == Waited::Woken {
                // Counted here: the waking thread may have had no mutex left to count in.
                self.meter.count(Event::Woke);
            }
            serving = self.look();
            if waited == Waited::TimedOut {
                return self.abandon(ticket, serving);
            }
        }
    }

    /// (abandon): abandons `ticket`, unless it is served: then true.
    #[cold]
    fn abandon(&self, ticket: Ticket, mut serving: Serving) -> bool {
        loop {
            if serving.ahead_of(ticket) == 0 {
                return true;
            }
            match self.change(serving, abandoned(serving, ticket)) {
                Ok(()) => return false,
                Err(now) => serving = now,
            }
        }
    }

    /// (serve), with waiters, in the queue or outside.
    #[cold]
    #[inline(never)]
    fn unlock_contended(&self, mut serving: Serving) {
        let (key, far_key) = (self.serving.key(), self.dispenser.key());
        let mut moved_on = 0;
        loop {
            let late = serving.has(LATE);
            let mut dispenser = Dispenser(if late {
                self.dispenser.fetch_or(0, Relaxed)
            } else {
                self.dispenser.load(Relaxed)
            });
            let mut after = released(serving);
            if dispenser.has_far(GROUPS) {
                (dispenser, moved_on) = self.move_near(dispenser, after, moved_on);
            }
            let queued = after.ahead_of(dispenser.ticket()); // with the served one
            let short = queued < ROOM_TO_LEAVE && serving.has(WATCHED);
            if short {
                after = after.without(WATCHED);
            }
            // Mutant: AcqRel -> Release: two tickets of one `LATE`; 2 million executions miss it.
            // Mutant: failure Acquire -> Relaxed: then the next look at `dispenser` may miss it.
            // From here on the mutex may be gone, if it succeeds.
            match self.serving.compare_exchange(serving.0, after.0, AcqRel, Acquire) {
                Err(now) => serving = Serving(now),
                Ok(_) => {
                    let unaware = serving.skipped() > 0 && (queued > 0 || late);
                    if serving.has(FIRST) || unaware {
                        key.wake_bits(OF_A_BIT, near_bit(after.ticket()));
                    }
                    if after.ahead_of(after.first()) < queued || late {
                        key.wake_bits(OF_A_BIT, near_bit(after.first()));
                    }
                    if let Some(bits) = Bits::new(moved_on) {
                        far_key.wake_bits(u32::MAX, bits);
                    }
                    if short {
                        key.wake_bits(1, Bits::one(OUTSIDE));
                    }
                    return;
                }
            }
        }
    }

    /// (move near): moves `near` to the group that is served `after` the release. Returns
    /// `dispenser` as it is then, and `moved_on` with the bits of the waiters that become near.
    fn move_near(&self, mut dispenser: Dispenser, after: Serving, moved_on: u32) -> (Dispenser, u32) {
        loop {
            let moved = dispenser.nearer(after.ticket(), GROUPS);
            if moved == dispenser {
                return (dispenser, moved_on);
            }
            match self.dispenser.compare_exchange(dispenser.0, moved.0, Relaxed, Relaxed) {
                Err(now) => dispenser = Dispenser(now),
                // No ticket is behind the holder.
                Ok(_) if after.ahead_of(moved.ticket()) == 0 => return (moved, moved_on),
                Ok(_) => return (moved, moved_on | GROUPS.newly_near(dispenser.near(), moved.near())),
            }
        }
    }
}

impl<P: Policy> raw::Metered for Protocol<P> {
    type Meter = P::Meter;

    fn meter(&self) -> &P::Meter {
        &self.meter
    }
}

impl<P: Policy> fmt::Debug for Protocol<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?}", Dispenser(self.dispenser.load(Relaxed)), Serving(self.serving.load(Relaxed)))
    }
}

ulocks_core::initial!([P: Policy<Scope = futex::Global>] Protocol<P> = Self::new());

// SAFETY:
// * One token at a time: invariant 1.
// * A release happens before the next acquisition returns: section "Ordering".
// * The token is nothing and no address is kept, so it may be forgotten and the mutex moved or
//   dropped.
unsafe impl<P: Policy<Scope = futex::Global>> raw::RawMutex for Protocol<P> {
    type Scope = futex::Global;
    type Token = ();

    #[inline]
    fn lock(&self) {
        if !self.take(|| None) {
            self.lock_contended(None);
        }
        self.meter.count(Event::Acquired);
    }

    #[inline]
    fn try_lock(&self) -> Option<()> {
        let taken = self.take(|| Some(Deadline::after(Duration::ZERO)));
        if taken {
            self.meter.count(Event::Acquired);
        }
        taken.then_some(())
    }

    #[inline]
    fn lock_until(&self, deadline: Deadline) -> Option<()> {
        let taken =
            self.take(|| Some(deadline)) || (!deadline.has_passed() && self.lock_contended(Some(deadline)));
        self.meter.ended(taken);
        taken.then_some(())
    }

    #[inline]
    unsafe fn unlock(&self, (): ()) {
        self.meter.released();
        let serving = Serving(self.serving.load(Relaxed));
        let after = released(serving);
        let dispenser = Dispenser(self.dispenser.load(Relaxed));
        let near = !dispenser.has_far(GROUPS);
        let alone = after.ticket() == dispenser.ticket() && serving.is_plain() && near;
        // (serve); from here on the mutex may be gone, if it succeeds.
        if !alone || self.serving.compare_exchange(serving.0, after.0, Release, Relaxed).is_err() {
            self.unlock_contended(self.look());
        }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        Serving(self.serving.load(Relaxed)).ticket() != Dispenser(self.dispenser.load(Relaxed)).ticket()
    }
}

// SAFETY: as `RawMutex`.
unsafe impl<P: Policy<Scope = futex::Global>> raw::RawMutexFair for Protocol<P> {
    #[inline]
    unsafe fn unlock_fair(&self, (): ()) {
        // SAFETY: the caller's contract is the callee's.
        unsafe { raw::RawMutex::unlock(self, ()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ulocks_core::raw::RawMutex as _;

    /// What happens after a whole round of the numbers, without the round: a thread has seen the
    /// mutex free and then stood still, and finds the same number to draw while others hold the
    /// mutex and wait.
    #[test]
    fn who_draws_by_an_old_look_takes_nothing_and_can_leave() {
        let mutex = Protocol::<ulocks_core::Shared>::new();
        mutex.lock();
        let seen = Dispenser(mutex.dispenser.load(Acquire));
        let serving = mutex.draw_by(seen).expect("nobody has drawn since");
        assert_eq!(serving.ahead_of(seen.ticket()), 1, "the holder is ahead");
        assert!(!mutex.wait_after_all(seen.ticket(), serving, Some(Deadline::after(Duration::ZERO))));
        assert!(mutex.try_lock().is_none());
        // SAFETY: locked above.
        unsafe { mutex.unlock(()) };
        mutex.try_lock().expect("free, and the number given up is passed over");
        // SAFETY: locked the line before.
        unsafe { mutex.unlock(()) };
        assert!(!mutex.is_locked());
    }
}
