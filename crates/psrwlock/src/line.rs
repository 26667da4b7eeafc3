//! Whose turn it is: readers that wait in line go in before their class is shut again.
//!
//! There are two lines, that of the top class of threads and that of all classes below it. Before
//! the owner shuts a class it waits until the line is empty that would be shut out: at its first
//! stage the lower one, at the stage of the top class the top one. Those in it were woken when the
//! gate opened, and find it open; nobody else joins while it is. So the line empties as fast as its
//! readers wake up, and a reader in line is passed by no writer but the one that holds when it
//! joins. By type some more may pass the lower line (`BATCH`), and then count so many `passed`.
//!
//! A reader that is not in line, because it has just come or because it spins, may be passed by
//! more. It spins for some tens of microseconds only.

use crate::raw::RawPsRwLock;
use crate::sifted::{Discipline, Fairness};
use crate::word::{Lines, OWNER, State};
use ulocks_core::futex::Waited;
use ulocks_core::spin;
use ulocks_core::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use ulocks_core::time::Deadline;

impl<D: Discipline> RawPsRwLock<D> {
    /// A reader joins the line of that flag. It is in line before it looks at the state.
    pub(crate) fn join_line(&self, flag: u64) {
        let was = Lines(self.lines.fetch_add(Lines::one(flag), AcqRel));
        if was.waiting(flag) >= Lines::limit(flag) {
            self.leave_line(flag);
            panic!("too many readers wait for one lock: {} at once may", Lines::limit(flag));
        }
    }

    /// A reader leaves the line, because it is inside or because it gives up. The last one tells
    /// the owner: invariant 8.
    pub(crate) fn leave_line(&self, flag: u64) {
        let was = Lines(self.lines.fetch_sub(Lines::one(flag), AcqRel));
        if was.waiting(flag) == 1 && self.look().has(State::DRAINING) {
            self.event.fetch_add(1, Release);
            self.event.key().wake_bits(1, OWNER);
        }
    }

    /// The line that the owner lets in before it shuts the class of that index.
    pub(crate) const fn line_before(index: u32) -> Option<u64> {
        if index == 0 {
            Some(State::LOW)
        } else if index == Self::LAYOUT.top() {
            Some(State::TOP)
        } else {
            None
        }
    }

    /// The owner waits until those in line are inside whom it would shut out with the class of that
    /// index. False if `deadline` passed first.
    pub(crate) fn let_in(&self, index: u32, deadline: Option<Deadline>) -> bool {
        let Some(flag) = Self::line_before(index) else { return true };
        if self.line_is_empty(flag) || (flag == State::LOW && self.passes()) {
            return true;
        }
        spin::first_in_line::<D::Policy>(false, || self.line_is_empty(flag))
            || self.sleep_until_empty(flag, deadline)
    }

    /// Whether nobody is in that line, whose flag is taken out then. For the owner, while the
    /// classes of the line are open.
    pub(crate) fn line_is_empty(&self, flag: u64) -> bool {
        if !State(self.state.load(Acquire)).has(flag) {
            return true;
        }
        let empty = Lines(self.lines.load(Acquire)).waiting(flag) == 0;
        if empty {
            self.clear_line(flag);
        }
        empty
    }

    fn clear_line(&self, flag: u64) {
        self.state.fetch_and(!flag, Relaxed);
        if flag == State::LOW && D::Fairness::BATCH > 1 {
            let passed = Lines(self.lines.load(Relaxed)).passed();
            self.lines.fetch_sub(passed * Lines::ONE_PASSED, Relaxed);
        }
    }

    /// Whether the owner may go past the lower line once more, and has.
    fn passes(&self) -> bool {
        let may = Lines(self.lines.load(Relaxed)).passed() + 1 < D::Fairness::BATCH;
        if may {
            self.lines.fetch_add(Lines::ONE_PASSED, Relaxed);
        }
        may
    }

    #[cold]
    fn sleep_until_empty(&self, flag: u64, deadline: Option<Deadline>) -> bool {
        let mut timed_out = false;
        loop {
            let event = self.event.load(Acquire);
            // In this order, and both by read-modify-writes: invariant 8.
            self.state.fetch_or(State::DRAINING, Relaxed);
            let lines = Lines(self.lines.fetch_add(0, AcqRel));
            // A reader that saw the class shut a moment ago may have joined since: a second look.
            let empty = lines.waiting(flag) == 0 && self.line_is_empty(flag);
            if empty || timed_out {
                self.state.fetch_and(!State::DRAINING, Relaxed);
                return empty;
            }
            timed_out = self.event.wait_bits(event, OWNER, deadline) == Waited::TimedOut;
        }
    }
}
