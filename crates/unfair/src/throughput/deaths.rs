//! Between processes: what the waiters do about a waiter that was killed. Labels and invariants are
//! those of `raw`.
//!
//! # What a killed waiter leaves behind
//! - Outside the line: a mark that it owed, or a wake-up that it was to send after (U). Then
//!   outsiders may sleep without `MARKED` in the word (invariant 5 is broken).
//! - In line: its ticket. Nobody leaves the line past it (invariant 6 is broken).
//! - As the head: `ASLEEP` and `RESERVED` as well. A release wakes it in vain, and a reserved mutex
//!   is not acquired (invariants 4 and 7 are broken).
//! - As the waiter that takes a dead head out of the line: any of that head's marks, and a next
//!   head that was not woken.
//!
//! # What the others do
//! No waiter sleeps for longer than a *watch*. At its end it looks at both words again. The length
//! depends on what it saw before it fell asleep:
//!
//! | line | word | length | if the same at the end |
//! |---|---|---|---|
//! | empty | not `RESERVED` | [`OUTSIDE_NS`] | nothing to repair |
//! | empty | `RESERVED` | [`DEATH_NS`] | the head is gone: (D) without a ticket |
//! | a head | not `RESERVED` | bound + [`DEATH_NS`] | the head is dead: (D) |
//! | a head | `RESERVED`, not `LOCKED` | [`DEATH_NS`] | the head is dead: (D) |
//! | a head | `RESERVED` and `LOCKED` | [`DEATH_NS`] | the hold is long: nothing to repair |
//!
//! The third row holds on a mutex that is never free, too: a living head reserves when it has been
//! the head for the bound, or leaves. So does the fourth: a living head acquires a free mutex. A
//! waiter that is woken meanwhile goes on with the watch that it began, as long as it sees the
//! same.
//!
//! An outsider without a deadline that slept for a whole watch then behaves as one that was woken
//! in vain and is overdue: it gets in line (Q1). It would lose its place in the kernel's order by
//! going back to sleep. From then on it needs no mark.
//!
//! (D) has three steps, of which the first has one winner: the head's ticket is taken out of the
//! line; then `ASLEEP` and `RESERVED` are cleared, with `MARKED` set in a locked word as in (T);
//! then the head of the line is woken, on both words. The debts of the dead pass to the winner,
//! which has slept outside or is in line, and so is a debtor itself.
//!
//! # A head that was taken for dead and lives
//! It was stopped, or had no CPU. It finds that its ticket is not the head's, and has lost its
//! place, not exclusion. What it did to the word meanwhile may have overwritten the marks of the
//! next head, and a wake-up for the next head may have gone to it. So it wakes all that sleep as
//! heads, whether it acquired, gave up or gets in line again; the next head then sets its marks
//! again. If the line is empty it clears the marks first.
//!
//! # How long that takes
//! An outsider without a deadline is in line after [`OUTSIDE_NS`] at most. In line, a waiter sees a
//! new head after the watch that it began with the old one, and needs one more watch to take that
//! for dead. So a killed waiter holds up those behind it for two watches of bound + [`DEATH_NS`],
//! and if it had reserved for a hold more.
//!
//! Not covered are waiters that a condition variable moved here: they sleep in the condition
//! variable's wait, without a watch, until a mark is paid.

use super::bound::Bound;
use super::raw::{ASLEEP, MARKED, RESERVED, RawThroughputMutex};
use super::word::{HEAD, Line, ThroughputState as State, Ticket};
use core::time::Duration;
use ulocks_core::Policy;
use ulocks_core::futex::Scope;
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_core::time::Deadline;

/// How long a living head of the line may take to reserve when its bound has passed, or to acquire
/// a free mutex.
const DEATH_NS: u64 = 100_000_000;
/// How long an outsider sleeps at a time while it sees no head: its watch ends ten times less often
/// than those of waiters that see one, because most waiters that sleep for long wait for a long
/// hold.
const OUTSIDE_NS: u64 = 1_000_000_000;

/// What a waiter has seen of the head of the line.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Seen {
    head: Option<Ticket>,
    reserved: bool,
    /// Whether a reserved mutex is held. It makes no difference for others.
    held: bool,
}

impl Seen {
    fn of(word: State, line: Line) -> Self {
        let head = (line.length() > 0).then(|| line.head());
        Self { head, reserved: word.is_reserved(), held: word.is_reserved() && word.is_locked() }
    }

    /// For how long a waiter may see this if everybody lives, in nanoseconds; for longer if the
    /// mutex is held for longer.
    fn lasts<B: Bound>(self) -> u64 {
        match (self.head, self.reserved) {
            (None, false) => OUTSIDE_NS,
            (Some(_), false) => B::NS.saturating_add(DEATH_NS),
            (_, true) => DEATH_NS,
        }
    }

    /// Whether the head must be dead if this lasts longer than that.
    fn is_suspect(self) -> bool {
        (self.head.is_some() || self.reserved) && !self.held
    }
}

/// What a waiter saw last, and when it will have seen it for too long.
pub(super) struct Watch {
    seen: Option<Seen>,
    over: Deadline,
}

impl Watch {
    pub(super) const NEW: Self = Self { seen: None, over: Deadline::NEVER };
}

impl<P: Policy, B: Bound> RawThroughputMutex<P, B> {
    /// Until when a waiter sleeps that has seen these words: until `deadline` or the end of its
    /// watch. The second is true if that is the end of its watch.
    pub(super) fn watch(
        &self,
        watch: &mut Watch,
        word: State,
        line: Line,
        deadline: Option<Deadline>,
    ) -> (Option<Deadline>, bool) {
        if P::Scope::PRIVATE {
            return (deadline, false);
        }
        let seen = Seen::of(word, line);
        if watch.seen != Some(seen) {
            let over = Deadline::after(Duration::from_nanos(seen.lasts::<B>()));
            *watch = Watch { seen: Some(seen), over };
        }
        Deadline::earlier(deadline, Some(watch.over))
    }

    /// The watch is over: (D) if its owner still sees what it saw. The caller looks at the mutex
    /// next.
    #[cold]
    pub(super) fn end_watch(&self, watch: &mut Watch) {
        let mut line = self.line();
        let was = watch.seen.take();
        let seen = Seen::of(self.state(), line);
        if was != Some(seen) || !seen.is_suspect() {
            return;
        }
        let Some(head) = seen.head else { return self.take_marks_back() };
        while line.is_head(head) {
            let shorter = line.without_head();
            match self.line.compare_exchange(line.0, shorter.0, Relaxed, Relaxed) {
                Ok(_) => {
                    self.take_marks_back();
                    return self.wake_next(shorter);
                }
                Err(now) => line = Line(now),
            }
        }
    }

    /// Clears what a head has in the word. If that was a head that lives, it sets it again: it is
    /// woken.
    fn take_marks_back(&self) {
        let mut was = self.state();
        while was.has(ASLEEP | RESERVED) {
            let left = was.without(ASLEEP | RESERVED).with(if was.is_locked() { MARKED } else { 0 });
            match self.change(was, left, false) {
                Ok(()) => break,
                Err(now) => was = now,
            }
        }
        self.wake_heads();
    }

    /// What a waiter does that was taken for dead and lives: it clears the marks that it may have
    /// left as the head, unless another is the head now; then they may be that one's, and so may
    /// the wake-up that ended its sleep.
    #[cold]
    pub(super) fn disown(&self) {
        if self.line().length() == 0 { self.take_marks_back() } else { self.wake_heads() }
    }

    /// Wakes the head, if it sleeps, and those that were taken for dead in their sleep.
    #[cold]
    pub(super) fn wake_heads(&self) {
        self.futex.key().wake_bits(u32::MAX, HEAD);
    }
}
