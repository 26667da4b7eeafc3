//! The bugs that the models must find, one at a time. The comparisons with `BUG` in the protocol are decided at compile
//! time, so the code that is explored is the code that is shipped.

/// No bug.
pub const NOTHING: u8 = 0;
/// (A) learns nothing of the last writer.
pub const RELAXED_ARRIVAL: u8 = 1;
/// (D) publishes nothing.
pub const RELAXED_DEPARTURE: u8 = 2;
/// The owner that sees the last reader leave learns nothing of it.
pub const RELAXED_DRAIN: u8 = 3;
/// (U) publishes nothing.
pub const RELAXED_RELEASE: u8 = 4;
/// A release decides by what the word was before it, whom to wake: the lost wake-up of 2008.
pub const STALE_WAKE: u8 = 5;
/// A waiter reads the event word after it has looked at the state.
pub const READS_LATE: u8 = 6;
/// A release wakes without counting an event.
pub const NO_EVENT: u8 = 7;
/// The owner looks for readers before it shuts them out.
pub const DRAINS_FIRST: u8 = 8;
/// All classes are shut out at once.
pub const SHUTS_ALL: u8 = 9;
/// A stage waits for the readers of all classes.
pub const DRAINS_ALL: u8 = 10;
/// The owner closes the class of signal handlers with its own not held off.
pub const UNMASKED: u8 = 11;
/// The owner lets handlers run again before it opens their class.
pub const LOWERS_EARLY: u8 = 12;
/// The owner does not wait for handlers to leave.
pub const FORGETS_HANDLERS: u8 = 13;
/// The owner shuts readers out past those that wait in line.
pub const PASSES_THE_LINE: u8 = 14;
/// The owner that waits for the line to go in looks at it before it says that it sleeps.
pub const LOOKS_FIRST: u8 = 15;
/// Who leaves the line does not tell the owner.
pub const LEAVES_QUIETLY: u8 = 16;
/// The owner takes the line's flag out although somebody is in line.
pub const CLEARS_THE_LINE: u8 = 17;
/// Who gives up the write side wakes nobody.
pub const ABANDONS_QUIETLY: u8 = 18;
/// A writer that has slept takes the write side without leaving a mark for those that sleep on.
pub const FORGETS_OTHERS: u8 = 20;
/// A release looks at the word once more.
pub const TOUCHES_AFTER: u8 = 21;
/// A downgrade opens the gate, and then comes in as a reader.
pub const OPENS_FIRST: u8 = 22;
/// An upgrade does not wait for readers.
pub const UPGRADES_AT_ONCE: u8 = 23;
/// An attempt to write does not mind readers that wait in line.
pub const TRIES_PAST_THE_LINE: u8 = 24;
/// Distributed readers and the writer look without a fence between.
pub const NO_FENCE: u8 = 25;
/// A departing reader does not wake the owner.
pub const DEPARTS_QUIETLY: u8 = 27;
/// A release counts the event before it takes the flags out.
pub const COUNTS_EARLY: u8 = 28;
/// A writer that was woken, and slept again for a moment, may not take what a fair release keeps for it.
pub const FORGETS_THE_CLAIM: u8 = 29;
/// A release leaves the lock to a writer that spins, past readers that wait in line.
pub const LEAVES_PAST_THE_LINE: u8 = 31;
/// A reader opens a gate that an owner has shut.
pub const OPENS_ANOTHERS: u8 = 32;
/// A writer that gives up leaves the mark behind by which it is left the lock.
pub const KEEPS_THE_MARK: u8 = 33;
/// A reader waits for an owner where there is none.
pub const WAITS_FOR_NOBODY: u8 = 34;
