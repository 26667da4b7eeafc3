//! The bugs that the models must find, one at a time. The array proper has none of them: the comparisons with `BUG` are
//! decided at compile time.

use ulocks_core::sync::Ordering;

/// The ordering `weak` with the bug, else the `right` one.
#[inline]
pub(crate) const fn weak(bug: bool, weak: Ordering, right: Ordering) -> Ordering {
    if bug { weak } else { right }
}

/// No bug.
pub const NOTHING: u8 = 0;

/// A single operation is a load and a store.
pub const IN_TWO: u8 = 1;
/// A single operation does not mind a cell that is locked.
pub const IGNORES_LOCK: u8 = 2;
/// An addition does not mind those who wait for it.
pub const ADDS_QUIETLY: u8 = 3;
/// A subtraction that leaves zero does not mind those who wait for it.
pub const FORGETS_ZERO: u8 = 4;
/// A session without C touches cells that complex sleepers depend on.
pub const IGNORES_COMPLEX: u8 = 5;
/// A session without C waits for a cell while it has others.
pub const WAITS_HOLDING: u8 = 6;
/// A set that cannot proceed keeps what it got.
pub const KEEPS_PART: u8 = 7;
/// Values are handed to the head of a queue only.
pub const HEAD_ONLY: u8 = 8;
/// A cell is published without publishing what was done.
pub const RELAXED_PUBLISH: u8 = 9;
/// A sleeper is told before the words are published.
pub const TELLS_FIRST: u8 = 10;
/// A sleeper that is told learns nothing else.
pub const RELAXED_TELL: u8 = 11;
/// A sleeper that gives up does not look whether it has been served.
pub const GIVES_UP_BLINDLY: u8 = 12;
/// A complex sleeper that stops elsewhere now stays where it was.
pub const NEVER_MOVES: u8 = 13;
/// A complex sleeper that moves goes to the end of the line.
pub const LOSES_AGE: u8 = 14;
/// Nobody watches the semaphores of earlier operations.
pub const NO_WATCHES: u8 = 15;
/// A set of one pass publishes each word as soon as it is changed.
pub const ONE_PASS: u8 = 16;
/// A set that sleeps is put in its queue after its cells were published.
pub const ENQUEUES_LATE: u8 = 17;
/// Closing tells nobody.
pub const CLOSES_QUIETLY: u8 = 18;
/// A value is read from a word that is locked.
pub const READS_LOCKED: u8 = 19;
/// Those who stop for the eldest are never let pass.
pub const NEVER_LETS_PASS: u8 = 20;
/// Nobody stops for the eldest.
pub const IGNORES_ELDER: u8 = 21;
/// An elder leaves, and those who stopped for it sleep on.
pub const LEAVES_STOPPED: u8 = 22;
/// Of those who wait for a value in a cascade, the oldest is looked at.
pub const CURSOR_STAYS: u8 = 23;
/// A flag is never cleared.
pub const KEEPS_FLAGS: u8 = 24;
/// `C` is released after the cells.
pub const RELEASES_C_LAST: u8 = 25;
/// `C` is released, and nobody woken who sleeps for it.
pub const RELEASES_C_QUIETLY: u8 = 26;
/// Of the candidates, the one that was found first is served first.
pub const SERVES_ANYBODY: u8 = 27;
/// Of the elders, the one that grew old first is the eldest.
pub const ELDEST_BY_TURN: u8 = 28;

/// A single operation does not order what comes after it.
pub const RELAXED_TAKE: u8 = 30;
/// A single operation does not order what came before it.
pub const RELAXED_GIVE: u8 = 31;
/// A zero that is found orders nothing.
pub const RELAXED_ZERO: u8 = 32;
/// A set of one pass does not order what comes after it.
pub const RELAXED_PASS: u8 = 33;
/// A set of one pass does not order what came before it.
pub const RELAXED_LET_GO: u8 = 34;
/// A session locks a cell without what was published there.
pub const RELAXED_LOCK: u8 = 35;
/// A sleeper that finds out that it was told learns nothing else.
pub const RELAXED_GET_UP: u8 = 36;
/// `C` is taken without what its last holder did.
pub const RELAXED_TAKE_C: u8 = 37;
/// `C` is released without what its holder did.
pub const RELAXED_RELEASE_C: u8 = 38;
/// A value that is read orders nothing.
pub const RELAXED_READ: u8 = 39;
