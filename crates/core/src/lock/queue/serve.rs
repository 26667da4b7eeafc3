//! What the queue-lock holder does. Labels and invariants are those of `mutex.rs`.

use super::mutex::{QueueMutex, Seen, Task};
use super::rule::Rule;
use super::window::{self, Sleepers};
use super::{Departures, Kind, Node, Wakers};
use crate::lock::policy::InOneProcess;
use crate::sys::sync::Ordering::{Acquire, Relaxed, Release};
use core::ptr;

impl<P: InOneProcess, R: Rule> QueueMutex<P, R> {
    /// Works on the queue, and unlocks it. The caller has set `QUEUE_LOCKED`.
    pub(super) fn serve(&self, mut seen: Seen<'_, P, R>, mut task: Task) {
        let mut gone = Departures::new();
        let mut ahead = Sleepers::new();
        // Detached already, and to be answered so after (unlock queue).
        let mut chosen: Option<(*const Node, Kind)> = None;
        loop {
            let word = seen.word;
            if word.has_leavers() {
                // (take leavers)
                if seen.change(word.without_leavers(), Acquire) {
                    // SAFETY: this thread holds the queue lock, and answers below.
                    unsafe { super::remove_leavers(&mut seen, &mut gone) };
                }
                continue;
            }
            if !R::IN_ORDER && word.is_noted() {
                task = if task == Task::Nothing { Task::Choose } else { task };
            }
            let newest = word.newest();
            let mut next = word.queue_unlocked();
            if !R::IN_ORDER {
                next = next.not_noted();
            }
            // The only node, and what it is to be answered.
            let mut last: Option<(*const Node, Kind)> = None;
            if let Some((_, kind)) = chosen {
                next = if kind == Kind::Granted { next.locked().not_due() } else { next.awake() };
            } else if task != Task::HandOver && !R::IN_ORDER && !word.is_locked() && Self::owes(word) {
                // (keep)
                if seen.change(word.locked(), Relaxed) {
                    task = Task::HandOver;
                }
                continue;
            } else if task == Task::HandOver || !word.is_locked() && Self::owes(word) {
                if newest.is_null() {
                    next = next.unlocked();
                } else {
                    // SAFETY: this thread holds the queue lock and has read the word acquiring.
                    let oldest = unsafe { super::oldest(&seen, newest) };
                    if oldest == newest {
                        last = Some((oldest, Kind::Granted));
                        next = next.with_newest(ptr::null()).locked().not_due();
                    } else if !word.is_locked() {
                        // (keep), in order: no thread may take the mutex once the node is detached.
                        if seen.change(word.locked(), Relaxed) {
                            task = Task::HandOver;
                        }
                        continue;
                    // SAFETY: this thread holds the queue lock, and the oldest node is queued.
                    } else if !R::IN_ORDER || unsafe { Node::is_task(oldest) } {
                        // SAFETY: this thread holds the queue lock, and `oldest` has just returned
                        // the node, which is not the newest.
                        unsafe { super::detach_oldest(&seen, oldest, newest) };
                        super::forget_inside(&seen);
                        chosen = Some((oldest, Kind::Granted));
                        continue;
                    } else {
                        task = Task::Nothing;
                        // SAFETY: as above, and it is not the only node: invariant 4.
                        unsafe { window::grant_first(&seen, oldest, newest, &mut ahead) };
                        ahead.make_room();
                        continue;
                    }
                }
            } else if self.shall_choose(task, &seen) {
                // SAFETY: this thread holds the queue lock and has read the word acquiring. What is
                // detached is what `oldest` has just returned, and is not the newest.
                unsafe {
                    let oldest = super::oldest(&seen, newest);
                    if oldest != newest {
                        super::detach_oldest(&seen, oldest, newest);
                        chosen = Some((oldest, Kind::Chosen));
                        continue;
                    }
                    last = Some((oldest, Kind::Chosen));
                    next = next.with_newest(ptr::null()).awake();
                }
            }
            if !next.has_waiters() && !next.is_awake() {
                next = next.not_due();
            }
            if let Some((node, _)) = last {
                // Before the next queue-lock holder may ask.
                // SAFETY: this thread holds the queue lock, and the node is queued.
                unsafe { super::empty(&seen, node) };
            }
            // (unlock queue); from here on, the mutex may be gone.
            if seen.change(next, Release) {
                chosen = chosen.or(last);
                break;
            }
            if let Some((node, _)) = last {
                // SAFETY: this thread holds the queue lock, and the node is queued still.
                unsafe { super::not_empty(&seen, node) };
            }
        }
        let mut tasks = Wakers::new();
        if let Some((node, kind)) = chosen {
            // SAFETY: this thread has detached the node, and answers once.
            tasks.add(unsafe { Node::answer(node, kind) });
        }
        // A refused wake-up aborts, so each leaver is answered.
        ahead.wake();
        gone.answer_each(Kind::Removed, &mut tasks);
        // A waker may do anything: it comes last.
        tasks.wake();
    }

    /// Whether the queue-lock holder makes the oldest waiter the candidate: after a release, or if
    /// the mutex is free.
    fn shall_choose(&self, task: Task, seen: &Seen<'_, P, R>) -> bool {
        let word = seen.word;
        !R::IN_ORDER
            && word.has_waiters()
            && !word.is_awake()
            && !word.is_due()
            && (task == Task::Choose || !word.is_locked())
    }
}

#[cfg(test)]
mod tests {
    use super::super::rule::{After, InOrder};
    use super::super::word::State;
    use super::super::{Cpu, Newest};
    use super::*;
    use crate::lock::policy::Private;
    use crate::lock::traits::RawMutex;
    use crate::sys::time::Deadline;
    use core::time::Duration;

    /// The word has come back to what the queue-lock holder has seen, but for the note. No model
    /// needs it: the new holder chooses a candidate when it releases.
    #[test]
    fn a_release_beside_the_queue_lock_chooses_a_candidate() {
        let mutex = QueueMutex::<Private, After>::new();
        let node = Node::new(Cpu::UNKNOWN, 1);
        mutex.lock();
        let word = State::HELD.queue_locked();
        let mut seen = Seen { mutex: &mutex, word: State::HELD };
        assert!(seen.change(word, Acquire) && seen.replace(ptr::null(), &raw const node));
        // SAFETY: locked above, and then again; the token is nothing.
        unsafe { mutex.unlock(()) };
        mutex.lock();
        mutex.serve(seen, Task::Nothing);
        assert!(node.look().is(Kind::Chosen));
        assert_eq!(mutex.state(), State::HELD.awake());
    }

    /// Invariant 5. No model needs it: the next release would clear the bit.
    #[test]
    fn a_candidate_that_gives_up_leaves_the_mutex_to_all() {
        let mutex = QueueMutex::<Private, After>::new();
        mutex.lock();
        let mut seen = Seen { mutex: &mutex, word: State::HELD };
        assert!(seen.change(State::HELD.awake(), Acquire));
        mutex.set_due();
        assert!(mutex.resign());
        assert_eq!(mutex.state(), State::HELD, "it is owed to nobody");
    }

    /// `libulocks_pthread` releases without a look, and a program may release twice.
    #[test]
    fn a_release_of_a_free_mutex_changes_nothing() {
        for word in [State::FREE, State::FREE.awake(), State::FREE.queue_locked()] {
            let mutex = QueueMutex::<Private, After>::new();
            let mut seen = Seen { mutex: &mutex, word: State::FREE };
            assert!(word == State::FREE || seen.change(word, Acquire));
            if word.is_awake() {
                mutex.set_due();
            }
            let word = mutex.state();
            // SAFETY: no thread holds it, and none acquires it: this mutex allows that.
            unsafe { mutex.unlock(()) };
            assert_eq!(mutex.state(), word);
        }
    }

    /// A waiter has left, and is about to release the queue lock.
    #[test]
    fn a_free_mutex_whose_queue_is_locked_is_taken_though_no_time_is_left() {
        let mutex = QueueMutex::<Private, InOrder>::new();
        let mut seen = Seen { mutex: &mutex, word: State::FREE };
        assert!(seen.change(State::FREE.queue_locked(), Acquire));
        assert!(mutex.lock_until(Deadline::after(Duration::ZERO)).is_some());
        assert_eq!(mutex.state(), State::HELD.queue_locked());
        // SAFETY: locked above; the token is nothing.
        unsafe { mutex.unlock(()) };
        mutex.serve(seen, Task::Nothing);
        assert_eq!(mutex.state(), State::FREE);
    }
}
