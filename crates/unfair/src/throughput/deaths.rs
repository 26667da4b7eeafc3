//! Between processes: what the waiters do about a waiter that was killed. Labels and invariants are
//! those of `raw`.
//!
//! # What a killed waiter leaves behind
//! - Outside the queue: a mark that it owed, or a wake-up that it was to send after (U). Then
//!   outsiders may sleep without `MARKED` in the word (invariant 5 is broken).
//! - In the queue: its ticket. No waiter leaves the queue past it (invariant 6 is broken).
//! - As the head waiter: `ASLEEP` and `RESERVED` as well. A release wakes it, which helps no
//!   thread, and no thread acquires a reserved mutex (invariants 4 and 7 are broken).
//! - As the waiter that takes a dead head out of the queue: any of that head's marks, and a next
//!   head that was not woken.
//!
//! # What the others do
//! No waiter sleeps for longer than a *watch*. At its end it looks at both words again. The length
//! depends on what it saw before it fell asleep:
//!
//! | queue | word | length | if the same at the end |
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
//! An outsider without a deadline that slept for a whole watch then behaves as an overdue one: it
//! joins the queue (Q1). If it slept again, it would lose its position in the kernel's order. From
//! then on it needs no mark.
//!
//! (D) has three steps, of which the first has one winner: the head's ticket is taken out of the
//! queue; then `ASLEEP` and `RESERVED` are cleared, with `MARKED` set in a locked word as in (T);
//! then the head of the queue is woken, on both words. The debts of the dead pass to the winner,
//! which has slept outside or is queued, and so is a debtor itself.
//!
//! # A head that was taken for dead and lives
//! It was stopped, or had no CPU. It finds that its ticket is not the head's: it has lost its
//! position; exclusion holds. It may have overwritten the marks of the next head meanwhile, and a
//! wake-up for the next head may have gone to it. So it wakes all waiters that sleep as heads,
//! whether it acquired, gave up or joins the queue again. The next head then sets its marks again.
//! If the queue is empty it clears the marks first.
//!
//! # How long that takes
//! An outsider without a deadline is queued after [`OUTSIDE_NS`] at most. A queued waiter sees a
//! new head after the watch that it began with the old one, and needs one more watch to take that
//! for dead. So a killed waiter holds up those behind it for two watches of bound + [`DEATH_NS`],
//! and if it had reserved for a hold more.
//!
//! Not covered are waiters that a condition variable requeued here: they sleep in the condition
//! variable's wait, without a watch, until a mark is paid.

use super::bound::Bound;
use super::raw::{ASLEEP, MARKED, RESERVED, RawThroughputMutex};
use super::word::{HEAD, Queue, ThroughputState as State, Ticket};
use core::time::Duration;
use ulocks_core::Policy;
use ulocks_core::futex::Scope;
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_core::time::Deadline;

/// How long a living head of the queue may take to reserve when its bound has passed, or to acquire
/// a free mutex.
const DEATH_NS: u64 = 100_000_000;
/// How long an outsider sleeps at a time while it sees no head: its watch ends ten times less often
/// than those of waiters that see one, because most waiters that sleep for long wait for a long
/// hold.
const OUTSIDE_NS: u64 = 1_000_000_000;

/// What a waiter has seen of the head waiter.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Seen {
    head: Option<Ticket>,
    reserved: bool,
    /// Whether a reserved mutex is held. It makes no difference for others.
    held: bool,
}

impl Seen {
    fn of(word: State, queue: Queue) -> Self {
        let head = (queue.length() > 0).then(|| queue.head());
        Self { head, reserved: word.is_reserved(), held: word.is_reserved() && word.is_locked() }
    }

    /// How long a waiter may see this if no thread has died, in nanoseconds; longer if the mutex is
    /// held for longer.
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

/// What a waiter saw last, and when that has lasted for too long.
pub(super) struct Watch {
    seen: Option<Seen>,
    over: Deadline,
}

impl Watch {
    pub(super) const NEW: Self = Self { seen: None, over: Deadline::NEVER };
}

impl<P: Policy, B: Bound> RawThroughputMutex<P, B> {
    /// When the sleep of a waiter that has seen these words ends: at `deadline` or at the end of
    /// its watch. The flag is true if that is the end of its watch.
    pub(super) fn watch(
        &self,
        watch: &mut Watch,
        word: State,
        queue: Queue,
        deadline: Option<Deadline>,
    ) -> (Option<Deadline>, bool) {
        if P::Scope::PRIVATE {
            return (deadline, false);
        }
        let seen = Seen::of(word, queue);
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
        let mut queue = self.queue();
        let was = watch.seen.take();
        let seen = Seen::of(self.state(), queue);
        if was != Some(seen) || !seen.is_suspect() {
            return;
        }
        let Some(head) = seen.head else { return self.take_marks_back() };
        while queue.is_head(head) {
            let shorter = queue.without_head();
            match self.queue.compare_exchange(queue.0, shorter.0, Relaxed, Relaxed) {
                Ok(_) => {
                    self.take_marks_back();
                    return self.wake_next(shorter);
                }
                Err(now) => queue = Queue(now),
            }
        }
    }

    /// Clears the flags of a head waiter. If that one is alive, it is woken and sets them again.
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

    /// For a living waiter that was taken for dead: clears the marks that it may have left as the
    /// head, unless another waiter is the head now. Then the marks may be that one's, and so may
    /// the wake-up that ended this sleep.
    #[cold]
    pub(super) fn disown(&self) {
        if self.queue().length() == 0 { self.take_marks_back() } else { self.wake_heads() }
    }

    /// Wakes the head waiter, if it sleeps, and waiters that were taken for dead in their sleep.
    #[cold]
    pub(super) fn wake_heads(&self) {
        self.futex.key().wake_bits(u32::MAX, HEAD);
    }
}
