//! The bugs that the models must find, one at a time, and five variants that are sound. The comparisons with `BUG` in the
//! protocol are decided at compile time, so the code that is explored is the code that is shipped.
//!
//! Where it does not say otherwise, a bug is one of a lock as in `ALWAYS_WAKES`: no timer hides it, and none is missed.

/// No bug.
pub const NOTHING: u8 = 0;
/// Sound: each release wakes somebody to contend unless one is awake, so that nobody needs an interval to pass.
pub const ALWAYS_WAKES: u8 = 1;
/// Sound: no release wakes anybody to contend, so that everything comes from the sentinel.
pub const RARELY_WAKES: u8 = 2;
/// Sound: each release past somebody who is parked is looked at closely, as on the machine now and then.
pub const ALWAYS_SEEN: u8 = 3;
/// Sound: each release wakes somebody to contend, also if one that was woken is on its way.
pub const WAKES_EACH_TIME: u8 = 24;
/// Sound: as `RARELY_WAKES`, and the lock is hot whenever somebody is parked.
pub const ALWAYS_HOT: u8 = 25;
/// (T) of somebody who was not parked learns nothing.
pub const RELAXED_TAKE: u8 = 4;
/// (T) of somebody who was parked learns nothing.
pub const RELAXED_TAKE_PARKED: u8 = 5;
/// (U) publishes nothing.
pub const RELAXED_RELEASE: u8 = 6;
/// Who is parked takes a lock that is handed to another.
pub const IGNORES_PROMOTED: u8 = 7;
/// A release leaves the lock free although somebody is promoted.
pub const NEVER_GRANTS: u8 = 8;
/// A release wakes without ringing the bell first.
pub const NO_BELL: u8 = 9;
/// A release rings the bell before `AWAKE` is in the word.
pub const RINGS_EARLY: u8 = 10;
/// A waiter reads the bell after (P).
pub const READS_LATE: u8 = 11;
/// Who was woken acquires and leaves `AWAKE` behind.
pub const LEAVES_AWAKE: u8 = 12;
/// Who was woken in vain leaves `AWAKE` behind.
pub const PARKS_AWAKE: u8 = 13;
/// Who gives up with a wake-up keeps it.
pub const LEAVES_WITH_THE_WAKE_UP: u8 = 14;
/// As the plan says, but nobody becomes the sentinel once the first one has left.
pub const NO_SUCCESSOR: u8 = 15;
/// As `RARELY_WAKES`, but a release wakes no heir either.
pub const NO_HEIR: u8 = 16;
/// As `RARELY_WAKES`, but a waiter whose deadline has passed leaves a lock that is free.
pub const LEAVES_A_FREE_LOCK: u8 = 17;
/// Who gives up leaves its flags behind.
pub const LEAVES_FLAGS: u8 = 18;
/// The promoted goes to sleep without saying so.
pub const SLEEPS_QUIETLY: u8 = 19;
/// A release wakes anybody although the lock is handed to one.
pub const WAKES_ANYBODY: u8 = 20;
/// As the plan says, but between processes the sentinel does not look whether whom the lock was handed to is dead.
pub const TRUSTS_THE_PROMOTED: u8 = 21;
/// A waiter moved here by a condition variable locks like an arrival.
pub const REQUEUED_FORGETS: u8 = 22;
/// A release looks at the word once more.
pub const TOUCHES_AFTER: u8 = 23;
