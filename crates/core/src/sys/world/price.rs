//! What a look at a lock has cost, by the clock.

/// In pauses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Price {
    /// The look, and finding out about it.
    pub(crate) took: u32,
    /// The look alone, if it missed: if its line had to be fetched. Zero if it was here.
    pub(crate) missed: u32,
}

impl Price {
    /// Of a look between two readings of a clock `took` nanoseconds apart, which itself takes
    /// `reading` of them; `pauses` are those in so many nanoseconds. A line that is here takes a
    /// few, one that is not takes more than a reading.
    #[cfg(any(test, not(world = "loom")))]
    pub(crate) fn of(took: u64, reading: u64, pauses: impl Fn(u32) -> u32) -> Self {
        let pauses = |ns: u64| pauses(u32::try_from(ns).unwrap_or(u32::MAX));
        let missed = if took > 2 * reading { pauses(took - reading) } else { 0 };
        Self { took: pauses(took), missed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_takes_no_longer_than_the_clock_was_a_hit() {
        let of = |took| Price::of(took, 20, |ns| ns.div_ceil(10));
        assert_eq!(of(20), Price { took: 2, missed: 0 });
        assert_eq!(of(40), Price { took: 4, missed: 0 });
        assert_eq!(of(120), Price { took: 12, missed: 10 });
        assert_eq!(of(u64::MAX).missed, u32::MAX.div_ceil(10), "preempted");
    }
}
