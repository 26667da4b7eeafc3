//! The bugs that the models must find, one at a time. The comparisons with `BUG` in the protocol are decided at compile
//! time, so the code that is explored is the code that is shipped.

/// No bug.
pub const NOTHING: u8 = 0;
/// (L1) learns nothing.
pub const RELAXED_L1: u8 = 1;
/// (L2) and (L3) learn nothing.
pub const RELAXED_TAKE: u8 = 2;
/// (L4) learns nothing.
pub const RELAXED_L4: u8 = 3;
/// (U) publishes nothing.
pub const RELAXED_RELEASE: u8 = 4;
/// Anybody takes a reserved mutex.
pub const IGNORES_RESERVED: u8 = 5;
/// A head that gives up leaves its reservation behind.
pub const LEAVES_RESERVED: u8 = 6;
/// Who leaves the line does not wake the next.
pub const FORGETS_NEXT: u8 = 7;
/// A head goes to sleep without saying so.
pub const SLEEPS_QUIETLY: u8 = 8;
/// A woken outsider acquires and forgets those that sleep still.
pub const FORGETS_OUTSIDERS: u8 = 9;
/// An outsider with a deadline gives up with a wake-up that is another's now.
pub const LEAVES_WITH_THE_WAKE_UP: u8 = 10;
/// A release wakes nobody if there is a line.
pub const WAKES_NO_HEAD: u8 = 11;
/// A release looks at the word once more.
pub const TOUCHES_AFTER: u8 = 12;
/// A waiter moved here by a condition variable locks like an arrival.
pub const REQUEUED_FORGETS: u8 = 13;
/// A head that gives up leaves its mark behind, and forgets what it owes.
pub const LEAVES_ASLEEP: u8 = 14;
/// A head acquires and forgets the outsiders.
pub const HEAD_FORGETS_OUTSIDERS: u8 = 15;
