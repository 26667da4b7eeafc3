//! What the run knows: threads, CPUs, lines, sleepers, and what is to happen when.
//!
//! # A thread
//!
//! | status | on a CPU | ends when | what the end of its slice does |
//! |---|---|---|---|
//! | `Busy`: an instruction or a system call | yes | its `Go` | it goes on, and leaves before its next operation |
//! | `Computing`: touches nothing | yes | its `Go` | it leaves, and owes the rest |
//! | `Spinning`: asleep on lines of its own cache | yes | a line is taken, or its deadline | it leaves, and sleeps on |
//! | `Ready`: waits for a CPU | no | it is next | |
//! | `Asleep` in the kernel | no | a wake-up, or its deadline | |
//! | `Ended` | no | | |
//!
//! # Invariants
//!
//! 1. A thread has at most one `Go` that counts: its `step` changes with each `Go` that is pushed,
//!    taken or cancelled.
//! 2. A CPU for which a thread waits has an event on its way that ends the slice of the thread that
//!    runs (`armed`), or that one leaves at its next operation (`switch_soon`).
//! 3. A spinner sleeps only on lines that have the versions it read, and is woken when one of them
//!    gets another.

use super::events::{Event, Events};
use super::kernel::{Futexes, Sleeper};
use super::machine::Machine;
use super::mesi::Directory;
use super::noise::Disturbance;
use super::report::{KernelCounts, Records};
use super::scheduler::Cpus;
use super::units::{Costs, Ps};
use core::panic::Location;
use std::rc::Rc;
use ulocks_vm::engine::{At, Key};
use ulocks_vm::futex::Waited;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Busy,
    Computing { until: Ps },
    Spinning { since: Ps },
    Ready(Then),
    Asleep,
    Ended,
}

/// What a thread does when it gets a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    Run,
    Compute(Ps),
    Spin,
}

/// A round of a busy-wait.
#[derive(Debug, Default)]
pub(super) struct Round {
    pub(super) open: bool,
    /// The lines it read, with the versions they had.
    pub(super) lines: Vec<(usize, u64)>,
    /// It did more than read, so that the next round may differ though no line changes.
    pub(super) restless: bool,
    /// The earliest deadline it asked for.
    pub(super) deadline: Option<Ps>,
}

/// How a sleep ended: for `futex_waitv`, which entry was woken.
pub(super) type Woken = (Waited, Option<usize>);

#[derive(Debug)]
pub(super) struct Thread {
    pub(super) cpu: usize,
    pub(super) status: Status,
    step: u64,
    /// CPU time it has had; what it missed while it slept for more than a slice is forgotten.
    had: Ps,
    /// Time that passes before its next operation.
    pub(super) debt: Ps,
    /// Time of its stores that passes while it computes.
    pub(super) credit: Ps,
    pub(super) round: Round,
    /// How many times it has slept, on lines or in the kernel.
    pub(super) sleep: u64,
    pub(super) deadline: Option<Ps>,
    pub(super) keys: Vec<Key>,
    pub(super) woken: Option<Woken>,
    /// The line whose change ended its sleep.
    pub(super) stirred_by: Option<usize>,
    pub(super) joiners: Vec<usize>,
    /// Where it waits, for the report of a run that is stuck.
    pub(super) at: At,
}

pub(super) struct State {
    pub(super) costs: Costs,
    pub(super) end: Ps,
    pub(super) events: Events,
    pub(super) threads: Vec<Thread>,
    /// How many of them have not ended.
    pub(super) alive: usize,
    /// The thread whose coroutine executes.
    pub(super) current: Option<usize>,
    pub(super) cpus: Cpus,
    disturbance: Option<Disturbance>,
    pub(super) directory: Directory,
    pub(super) futexes: Futexes,
    pub(super) kernel: KernelCounts,
    pub(super) records: Rc<Records>,
    /// Depends on everything that happened and when.
    pub(super) hash: u64,
    pub(super) over: bool,
}

impl State {
    pub(super) fn new(machine: &Machine, cpus: usize, end: Ps, records: Rc<Records>) -> Self {
        Self {
            costs: Costs::of(machine),
            end,
            events: Events::default(),
            threads: Vec::new(),
            alive: 0,
            current: None,
            cpus: Cpus::new(machine, cpus),
            disturbance: machine.noise.clone().map(|noise| Disturbance::new(noise, cpus)),
            directory: Directory::new(machine),
            futexes: Futexes::default(),
            kernel: KernelCounts::default(),
            records,
            hash: 0,
            over: false,
        }
    }

    pub(super) fn now(&self) -> Ps {
        self.records.now.get()
    }

    pub(super) fn thread(&mut self, thread: usize) -> &mut Thread {
        &mut self.threads[thread]
    }

    /// Something has happened that two equal runs agree on.
    pub(super) fn trace(&mut self, what: u64, more: u64) {
        for word in [self.now(), what, more] {
            self.hash = (self.hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        }
    }

    /// A thread that waits for a CPU: `cpu`, or whichever is idle first.
    pub(super) fn add_thread(&mut self, cpu: usize, latency: Ps) {
        let thread = self.threads.len();
        self.alive += 1;
        self.threads.push(Thread {
            cpu,
            status: Status::Asleep,
            step: 0,
            had: 0,
            debt: 0,
            credit: 0,
            round: Round::default(),
            sleep: 0,
            deadline: None,
            keys: Vec::new(),
            woken: None,
            stirred_by: None,
            joiners: Vec::new(),
            at: Location::caller(),
        });
        self.place(thread, latency);
    }

    // ---- Events.

    /// When the thread is done that is busy from now on, and would be until `time` if no theft of
    /// its CPU came between. There are no thefts to count after the end of the run.
    pub(super) fn delayed(&mut self, thread: usize, time: Ps) -> Ps {
        let (now, cpu) = (self.now(), self.threads[thread].cpu);
        match &mut self.disturbance {
            Some(disturbance) if time <= self.end => disturbance.delayed(cpu, now, time),
            _ => time,
        }
    }

    /// The thread goes on at `time`; what it was to do before is cancelled.
    pub(super) fn go(&mut self, thread: usize, time: Ps) {
        self.threads[thread].step += 1;
        let step = self.threads[thread].step;
        self.events.push(time, Event::Go { thread, step });
    }

    /// The thread computes until `time`, and longer if its CPU is stolen.
    fn compute(&mut self, thread: usize, time: Ps) {
        let until = self.delayed(thread, time);
        self.threads[thread].status = Status::Computing { until };
        self.go(thread, until);
    }

    /// A `Go` is due. Whether it counts.
    pub(super) fn goes(&mut self, thread: usize, step: u64) -> bool {
        let counts = self.threads[thread].step == step;
        if counts {
            self.threads[thread].step += 1;
            self.threads[thread].status = Status::Busy;
        }
        counts
    }

    pub(super) fn slice_over(&mut self, cpu: usize, slice: u64) {
        let has_queue = self.cpus.has_queue(cpu);
        let state = self.cpus.get(cpu);
        if !state.armed || state.slice != slice {
            return;
        }
        if !has_queue {
            state.armed = false; // the thread that waited has been taken by another CPU
            return;
        }
        self.interrupt(cpu);
    }

    /// The running thread leaves its CPU as soon as it can.
    fn interrupt(&mut self, cpu: usize) {
        let thread = self.cpus.get(cpu).running.expect("a CPU that has a queue");
        let now = self.now();
        let then = match self.threads[thread].status {
            Status::Computing { until } => Then::Compute(until - now),
            Status::Spinning { .. } => Then::Spin,
            _ => {
                let state = self.cpus.get(cpu);
                (state.armed, state.switch_soon) = (false, true);
                return;
            }
        };
        self.preempt(thread, then);
    }

    /// The thread leaves its CPU to the next, and waits for its turn.
    pub(super) fn preempt(&mut self, thread: usize, then: Then) {
        self.trace(2, thread as u64);
        self.kernel.preemptions += 1;
        let cpu = self.threads[thread].cpu;
        self.threads[thread].step += 1;
        self.threads[thread].status = Status::Ready(then);
        self.cpus.enqueue(cpu, thread);
        self.vacate(cpu);
    }

    pub(super) fn timed_out(&mut self, thread: usize, sleep: u64) {
        let sleeper = &self.threads[thread];
        if sleeper.sleep == sleep && sleeper.woken.is_none() {
            self.kernel.timeouts += 1;
            self.rouse(thread, (Waited::TimedOut, None));
            self.deliver(thread, sleep);
        }
    }

    // ---- CPUs.

    /// The running thread has left: the next one starts.
    pub(super) fn vacate(&mut self, cpu: usize) {
        let now = self.now();
        let state = self.cpus.get(cpu);
        let ran = now.saturating_sub(state.slice_from);
        if let Some(thread) = state.running {
            self.threads[thread].had += ran;
        }
        let Some(thread) = self.cpus.next(cpu) else {
            self.disturbance.as_mut().into_iter().for_each(|disturbance| disturbance.idles(cpu, now));
            return;
        };
        self.kernel.context_switches += 1;
        self.trace(3, thread as u64);
        let mut latency = self.costs.context_switch;
        if self.threads[thread].cpu != cpu {
            self.kernel.migrations += 1;
            latency += self.costs.migration;
        }
        let Status::Ready(then) = self.threads[thread].status else {
            unreachable!("in a queue but not ready")
        };
        self.start(cpu, thread, latency, then);
    }

    fn start(&mut self, cpu: usize, thread: usize, latency: Ps, then: Then) {
        let start = self.now() + latency;
        self.threads[thread].cpu = cpu;
        let had = self.threads[thread].had;
        let state = self.cpus.get(cpu);
        state.pace = state.pace.max(had);
        state.slice_from = start;
        state.slice += 1;
        state.armed = false;
        state.switch_soon = false;
        if self.cpus.has_queue(cpu) {
            self.arm(cpu);
        }
        match then {
            Then::Run => {
                self.threads[thread].status = Status::Busy;
                let time = self.delayed(thread, start);
                self.go(thread, time);
            }
            Then::Compute(rest) => self.compute(thread, start + rest),
            Then::Spin => {
                self.threads[thread].status = Status::Spinning { since: start };
                if let Some(deadline) = self.threads[thread].deadline {
                    let time = self.delayed(thread, deadline.max(start));
                    self.go(thread, time);
                }
            }
        }
    }

    fn arm(&mut self, cpu: usize) {
        let now = self.now();
        let slice = self.costs.slice;
        let state = self.cpus.get(cpu);
        state.armed = true;
        let (time, slice) = ((state.slice_from + slice).max(now), state.slice);
        self.events.push(time, Event::Slice { cpu, slice });
    }

    /// Finds a CPU for a thread that has none. Whether an idle one was interrupted.
    fn place(&mut self, thread: usize, latency: Ps) -> bool {
        let last = self.threads[thread].cpu;
        let Some(cpu) = self.cpus.idle_near(last) else {
            self.threads[thread].status = Status::Ready(Then::Run);
            if self.costs.wake_preemption && self.is_owed(thread, last) {
                self.cpus.enqueue_first(last, thread);
                self.interrupt(last);
                return false;
            }
            self.cpus.enqueue(last, thread);
            let state = self.cpus.get(last);
            if !state.armed && !state.switch_soon {
                self.arm(last);
            }
            return false;
        };
        let mut latency = latency;
        if cpu != last {
            self.kernel.migrations += 1;
            latency += self.costs.migration;
        }
        if let Some(disturbance) = &self.disturbance {
            latency += disturbance.late(cpu, self.now(), self.hash);
        }
        self.cpus.occupy(cpu, thread);
        self.start(cpu, thread, latency, Then::Run);
        true
    }

    /// Whether a thread that wakes up has had less CPU time than the running one.
    fn is_owed(&mut self, thread: usize, cpu: usize) -> bool {
        let (now, slice) = (self.now(), self.costs.slice);
        let state = self.cpus.get(cpu);
        let (pace, ran) = (state.pace, now.saturating_sub(state.slice_from));
        let running = state.running.expect("no CPU is idle");
        let had = self.threads[thread].had.max(pace.saturating_sub(slice));
        self.threads[thread].had = had;
        had < self.threads[running].had + ran
    }

    // ---- Sleepers in the kernel.

    /// The sleep is over, by decision: no wake-up finds the thread in a queue any more.
    pub(super) fn rouse(&mut self, thread: usize, how: Woken) {
        self.threads[thread].woken = Some(how);
        self.leave_queues(thread);
    }

    pub(super) fn leave_queues(&mut self, thread: usize) {
        for key in std::mem::take(&mut self.threads[thread].keys) {
            self.futexes.remove(key, thread);
        }
    }

    /// Rouses up to `count` sleepers, and says how many were looked at.
    pub(super) fn take_sleepers(&mut self, key: Key, count: u32, bits: u32) -> (Vec<Sleeper>, usize) {
        let (taken, looked) = self.futexes.take(key, count, bits);
        for sleeper in &taken {
            self.rouse(sleeper.thread, (Waited::Woken, Some(sleeper.entry)));
        }
        (taken, looked)
    }

    /// A roused thread gets a CPU, unless it had not left its own yet. Whether an idle one was
    /// interrupted.
    pub(super) fn deliver(&mut self, thread: usize, sleep: u64) -> bool {
        self.trace(4, thread as u64);
        let sleeper = &self.threads[thread];
        if sleeper.status != Status::Asleep || sleeper.sleep != sleep {
            return false;
        }
        self.place(thread, self.costs.wake_latency)
    }

    /// Moves sleepers to another queue.
    pub(super) fn move_sleepers(&mut self, from: Key, count: u32, to: Key) -> Vec<Sleeper> {
        let moved = self.futexes.requeue(from, count, to);
        for sleeper in &moved {
            let keys = &mut self.threads[sleeper.thread].keys;
            if let Some(key) = keys.iter_mut().find(|key| **key == from) {
                *key = to;
            }
        }
        self.kernel.requeued += moved.len() as u64;
        moved
    }

    // ---- Sleepers on lines.

    /// A CPU has taken the line for itself, or done its access.
    pub(super) fn taken(&mut self, line: usize) {
        for (thread, sleep) in self.directory.taken(line) {
            if self.threads[thread].sleep != sleep {
                continue;
            }
            self.threads[thread].sleep += 1;
            self.threads[thread].stirred_by = Some(line);
            match self.threads[thread].status {
                Status::Spinning { since } => {
                    // It looks when it would have looked: a round is one pause long.
                    let past = self.now().saturating_sub(since);
                    let look = since + past.div_ceil(self.costs.pause) * self.costs.pause;
                    self.compute(thread, look);
                }
                Status::Ready(Then::Spin) => self.threads[thread].status = Status::Ready(Then::Run),
                status => unreachable!("asleep on a line but {status:?}"),
            }
        }
    }

    /// The threads that can do nothing any more, if these are all that have not ended.
    pub(super) fn stuck(&self) -> Vec<usize> {
        let mut stuck = Vec::new();
        for (number, thread) in self.threads.iter().enumerate() {
            match thread.status {
                Status::Ended => {}
                Status::Asleep | Status::Spinning { .. } | Status::Ready(Then::Spin)
                    if thread.deadline.is_none() =>
                {
                    stuck.push(number);
                }
                _ => return Vec::new(),
            }
        }
        stuck
    }
}
