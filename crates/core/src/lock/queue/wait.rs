//! How a waiter waits, contends, naps, and leaves. Labels and invariants are those of `mutex.rs`.
//!
//! # How long a waiter waits, barging
//! Let `h` be the longest hold and `w` the time until a thread runs that was woken, or that was
//! preempted on the queue. The candidate sets `DUE` within `bound + w` of its first look, and
//! acquires with the next release, within `h + w`; or it sleeps when the bound passes, and the next
//! release wakes it for that: `h + w` more. A waiter behind `k` others is chosen after they have
//! acquired or left. So it waits for `(k + 1) * (bound + 2h + 3w)` at most. A nap ends with the
//! bound.

use super::mutex::{QueueMutex, Seen, Task};
use super::plan::Plan;
use super::rule::Rule;
use super::window;
use super::{Cpu, Kind, Node, Status};
use crate::lock::meter::{Event, Meter};
use crate::lock::policy::{InOneProcess, Policy};
use crate::lock::spin::{self, Look};
use crate::sys::cpu;
use crate::sys::futex::Waited;
use crate::sys::sync::Ordering::{Acquire, Relaxed, Release};
use crate::sys::time::Deadline;
use crate::sys::world;
use core::time::Duration;

/// The first nap of a candidate; each is twice as long as the one before. It is a few wake-ups
/// long, so that it is no poll.
const FIRST_NAP: Duration = Duration::from_micros(50);

/// For how long the candidate looks at a mutex before it calls it idle: twice as long as a lone
/// active thread takes from one release to the next, if the lock is not slow (`plan.rs`).
const IDLE_NS: u32 = 800;

/// How the candidate has ended.
enum Contended {
    /// It holds the mutex.
    Acquired,
    /// It holds the mutex, which was kept for it.
    Reserved,
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
                match self.contend(node, &mut due, &mut slept, gives_up, deadline) {
                    Contended::Acquired => {
                        self.meter.count(if slept { Event::Woken } else { Event::Spun });
                        return true;
                    }
                    Contended::Reserved => {
                        self.meter.count(Event::Reserved);
                        return true;
                    }
                    Contended::GaveUp => return false,
                    Contended::StoodBack => {}
                }
            }
            let answer =
                node.wait::<P>(polls && !slept, &mut slept, deadline, &self.meter).unwrap_or_else(|| {
                    gives_up = true;
                    node.ask_to_leave().map_or_else(|| node.look(), |leaving| self.leave(node, leaving))
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

    /// A waiter whose time is up, and whose status is `leaving`, leaves the queue, which is the
    /// answer `Removed`, unless it is answered first.
    #[cold]
    pub(super) fn leave(&self, node: &Node, leaving: Status) -> Status {
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

    /// The candidate contends for the mutex. `due` is when the bound passes, once it has found the
    /// mutex taken.
    fn contend(
        &self,
        node: &Node,
        due: &mut Option<Deadline>,
        slept: &mut bool,
        gives_up: impl Fn() -> bool,
        deadline: Option<Deadline>,
    ) -> Contended {
        let mut nap = FIRST_NAP;
        let (mut takes, mut ended, mut kept) = (false, false, false);
        loop {
            let mode = self.plan().map(Plan::mode); // before the look at the word: see (call)
            let solo = self.is_solo();
            let looks = takes || !solo;
            let mut look = || self.look_as_candidate();
            if looks && look() == Look::Acquired {
                return self.contended(kept);
            }
            let end = *due.get_or_insert_with(|| Deadline::after(Duration::from_nanos(R::BOUND_NS)));
            let is_due = R::BOUND_NS == 0 || end.has_passed();
            if looks && !is_due && spin::closely::<P>(&mut look) {
                return self.contended(kept);
            }
            takes = true; // if the mutex is free from here on
            if ended || gives_up() {
                if self.resign() {
                    return Contended::GaveUp;
                }
                continue;
            }
            if is_due {
                if !kept && R::CULLED {
                    self.meter.count(Event::Promoted);
                }
                kept = true;
                if self.insist() {
                    return Contended::Reserved;
                }
            }
            if is_due || !(R::CULLED || solo) {
                let status = || {
                    let waiting = Status::waiting(window::here());
                    if is_due { waiting.woken_ahead(Cpu::UNKNOWN) } else { waiting }
                };
                // SAFETY: the node was never queued, or it was answered, and it lives until the
                // wait is over.
                if unsafe { self.stand_back(node, status) } {
                    if !is_due && let Some(plan) = self.plan() {
                        plan.note_vain();
                    }
                    return Contended::StoodBack;
                }
                continue;
            }
            let (until, _) = Deadline::earlier(Some(end), Some(Deadline::after(nap)));
            let (until, is_last) = Deadline::earlier(until, deadline);
            self.meter.count(Event::Slept);
            *slept = true;
            let waited = match (self.plan(), mode) {
                (Some(plan), Some(mode)) => plan.nap(mode, until), // (nap)
                _ => node.nap(until),
            };
            let timed_out = waited == Waited::TimedOut;
            ended = waited.interrupts(deadline) || timed_out && is_last;
            takes = !timed_out || self.is_idle();
            nap = nap.saturating_mul(2);
        }
    }

    /// How the candidate has ended that has the mutex, which was `kept` for it.
    fn contended(&self, kept: bool) -> Contended {
        if kept {
            return Contended::Reserved;
        }
        if let Some(plan) = self.plan() {
            plan.note_won();
        }
        Contended::Acquired
    }

    /// Whether no thread uses the mutex, as far as the candidate sees after a nap. One thread alone
    /// is slower than several if the mutex is free in more than a quarter of the looks.
    fn is_idle(&self) -> bool {
        let plan = self.plan().filter(|plan| plan.mode().is_slow_solo());
        let looks = spin::looks_in(IDLE_NS);
        let mut locked = 0;
        for _ in 0..looks {
            world::pause();
            locked += u32::from(self.state().is_locked());
            if locked > 0 && plan.is_none() {
                return false;
            }
        }
        if let Some(plan) = plan
            && looks - locked > looks / 4
        {
            plan.note_idle();
        }
        locked == 0
    }

    /// (claim). The candidate polls for a while then: true if it acquires.
    fn insist(&self) -> bool {
        self.set_due();
        spin::head_waiter::<P>(false, || self.look_as_candidate() == Look::Acquired)
    }

    /// (take as candidate).
    pub(super) fn look_as_candidate(&self) -> Look {
        let word = self.state();
        if word.is_locked() {
            Look::Taken
        } else if self.change(word, word.locked().not_awake().not_due(), Acquire).is_ok() {
            Look::Acquired
        } else {
            Look::Beaten
        }
    }

    /// (resign). False if the mutex is free.
    pub(super) fn resign(&self) -> bool {
        let mut word = self.state();
        while word.is_locked() {
            match self.change(word, word.not_awake().not_due(), Relaxed) {
                Ok(()) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// (stand back), with `status`. False if the mutex is free.
    ///
    /// # Safety
    /// The node is the caller's, and in no queue. It stays where it is until it is answered.
    pub(super) unsafe fn stand_back(&self, node: *const Node, status: impl FnOnce() -> Status) -> bool {
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
        // SAFETY: this thread holds the queue lock. The node is its own, and in no queue, by the
        // contract.
        unsafe { super::insert_oldest(&mut seen, node, status()) };
        while !seen.change(seen.word.not_awake(), Relaxed) {} // (stand back)
        self.serve(seen, Task::Nothing);
        true
    }
}

impl Node {
    /// Waits until the waiter is answered; `None` if `deadline` passed first. `polls`: the waiter
    /// is in the window.
    pub fn wait<P: Policy>(
        &self,
        polls: bool,
        slept: &mut bool,
        deadline: Option<Deadline>,
        meter: &P::Meter,
    ) -> Option<Status> {
        loop {
            if *slept {
                self.status.fetch_and(Status::not_late(), Relaxed);
            }
            let (here, mut seen) = (window::here(), self.look());
            let mut tired = false;
            if (polls || seen.is(Kind::WokenAhead)) && !seen.holder_cpu().is(here) {
                // A waiter that was woken keeps the CPU from the holder perhaps, unless both are
                // known to be elsewhere.
                let elsewhere = seen.holder_cpu().is_known() && here.is_known() || window::is_wide();
                let short = *slept && !elsewhere;
                (0..window::patience()).any(|_| {
                    spin::head_waiter::<P>(short, || {
                        seen = self.look();
                        tired = !seen.holder_cpu().is(here);
                        seen.is_answer() || !tired
                    })
                });
            }
            if seen.is_answer() {
                return Some(seen);
            }
            let parked = Status::parked(window::here());
            let parked = if tired { parked.tired() } else { parked };
            if self.status.compare_exchange(seen.0, parked.0, Relaxed, Relaxed).is_err() {
                continue;
            }
            *slept = true;
            cpu::recount();
            if !self.sleep(parked, deadline, meter) {
                return None;
            }
        }
    }

    /// Sleeps until `until`. For the candidate, whose node is in no queue.
    fn nap(&self, until: Option<Deadline>) -> Waited {
        self.status.wait(self.status.load(Relaxed), until)
    }

    /// Sleeps until the status is not `parked` any more; false if `deadline` passed first.
    fn sleep(&self, parked: Status, deadline: Option<Deadline>, meter: &impl Meter) -> bool {
        loop {
            meter.count(Event::Slept);
            let waited = self.status.wait(parked.0, deadline);
            if self.status.load(Relaxed) != parked.0 {
                // Counted here: the waking thread may have had no lock left to count in.
                meter.count(Event::Woke);
                return true;
            }
            if waited == Waited::TimedOut {
                return false;
            }
        }
    }
}
