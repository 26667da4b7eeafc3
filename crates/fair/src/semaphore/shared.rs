//! The line of a shared semaphore: tickets, as in a shop, and two futexes.
//!
//! No process can see another's stack, so there are no nodes. A waiter draws a ticket and waits for
//! its turn; whose turn it is, is *the first*, and takes the permits itself as soon as they
//! suffice. Then it passes the turn on.
//!
//! # State
//! Two futexes. Who is near the first sleeps on `turn`, who is far from it on `drawn`.
//!
//! | word | what | changed by |
//! |---|---|---|
//! | `turn`: 16 bits | whose turn it is | the first, when it leaves, (L5) |
//! | `turn`: 12 bits | which of the twelve tickets after that were left | those who leave, (L6); (L5), as it goes past them |
//! | `turn`: 4 bits | a stamp, which means nothing but that it changes | a release that is about to give to a sleeper, (D) |
//! | `drawn`: 16 bits | the next ticket | arrivals, (L1); the last in line, if it gives up, (L9) |
//! | `drawn`: 16 bits | a stamp likewise | who has passed the turn on, if others are near now, (L10) |
//!
//! # Protocol
//! A **waiter** comes, (C), draws a ticket (L1), and sleeps until the turn is its own. As **the
//! first** it looks for permits; if they suffice it goes with them (L3), if not it notes in the
//! word for which turn it sleeps, `ARMED` (L2), and sleeps as long as the turn is what it was. When
//! it leaves, with permits or without (L4), it **passes the turn on**, past the places that were
//! left (L5); if somebody waits (L8), it wakes the one whose turn it is now. The next one is so
//! awake, or has armed, when its permits come.
//!
//! A **release** that finds the first armed changes the stamp (D), unless the turn has changed
//! already, *before* it gives (G), takes `ARMED` out with the same step, and wakes. If the first is
//! not asleep yet, it finds the new stamp and does not fall asleep; if it then arms again before
//! (G), or another has become the first and arms, then the word notes another turn, (G) fails, and
//! the release begins again. So no touch after (G) is needed to keep anybody awake.
//!
//! A waiter that **gives up** and is the last gives its ticket back (L9), and goes. Else it marks
//! its place as left (L6), if that is among the twelve after the first, and goes. There is no room
//! to remember more places: a waiter further back stays until one of the two is possible, looking
//! every millisecond, and is late. If the turn has come to a ticket that is given back, the line is
//! empty, and the turn is that of the next arrival, which draws it.
//!
//! # Near and far
//! The 32 tickets from the turn's on are *near*. Their waiters sleep on `turn`, each with the bit
//! of its ticket modulo 32. Everybody else is *far* and sleeps on `drawn`, with the bit of its
//! group, which is sixteen tickets. When the turn comes into a group, all of the next group are
//! near. Who has passed it on there changes the stamp (L10), and wakes those who sleep with the bit
//! of that next group; they sleep again, on `turn`, if it is not their turn yet. Groups that lie
//! 512 tickets apart share a bit, and those who are woken too early find that they are far still.
//!
//! A waiter reads `drawn` (L11) before it looks whether it is far, and sleeps there only while that
//! is what it was. (With one futex for all, tickets have to share bits, and a wake-up reaches the
//! wrong one as soon as two have fallen asleep in another order than they drew. That was measured:
//! ten thousand took a minute to go, and take two or three seconds.)
//!
//! # Invariants
//! Beside those of `raw.rs`:
//! 4. Whose ticket is the turn's, is the first, or has not looked yet, and it alone passes the turn
//!    on: a place is marked as left only while the turn is another's (L6), and (L5) does not stop
//!    there.
//! 5. If the first sleeps, the word is `ARMED` for the turn it sleeps on, or a wake-up is on its
//!    way: only (G) takes `ARMED` out of a word whose first stays. For (G) to do that unnoticed,
//!    the first would have to sleep on a turn that is newer than (D) and to have noted an older one
//!    in the word.
//! 6. Outstanding tickets, those of waiters and of left places, are fewer than there are tickets.
//! 7. A bit on `turn` is one waiter's: who sleeps there was near when it fell asleep, and the turn
//!    has not gone past it since (4). So all of them are among the 32 tickets from the turn's on,
//!    and a wake-up reaches the one it is for.
//! 8. If who is near sleeps on `drawn`, a wake-up for it is on its way: it was far after it had
//!    read `drawn` (L11), so the (L10) that follows the (L5) which made it near came later. It was
//!    asleep when that one woke its group, or it has found another stamp.
//! 9. A waiter does not unwind from (C) to (L3) or (L4). The turn would come to its ticket, and
//!    nobody would pass it on. If the kernel refuses the wait, the process aborts.
//!
//! # Ordering
//! - (L3) is Acquire and pairs with (G), Release, through the word.
//! - (C) then a look at the turn, against (L5) then a look at the waiters (L8), is store buffering.
//!   (C) and (L8) are read-modify-writes of the word, (L8) Release and (C) Acquire. If (C) comes
//!   second, its thread sees the turn. If (L8) does, its thread sees the waiter.
//! - (L11) is Acquire and pairs with (L10), Release: a waiter that has read the stamp sees the turn
//!   for which it was changed. This and the pair before matter to far waiters only. If a near
//!   waiter has seen an old turn, the kernel's comparison finds a newer one.
//! - (L2) is Release, and the look of a releasing thread at the word is Acquire: it sees the turn
//!   for which the first has armed, or a newer one. (D) comes before (G) by the latter's Release.
//! - All else is Relaxed, except (L5), for a look of tests. The turn and the tickets are numbers,
//!   and publish nothing: the first takes its permits from the word, by (L3).
//!
//! # Wrap-around
//! The word notes 17 bits of a turn, made of ticket and stamp. For a wake-up to be lost, a release
//! must stand between its look at the word and its (G) until the same note is there again, for
//! which the turn has to be passed on a multiple of 8,192 times and the stamp to be one of sixteen;
//! and as many permits and as many that wait.
//!
//! The stamp of `turn` has 4 bits, but a release changes it only from what the word noted. For it
//! to come round while the first stands between its look at the turn and its sleep, fifteen more
//! releases have to stand between their look at the word and (D), each since another arming of the
//! same first. That of `drawn` cannot come round while somebody stands between (L11) and its sleep:
//! there are 4,096 groups, its own is not passed, and the rest of 65,536 stamps would have to come
//! from as many threads that are late with (L10).

use super::raw::RawSemaphore;
use super::word::State;
use crate::TooManyPermits;
use core::time::Duration;
use ulocks_core::Policy;
use ulocks_core::futex::{Bits, Futex, Scope, Waited};
use ulocks_core::meter::{Event, Meter};
use ulocks_core::spin;
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::sync::without_unwinding;
use ulocks_core::time::Deadline;

/// How many places that were left can be remembered.
pub(super) const REMEMBERED: u32 = 12;
/// How often a waiter looks whether its place can be remembered by now.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// How many tickets a group has.
const GROUP: u32 = 16;
/// How many tickets are near: one bit each.
const NEAR: u32 = u32::BITS;

const TICKET_BITS: u32 = 16;
const TICKETS_MASK: u32 = (1 << TICKET_BITS) - 1;
const LEFT_MASK: u32 = (1 << REMEMBERED) - 1;
const STAMP_SHIFT: u32 = TICKET_BITS + REMEMBERED;
const ONE_STAMP: u32 = 1 << STAMP_SHIFT;
const ONE_PASSED: u32 = 1 << TICKET_BITS;

#[repr(C)]
pub(super) struct Tickets<S: Scope> {
    turn: Futex<S>,
    drawn: Futex<S>,
}

impl<S: Scope> Tickets<S> {
    ulocks_core::const_fn! {
        pub fn new() -> Self {
            Self { turn: Futex::new(0), drawn: Futex::new(0) }
        }
    }

    /// Whether a ticket is out.
    pub fn are_used(&self) -> bool {
        // Acquire: the tickets are not older than the turn.
        // Mutant: Acquire -> Relaxed: only tests ask, and none while turns are passed on.
        Turn(self.turn.load(Acquire)).until(self.drawn.load(Relaxed)) > 0
    }

    /// (L1), an arrival for `meter`.
    fn draw(&self, meter: &impl Meter) -> u32 {
        let mut drawn = self.drawn.load(Relaxed);
        loop {
            let next = drawn & !TICKETS_MASK | drawn.wrapping_add(1) & TICKETS_MASK;
            match meter.arrive(|| self.drawn.compare_exchange(drawn, next, Relaxed, Relaxed)) {
                Ok(_) => return drawn & TICKETS_MASK,
                Err(now) => drawn = now,
            }
        }
    }

    /// (L9): gives `ticket` back, if no other was drawn after it.
    fn give_back(&self, ticket: u32) -> bool {
        let mut drawn = self.drawn.load(Relaxed);
        while drawn.wrapping_sub(1) & TICKETS_MASK == ticket {
            match self.drawn.compare_exchange(drawn, drawn & !TICKETS_MASK | ticket, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(now) => drawn = now,
            }
        }
        false
    }
}

/// A value of `turn`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Turn(u32);

impl Turn {
    fn ticket(self) -> u32 {
        self.0 & TICKETS_MASK
    }

    /// What the word notes of a turn. Those of sixteen stamps differ, and those of the next 8,192
    /// tickets from them.
    fn note(self) -> u32 {
        const STAMP_BITS: u32 = u32::BITS - STAMP_SHIFT;
        const ALL: u32 = (1 << State::NOTE_BITS) - 1;
        (self.ticket() + (self.0 >> STAMP_SHIFT << (State::NOTE_BITS - STAMP_BITS))) & ALL
    }

    /// How many are before `ticket`.
    fn until(self, ticket: u32) -> u32 {
        ticket.wrapping_sub(self.0) & TICKETS_MASK
    }

    fn left(self) -> u32 {
        self.0 >> TICKET_BITS & LEFT_MASK
    }

    fn with(self, ticket: u32, left: u32) -> Self {
        Self(self.0 >> STAMP_SHIFT << STAMP_SHIFT | left << TICKET_BITS | ticket & TICKETS_MASK)
    }

    /// With the place of `ticket` left, which is one of the twelve after the first.
    fn without(self, ticket: u32) -> Self {
        debug_assert!((1..=REMEMBERED).contains(&self.until(ticket)));
        self.with(self.ticket(), self.left() | 1 << (self.until(ticket) - 1))
    }

    /// The next one's turn, or that of the one after `skipped` others.
    fn passed(self, skipped: u32) -> Self {
        self.with(self.ticket() + 1 + skipped, self.left() >> skipped >> 1)
    }

    /// How many places after the first were left, one after the other.
    fn skipped(self) -> u32 {
        self.left().trailing_ones()
    }

    /// After (D).
    fn stamped(self) -> Self {
        Self(self.0.wrapping_add(ONE_STAMP))
    }
}

/// How the wait for the turn ended.
enum Waiting {
    First { slept: bool },
    Left,
}

impl<P: Policy> RawSemaphore<P> {
    /// The bit on `turn` of who is near.
    fn near_bit(ticket: u32) -> Bits {
        Bits::one(ticket % NEAR)
    }

    /// The bit on `drawn` of who is far.
    fn group_bit(ticket: u32) -> Bits {
        Bits::one(ticket / GROUP)
    }

    /// Waits for `wanted` permits, counted in already; the first in line spins a little. False if
    /// `deadline` passed first.
    pub(super) fn wait_with_ticket(&self, wanted: u32, deadline: Option<Deadline>) -> bool {
        // Invariant 9.
        without_unwinding(|| {
            let ticket = self.waiters.tickets().draw(&self.meter);
            match self.wait_for_turn(ticket, deadline) {
                Waiting::First { slept } => self.wait_as_first(wanted, ticket, slept, deadline),
                Waiting::Left => false,
            }
        })
    }

    fn wait_for_turn(&self, ticket: u32, deadline: Option<Deadline>) -> Waiting {
        let tickets = self.waiters.tickets();
        let (mut until, mut expired, mut slept) = (deadline, false, false);
        loop {
            // Mutant: Acquire -> Relaxed: for far waiters; the mutant `relaxed-look` is caught.
            let drawn = tickets.drawn.load(Acquire); // (L11)
            let turn = Turn(tickets.turn.load(Relaxed));
            if turn.ticket() == ticket {
                return Waiting::First { slept };
            }
            if expired {
                match self.leave_place(ticket, turn) {
                    Some(how) => return how,
                    None => until = Some(Deadline::after(LOOK_AGAIN)),
                }
            }
            self.meter.count(Event::Slept);
            slept = true;
            let waited = if turn.until(ticket) < NEAR {
                tickets.turn.wait_bits(turn.0, Self::near_bit(ticket), until)
            } else {
                tickets.drawn.wait_bits(drawn, Self::group_bit(ticket), until)
            };
            expired |= waited == Waited::TimedOut;
        }
    }

    /// Leaves a place that was not the first at `turn`, or finds that it is by now. `None` if it
    /// cannot be remembered.
    #[cold]
    fn leave_place(&self, ticket: u32, mut turn: Turn) -> Option<Waiting> {
        let tickets = self.waiters.tickets();
        if !tickets.give_back(ticket) {
            loop {
                if turn.ticket() == ticket {
                    return Some(Waiting::First { slept: true });
                }
                if turn.until(ticket) > REMEMBERED {
                    return None;
                }
                // (L6)
                match tickets.turn.compare_exchange(turn.0, turn.without(ticket).0, Relaxed, Relaxed) {
                    Ok(_) => break,
                    Err(now) => turn = Turn(now),
                }
            }
        }
        self.go(); // (L4)
        Some(Waiting::Left)
    }

    fn wait_as_first(&self, wanted: u32, ticket: u32, mut slept: bool, deadline: Option<Deadline>) -> bool {
        let tickets = self.waiters.tickets();
        let bit = Self::near_bit(ticket);
        let mut acquired = spin::head_waiter::<P>(slept, || self.look(wanted));
        while !acquired {
            let turn = Turn(tickets.turn.load(Relaxed)); // before (L2)
            let state = State(self.state.load(Relaxed));
            if state.permits() >= wanted {
                acquired = self.depart(state, wanted); // (L3)
                continue;
            }
            let armed = state.armed(turn.note());
            // (L2)
            if self.state.compare_exchange(state.0, armed.0, Release, Relaxed).is_err() {
                continue;
            }
            slept = true;
            self.meter.count(Event::Slept);
            self.meter.count(Event::Woke); // owed by the release that disarms, which must not count
            if tickets.turn.wait_bits(turn.0, bit, deadline) == Waited::TimedOut {
                acquired = self.leave_first(wanted);
                break;
            }
        }
        if acquired {
            self.meter.count(if slept { Event::Woken } else { Event::Spun });
        }
        self.pass_turn_on();
        acquired
    }

    /// A look of the first that spins; it takes its permits if they are there.
    fn look(&self, wanted: u32) -> bool {
        let state = State(self.state.load(Relaxed));
        state.permits() >= wanted && self.depart(state, wanted)
    }

    /// (L3): the first goes with `permits`, if the word is `state` still.
    fn depart(&self, state: State, permits: u32) -> bool {
        self.state.compare_exchange(state.0, state.departed(1, permits).0, Acquire, Relaxed).is_ok()
    }

    /// The first has waited long enough: it takes the permits if they are there after all, or goes
    /// without (L4).
    #[cold]
    fn leave_first(&self, wanted: u32) -> bool {
        loop {
            let state = State(self.state.load(Relaxed));
            let permits = if state.permits() >= wanted { wanted } else { 0 };
            if self.depart(state, permits) {
                return permits > 0;
            }
        }
    }

    /// (L4): one that is not the first goes.
    fn go(&self) {
        let mut state = State(self.state.load(Relaxed));
        while let Err(now) = self.state.compare_exchange(state.0, state.without_waiter().0, Relaxed, Relaxed)
        {
            state = State(now);
        }
    }

    /// The first has left: whose turn is next, and who is near now?
    fn pass_turn_on(&self) {
        let tickets = self.waiters.tickets();
        let mut before = Turn(tickets.turn.load(Relaxed));
        // (L5)
        let (turn, passed) = loop {
            let skipped = before.skipped();
            let turn = before.passed(skipped);
            // Mutant: Release -> Relaxed: it pairs with the look of tests only, in `are_used`.
            match tickets.turn.compare_exchange(before.0, turn.0, Release, Relaxed) {
                Ok(_) => break (turn, 1 + skipped),
                Err(now) => before = Turn(now),
            }
        };
        // (L8)
        // Mutant: Release -> Relaxed: for far waiters; `relaxed-look-at-waiters` is caught.
        if State(self.state.fetch_add(0, Release)).has_no_waiters() {
            return;
        }
        self.meter.count(Event::Woke);
        tickets.turn.key().wake_bits(1, Self::near_bit(turn.ticket()));
        // The groups that the turn has come into, and with each the one that is near now.
        let nearer = (before.ticket() + 1..=before.ticket() + passed)
            .filter(|ticket| ticket.is_multiple_of(GROUP))
            .fold(0, |bits, ticket| bits | Self::group_bit(ticket + NEAR - GROUP).get());
        if let Some(groups) = Bits::new(nearer) {
            // Mutant: Release -> Relaxed: for far waiters; the mutant `relaxed-stamp` is caught.
            tickets.drawn.fetch_add(ONE_PASSED, Release); // (L10)
            self.meter.count(Event::Woke);
            tickets.drawn.key().wake_bits(u32::MAX, groups);
        }
    }

    /// (G) with somebody in line, or against others.
    pub(super) fn give_to_tickets(&self, count: u32) -> Result<(), TooManyPermits> {
        let tickets = self.waiters.tickets();
        let key = tickets.turn.key();
        let mut state = State(self.state.load(Acquire));
        loop {
            let next = state.given(count).ok_or(TooManyPermits)?;
            let mut first = None;
            if state.is_armed() {
                let mut turn = Turn(tickets.turn.load(Relaxed));
                first = Some(turn.ticket());
                while turn.note() == state.note() {
                    // (D)
                    match tickets.turn.compare_exchange(turn.0, turn.stamped().0, Relaxed, Relaxed) {
                        Ok(_) => break,
                        Err(now) => turn = Turn(now),
                    }
                }
            }
            let next = if first.is_some() { next.disarmed() } else { next };
            // The last touch.
            match self.state.compare_exchange(state.0, next.0, Release, Acquire) {
                Ok(_) => {
                    if let Some(first) = first {
                        key.wake_bits(1, Self::near_bit(first));
                    }
                    return Ok(());
                }
                Err(now) => state = State(now),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_turn_goes_past_places_that_were_left() {
        let turn = Turn(9 << STAMP_SHIFT | TICKETS_MASK).without(0).without(1).without(3).without(11);
        assert_eq!((turn.ticket(), turn.until(11), turn.skipped()), (TICKETS_MASK, REMEMBERED, 2));
        let turn = turn.passed(turn.skipped());
        assert_eq!((turn.ticket(), turn.skipped()), (2, 1));
        let turn = turn.passed(turn.skipped());
        assert_eq!((turn.ticket(), turn.skipped(), turn.left()), (4, 0, 1 << 6));
        assert_eq!(turn.0 >> STAMP_SHIFT, 9);
    }

    #[test]
    fn all_places_that_can_be_remembered_can_be_left() {
        let all = (1..=REMEMBERED).fold(Turn(0), Turn::without);
        assert_eq!(all.passed(all.skipped()), Turn(REMEMBERED + 1));
    }

    #[test]
    fn sixteen_stamps_differ_whatever_was_left() {
        const NOTES: u32 = 1 << State::NOTE_BITS;
        let mut turn = Turn(TICKETS_MASK);
        let first = turn.note();
        for nth in 1..=16 {
            turn = turn.stamped().without(nth % REMEMBERED);
            assert_eq!(turn.note(), (first + nth * NOTES / 16) % NOTES);
        }
    }
}
