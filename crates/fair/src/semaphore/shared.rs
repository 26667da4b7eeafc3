//! The line of a shared semaphore: tickets, as in a shop, and one futex.
//!
//! No process can see another's stack, so there are no nodes. A waiter draws a ticket and waits for its turn; whose turn
//! it is, is *the first*, and takes the permits itself as soon as they suffice. Then it passes the turn on.
//!
//! # State
//! | word | what | changed by |
//! |---|---|---|
//! | `turn`: 16 bits | whose turn it is; a futex that everybody in line sleeps on | the first, when it leaves, (L5) |
//! | `turn`: 16 bits | a stamp, which means nothing but that it changes | a release that is about to give to a sleeper, (D) |
//! | `drawn`: 16 bits | the next ticket | arrivals, (L1); the last in line, if it gives up, (L9) |
//! | `drawn`: 16 bits | places that were left, by ticket modulo 16 | those who leave, (L6); who passes the turn on, (L7) |
//!
//! Everybody sleeps with the futex bit of its ticket, modulo 32.
//!
//! # Protocol
//! A **waiter** comes, (C), draws a ticket (L1), and sleeps until the turn is its own. As **the first** it looks for
//! permits; if they suffice it goes with them (L3), if not it notes in the word how often the turn has changed, `ARMED`
//! (L2), and sleeps as long as the turn is what it was. When it leaves, with permits or without (L4), it **passes the turn on**:
//! (L5), and again as long as the place was left (L7); if somebody waits, it wakes the one with that ticket. The next
//! one is so awake, or has armed, when its permits come.
//!
//! A **release** that finds the first armed changes the stamp (D) *before* it gives (G), takes `ARMED` out with the
//! same step, and wakes. If the first is not asleep yet, it finds the new stamp and does not fall asleep; if it then
//! arms again before (G), or another has become the first and arms, then the word notes another number of changes, (G)
//! fails, and the release begins again. So no touch after (G) is needed to keep anybody awake.
//!
//! A waiter that **gives up** and is the last gives its ticket back (L9), and goes. Else it marks its place as left (L6),
//! if that is among the first sixteen, and goes. If the turn has come to it meanwhile, one of the two takes the mark out,
//! and that one passes the turn on. There is no room to remember more places: a waiter further back stays until one of
//! the two is possible, looking every millisecond, and is late. If the turn has come to a ticket that is given back, the
//! line is empty, and the turn is that of the next arrival, which draws it.
//!
//! # A wake-up for somebody else
//! Tickets that differ by a multiple of 32 share a bit. The kernel wakes who sleeps longest, which is nearly always the
//! oldest ticket. Who is woken in another's place passes the wake-up on, once for each value of the turn, and sleeps
//! again, behind the others. So it comes to the one it was for, if that one is asleep, and comes to an end if not.
//!
//! # Invariants
//! Beside those of `raw.rs`:
//! 4. Whose ticket is the turn's, is the first, or has not looked yet, or has left with its place marked, and then
//!    whoever takes the mark out passes the turn on. Only these change the turn.
//! 5. If the first sleeps, the word is `ARMED` for the turn it sleeps on, or a wake-up is on its way: only (G) takes
//!    `ARMED` out of a word whose first stays. For (G) to do that unnoticed, the first would have to sleep on a turn that
//!    is newer than (D) and to have noted an older one in the word.
//! 6. Outstanding tickets, those of waiters and of left places, are fewer than there are tickets.
//!
//! # Ordering
//! (L3) is Acquire and pairs with (G), Release, through the word. (L6) then a look at the turn, against (L5) then a look
//! at the marks, is store buffering: all four are read-modify-writes, Acquire and Release, so that the one that comes
//! second to the turn sees the other's mark or turn. The same between (C) and a look at the turn, and (L5) and
//! a look at the waiters, (L8). (D) comes before (G) by the latter's Release; the one who arms has read the stamp before (L2),
//! likewise.
//!
//! # Wrap-around
//! The number of changes has 16 bits in the word. For a wake-up to be lost, the turn must change exactly a multiple of
//! 65,536 times while one release stands between its look at the word and its (G), and the word be the same again, with
//! as many permits and as many that wait.

use super::raw::{Protocol, seeded};
use super::word::State;
use crate::TooManyPermits;
use core::time::Duration;
use ulocks_core::Policy;
use ulocks_core::futex::{Bits, Futex, Scope, Waited};
use ulocks_core::meter::{Event, Meter};
use ulocks_core::spin;
use ulocks_core::sync::AtomicU32;
use ulocks_core::sync::Ordering::{AcqRel, Acquire, Relaxed};
use ulocks_core::time::Deadline;

/// How many places that were left can be remembered.
pub(super) const REMEMBERED: u32 = 16;
/// How often a waiter looks whether its place can be remembered by now.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

const TICKETS_MASK: u32 = (1 << 16) - 1;
const STAMP_SHIFT: u32 = 16;
const ONE_STAMP: u32 = 1 << STAMP_SHIFT;
const LEFT_SHIFT: u32 = 16;

#[repr(C)]
pub(super) struct Tickets<S: Scope> {
    turn: Futex<S>,
    drawn: AtomicU32,
}

impl<S: Scope> Tickets<S> {
    ulocks_core::const_fn! {
        pub fn new() -> Self {
            Self { turn: Futex::new(0), drawn: AtomicU32::new(0) }
        }
    }

    /// Whether a ticket is out.
    pub fn are_used(&self) -> bool {
        Turn(self.turn.load(Acquire)).until(self.drawn.load(Acquire)) > 0
    }

    /// (L1), an arrival for `meter`.
    fn draw(&self, meter: &impl Meter) -> u32 {
        let mut drawn = self.drawn.load(Relaxed);
        loop {
            let next = drawn & !TICKETS_MASK | drawn.wrapping_add(1) & TICKETS_MASK;
            match meter.arrive(|| self.drawn.compare_exchange(drawn, next, AcqRel, Relaxed)) {
                Ok(_) => return drawn & TICKETS_MASK,
                Err(now) => drawn = now,
            }
        }
    }

    /// (L9): gives `ticket` back, if no other was drawn after it.
    fn give_back(&self, ticket: u32) -> bool {
        let mut drawn = self.drawn.load(Relaxed);
        while drawn.wrapping_sub(1) & TICKETS_MASK == ticket {
            match self.drawn.compare_exchange(drawn, drawn & !TICKETS_MASK | ticket, AcqRel, Relaxed) {
                Ok(_) => return true,
                Err(now) => drawn = now,
            }
        }
        false
    }

    /// The mark of a left place in `drawn`.
    fn mark(ticket: u32) -> u32 {
        1 << (LEFT_SHIFT + ticket % REMEMBERED)
    }

    /// (L7): takes the mark of `ticket` out; false if there is none.
    fn unmark(&self, ticket: u32) -> bool {
        self.drawn.fetch_and(!Self::mark(ticket), AcqRel) & Self::mark(ticket) != 0
    }

    /// The turn as it is now, and not as it may have been.
    fn newest_turn(&self) -> Turn {
        Turn(self.turn.fetch_add(0, AcqRel))
    }
}

/// A value of `turn`.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Turn(u32);

impl Turn {
    fn ticket(self) -> u32 {
        self.0 & TICKETS_MASK
    }

    /// What the word notes of a turn: how often it has changed, by which way whatever, modulo 2^16.
    fn changes(self) -> u16 {
        (self.0 >> STAMP_SHIFT).wrapping_add(self.0) as u16
    }

    /// How many are before `ticket`.
    fn until(self, ticket: u32) -> u32 {
        ticket.wrapping_sub(self.0) & TICKETS_MASK
    }
}

/// How the wait for the turn ended.
enum Waiting {
    First { slept: bool },
    Left,
}

impl<P: Policy, const BUG: u8> Protocol<P, BUG> {
    /// Waits for `wanted` permits, counted in already; the first in line spins a little. False if `deadline` passed first.
    pub(super) fn wait_with_ticket(&self, wanted: u32, deadline: Option<Deadline>) -> bool {
        let ticket = self.line.tickets().draw(&self.meter);
        match self.wait_for_turn(ticket, deadline) {
            Waiting::First { slept } => self.wait_as_first(wanted, ticket, slept, deadline),
            Waiting::Left => false,
        }
    }

    fn wait_for_turn(&self, ticket: u32, deadline: Option<Deadline>) -> Waiting {
        let tickets = self.line.tickets();
        let bit = Bits::one(ticket);
        let (mut until, mut expired, mut slept) = (deadline, false, false);
        let mut passed_on = None;
        let mut woken = false;
        loop {
            // Who was woken decides for whom, and the end of a wait orders nothing: only the newest turn will do.
            let turn = if woken { tickets.newest_turn() } else { Turn(tickets.turn.load(Acquire)) };
            if turn.ticket() == ticket {
                return Waiting::First { slept };
            }
            if woken
                && turn.until(ticket).is_multiple_of(u32::BITS)
                && passed_on != Some(turn)
                && BUG != seeded::KEEPS_WAKE
            {
                passed_on = Some(turn);
                tickets.turn.key().wake_bits(1, bit);
            }
            if expired {
                match self.leave_place(ticket) {
                    Some(how) => return how,
                    None => until = Some(Deadline::after(LOOK_AGAIN)),
                }
            }
            self.meter.count(Event::Slept);
            slept = true;
            let waited = tickets.turn.wait_bits(turn.0, bit, until);
            woken = waited == Waited::Woken;
            expired |= waited == Waited::TimedOut;
        }
    }

    /// Leaves a place that is not the first, or finds that it has become the first. `None` if it cannot be remembered.
    #[cold]
    fn leave_place(&self, ticket: u32) -> Option<Waiting> {
        let tickets = self.line.tickets();
        if tickets.give_back(ticket) {
            self.go(); // (L4)
            return Some(Waiting::Left);
        }
        if tickets.newest_turn().until(ticket) >= REMEMBERED {
            return None;
        }
        tickets.drawn.fetch_or(Tickets::<P::Scope>::mark(ticket), AcqRel); // (L6)
        let turn_came = BUG != seeded::LEAVES_UNSEEN && tickets.newest_turn().ticket() == ticket;
        if turn_came && tickets.unmark(ticket) {
            return Some(Waiting::First { slept: true });
        }
        self.go(); // (L4)
        Some(Waiting::Left)
    }

    fn wait_as_first(&self, wanted: u32, ticket: u32, mut slept: bool, deadline: Option<Deadline>) -> bool {
        let tickets = self.line.tickets();
        let bit = Bits::one(ticket);
        let mut acquired = spin::first_in_line::<P>(slept, || self.look(wanted));
        while !acquired {
            let turn = Turn(tickets.turn.load(Relaxed)); // before (L2)
            let state = State(self.state.load(Relaxed));
            if state.permits() >= wanted {
                acquired = self.depart(state, wanted); // (L3)
                continue;
            }
            let armed = state.armed(if BUG == seeded::NO_NUMBER { 0 } else { turn.changes() });
            // (L2)
            if self.state.compare_exchange(state.0, armed.0, AcqRel, Relaxed).is_err() {
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
        if acquired || BUG != seeded::LEAVES_TURN {
            self.pass_turn_on();
        }
        acquired
    }

    /// A look of the first that spins; it takes its permits if they are there.
    fn look(&self, wanted: u32) -> bool {
        let state = State(self.state.load(Relaxed));
        state.permits() >= wanted && self.depart(state, wanted)
    }

    /// (L3): the first goes with `permits`, if the word is `state` still.
    fn depart(&self, state: State, permits: u32) -> bool {
        self.state.compare_exchange(state.0, state.departed(1, permits).0, AcqRel, Relaxed).is_ok()
    }

    /// The first has waited long enough: it takes the permits if they are there after all, or goes without (L4).
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
        while let Err(now) = self.state.compare_exchange(state.0, state.without_waiter().0, AcqRel, Relaxed) {
            state = State(now);
        }
    }

    /// The first has left: whose turn is next?
    fn pass_turn_on(&self) {
        let tickets = self.line.tickets();
        let turn = loop {
            let turn = Turn(tickets.turn.fetch_add(1, AcqRel).wrapping_add(1)); // (L5)
            if BUG == seeded::STOPS_AT_LEFT || !tickets.unmark(turn.ticket()) {
                break turn;
            }
        };
        // (L8)
        let somebody_waits = !State(self.state.fetch_add(0, AcqRel)).has_no_line();
        if somebody_waits && BUG != seeded::ADVANCES_SILENTLY {
            self.meter.count(Event::Woke);
            tickets.turn.key().wake_bits(1, Bits::one(turn.ticket()));
        }
    }

    /// (G) with somebody in line, or against others.
    pub(super) fn give_to_tickets(&self, count: u32) -> Result<(), TooManyPermits> {
        let tickets = self.line.tickets();
        let key = tickets.turn.key();
        let mut state = State(self.state.load(Acquire));
        loop {
            let next = state.given(count).ok_or(TooManyPermits)?;
            let mut first = None;
            if state.is_armed() {
                let before = Turn(tickets.turn.load(Relaxed));
                first = Some(before.ticket());
                if BUG != seeded::NO_DISTURBANCE && BUG != seeded::DISTURBS_LATE {
                    tickets.turn.fetch_add(ONE_STAMP, Relaxed); // (D)
                }
            }
            let next = if first.is_some() { next.disarmed() } else { next };
            // The last touch.
            match self.state.compare_exchange(state.0, next.0, AcqRel, Acquire) {
                Ok(_) => {
                    if let Some(first) = first {
                        if BUG == seeded::DISTURBS_LATE {
                            tickets.turn.fetch_add(ONE_STAMP, Relaxed);
                        }
                        key.wake_bits(1, Bits::one(first));
                    }
                    return Ok(());
                }
                Err(now) => state = State(now),
            }
        }
    }
}
