//! What a poll of a lock costs, by the clock.

/// Cost of one poll, in pause instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PollCost {
    /// The poll and its timing.
    pub(crate) total: u32,
    /// The cache miss of the poll; 0 on a hit.
    pub(crate) miss: u32,
}

impl PollCost {
    /// The cost of a poll between two readings of a clock. The readings are `took` nanoseconds
    /// apart, and one of them takes `reading`. `pauses` converts nanoseconds.
    ///
    /// A hit takes a few nanoseconds, a miss more than a reading of the clock.
    #[cfg(any(test, not(world = "loom")))]
    pub(crate) fn of(took: u64, reading: u64, pauses: impl Fn(u32) -> u32) -> Self {
        let pauses = |ns: u64| pauses(u32::try_from(ns).unwrap_or(u32::MAX));
        let miss = if took > 2 * reading { pauses(took - reading) } else { 0 };
        Self { total: pauses(took), miss }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_poll_that_takes_no_longer_than_the_clock_was_a_hit() {
        let of = |took| PollCost::of(took, 20, |ns| ns.div_ceil(10));
        assert_eq!(of(20), PollCost { total: 2, miss: 0 });
        assert_eq!(of(40), PollCost { total: 4, miss: 0 });
        assert_eq!(of(120), PollCost { total: 12, miss: 10 });
        assert_eq!(of(u64::MAX).miss, u32::MAX.div_ceil(10), "preempted");
    }
}
