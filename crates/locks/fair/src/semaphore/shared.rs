//! The waiters of a shared semaphore: tickets. `tickets.rs` has the two words, and the near and far
//! waiters.
//!
//! A waiter draws a ticket and waits until it is served. The waiter that is served is *the first*:
//! it takes the permits itself as soon as they suffice, and then serves the next ticket.
//!
//! # State
//! Two futexes: `serving`, a `Serving` whose extra bits are a stamp or the *mark*, and `dispenser`,
//! a `Dispenser` with a stamp. A stamp means nothing but that it changes. The mark says that the
//! semaphore is closed.
//!
//! | word | transition | by | step |
//! |---|---|---|---|
//! | `dispenser` | one ticket drawn | an arriving thread | (draw) |
//! | `dispenser` | the last ticket given back | its waiter, if its time is up | (give back) |
//! | `dispenser` | the stamp changed | the waiter that has served a ticket, if others are near now | (restamp) |
//! | `serving` | the next ticket that was not abandoned is served | the first, when it leaves | (serve next) |
//! | `serving` | a ticket abandoned | a waiter whose time is up | (abandon) |
//! | `serving` | the stamp changed | a release that is about to give to a sleeping first | (disturb) |
//! | `serving` | the mark set; it is never cleared | a closing thread, after (close) | (mark) |
//! | `dispenser` | the stamp changed | a closing thread, after (mark) | (restamp all) |
//!
//! # Protocol
//! A **waiter** comes, (come), draws a ticket (draw), and sleeps until it is served. As **the
//! first** it looks for permits. If they suffice, it goes with them (go with permits). If not, it
//! notes in the word for which value of `serving` it sleeps, `ARMED` (arm), and sleeps as long as
//! `serving` has that value. When it leaves, with permits or without (go), it **serves the next**
//! ticket that was not abandoned (serve next). If there are waiters (look for waiters), it wakes
//! the one that is served now. So the next one is awake, or has armed, when its permits come.
//!
//! A **release** that finds the first armed changes the stamp (disturb), unless `serving` has
//! changed already, *before* it gives (give). The same step clears `ARMED`. Then it wakes the
//! first. If the first is not asleep yet, it finds the new stamp and does not fall asleep. If it
//! then arms again before (give), or another has become the first and arms, then the word notes
//! another value, (give) fails, and the release begins again. So no touch after (give) is needed to
//! keep a waiter awake.
//!
//! A **close** sets the mark (mark), changes the stamp of `dispenser` (restamp all), and wakes all
//! that sleep on either futex; `CLOSING.md` has the rest.
//!
//! A waiter that **leaves** and has the last ticket gives it back (give back). Otherwise it
//! abandons its ticket (abandon), if that is among the twelve after the served one. There is no
//! room for more: a waiter further back stays until one of the two is possible, looks every
//! millisecond, and is late. If the ticket that is given back was served by then, the queue is
//! empty, and the next arriving thread draws a ticket that is served already.
//!
//! # Which waiters sleep where
//! A group is sixteen tickets; 32 are near, counted from the served one. A waiter reads `dispenser`
//! (read stamp) before it looks whether it is far, and sleeps there only while that has this value.
//! When (serve next) comes to another group, its thread changes the stamp (restamp), and wakes the
//! waiters that are near now.
//!
//! # Invariants
//! Beside those of `raw.rs` and of `tickets.rs`:
//! 4. Without the mark, the waiter whose ticket is served is the first, or has not looked yet, and
//!    it alone serves the next. A ticket is abandoned only while another one is served (abandon),
//!    and (serve next) does not stop there.
//! 5. If the first sleeps, the word is `ARMED` for the value it sleeps on, or a wake-up is on its
//!    way: only (give) clears `ARMED` in a word whose first stays. For (give) to do that unnoticed,
//!    the first would have to sleep on a value that is newer than (disturb) and to have noted an
//!    older one in the word.
//! 6. Outstanding tickets, those of waiters and abandoned ones, are fewer than there are numbers.
//! 7. If a near waiter sleeps on `dispenser`, a wake-up for it is on its way. It was far after it
//!    had read `dispenser` (read stamp), so the (restamp) that follows the (serve next) which made
//!    it near came later. It was asleep when that woke its group, or it has found another stamp.
//! 8. A waiter does not unwind from (come) to (go with permits) or (go). Its ticket would be
//!    served, and no thread would serve the next. If the kernel refuses the wait, the process
//!    aborts.
//!
//! # Ordering
//! - (go with permits) is Acquire and pairs with (give), Release, through the word.
//! - (come) then a look at `serving`, against (serve next) then a look at the waiters (look for
//!   waiters), is store buffering. (come) and (look for waiters) are read-modify-writes of the
//!   word, (look for waiters) Release and (come) Acquire. If (come) comes second, its thread sees
//!   what (serve next) serves. If (look for waiters) does, its thread sees the waiter.
//! - (read stamp) is Acquire and pairs with (restamp), Release: a waiter that has read the stamp
//!   sees the ticket for which it was changed. This and the pair before matter to far waiters only.
//!   If a near waiter has seen an old value of `serving`, the kernel's comparison finds a newer
//!   one.
//! - (arm) is Release, and the look of a releasing thread at the word is Acquire: it sees the value
//!   for which the first has armed, or a newer one. (disturb) comes before (give) by the latter's
//!   Release.
//! - All else is Relaxed, except (serve next), for a look of tests. The tickets are numbers, and
//!   publish nothing: the first takes its permits from the word, by (go with permits).
//!
//! # Wrap-around
//! The word notes 16 bits of `serving`, made of ticket and stamp. For a wake-up to be lost, a
//! release must stand between its look at the word and its (give) until the same note is there
//! again. For that a multiple of 4,096 tickets must be served, the stamp must be one of fifteen,
//! and there must be as many permits and as many waiters.
//!
//! The stamp of `serving` has fifteen values, but a release changes it only from what the word
//! noted. For it to come round while the first stands between its look at `serving` and its sleep,
//! fourteen more releases have to stand between their look at the word and (disturb), each since
//! another arming of the same first. That of `dispenser` cannot come round while a waiter stands
//! between (read stamp) and its sleep: there are 4,096 groups, its own is not passed, and the rest
//! of 65,536 stamps would have to come from as many threads that are late with (restamp), or from
//! as many calls of close.

use super::raw::RawSemaphore;
use super::word::State;
use crate::TooManyPermits;
use crate::tickets::{Dispenser, Groups, Serving, Ticket};
use core::time::Duration;
use ulocks_core::Policy;
use ulocks_core::futex::{Bits, Futex, Scope, Waited};
use ulocks_core::meter::{Event, Meter};
use ulocks_core::spin;
use ulocks_core::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use ulocks_core::sync::without_unwinding;
use ulocks_core::time::Deadline;

/// How often a waiter looks whether it can abandon its ticket by now.
const LOOK_AGAIN: Duration = Duration::from_millis(1);
/// Two groups of sixteen tickets are near.
const GROUPS: Groups = Groups::new(16, 32);
/// What (disturb) adds to `serving`.
const ONE_STAMP: u32 = Serving::extra_bit(0);
/// The mark: all bits of the stamp.
const MARK: u32 = ONE_STAMP * ((1 << Serving::EXTRA_BITS) - 1);

#[repr(C)]
pub(super) struct Tickets<S: Scope> {
    serving: Futex<S>,
    dispenser: Futex<S>,
}

impl<S: Scope> Tickets<S> {
    ulocks_core::const_fn! {
        pub fn new() -> Self {
            Self { serving: Futex::new(0), dispenser: Futex::new(0) }
        }
    }

    /// Whether a ticket is out.
    pub fn are_used(&self) -> bool {
        // Acquire: `dispenser` is not older than `serving`.
        // Mutant: Acquire -> Relaxed: only tests ask, and none while tickets are served.
        let serving = Serving(self.serving.load(Acquire));
        serving.ahead_of(Dispenser(self.dispenser.load(Relaxed)).ticket()) > 0
    }

    /// (draw), an arrival for `meter`.
    fn draw(&self, meter: &impl Meter) -> Ticket {
        let mut seen = Dispenser(self.dispenser.load(Relaxed));
        loop {
            let next = seen.drawn();
            match meter.arrive(|| self.dispenser.compare_exchange(seen.0, next.0, Relaxed, Relaxed)) {
                Ok(_) => return seen.ticket(),
                Err(now) => seen = Dispenser(now),
            }
        }
    }

    /// (give back): gives `ticket` back, if no other was drawn after it.
    fn give_back(&self, ticket: Ticket) -> bool {
        let mut seen = Dispenser(self.dispenser.load(Relaxed));
        while let Some(next) = seen.given_back(ticket) {
            match self.dispenser.compare_exchange(seen.0, next.0, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = Dispenser(now),
            }
        }
        false
    }
}

/// What the word notes of `serving`. The notes of fifteen stamps and of the mark differ, and those
/// of the next 4,096 tickets from them.
fn note(serving: Serving) -> u32 {
    const ALL: u32 = (1 << State::NOTE_BITS) - 1;
    (u32::from(serving.ticket()) + (serving.extra() << (State::NOTE_BITS - Serving::EXTRA_BITS))) & ALL
}

/// `serving` after (disturb): the next stamp, which is not the mark. The mark stays.
fn stamped(serving: Serving) -> Serving {
    let next = Serving(serving.0.wrapping_add(ONE_STAMP));
    if is_marked(serving) {
        serving
    } else if is_marked(next) {
        serving.without(MARK)
    } else {
        next
    }
}

fn is_marked(serving: Serving) -> bool {
    serving.0 & MARK == MARK
}

/// How the wait for being served ended.
enum Waiting {
    First { slept: bool },
    Gone,
}

impl<P: Policy> RawSemaphore<P> {
    /// Waits for `wanted` permits, counted in already; the first waiter spins a little. False if
    /// `deadline` passed first, or the semaphore is closed.
    pub(super) fn wait_with_ticket(&self, wanted: u32, deadline: Option<Deadline>) -> bool {
        // Invariant 8.
        without_unwinding(|| {
            let ticket = self.waiters.tickets().draw(&self.meter);
            match self.wait_to_be_served(ticket, deadline) {
                Waiting::First { slept } => self.wait_as_first(wanted, ticket, slept, deadline),
                Waiting::Gone => false,
            }
        })
    }

    fn wait_to_be_served(&self, ticket: Ticket, deadline: Option<Deadline>) -> Waiting {
        let tickets = self.waiters.tickets();
        let (mut until, mut expired, mut slept) = (deadline, false, false);
        loop {
            // Mutant: Acquire -> Relaxed: for far waiters; the mutant `relaxed-look` is caught.
            let dispenser = tickets.dispenser.load(Acquire); // (read stamp)
            let serving = Serving(tickets.serving.load(Acquire));
            if serving.ticket() == ticket {
                return Waiting::First { slept };
            }
            if is_marked(serving) {
                self.go(); // (go)
                return Waiting::Gone;
            }
            if expired {
                match self.abandon(ticket, serving) {
                    Some(how) => return how,
                    None => until = Some(Deadline::after(LOOK_AGAIN)),
                }
            }
            self.meter.count(Event::Slept);
            slept = true;
            let waited = if GROUPS.are_near(serving.ticket(), ticket) {
                tickets.serving.wait_bits(serving.0, GROUPS.near_bit(ticket), until)
            } else {
                tickets.dispenser.wait_bits(dispenser, GROUPS.far_bit(ticket), until)
            };
            expired |= waited == Waited::TimedOut;
        }
    }

    /// Gives back or abandons `ticket`, which was not served at `serving`, or finds that it is by
    /// now. `None` if neither is possible.
    #[cold]
    fn abandon(&self, ticket: Ticket, mut serving: Serving) -> Option<Waiting> {
        let tickets = self.waiters.tickets();
        if !tickets.give_back(ticket) {
            loop {
                if serving.ticket() == ticket {
                    return Some(Waiting::First { slept: true });
                }
                if serving.ahead_of(ticket) > Serving::ABANDONABLE {
                    return None;
                }
                // (abandon)
                match tickets.serving.compare_exchange(
                    serving.0,
                    serving.with_abandoned(ticket).0,
                    Relaxed,
                    Relaxed,
                ) {
                    Ok(_) => break,
                    Err(now) => serving = Serving(now),
                }
            }
        }
        self.go(); // (go)
        Some(Waiting::Gone)
    }

    fn wait_as_first(
        &self,
        wanted: u32,
        ticket: Ticket,
        mut slept: bool,
        deadline: Option<Deadline>,
    ) -> bool {
        let tickets = self.waiters.tickets();
        let bit = GROUPS.near_bit(ticket);
        let mut acquired = false;
        spin::head_waiter::<P>(slept, || {
            let state = State(self.state.load(Relaxed));
            acquired = state.suffices(wanted) && self.depart(state, wanted);
            acquired || state.is_closed()
        });
        while !acquired {
            let serving = Serving(tickets.serving.load(Relaxed)); // before (arm)
            let state = State(self.state.load(Relaxed));
            if state.suffices(wanted) {
                acquired = self.depart(state, wanted); // (go with permits)
                continue;
            }
            if state.is_closed() {
                acquired = self.leave_first(wanted);
                break;
            }
            let armed = state.armed(note(serving));
            // (arm)
            if self.state.compare_exchange(state.0, armed.0, Release, Relaxed).is_err() {
                continue;
            }
            slept = true;
            self.meter.count(Event::Slept);
            self.meter.count(Event::Woke); // owed by the release that disarms, which must not count
            if tickets.serving.wait_bits(serving.0, bit, deadline) == Waited::TimedOut {
                acquired = self.leave_first(wanted);
                break;
            }
        }
        if acquired {
            self.meter.count(if slept { Event::Woken } else { Event::Spun });
        }
        self.serve_next();
        acquired
    }

    /// (go with permits): the first goes with `permits`, if the word is `state` still.
    fn depart(&self, state: State, permits: u32) -> bool {
        self.state.compare_exchange(state.0, state.departed(1, permits).0, Acquire, Relaxed).is_ok()
    }

    /// The first has waited long enough, or the semaphore is closed: it takes the permits if they
    /// are there after all, or goes without (go).
    #[cold]
    fn leave_first(&self, wanted: u32) -> bool {
        loop {
            let state = State(self.state.load(Relaxed));
            let permits = if state.suffices(wanted) { wanted } else { 0 };
            if self.depart(state, permits) {
                return permits > 0;
            }
        }
    }

    /// (go): a waiter that is not the first goes.
    fn go(&self) {
        let mut state = State(self.state.load(Relaxed));
        while let Err(now) = self.state.compare_exchange(state.0, state.without_waiter().0, Relaxed, Relaxed)
        {
            state = State(now);
        }
    }

    /// The first has left: serves the next ticket, and wakes the waiters that are near now.
    fn serve_next(&self) {
        let tickets = self.waiters.tickets();
        let mut before = Serving(tickets.serving.load(Relaxed));
        // (serve next)
        let serving = loop {
            let serving = before.advanced();
            // Mutant: Release -> Relaxed: it pairs with the look of tests only, in `are_used`.
            match tickets.serving.compare_exchange(before.0, serving.0, Release, Relaxed) {
                Ok(_) => break serving,
                Err(now) => before = Serving(now),
            }
        };
        // (look for waiters)
        // Mutant: Release -> Relaxed: for far waiters; `relaxed-look-at-waiters` is caught.
        if State(self.state.fetch_add(0, Release)).waiters() == 0 {
            return;
        }
        self.meter.count(Event::Woke);
        tickets.serving.key().wake_bits(1, GROUPS.near_bit(serving.ticket()));
        if let Some(groups) = Bits::new(GROUPS.newly_near(before.ticket(), serving.ticket())) {
            // Mutant: Release -> Relaxed: for far waiters; the mutant `relaxed-stamp` is caught.
            tickets.dispenser.fetch_add(Dispenser::ONE_STAMP, Release); // (restamp)
            self.meter.count(Event::Woke);
            tickets.dispenser.key().wake_bits(u32::MAX, groups);
        }
    }

    /// Closes. `CLOSING.md` has the protocol.
    pub(super) fn close_tickets(&self) {
        let tickets = self.waiters.tickets();
        // Mutant: AcqRel -> Release: in no model a load reads what a later step of its own thread made
        // possible.
        let before = State(self.state.fetch_or(State::CLOSED, AcqRel)); // (close)
        if before.waiters() == 0 {
            return; // nor will there be
        }
        tickets.serving.fetch_or(MARK, Release); // (mark)
        // Mutant: Release -> Relaxed: for far waiters; `relaxed-stamp-of-all` is caught.
        tickets.dispenser.fetch_add(Dispenser::ONE_STAMP, Release); // (restamp all)
        for futex in [&tickets.serving, &tickets.dispenser] {
            self.meter.count(Event::Woke);
            futex.key().wake(u32::MAX);
        }
    }

    /// (give) with waiters, or against other threads.
    pub(super) fn give_to_tickets(&self, count: u32) -> Result<(), TooManyPermits> {
        let tickets = self.waiters.tickets();
        let key = tickets.serving.key();
        let mut state = State(self.state.load(Acquire));
        loop {
            let next = state.given(count).ok_or(TooManyPermits)?;
            let mut first = None;
            if state.is_armed() {
                let mut serving = Serving(tickets.serving.load(Relaxed));
                first = Some(serving.ticket());
                while note(serving) == state.note() {
                    // (disturb)
                    match tickets.serving.compare_exchange(serving.0, stamped(serving).0, Relaxed, Relaxed) {
                        Ok(_) => break,
                        Err(now) => serving = Serving(now),
                    }
                }
            }
            let next = if first.is_some() { next.disarmed() } else { next };
            // The last touch.
            match self.state.compare_exchange(state.0, next.0, Release, Acquire) {
                Ok(_) => {
                    if let Some(first) = first {
                        key.wake_bits(1, GROUPS.near_bit(first));
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
    fn fifteen_stamps_and_the_mark_differ_whatever_was_abandoned() {
        const NOTES: u32 = 1 << State::NOTE_BITS;
        let mut serving = Serving(u32::from(Ticket::MAX));
        let first = note(serving);
        for nth in 1..=15 {
            serving = stamped(serving).with_abandoned(nth % Serving::ABANDONABLE);
            assert!(!is_marked(serving));
            assert_eq!(note(serving), (first + u32::from(nth % 15) * NOTES / 16) % NOTES);
        }
        let marked = serving.with(MARK);
        assert_eq!(note(marked), (first + 15 * NOTES / 16) % NOTES);
        assert!(is_marked(marked.advanced()) && stamped(marked) == marked);
    }
}
