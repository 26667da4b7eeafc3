//! The words of a fair mutex between processes: a ticket, and whose turn it is.

use core::fmt;

/// Tickets are counted modulo 2^16.
pub(super) type Ticket = u16;

/// A value of the word that says whose turn it is.
///
/// | part | bits | meaning | set by | cleared by |
/// |---|---|---|---|---|
/// | `serving` | 16 | the ticket that holds the mutex; if nobody drew it, the mutex is free | the holder | |
/// | `gone` | 12 | which of the twelve tickets after it were given up | a waiter whose time is up | the release, as it goes past them |
/// | `FIRST` | 1 | who is first in line sleeps, and knows that it is first | that waiter | each release, which then wakes it; that waiter, when it leaves |
/// | `LATE` | 1 | somebody further behind may have come too late for the release to see its ticket | a waiter further behind | each release, which then wakes the second |
/// | `WATCHED` | 1 | somebody waits outside for the line to get shorter | that waiter | a release that leaves a short line, and wakes one of them |
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Turn(pub(super) u32);

impl Turn {
    /// Who is first in line sleeps, and knows that it is first.
    pub(super) const FIRST: u32 = 1;
    /// Somebody further behind may have come too late for the release to see its ticket.
    pub(super) const LATE: u32 = 2;
    /// Somebody waits outside for the line to get shorter.
    pub(super) const WATCHED: u32 = 4;

    const GONE_SHIFT: u32 = 4;
    /// How many tickets after the one that is served can be given up.
    pub(super) const GONE_BITS: u16 = 12;
    const SERVING_SHIFT: u32 = 16;

    fn new(serving: Ticket, gone: u32, flags: u32) -> Self {
        Self(u32::from(serving) << Self::SERVING_SHIFT | gone << Self::GONE_SHIFT | flags)
    }

    /// The ticket that holds the mutex, or would.
    pub(super) fn serving(self) -> Ticket {
        (self.0 >> Self::SERVING_SHIFT) as Ticket
    }

    fn gone(self) -> u32 {
        (self.0 >> Self::GONE_SHIFT) & ((1 << Self::GONE_BITS) - 1)
    }

    /// Whether `flag` is set.
    pub(super) fn has(self, flag: u32) -> bool {
        self.0 & flag != 0
    }

    /// The same with `flag` set.
    pub(super) fn with(self, flag: u32) -> Self {
        Self(self.0 | flag)
    }

    /// Whether there is nothing to it but the ticket: nobody has waited, left or is waiting in this
    /// turn.
    pub(super) fn is_plain(self) -> bool {
        self.0 & 0xffff == 0
    }

    /// How many tickets before `ticket` are not served yet, the holder's included: zero if it holds
    /// the mutex.
    pub(super) fn ahead_of(self, ticket: Ticket) -> u16 {
        ticket.wrapping_sub(self.serving())
    }

    /// How many tickets after the one that is served were given up without one that was not in
    /// between.
    pub(super) fn skipped(self) -> u16 {
        self.gone().trailing_ones() as u16
    }

    /// The ticket that is served next, whether or not somebody has drawn it.
    pub(super) fn first(self) -> Ticket {
        self.serving().wrapping_add(1 + self.skipped())
    }

    /// The same after a release: `first` is served. Of the flags `WATCHED` stays.
    pub(super) fn released(self) -> Self {
        Self::new(self.first(), self.gone() >> (1 + self.skipped()), self.0 & Self::WATCHED)
    }

    /// The same with `ticket` given up, which is one of the twelve after the one that is served.
    pub(super) fn given_up(self, ticket: Ticket) -> Self {
        debug_assert!((1..=Self::GONE_BITS).contains(&self.ahead_of(ticket)));
        let was_first = if self.first() == ticket { Self::FIRST } else { 0 };
        Self((self.0 & !was_first) | 1 << (Self::GONE_SHIFT + u32::from(self.ahead_of(ticket)) - 1))
    }

    /// The same without `WATCHED`.
    pub(super) fn unwatched(self) -> Self {
        Self(self.0 & !Self::WATCHED)
    }
}

/// A value of the word from which tickets are drawn.
///
/// | part | bits | meaning | changed by |
/// |---|---|---|---|
/// | `near` | 16 | the tickets from this one on, two groups of them, sleep on the turn; those after them here, by group and by section | the holder as it releases, always forwards, to the group that is served then |
/// | `ticket` | 16 | the next to be drawn | an arrival |
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Next(pub(super) u32);

impl Next {
    fn new(near: Ticket, ticket: Ticket) -> Self {
        Self(u32::from(near) << 16 | u32::from(ticket))
    }

    /// The ticket to be drawn next.
    pub(super) fn ticket(self) -> Ticket {
        self.0 as Ticket
    }

    fn near(self) -> Ticket {
        (self.0 >> 16) as Ticket
    }

    /// The first ticket of the sections, whose holders sleep by section; those before it do by
    /// group, or are near.
    fn sections(self, sizes: Sizes) -> Ticket {
        self.near().wrapping_add(sizes.groups * sizes.group) & !(sizes.section - 1)
    }

    /// Of 32 bits the one with which the holder of `ticket` sleeps here, unless it is near.
    pub(super) fn far_bit(self, ticket: Ticket, sizes: Sizes) -> Option<u32> {
        if ticket.wrapping_sub(self.near()) < 2 * sizes.group {
            None
        } else if ticket.wrapping_sub(self.near()) < self.sections(sizes).wrapping_sub(self.near()) {
            Some(sizes.group_bit(ticket))
        } else {
            Some(sizes.section_bit(ticket))
        }
    }

    /// Whether anybody may sleep here.
    pub(super) fn has_far(self, sizes: Sizes) -> bool {
        self.ticket().wrapping_sub(self.near()) > 2 * sizes.group
    }

    /// The same with the group of `serving` near, and the next one.
    pub(super) fn nearer(self, serving: Ticket, sizes: Sizes) -> Self {
        let near = serving & !(sizes.group - 1);
        // Never backwards.
        if near.wrapping_sub(self.near()) < 1 << 15 { Self::new(near, self.ticket()) } else { self }
    }

    /// The same with one ticket drawn.
    pub(super) fn drawn(self) -> Self {
        Self::new(self.near(), self.ticket().wrapping_add(1))
    }

    /// The bits of all who sleep here with another one than they would if `near` is as in `after`,
    /// which is not before.
    pub(super) fn newly_near(self, after: Self, sizes: Sizes) -> u32 {
        let steps = |from: Ticket, to: Ticket, size: Ticket| {
            // So many steps reach each bit, also across the wrap of the numbers.
            let count = (to.wrapping_sub(from) / size).min(64);
            (0..count).map(move |nth| from.wrapping_add(nth * size))
        };
        let not_near = |next: Self| next.near().wrapping_add(2 * sizes.group);
        let groups = steps(not_near(self), not_near(after), sizes.group).map(|first| sizes.group_bit(first));
        let sections = steps(self.sections(sizes), after.sections(sizes), sizes.section)
            .map(|first| sizes.section_bit(first));
        groups.chain(sections).fold(0, |bits, bit| bits | 1 << bit)
    }
}

/// How those who sleep where tickets are drawn share 32 bits.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    /// So many tickets, a power of two, make a group.
    pub(super) group: Ticket,
    /// So many tickets, a power of two, make a section.
    section: Ticket,
    /// So many bits are for groups, the others for sections.
    groups: Ticket,
}

impl Sizes {
    /// Sizes that fit the bits.
    pub(super) const fn new(group: Ticket, section: Ticket, groups: Ticket) -> Self {
        assert!(group.is_power_of_two() && section.is_power_of_two() && group <= section);
        assert!(groups < 32 && groups * group >= 2 * group + section);
        Self { group, section, groups }
    }

    fn group_bit(self, ticket: Ticket) -> u32 {
        u32::from(ticket / self.group % self.groups)
    }

    fn section_bit(self, ticket: Ticket) -> u32 {
        u32::from(self.groups + ticket / self.section % (32 - self.groups))
    }
}

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "next={} near={}", self.ticket(), self.near())
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "serving={}", self.serving())?;
        if self.gone() != 0 {
            write!(f, " gone={:#b}", self.gone())?;
        }
        let names = [(Self::FIRST, "FIRST"), (Self::LATE, "LATE"), (Self::WATCHED, "WATCHED")];
        for (_, name) in names.into_iter().filter(|&(flag, _)| self.has(flag)) {
            write!(f, " {name}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_goes_past_those_who_gave_up() {
        let turn = Turn::new(u16::MAX - 1, 0, Turn::WATCHED | Turn::FIRST);
        assert_eq!((turn.first(), turn.released().serving()), (u16::MAX, u16::MAX));
        let turn = turn.given_up(u16::MAX).given_up(0).given_up(2);
        assert!(!turn.has(Turn::FIRST), "the first has left");
        assert_eq!((turn.skipped(), turn.first(), turn.ahead_of(1)), (2, 1, 3));
        let turn = turn.released();
        assert_eq!((turn.serving(), turn.skipped(), turn.first()), (1, 1, 3));
        assert!(turn.has(Turn::WATCHED) && !turn.unwatched().has(Turn::WATCHED));
        assert_eq!(turn.released().released(), Turn::new(4, 0, Turn::WATCHED));
    }

    #[test]
    fn all_twelve_can_give_up() {
        let all = (1..=Turn::GONE_BITS).fold(Turn(0), Turn::given_up);
        assert_eq!(all.released(), Turn::new(13, 0, 0));
    }

    #[test]
    fn two_groups_are_near() {
        let sizes = Sizes::new(8, 128, 24);
        let is_far = |next: Next, ticket| next.far_bit(ticket, sizes).is_some();
        let next = Next::new(u16::MAX - 7, 20);
        assert!(!is_far(next, u16::MAX - 7) && !is_far(next, 7) && is_far(next, 8) && next.has_far(sizes));
        let after = next.nearer(11, sizes);
        assert_eq!((after.near(), after.ticket()), (8, 20));
        assert_eq!(next.newly_near(after, sizes), 1 << 1 | 1 << 2, "the groups of 8 and 16");
        assert_eq!(
            Next::new(56, 0).newly_near(Next::new(64, 0), sizes),
            1 << 9 | 1 << 25,
            "the section of 128"
        );
        assert!(!is_far(after, 23) && is_far(after, 24) && !after.has_far(sizes));
        assert_eq!(after.nearer(u16::MAX, sizes), after, "never backwards");
        assert_eq!(Next::new(8, u16::MAX).drawn(), Next::new(8, 0));
    }

    #[test]
    #[cfg_attr(miri, ignore = "the numbers are many, and the same in every schedule")]
    fn whoever_changes_its_bit_is_woken() {
        const LINE: u16 = 0xf000;
        let sizes = Sizes::new(8, 128, 24);
        for start in (0..384).chain(u16::MAX - 2_047..=u16::MAX).step_by(24) {
            let next = Next::new(start, start);
            for move_by in [0, 8, 16, 64, 72, 128, 400, 512, 4_096, 32_760] {
                let after = next.nearer(start.wrapping_add(move_by), sizes);
                let woken = next.newly_near(after, sizes);
                for ticket in (move_by..LINE).step_by(8).map(|ahead| start.wrapping_add(ahead)) {
                    if let Some(bit) = next.far_bit(ticket, sizes)
                        && after.far_bit(ticket, sizes) != Some(bit)
                    {
                        assert_ne!(woken & 1 << bit, 0, "{ticket} from {start} on by {move_by}");
                    }
                }
                if move_by == 8 {
                    let (groups, sections) = (woken & 0xff_ffff, woken >> 24);
                    assert!(
                        groups.count_ones() == 1 && sections.count_ones() <= 1,
                        "{woken:#x} from {start}"
                    );
                }
            }
        }
    }

    #[test]
    fn debug_names_the_parts() {
        assert_eq!(format!("{:?}", Next::new(8, 17)), "next=17 near=8");
        assert_eq!(format!("{:?}", Turn(0)), "serving=0");
        assert_eq!(
            format!("{:?}", Turn::new(7, 2, Turn::LATE | Turn::WATCHED)),
            "serving=7 gone=0b10 LATE WATCHED"
        );
    }
}
