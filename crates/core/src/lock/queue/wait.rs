//! How a waiter waits, contends, and leaves. Labels and invariants are those of `mutex.rs`.

use super::mutex::{QueueMutex, Seen, Task};
use super::rule::Rule;
use super::window;
use super::{Cpu, Kind, Node, Status};
use crate::lock::meter::{Event, Meter};
use crate::lock::policy::InOneProcess;
use crate::lock::spin::{self, Look};
use crate::sys::futex::Waited;
use crate::sys::sync::Ordering::{Acquire, Relaxed, Release};
use crate::sys::time::Deadline;
use core::time::Duration;

/// How the candidate has ended.
enum Contended {
    /// It holds the mutex.
    Acquired,
    /// Its time is up.
    GaveUp,
    /// It stands in the queue again.
    StoodBack,
}

impl<P: InOneProcess, R: Rule> QueueMutex<P, R> {
    /// Waits with `node`, as the candidate or in the queue; `polls` if the waiter is to poll its
    /// status at first. False if `deadline` passed and the waiter has left.
    pub(super) fn wait(
        &self,
        node: &Node,
        mut is_candidate: bool,
        polls: bool,
        deadline: Option<Deadline>,
    ) -> bool {
        let mut due = None;
        let (mut slept, mut gives_up) = (false, false);
        loop {
            if is_candidate {
                let gives_up = || gives_up || deadline.is_some_and(|deadline| deadline.has_passed());
                match self.contend(node, &mut due, gives_up) {
                    Contended::Acquired => {
                        self.meter.count(if slept { Event::Woken } else { Event::Spun });
                        return true;
                    }
                    Contended::GaveUp => return false,
                    Contended::StoodBack => {}
                }
            }
            let answer =
                self.await_answer(node, polls && !slept, &mut slept, deadline).unwrap_or_else(|| {
                    gives_up = true;
                    self.leave(node)
                });
            if answer.is(Kind::Removed) || answer.is(Kind::Notified) {
                return false;
            }
            if answer.is(Kind::Granted) {
                match (R::IN_ORDER, slept) {
                    (false, _) => self.meter.count(Event::Reserved),
                    (true, false) => self.meter.count(Event::Spun),
                    (true, true) => {}
                }
                return true;
            }
            is_candidate = true;
        }
    }

    /// Waits with `node`, which a notification has moved here, or is about to. False if the caller
    /// is to acquire the mutex as an arriving thread.
    pub(super) fn wait_moved(&self, node: &Node) -> bool {
        let acquired = self.wait(node, false, node.look().is(Kind::Waiting), None);
        if acquired {
            self.meter.count(Event::Acquired);
        }
        acquired
    }

    /// Waits in the queue until the waiter is answered; `None` if `deadline` passed first.
    fn await_answer(
        &self,
        node: &Node,
        polls: bool,
        slept: &mut bool,
        deadline: Option<Deadline>,
    ) -> Option<Status> {
        loop {
            let (here, mut seen) = (window::here(), node.look());
            if (polls || seen.is(Kind::WokenAhead)) && !seen.holder_cpu().is(here) {
                // A waiter that was woken keeps the CPU from the holder perhaps, unless both are
                // known to be elsewhere.
                let elsewhere = seen.holder_cpu().is_known() && here.is_known() || window::is_wide();
                spin::head_waiter::<P>(*slept && !elsewhere, || {
                    seen = node.look();
                    seen.is_answer() || seen.holder_cpu().is(here)
                });
            }
            if seen.is_answer() {
                return Some(seen);
            }
            let parked = Status::parked(window::here());
            if node.status.compare_exchange(seen.0, parked.0, Relaxed, Relaxed).is_err() {
                continue;
            }
            *slept = true;
            if !self.sleep(node, parked, deadline) {
                return None;
            }
        }
    }

    /// Sleeps until the status is not `parked` any more; false if `deadline` passed first.
    fn sleep(&self, node: &Node, parked: Status, deadline: Option<Deadline>) -> bool {
        loop {
            self.meter.count(Event::Slept);
            let waited = node.status.wait(parked.0, deadline);
            if node.status.load(Relaxed) != parked.0 {
                // Counted here: the waking thread may have had no mutex left to count in.
                self.meter.count(Event::Woke);
                return true;
            }
            if waited == Waited::TimedOut {
                return false;
            }
        }
    }

    /// A waiter whose time is up leaves the queue, which is the answer `Removed`, unless it is
    /// answered first.
    #[cold]
    fn leave(&self, node: &Node) -> Status {
        let Some(leaving) = node.ask_to_leave() else { return node.look() };
        let mut word = self.state();
        while node.look() == leaving {
            if word.is_queue_locked() {
                match self.change(word, word.with_leavers(), Release) {
                    Ok(()) => break, // (ask to leave)
                    Err(now) => word = now,
                }
            } else {
                match self.change(word, word.queue_locked(), Acquire) {
                    Err(now) => word = now,
                    // (lock queue)
                    Ok(()) => {
                        let mut seen = Seen { mutex: self, word: word.queue_locked() };
                        // SAFETY: this thread holds the queue lock, and the node is its own.
                        let removed = unsafe { super::remove(&mut seen, node) };
                        self.serve(seen, Task::Nothing);
                        if removed {
                            return Status::removed();
                        }
                        break; // another thread detached it, and has answered or is about to
                    }
                }
            }
        }
        node.await_answer(leaving)
    }

    /// The candidate contends for the mutex. `due` is when the bound passes, once it was chosen.
    fn contend(&self, node: &Node, due: &mut Option<Deadline>, gives_up: impl Fn() -> bool) -> Contended {
        loop {
            if self.look_as_candidate() == Look::Acquired {
                return Contended::Acquired;
            }
            let end = *due.get_or_insert_with(|| Deadline::after(Duration::from_nanos(R::BOUND_NS)));
            let is_due = || R::BOUND_NS == 0 || end.has_passed();
            if !is_due() && spin::closely::<P>(|| self.look_as_candidate()) {
                return Contended::Acquired;
            }
            if gives_up() {
                if self.resign() {
                    return Contended::GaveUp;
                }
            } else if self.stand_back(node, is_due()) {
                return Contended::StoodBack;
            }
        }
    }

    /// (take as candidate).
    fn look_as_candidate(&self) -> Look {
        let word = self.state();
        if word.is_locked() {
            Look::Taken
        } else if self.change(word, word.locked().not_awake(), Acquire).is_ok() {
            Look::Acquired
        } else {
            Look::Beaten
        }
    }

    /// (resign). False if the mutex is free.
    fn resign(&self) -> bool {
        let mut word = self.state();
        while word.is_locked() {
            match self.change(word, word.not_awake(), Relaxed) {
                Ok(()) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// (stand back). False if the mutex is free.
    fn stand_back(&self, node: &Node, is_due: bool) -> bool {
        let mut word = self.state();
        loop {
            if !word.is_locked() {
                return false;
            }
            if word.is_queue_locked() {
                spin::outlast(|| {
                    word = self.state();
                    !word.is_queue_locked() || !word.is_locked()
                });
                continue;
            }
            match self.change(word, word.queue_locked(), Acquire) {
                Ok(()) => break, // (lock queue)
                Err(now) => word = now,
            }
        }
        let mut seen = Seen { mutex: self, word: word.queue_locked() };
        let waiting = Status::waiting(window::here());
        let status = if is_due { waiting.woken_ahead(Cpu::UNKNOWN) } else { waiting };
        // SAFETY: this thread holds the queue lock. The node is its own, and in no queue: it was
        // never queued, or it was answered.
        unsafe { super::insert_oldest(&mut seen, node, status) };
        loop {
            let next = seen.word.not_awake();
            if seen.change(if is_due { next.due() } else { next }, Acquire) {
                break; // (stand back)
            }
        }
        self.serve(seen, Task::Nothing);
        true
    }
}
