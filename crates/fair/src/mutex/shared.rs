//! The protocol of a [`FairMutex`](crate::FairMutex) between processes: a ticket, and whose turn it
//! is. `PROTOCOL.md` beside this file tells it step by step.
//!
//! # Properties
//! - Exclusion; what a holder did happens before the next acquisition returns.
//! - Strict first in, first out, by ticket. Who draws no ticket holds nothing: `try_lock` draws one
//!   only if it is the next to be served (by its look; the exception is under *What it cannot do*).
//! - No pointers, no addresses: two words, which processes may map wherever they like.
//! - A release wakes the one it serves, whatever the number of waiters, the next one ahead of its
//!   turn, and of those far behind two on average at a thousand waiters, eleven at ten thousand.
//! - A waiter with a deadline draws a ticket only if at most eleven others are in front of it,
//!   beside the holder, and then keeps its place in line, and can give it up; otherwise it waits
//!   outside for the line to get shorter.
//! - The releasing compare-exchange of `turn` is the last touch (law 2); the wake-ups that follow
//!   use the address only.
//!
//! # State
//! Two futexes: `next`, described at `Next`, from which tickets are drawn, and `turn`, described at
//! `Turn`. The mutex is free when the next ticket is the one that is served, all of it modulo 2^16.
//!
//! | word | transition | by | label |
//! |---|---|---|---|
//! | `next` | one ticket drawn, if there is room in line | an arrival | (D) |
//! | `next` | `near` moved forwards | the holder, which then wakes who would sleep elsewhere now | (N) |
//! | `turn` | the next ticket that was not given up is served, flags cleared | the holder | (U) |
//! | `turn` | `FIRST` or `LATE` set | a waiter that is about to sleep | (S) |
//! | `turn` | a ticket in `gone` | a waiter whose time is up | (G) |
//! | `turn` | `WATCHED` set | a waiter outside | (W) |
//!
//! # Who sleeps where, and who is woken
//! Who is first in line spins, then sets `FIRST` and sleeps; everybody further behind sleeps at
//! once. Those of the group of eight tickets that is served, and of the next one, are *near*: they
//! sleep on `turn`, each with a bit of its own of 16. The others are *far*: they sleep on `next`,
//! where 24 bits are for groups and 8 for *sections* of 128 tickets. Who is in one of the 22 groups
//! behind those sleeps with the bit of its group, unless its section goes on beyond them: then, and
//! further behind, with the bit of its section. So a wake-up on `turn` reaches the one it is meant
//! for, however many wait, and each of a thousand sleeps three times. (With one queue for all,
//! tickets have to share bits. To wake all who share one makes 32 sleeps of one at 1000 waiters. To
//! wake one of them reaches the wrong one as soon as two have fallen asleep in another order than
//! they drew, and what is out of order once stays so: each takes the place in the kernel's queue
//! that the one served had. Both were measured: 4 and 1 k/s. With all 32 bits of `next` for groups,
//! four of them share a bit at 1000 waiters, and each sleeps five times: 23 k/s, with sections 28
//! (`promises --only fair/`, the row of 1000 processes). The price is a third sleep for who draws a
//! ticket 72 to 270 behind the one that is served, and that a section wakes up at once.)
//!
//! A release wakes
//! - the one it serves, if it slept as `FIRST`, or if those before it have just given up;
//! - the one after that, *ahead* of its turn: if its ticket is drawn, or, by `LATE`, may have been
//!   drawn just now;
//! - with the first ticket of a group, the far ones of the group that is next now, and now and then
//!   those of a section;
//! - one of those outside, who sleep on `turn` with the last bit, if there are some and the line is
//!   short.
//!
//! # Invariants
//! 1. A ticket is drawn once, by (D), and `serving` goes past a ticket only by its holder's (U), or
//!    if it was given up (G), after which it is not served. So there is at most one holder.
//! 2. The tickets drawn and not served stay fewer than 2^16: (D) makes sure. `next` is read before
//!    `turn` and has the same value at (D); `turn` can only have become larger since. So there is
//!    room at (D) if there was at the look. But the value may be the same 2^16 draws later, if the
//!    thread stood still for so long. So the turn by which it goes is read again after (D), where
//!    it cannot be older than the look of who drew the ticket before; the room has 4,096 places to
//!    spare for that.
//! 3. `near` is at most the ticket that is served, so those who sleep in line on `turn` are among
//!    16 tickets in a row.
//! 4. Who sleeps in line has made (S) after its ticket was drawn, also if the flag was set by
//!    another. So the next release sees the flag, even if it does not see the ticket in `next`,
//!    which it reads before (U); and those after it see the ticket. Who sleeps on `turn` sleeps
//!    only if that has not changed since (S).
//! 5. Whether to sleep on `next`, and with which bit, is decided by the very value that the kernel
//!    compares. Who moves `near` wakes all who would sleep elsewhere by the new value; and each
//!    release moves it that sees a ticket that is far.
//! 6. Who sleeps as first is woken by the next release: `FIRST`. Who sleeps further behind is woken
//!    when it has become the first, or, if that skipped somebody who gave up, when it is served.
//! 7. Nobody is far in an empty line: a release that sees a ticket that is far is never the short
//!    one. (If it were, `near` would stay behind by one more with each acquisition of an
//!    uncontended mutex, until 2^15 later it seemed to be ahead and could not be moved.)
//! 8. `WATCHED` ends by a release that wakes one of those outside. That one sets it again before it
//!    goes anywhere.
//! 9. A waiter with a ticket does not unwind. Only the twelve tickets after the served one can be
//!    given up; the turn would come to any other, and nobody would release the mutex. If the kernel
//!    refuses the wait, the process aborts.
//!
//! # Ordering
//! - (U) releases, and a waiter that reads its own ticket in `turn` acquires. All changes of `turn`
//!   are read-modify-writes and continue its releases.
//! - (D) and the look at `next` before it acquire, and (D) releases, so that the look at `turn`
//!   that follows is not older than the last draw (invariant 2).
//! - (S) and (G) release and (U) acquires, also if it fails: later holders see the ticket in
//!   `next`. A release that finds `LATE` has acquired the (S) that set it. So its read-modify-write
//!   of `next` comes after that waiter's draw, and sees the ticket. A model puts a
//!   read-modify-write behind all stores that were made before it, so none can show that a failed
//!   (U) has to acquire.
//! - All else is Relaxed. (W) tells nothing but the flag, (N) nothing but `near`: the kernel
//!   compares the `next` by which a waiter has decided where it sleeps. A release that looks at an
//!   old `next` without `LATE` misses only tickets whose waiters set a flag later, and then (U)
//!   fails.
//!
//! # What it cannot do
//! It is not robust: a process that is killed while it waits or holds the mutex keeps its place for
//! ever, and one that is killed between (U) and its wake-ups leaves those asleep whom it was to
//! wake.
//!
//! A thread that stands still between its look and (D) for 2^16 draws, exactly, has a ticket in a
//! line that it took for empty (invariant 2). If it came with `try_lock` or a deadline it gives the
//! ticket up, or waits for its turn if more than twelve are ahead. No model here goes round all
//! numbers: this rests on reading.
//!
//! # Sources
//! D. P. Reed and R. K. Kanodia, "Synchronization with eventcounts and sequencers" (1979): the
//! ticket and the turn. U. Drepper, "Futexes Are Tricky" (2003). Here: the flags, which let a
//! release decide in one step and touch nothing afterwards; wake-ahead; tickets that can be given
//! up; near and far.

use super::tickets::{Next, Sizes, Ticket, Turn};
use core::fmt;
use core::time::Duration;
use ulocks_core::futex::{self, Bits, Futex, Waited};
use ulocks_core::meter::{Event, Meter};
use ulocks_core::spin;
use ulocks_core::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use ulocks_core::sync::without_unwinding;
use ulocks_core::time::Deadline;
use ulocks_core::{Policy, raw};

/// How many tickets may be drawn and not served. Tickets are counted modulo 2^16.
const ROOM: u16 = 0xf000;
/// How many, if the next one is to be given up perhaps.
const ROOM_TO_LEAVE: u16 = Turn::GONE_BITS + 1;
/// Groups of 8 tickets with 24 bits between them, and sections of 128 with 8.
const SIZES: Sizes = Sizes::new(8, 128, 24);
/// How many bits on `turn` are for tickets: two groups.
const NEAR_BITS: u32 = 2 * SIZES.group as u32;
/// The bit on `turn` of those outside.
const OUTSIDE: u32 = 31;
const _: () = assert!(NEAR_BITS <= OUTSIDE);
/// How long a waiter without a deadline sleeps before it looks again whether there is room for
/// another 2^16.
const POLL: Duration = Duration::from_millis(1);

/// The raw mutex between processes.
#[repr(C)]
pub struct Protocol<P: Policy> {
    next: Futex<P::Scope>,
    turn: Futex<P::Scope>,
    meter: P::Meter,
}

/// There is no room in line; what the turn was.
struct Full(Turn);

impl<P: Policy> Protocol<P> {
    ulocks_core::const_fn! {
        /// An unlocked mutex.
        #[allow(clippy::new_without_default)]
        pub fn new() -> Self {
            Self { next: Futex::new(0), turn: Futex::new(0), meter: P::Meter::INIT }
        }
    }

    /// The turn; if it is the caller's, it holds the mutex.
    #[inline(always)]
    fn look(&self) -> Turn {
        Turn(self.turn.load(Acquire))
    }

    /// Changes the turn from `now` to `next`; the turn as it is if that is not `now`.
    #[inline(always)]
    fn change(&self, now: Turn, next: Turn) -> Result<(), Turn> {
        self.turn.compare_exchange(now.0, next.0, Release, Acquire).map(drop).map_err(Turn)
    }

    /// The bit on `turn` of who is near.
    fn bit(ticket: Ticket) -> Bits {
        Bits::one(u32::from(ticket) % NEAR_BITS)
    }

    /// (D): draws a ticket if fewer than `room` are not served; with it, the turn shortly after.
    #[inline(always)]
    fn draw(&self, room: u16) -> Result<(Ticket, Turn), Full> {
        // Mutant: Acquire -> Relaxed: matters for a look at the turn that is 2^16 tickets old only.
        let mut next = Next(self.next.load(Acquire));
        loop {
            let turn = self.look();
            if turn.ahead_of(next.ticket()) < room {
                let empty = turn.ahead_of(next.ticket()) == 0;
                match self.draw_by(next) {
                    Ok(turn) => {
                        let lost = empty && next.has_far(SIZES);
                        debug_assert!(!lost, "invariant 7: far in an empty line");
                        return Ok((next.ticket(), turn));
                    }
                    Err(now) => next = now,
                }
            } else {
                // If the turn is newer than `next`, it says nothing about the room.
                // Mutant: Acquire -> Relaxed: as above.
                let now = Next(self.next.load(Acquire));
                if now == next {
                    return Err(Full(turn));
                }
                next = now;
            }
        }
    }

    /// (D) if the word still has the value `next`; returns the turn shortly after (invariant 2), or
    /// the value that it has.
    #[inline(always)]
    fn draw_by(&self, next: Next) -> Result<Turn, Next> {
        // Mutant: AcqRel -> Acquire, Release, Relaxed: no model draws 2^16 tickets (invariant 2).
        // Mutant: failure Acquire -> Relaxed: as the look before it.
        let drawn = self.meter.arrive(|| self.next.compare_exchange(next.0, next.drawn().0, AcqRel, Acquire));
        drawn.map(|_| self.look()).map_err(Next)
    }

    /// Takes the mutex if nobody holds it or is in line. Who finds after (D) that somebody is waits
    /// until `deadline`.
    #[inline(always)]
    fn take(&self, deadline: impl FnOnce() -> Option<Deadline>) -> bool {
        self.draw(1).is_ok_and(|(ticket, turn)| {
            turn.ahead_of(ticket) == 0 || self.wait_after_all(ticket, turn, deadline())
        })
    }

    /// Waits with a ticket that was drawn by a look at the turn. If that was out of date (invariant
    /// 2), so many may be ahead that the ticket cannot be given up; then its turn is waited for.
    #[cold]
    fn wait_after_all(&self, ticket: Ticket, turn: Turn, deadline: Option<Deadline>) -> bool {
        let deadline = deadline.filter(|_| turn.ahead_of(ticket) < ROOM_TO_LEAVE);
        without_unwinding(|| self.await_turn(ticket, turn, deadline)) // invariant 9
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
                Ok((ticket, turn)) => {
                    if outside {
                        self.turn.fetch_or(Turn::WATCHED, Relaxed); // (W), invariant 8
                    }
                    return turn.ahead_of(ticket) == 0 || self.wait_after_all(ticket, turn, deadline);
                }
                Err(Full(_)) if expired => return false,
                Err(Full(turn)) => {
                    let watched = turn.with(Turn::WATCHED);
                    if turn == watched || self.change(turn, watched).is_ok() {
                        self.meter.count(Event::Slept);
                        let deadline_or_poll = deadline.unwrap_or_else(|| Deadline::after(POLL));
                        let waited =
                            self.turn.wait_bits(watched.0, Bits::one(OUTSIDE), Some(deadline_or_poll));
                        outside |= waited == Waited::Woken;
                        expired = waited == Waited::TimedOut && deadline.is_some();
                    }
                }
            }
        }
    }

    /// Waits in line with `ticket`. False if `deadline` passed and the ticket was given up.
    fn await_turn(&self, ticket: Ticket, mut turn: Turn, deadline: Option<Deadline>) -> bool {
        let mut slept = false;
        loop {
            if turn.ahead_of(ticket) == 0 {
                if !slept {
                    self.meter.count(Event::Spun);
                }
                return true;
            }
            let first = turn.first() == ticket;
            if first
                && spin::head_waiter::<P>(slept, || {
                    turn = self.look();
                    turn.ahead_of(ticket) == 0
                })
            {
                continue;
            }
            let next = Next(self.next.load(Relaxed));
            let flag = if first { Turn::FIRST } else { Turn::LATE };
            let marked = turn.with(flag);
            // (S). Also if the flag is set already: it is this thread's ticket that the next
            // release has to learn of.
            if let Err(now) = self.change(turn, marked) {
                turn = now;
                continue;
            }
            self.meter.count(Event::Slept);
            slept = true;
            let waited = match next.far_bit(ticket, SIZES) {
                Some(bit) if !first => self.next.wait_bits(next.0, Bits::one(bit), deadline),
                _ => self.turn.wait_bits(marked.0, Self::bit(ticket), deadline),
            };
            if waited == Waited::Woken {
                // Counted here, because who woke this waiter may have had no lock left to count in.
                self.meter.count(Event::Woke);
            }
            turn = self.look();
            if waited == Waited::TimedOut {
                return self.give_up(ticket, turn);
            }
        }
    }

    /// (G): gives `ticket` up, unless it is its turn: then true.
    #[cold]
    fn give_up(&self, ticket: Ticket, mut turn: Turn) -> bool {
        loop {
            if turn.ahead_of(ticket) == 0 {
                return true;
            }
            match self.change(turn, turn.given_up(ticket)) {
                Ok(()) => return false,
                Err(now) => turn = now,
            }
        }
    }

    /// (U), with somebody in line or outside.
    #[cold]
    #[inline(never)]
    fn unlock_contended(&self, mut turn: Turn) {
        let (key, far_key) = (self.turn.key(), self.next.key());
        let mut moved_on = 0;
        loop {
            let late = turn.has(Turn::LATE);
            let mut next = Next(if late { self.next.fetch_or(0, Relaxed) } else { self.next.load(Relaxed) });
            let mut after = turn.released();
            if next.has_far(SIZES) {
                (next, moved_on) = self.move_near(next, after, moved_on);
            }
            let in_line = after.ahead_of(next.ticket()); // with the one that is served
            let short = in_line < ROOM_TO_LEAVE && turn.has(Turn::WATCHED);
            if short {
                after = after.unwatched();
            }
            // From here on the mutex may be gone, if it succeeds.
            // Mutant: AcqRel -> Release: two tickets of one `LATE`; 2 million executions miss it.
            // Mutant: failure Acquire -> Relaxed: RC11 then allows the next look at `next` to miss it.
            match self.turn.compare_exchange(turn.0, after.0, AcqRel, Acquire) {
                Err(now) => turn = Turn(now),
                Ok(_) => {
                    let unaware = turn.skipped() > 0 && (in_line > 0 || late);
                    if turn.has(Turn::FIRST) || unaware {
                        key.wake_bits(1, Self::bit(after.serving()));
                    }
                    if after.ahead_of(after.first()) < in_line || late {
                        key.wake_bits(1, Self::bit(after.first()));
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

    /// (N): moves `near` to the group that is served `after` the release. Returns `next` as it is
    /// then, and `moved_on` with the bits of those who would sleep elsewhere now.
    fn move_near(&self, mut next: Next, after: Turn, moved_on: u32) -> (Next, u32) {
        loop {
            let moved = next.nearer(after.serving(), SIZES);
            if moved == next {
                return (next, moved_on);
            }
            match self.next.compare_exchange(next.0, moved.0, Relaxed, Relaxed) {
                Err(now) => next = Next(now),
                // Nobody is behind the holder.
                Ok(_) if after.ahead_of(moved.ticket()) == 0 => return (moved, moved_on),
                Ok(_) => return (moved, moved_on | next.newly_near(moved, SIZES)),
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
        write!(f, "{:?} {:?}", Next(self.next.load(Relaxed)), Turn(self.turn.load(Relaxed)))
    }
}

ulocks_core::initial!([P: Policy<Scope = futex::Shared>] Protocol<P> = Self::new());

// SAFETY:
// * One token at a time: invariant 1.
// * A release happens before the next acquisition returns: section "Ordering".
// * The token is nothing and no address is kept, so it may be forgotten and the mutex moved or
//   dropped.
unsafe impl<P: Policy<Scope = futex::Shared>> raw::RawMutex for Protocol<P> {
    type Scope = futex::Shared;
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
        if taken {
            self.meter.count(Event::Acquired);
        }
        taken.then_some(())
    }

    #[inline]
    unsafe fn unlock(&self, (): ()) {
        let turn = Turn(self.turn.load(Relaxed));
        let after = turn.released();
        let next = Next(self.next.load(Relaxed));
        let near = !next.has_far(SIZES);
        let alone = after.serving() == next.ticket() && turn.is_plain() && near;
        // (U); from here on the mutex may be gone, if it succeeds.
        if !alone || self.turn.compare_exchange(turn.0, after.0, Release, Relaxed).is_err() {
            self.unlock_contended(self.look());
        }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        Turn(self.turn.load(Relaxed)).serving() != Next(self.next.load(Relaxed)).ticket()
    }
}

// SAFETY: as `RawMutex`.
unsafe impl<P: Policy<Scope = futex::Shared>> raw::RawMutexFair for Protocol<P> {
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
        let seen = Next(mutex.next.load(Acquire));
        let turn = mutex.draw_by(seen).expect("nobody has drawn since");
        assert_eq!(turn.ahead_of(seen.ticket()), 1, "the holder is ahead");
        assert!(!mutex.wait_after_all(seen.ticket(), turn, Some(Deadline::after(Duration::ZERO))));
        assert!(mutex.try_lock().is_none());
        // SAFETY: locked above.
        unsafe { mutex.unlock(()) };
        mutex.try_lock().expect("free, and the number given up is passed over");
        // SAFETY: locked the line before.
        unsafe { mutex.unlock(()) };
        assert!(!mutex.is_locked());
    }
}
