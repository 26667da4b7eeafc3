//! The tickets of a lock between processes: two words, and the numbers in them. `FairMutex` and
//! `Semaphore` share them; each protocol says in its own file when it changes a word.
//!
//! No process can see another's stack, so there are no nodes. A waiter draws a *ticket* from the
//! [`Dispenser`] and waits until [`Serving`] has reached it. All numbers count modulo 2^16. A
//! planted change makes them fewer, and then the models go round them.
//!
//! # Near and far
//! ```text
//!  tickets:  served                                              last drawn
//!              |                                                     |
//!     ---------s----1----2----3 ..... | ........ | ........ | .. ----n-----
//!              '----- near: sleep on `Serving`,   far: sleep on `Dispenser`,
//!                     a bit for each              a bit for each group
//! ```
//! A waiter sleeps with a bit, and a wake-up reaches the waiters of that bit. The *near* waiters
//! are those of so many tickets in a row as [`Groups`] has bits for, from the *base* on: the group
//! that is served, and the next. They sleep on `Serving`, each with a bit of its own. All others
//! are *far*. They sleep on `Dispenser` with the bit of their group. When the base comes to the
//! next group, the group behind it becomes near. The thread that moves the base wakes that bit, and
//! the waiters sleep again, on `Serving`, unless they are served. Groups that lie 32 groups apart
//! share a bit; a waiter that is woken too early finds that it is far still.
//!
//! (With one futex for all, tickets have to share bits. To wake all waiters of a bit makes 32
//! sleeps of one at 1,000 waiters. To wake one of them reaches the wrong one as soon as two have
//! fallen asleep in another order than they drew, and what is out of order once stays so. Both were
//! measured: 4 and 1 k/s.)
//!
//! # Invariants
//! 1. A ticket is drawn once, and `Serving` passes it once. Fewer tickets are drawn and not passed
//!    than there are numbers.
//! 2. Only the [`ABANDONABLE`](Serving::ABANDONABLE) tickets after the served one can be abandoned.
//!    `Serving` passes an abandoned ticket without serving it.
//! 3. A bit on `Serving` is one waiter's, but for one bit of the mutex, which is two waiters'. A
//!    waiter that sleeps there was near when it fell asleep, and `Serving` has not passed it since,
//!    so all of them are near.
//! 4. When the base moves, each far waiter that becomes near has a bit that
//!    [`newly_near`](Groups::newly_near) contains, also across the wrap of the numbers: the number
//!    of groups is a multiple of 32. The protocols see to it that a waiter that was far by an older
//!    base does not fall asleep: the kernel compares `Dispenser` with the value by which the waiter
//!    decided, and a move of the base changes that value (`near`, or a stamp).

use core::fmt;
use ulocks_core::futex::Bits;

/// A number of a ticket.
pub(crate) type Ticket = u16;

/// The greatest number. Models plant a smaller one, to go round the numbers.
const LAST: Ticket = Ticket::MAX;
/// How many tickets of the mutex may be drawn and not served: 61,440.
pub(crate) const ROOM: u16 = LAST - (LAST >> 4);

/// The number that comes `count` numbers after `ticket`.
#[inline(always)]
fn plus(ticket: Ticket, count: u16) -> Ticket {
    ticket.wrapping_add(count) & LAST
}

/// How many numbers on from `from` the number `to` is.
#[inline(always)]
fn distance(from: Ticket, to: Ticket) -> u16 {
    to.wrapping_sub(from) & LAST
}

/// A value of the word that says which ticket is served.
///
/// | part | bits | meaning |
/// |---|---|---|
/// | `ticket` | 16 | the ticket that is served; if no thread drew it, no thread is served |
/// | `abandoned` | 12 | which of the twelve tickets after it were abandoned |
/// | extra | 4 | the protocol's: flags of the mutex, a stamp or the mark of the semaphore |
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Serving(pub(crate) u32);

impl Serving {
    /// How many tickets after the served one can be abandoned.
    pub(crate) const ABANDONABLE: u16 = 12;
    const ABANDONED_SHIFT: u32 = Ticket::BITS;
    const EXTRA_SHIFT: u32 = Self::ABANDONED_SHIFT + Self::ABANDONABLE as u32;
    /// How many bits are the protocol's.
    pub(crate) const EXTRA_BITS: u32 = u32::BITS - Self::EXTRA_SHIFT;

    #[cfg(test)]
    pub(crate) fn new(ticket: Ticket, abandoned: u32, extra: u32) -> Self {
        Self(u32::from(ticket) | abandoned << Self::ABANDONED_SHIFT | extra)
    }

    /// The lowest of the protocol's bits, moved up by `nth`.
    pub(crate) const fn extra_bit(nth: u32) -> u32 {
        1 << (Self::EXTRA_SHIFT + nth)
    }

    /// The protocol's bits, as a number.
    pub(crate) fn extra(self) -> u32 {
        self.0 >> Self::EXTRA_SHIFT
    }

    /// The ticket that is served.
    pub(crate) fn ticket(self) -> Ticket {
        self.0 as Ticket
    }

    fn abandoned(self) -> u32 {
        self.0 >> Self::ABANDONED_SHIFT & ((1 << Self::ABANDONABLE) - 1)
    }

    /// Whether `flag` is set.
    pub(crate) fn has(self, flag: u32) -> bool {
        self.0 & flag != 0
    }

    /// The same with `flag` set.
    pub(crate) fn with(self, flag: u32) -> Self {
        Self(self.0 | flag)
    }

    /// The same without `flags`.
    pub(crate) fn without(self, flags: u32) -> Self {
        Self(self.0 & !flags)
    }

    /// Whether all but the ticket is zero.
    pub(crate) fn is_plain(self) -> bool {
        self.0 >> Self::ABANDONED_SHIFT == 0
    }

    /// How many tickets before `ticket` are not passed yet: zero if it is served.
    pub(crate) fn ahead_of(self, ticket: Ticket) -> u16 {
        distance(self.ticket(), ticket)
    }

    /// How many tickets right after the served one were abandoned.
    pub(crate) fn skipped(self) -> u16 {
        self.abandoned().trailing_ones() as u16
    }

    /// The ticket that is served next, drawn or not.
    pub(crate) fn first(self) -> Ticket {
        plus(self.ticket(), 1 + self.skipped())
    }

    /// The same when `first` is served, with the protocol's bits as they are.
    pub(crate) fn advanced(self) -> Self {
        let abandoned = self.abandoned() >> (1 + self.skipped());
        Self(u32::from(self.first()) | abandoned << Self::ABANDONED_SHIFT | self.extra() << Self::EXTRA_SHIFT)
    }

    /// The same with `ticket` abandoned, which is one of the twelve after the served one.
    pub(crate) fn with_abandoned(self, ticket: Ticket) -> Self {
        debug_assert!((1..=Self::ABANDONABLE).contains(&self.ahead_of(ticket)));
        Self(self.0 | 1 << (Self::ABANDONED_SHIFT + u32::from(self.ahead_of(ticket)) - 1))
    }
}

/// A value of the word from which tickets are drawn.
///
/// | part | bits | meaning | changed by |
/// |---|---|---|---|
/// | `ticket` | 16 | the next to be drawn | an arriving thread; the semaphore's last waiter, if it gives its ticket back |
/// | `near` or stamp | 16 | the mutex: the base, and the first near ticket; the semaphore: a number that changes when the base has moved | the thread that moves the base |
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dispenser(pub(crate) u32);

impl Dispenser {
    /// One stamp, to be added to the word.
    pub(crate) const ONE_STAMP: u32 = 1 << Ticket::BITS;

    fn new(near: Ticket, ticket: Ticket) -> Self {
        Self(u32::from(near) << Ticket::BITS | u32::from(ticket))
    }

    /// The ticket to be drawn next.
    pub(crate) fn ticket(self) -> Ticket {
        self.0 as Ticket
    }

    /// The same with `ticket` to be drawn next.
    fn with_ticket(self, ticket: Ticket) -> Self {
        Self(self.0 >> Ticket::BITS << Ticket::BITS | u32::from(ticket))
    }

    /// The same with one ticket drawn.
    pub(crate) fn drawn(self) -> Self {
        self.with_ticket(plus(self.ticket(), 1))
    }

    /// The same with `ticket` given back; `None` if another one was drawn after it.
    pub(crate) fn given_back(self, ticket: Ticket) -> Option<Self> {
        (plus(ticket, 1) == self.ticket()).then(|| self.with_ticket(ticket))
    }

    /// The base of the mutex.
    pub(crate) fn near(self) -> Ticket {
        (self.0 >> Ticket::BITS) as Ticket
    }

    /// The same with the group of `serving` as the base; never backwards.
    pub(crate) fn nearer(self, serving: Ticket, groups: Groups) -> Self {
        let near = groups.base(serving);
        if distance(self.near(), near) <= LAST / 2 { Self::new(near, self.ticket()) } else { self }
    }

    /// Whether a ticket is drawn that is far from `near`.
    pub(crate) fn has_far(self, groups: Groups) -> bool {
        distance(self.near(), self.ticket()) > groups.near
    }
}

/// How waiters share bits.
#[derive(Clone, Copy)]
pub(crate) struct Groups {
    /// How many tickets make a group: a power of two.
    size: Ticket,
    /// How many tickets are near: a power of two.
    pub(crate) near: Ticket,
}

impl Groups {
    /// Groups of `size` tickets, and `near` tickets with a bit each.
    pub(crate) const fn new(size: Ticket, near: Ticket) -> Self {
        assert!(size.is_power_of_two() && near.is_power_of_two() && size <= near && near as u32 <= u32::BITS);
        Self { size, near }
    }

    /// The first ticket of the group of `ticket`.
    fn base(self, ticket: Ticket) -> Ticket {
        ticket & !(self.size - 1)
    }

    /// Whether `ticket` is near, counted from `from`: the base, or the served ticket.
    pub(crate) fn are_near(self, from: Ticket, ticket: Ticket) -> bool {
        distance(from, ticket) < self.near
    }

    /// The bit of a near waiter.
    pub(crate) fn near_bit(self, ticket: Ticket) -> Bits {
        Bits::one((ticket % self.near).into())
    }

    /// The bit of a far waiter.
    pub(crate) fn far_bit(self, ticket: Ticket) -> Bits {
        Bits::one(u32::from(ticket / self.size) % u32::BITS)
    }

    /// The bits of the far waiters that become near as the base moves from the group of `before` to
    /// that of `after`.
    pub(crate) fn newly_near(self, before: Ticket, after: Ticket) -> u32 {
        let before = self.base(before);
        // 32 groups reach each bit.
        let count = (distance(before, self.base(after)) / self.size).min(u32::BITS as Ticket);
        (0..count)
            .map(|nth| plus(before, self.near + nth * self.size))
            .fold(0, |bits, first| bits | self.far_bit(first).get())
    }
}

impl fmt::Debug for Dispenser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "next={} near={}", self.ticket(), self.near())
    }
}

impl fmt::Debug for Serving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "serving={}", self.ticket())?;
        if !self.is_plain() {
            write!(f, " abandoned={:#b} extra={:#b}", self.abandoned(), self.extra())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abandoned_tickets_are_passed() {
        let extra = Serving::extra_bit(0) | Serving::extra_bit(3);
        let serving = Serving::new(u16::MAX - 1, 0, extra);
        assert_eq!((serving.first(), serving.advanced().ticket()), (u16::MAX, u16::MAX));
        let serving = serving.with_abandoned(u16::MAX).with_abandoned(0).with_abandoned(2);
        assert_eq!((serving.skipped(), serving.first(), serving.ahead_of(1)), (2, 1, 3));
        let serving = serving.advanced();
        assert_eq!((serving.ticket(), serving.skipped(), serving.first()), (1, 1, 3));
        assert_eq!(serving.advanced().advanced(), Serving::new(4, 0, extra));
    }

    #[test]
    fn all_twelve_can_be_abandoned() {
        let all = (1..=Serving::ABANDONABLE).fold(Serving(0), Serving::with_abandoned);
        assert_eq!(all.advanced(), Serving::new(13, 0, 0));
    }

    #[test]
    fn two_groups_are_near() {
        let groups = Groups::new(8, 16);
        let is_far = |dispenser: Dispenser, ticket| !groups.are_near(dispenser.near(), ticket);
        let before = Dispenser::new(u16::MAX - 7, 20);
        assert!(
            !is_far(before, u16::MAX - 7)
                && !is_far(before, 7)
                && is_far(before, 8)
                && before.has_far(groups)
        );
        let after = before.nearer(11, groups);
        assert_eq!((after.near(), after.ticket()), (8, 20));
        assert_eq!(groups.newly_near(before.near(), after.near()), 1 << 1 | 1 << 2, "the groups of 8 and 16");
        assert!(!is_far(after, 23) && is_far(after, 24) && !after.has_far(groups));
        assert_eq!(after.nearer(u16::MAX, groups), after, "never backwards");
        assert_eq!(Dispenser::new(8, u16::MAX).drawn(), Dispenser::new(8, 0));
        assert_eq!(Dispenser::new(8, 0).given_back(u16::MAX), Some(Dispenser::new(8, u16::MAX)));
        assert_eq!(Dispenser::new(8, 0).given_back(7), None);
    }

    #[test]
    #[cfg_attr(miri, ignore = "the numbers are many, and the same in every schedule")]
    fn each_waiter_that_becomes_near_is_woken() {
        for groups in [Groups::new(8, 16), Groups::new(16, 32), Groups::new(1, 1), Groups::new(2, 4)] {
            for start in (0..384).chain(u16::MAX - 2_047..=u16::MAX).step_by(24) {
                for move_by in [0, 1, 8, 16, 64, 72, 128, 400, 512, 4_096, 32_760] {
                    let after = start.wrapping_add(move_by);
                    let woken = groups.newly_near(start, after);
                    let (was, is) = (groups.base(start), groups.base(after));
                    for ticket in (0..groups.near).map(|nth| is.wrapping_add(nth)) {
                        if !groups.are_near(was, ticket) {
                            let bit = groups.far_bit(ticket).get();
                            assert_ne!(woken & bit, 0, "{ticket} from {start} on by {move_by}");
                        }
                    }
                    assert!(woken.count_ones() <= u32::from(move_by / groups.size) + 1, "{woken:#x}");
                }
            }
        }
    }

    #[test]
    fn debug_names_the_parts() {
        assert_eq!(format!("{:?}", Dispenser::new(8, 17)), "next=17 near=8");
        assert_eq!(format!("{:?}", Serving(0)), "serving=0");
        let serving = Serving::new(7, 2, Serving::extra_bit(1));
        assert_eq!(format!("{serving:?}"), "serving=7 abandoned=0b10 extra=0b10");
    }
}
