//! A set in one pass, with no session; and leaders and followers, which make a long set cheap.
//!
//! A set that locks each of its semaphores pays a locked instruction for each. Programs mostly use
//! the same sets again. So a cell may stay locked between two sets: it becomes the *follower* of
//! the first cell of the set, its *leader*. The thread that has locked the leader has its
//! followers, too. A set of followers is one compare-exchange at the leader, plain loads and stores
//! at the others, and one fence, however long it is.
//!
//! # Properties
//! - An operation on a cell that is no follower costs what it did. It loads no word of the array.
//! - Sets with different leaders do not meet.
//! - Another thread that comes to a follower locks the leader, and parts the two, in a session. So
//!   it waits for the leader's holder at most, as it would wait for a set that has locked the cell.
//!
//! # State
//! `Cell::lead` ([`Lead`]) says what a cell is:
//!
//! | a cell | `LOCK` | `lead` | the thread that may touch it |
//! |---|---|---|---|
//! | free | no | followers, rent due | the thread that locks it |
//! | held | yes | followers, rent due | the thread that locked it |
//! | a follower | yes | the index of its leader | the thread that has locked the leader |
//!
//! | from | to | by | label |
//! |---|---|---|---|
//! | free | held | a set in one pass, a session | (lock with value), (lock) |
//! | held | free | the same | (unlock), (publish) |
//! | held | follower | a set in one pass that has locked both, after its operations | (follow) |
//! | follower | follower | a set whose first cell is the leader: operations by stores | (store led) |
//! | follower | held | a session that has locked the leader | (part) |
//!
//! # Invariants
//! 1. *Only the thread that has locked the leader writes to a follower.* (follow) and (part) happen
//!    under the leader's `LOCK`, so its holder reads `lead` exactly. Another thread may read an old
//!    `lead`. It acts on that only after it has locked the leader and read `lead` again.
//! 2. *A leader is no follower.* (follow) asks for a cell without followers, and its leader was
//!    locked by (lock with value), which a follower's `LOCK` refuses. So a thread that waits for a
//!    leader waits for its holder, which is a thread. The argument against deadlocks
//!    (`session/mod.rs`) holds as it stands: (part) locks two cells, and does not wait.
//! 3. *A follower has no flag but `LOCK`.* (lock with value) needs a word without the flags that
//!    matter to its operation; (follow) looks again. To queue a set there a session comes, and
//!    parts the two. So (store led) need not look for flags, and no change of a follower helps a
//!    waiting set.
//! 4. *A set takes effect at one moment.* All its cells are locked until the first one, the leader,
//!    is published, which is last. A thread that wants to see a follower locks the leader.
//! 5. *No thread parks for a follower.* A thread that finds one parks for the leader, if that is
//!    held. A thread that parks for a held cell ends when it is held no more: (follow) stores
//!    `lead` before the fence (releasing fence), and names the cell among those that it releases.
//!
//! # Ordering
//! (store led), (follow) and all accesses to `lead` are Relaxed. What is read under the leader's
//! `LOCK` is ordered by its (lock with value) or (lock), Acquire, and (unlock) or (publish),
//! Release. What a parking thread reads is ordered by the fences (parking fence) and (releasing
//! fence).
//!
//! # When to follow
//! To lock a cell for itself costs a set a locked instruction more than to find a follower. To part
//! a follower costs its user a session. This is the ski rental problem: a cell becomes a follower
//! when so many sets have locked it for themselves that they have paid for a parting
//! (`Lead::RENT`). Each parting makes the rent due anew. So the cost is at most twice the optimum,
//! and no other hysteresis is needed.
//!
//! # Sources
//! The kernel's `ipc/sem.c` lets a set of several operations lock the whole array by one word,
//! which single operations load. `PROTOCOL.md` says why this is not done here. Locks that stay with
//! their last owner: K. Kawachiya, A. Koseki, T. Onodera, "Lock Reservation" (OOPSLA 2002).

use crate::cell::{Cell, Lead};
use crate::op::Op;
use crate::raw::{Attempt, RawSemArray};
use crate::word::State;
use ulocks_core::membarrier;
use ulocks_core::policy::InOneProcess;
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};

impl<P: InOneProcess> RawSemArray<P> {
    /// (lock with value) to (follow): a set, if no flag is in the way. Locks each word together
    /// with its next value, then unlocks all. If the result is not `Done`, nothing has changed.
    /// Operations on one semaphore may follow each other directly. A set that comes back later to a
    /// semaphore that it has locked needs a session.
    pub(crate) fn perform_several(&self, ops: &[Op]) -> Attempt {
        let Some(first) = ops.first().filter(|first| Lead::can_name(first.index)) else {
            return Attempt::Unclear;
        };
        if ops.len() > self.max_ops {
            return Attempt::Unclear;
        }
        let mut led = 0;
        if self.cells.get(first.index()).is_some_and(|cell| self.lock_for(cell, first)) {
            led = 1 + self.perform_led(first.index, &ops[1..]);
            if led == ops.len() {
                self.publish_words(&ops[..1], false, true, |word, _| word);
                return Attempt::Done;
            }
        }
        self.perform_rest(ops, led)
    }

    /// The same, for a set of which so many operations are performed.
    fn perform_rest(&self, ops: &[Op], performed: usize) -> Attempt {
        let mut repeats = false;
        for (at, op) in ops.iter().enumerate().skip(performed) {
            let Some(cell) = self.cells.get(op.index()) else {
                self.take_back(&ops[..at], repeats);
                return Attempt::Unclear;
            };
            let follows = at > 0 && cell.lead().0 == ops[0].index;
            if !follows && self.lock_for(cell, op) {
                continue;
            }
            let mut word = cell.word.load(Relaxed);
            let again = at > 0 && ops[at - 1].index == op.index;
            repeats |= again && !follows;
            if follows || again {
                word &= !State::LOCK;
                if let Some(next) = self.alone(word, op) {
                    cell.word.store(next | State::LOCK, Relaxed);
                    continue;
                }
            }
            // Judged while the words before it are locked.
            let held = follows || again;
            let attempt = if held { self.stopped(word, op, at) } else { self.refused(cell, op, at) };
            self.take_back(&ops[..at], repeats);
            return attempt;
        }
        self.publish_words(ops, repeats, true, |word, _| word);
        Attempt::Done
    }

    /// (lock with value): locks a cell together with the next value of its word.
    #[inline(always)]
    fn lock_for(&self, cell: &Cell, op: &Op) -> bool {
        let word = cell.word.load(Relaxed);
        self.alone(word, op).is_some_and(|next| {
            cell.word.compare_exchange(word, next | State::LOCK, Acquire, Relaxed).is_ok()
        })
    }

    /// (store led): performs operations on followers of a cell that this thread has locked, as far
    /// as they are such and can proceed. Returns how many.
    #[inline(always)]
    fn perform_led(&self, leader: u32, ops: &[Op]) -> usize {
        let (cells, limit) = (&self.cells[..], self.limit);
        for (at, op) in ops.iter().enumerate() {
            let Some(cell) = cells.get(op.index()).filter(|cell| cell.lead().0 == leader) else { return at };
            match State(cell.word.load(Relaxed)).after(op, limit) {
                Ok(next) => cell.word.store(next.0, Relaxed),
                Err(_) => return at,
            }
        }
        ops.len()
    }

    /// Unlocks the words of operations that were performed, as they were before.
    #[cold]
    fn take_back(&self, ops: &[Op], repeats: bool) {
        self.publish_words(ops, repeats, false, State::before);
    }

    /// (unlock), (follow): publishes the words of `ops` from the last one back, each as `last`
    /// makes it. Where operations on one semaphore follow each other, which `repeats` says, the
    /// first of them publishes.
    fn publish_words(&self, ops: &[Op], repeats: bool, binds: bool, last: impl Fn(State, &Op) -> State) {
        let Some(first) = ops.first() else { return };
        let slot = self.slot();
        let mut bits = 0;
        for (at, op) in ops.iter().enumerate().rev() {
            let cell = &self.cells[op.index()];
            let word = last(State(cell.word.load(Relaxed)), op).0;
            let lead = cell.lead();
            let follows = at > 0 && lead.0 == first.index;
            if follows || repeats && at > 0 && ops[at - 1].index == op.index {
                cell.word.store(word, Relaxed);
                continue;
            }
            bits |= 1 << (op.index % 32);
            if at > 0 && binds {
                let leader = &self.cells[first.index()];
                if lead.may_follow() && leader.lead().may_lead() && State(word).is_only_locked() {
                    cell.word.store(word, Relaxed);
                    leader.lead.store(leader.lead().more().0, Relaxed);
                    cell.lead.store(first.index, Relaxed); // (follow)
                    continue;
                }
                cell.lead.store(lead.paid().0, Relaxed);
            }
            membarrier::store(&cell.word, word & !State::LOCK, Release); // (unlock)
        }
        slot.released(bits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::Fairness;

    #[test]
    fn a_cell_that_sets_have_paid_for_follows_until_it_is_used_by_itself() {
        let array = <RawSemArray>::new(&[1; 3], 9, 8, Fairness::Barging);
        let [take, give] = [[0, 1, 2].map(|i| Op::sub(i, 1)), [0, 1, 2].map(|i| Op::add(i, 1))];
        let led = || array.cells.iter().map(|cell| cell.lead().leader()).collect::<Vec<_>>();
        for set in [&take, &give].into_iter().cycle().take(Lead::RENT as usize) {
            assert_eq!(array.perform_several(set), Attempt::Done);
        }
        assert_eq!(led(), [None; 3], "the rent is due");
        for set in [&take, &give] {
            assert_eq!(array.perform_several(set), Attempt::Done);
            assert_eq!(led(), [None, Some(0), Some(0)], "the rent is paid");
        }
        assert!(array.is_at_rest(), "a follower is not held");
        assert_eq!(array.perform_several(&[Op::sub(0, 1), Op::sub(2, 2)]), Attempt::Blocks(1));
        assert_eq!(array.value(2), Ok(1));
        assert_eq!(led(), [None, Some(0), None]);
        assert_eq!(array.values(), [1; 3]);
        assert_eq!(led(), [None; 3]);
    }
}
