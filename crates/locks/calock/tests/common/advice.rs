//! Decisions in place of the plan. The promises of the calock hold under each of them.

use ulocks_calock::Every;
use ulocks_calock::advice::{Advice, Advised};

/// The first nap that ends is a whole interval.
pub type Short = Every<1>;
/// The standby sleeps twice before its interval has passed.
pub type Long = Every<300_000>;

/// Each release wakes a waiter to contend unless one is awake, so that no thread needs a timer.
pub enum AlwaysWakes {}

impl Advice for AlwaysWakes {
    fn wants_wake(awake: bool) -> Option<bool> {
        Some(!awake)
    }
}

/// Each release wakes a waiter to contend, also if one that was woken is on its way.
pub enum WakesEachTime {}

impl Advice for WakesEachTime {
    fn wants_wake(_: bool) -> Option<bool> {
        Some(true)
    }
}

/// No release wakes a waiter to contend, so that everything comes from the timer of the standby.
pub enum RarelyWakes {}

impl Advice for RarelyWakes {
    fn wants_wake(_: bool) -> Option<bool> {
        Some(false)
    }
}

/// The same, and an arrival parks at once while a waiter is parked.
pub enum AlwaysHot {}

impl Advice for AlwaysHot {
    const SOLO: bool = true;

    fn wants_wake(_: bool) -> Option<bool> {
        Some(false)
    }
}

/// The plan notes each release past a parked waiter, as on the machine now and then.
pub enum AlwaysSeen {}

impl Advice for AlwaysSeen {
    const NOTES_EACH: bool = true;
}

/// A lost wake-up is a deadlock: no timer helps.
pub type Strictly = Advised<Short, AlwaysWakes>;
/// What depends on the timer of the standby.
pub type Rarely = Advised<Short, RarelyWakes>;
/// The plan at work.
pub type Seen = Advised<Long, AlwaysSeen>;
