//! Runs: what to cost, on how many CPUs, for how long.

use super::engine::World;
use super::events::Event;
use super::machine::Machine;
use super::report::{CostError, Ended, Fairness, Outcome, Predicted, Records, Stuck, StuckThread, Waits};
use super::state::{State, Status};
use super::units::{ns, ps};
use core::cell::{Cell, RefCell};
use std::rc::Rc;
use ulocks_vm::sync::{UnsafeCell, work};

/// The most threads of a run.
pub const MOST_THREADS: usize = 65_536;

/// On which CPUs the workers of a run start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// Worker `i` on CPU `i` modulo [`Run::cpus`]: socket by socket.
    #[default]
    Compact,
    /// In turn on each socket of the whole machine, as an idle kernel places threads that are not
    /// pinned.
    Spread,
}

/// What to run. Made by [`new`](Run::new), changed field by field:
///
/// ```
/// use ulocks_vm_cost::{Machine, Run};
/// let run = Run { cpus: 8, hold_ns: 1_000.0, ..Run::new(Machine::example(), 32) };
/// ```
#[derive(Clone, Debug)]
pub struct Run {
    /// The parameters.
    pub machine: Machine,
    /// How many of its CPUs are used, from number 0 on.
    pub cpus: usize,
    /// How many workers there are.
    pub threads: usize,
    /// Where they start.
    pub placement: Placement,
    /// For how long operations are counted, in nanoseconds.
    pub time_ns: f64,
    /// What passes before that.
    pub warm_up_ns: f64,
    /// The mean time inside the lock, for [`Worker::hold`]. Drawn evenly from half to one and a
    /// half of it.
    pub hold_ns: f64,
    /// The mean time outside the lock, likewise.
    pub think_ns: f64,
    /// Within which time [`contend`](Run::contend) has its workers begin, each at a random moment.
    /// Otherwise those near to the first one all come before the others, and a fair queue keeps
    /// them so.
    pub stagger_ns: f64,
    /// What else may happen inside the lock, in [`Worker::hold`]: with a probability, work of so
    /// many nanoseconds.
    pub stalls: Vec<(f64, f64)>,
    /// How many cache lines of protected data a critical section writes.
    pub data_lines: usize,
    /// Where the random numbers start.
    pub seed: u64,
}

impl Run {
    /// `threads` workers on as many CPUs, or on all that the machine has; 200 us after a warm-up of
    /// 20 us, holding the lock for 30 ns and staying away for 150 ns.
    #[must_use]
    pub fn new(machine: Machine, threads: usize) -> Self {
        Self {
            cpus: threads.clamp(1, machine.topology.total().max(1)),
            machine,
            threads,
            placement: Placement::Compact,
            time_ns: 200_000.0,
            warm_up_ns: 20_000.0,
            hold_ns: 30.0,
            think_ns: 150.0,
            stagger_ns: 0.0,
            stalls: Vec::new(),
            data_lines: 1,
            seed: 1,
        }
    }

    /// The CPU that a worker starts on.
    #[must_use]
    pub fn cpu_of(&self, worker: usize) -> usize {
        let index = worker % self.cpus.max(1);
        let topology = &self.machine.topology;
        match self.placement {
            Placement::Compact => index,
            Placement::Spread => {
                let socket = topology.complexes * topology.cpus;
                let (turn, number) = (index / topology.sockets, index % topology.sockets);
                number * socket + turn
            }
        }
    }

    fn check(&self) -> Result<(), CostError> {
        let bad = |why: String| Err(CostError::BadRun(why));
        if let Err(why) = self.machine.check() {
            return bad(format!("machine {}: {why}", self.machine.name));
        }
        let total = self.machine.topology.total();
        if !(1..=total).contains(&self.cpus) {
            return bad(format!("cpus is {}; machine {} has 1 to {total}", self.cpus, self.machine.name));
        }
        if self.placement == Placement::Spread && self.cpus != total {
            return bad(format!("cpus is {}; threads that are spread need all {total}", self.cpus));
        }
        if !(1..=MOST_THREADS).contains(&self.threads) {
            return bad(format!("threads is {}; it must be from 1 to {MOST_THREADS}", self.threads));
        }
        for (name, value, least) in [
            ("time_ns", self.time_ns, 1.0),
            ("warm_up_ns", self.warm_up_ns, 0.0),
            ("stagger_ns", self.stagger_ns, 0.0),
            ("hold_ns", self.hold_ns, 0.0),
            ("think_ns", self.think_ns, 0.0),
        ] {
            const HOUR: f64 = 3.6e12;
            if !(least..=HOUR).contains(&value) {
                return bad(format!("{name} is {value}; it must be from {least} to {HOUR} (an hour)"));
            }
        }
        for &(probability, time) in &self.stalls {
            if !(0.0..=1.0).contains(&probability) || !(0.0..=1e9).contains(&time) {
                return bad(format!("a stall of {time} ns with probability {probability}"));
            }
        }
        Ok(())
    }

    /// Runs `body` once in every worker, on what `state` makes before time begins.
    ///
    /// A worker that has not ended when time is up is abandoned in the middle of its operation: its
    /// destructors do not run, and what it owns, `state` and `body` among it, is leaked.
    ///
    /// # Errors
    /// If the run is not possible on the machine, or if its threads end up waiting for each other
    /// for ever.
    ///
    /// # Panics
    /// If `state` or `body` does.
    pub fn of<S: 'static>(
        &self,
        state: impl FnOnce() -> S,
        body: impl Fn(&S, &Worker) + 'static,
    ) -> Result<Outcome, CostError> {
        self.check()?;
        let records = Rc::new(Records::default());
        let end = ps(self.warm_up_ns) + ps(self.time_ns);
        let world = World::new(State::new(&self.machine, self.cpus, end, Rc::clone(&records)));
        ulocks_vm::engine::install(&world, || {
            let shared = Rc::new(OwnLines((state(), body)));
            for index in 0..self.threads {
                records.add();
                let worker = Worker::new(index, self, Rc::clone(&records));
                let shared = Rc::clone(&shared);
                let body = move || {
                    let OwnLines((state, body)) = &*shared;
                    body(state, &worker);
                };
                world.add_thread(self.cpu_of(index), Box::new(body));
            }
            if self.warm_up_ns > 0.0 {
                world.state().events.push(ps(self.warm_up_ns), Event::Measure);
            }
            world.run();
        });
        self.outcome(&world, &records)
    }

    /// Workers that stay away, and call `section` with what `make` makes, for ever. `section` takes
    /// the lock (timed by [`Worker::acquire`]), calls [`Worker::hold`], and releases the lock.
    ///
    /// # Errors
    /// As [`of`](Run::of).
    ///
    /// # Panics
    /// If `make` or `section` does, or if `section` never takes any time.
    pub fn contend<S: 'static>(
        &self,
        make: impl FnOnce() -> S,
        section: impl Fn(&S, &Worker) + 'static,
    ) -> Result<Outcome, CostError> {
        let (lines, stagger) = (self.data_lines, self.stagger_ns);
        self.of(
            move || (OwnLines(make()), Data::new(lines)),
            move |(lock, data), worker| {
                *worker.data.borrow_mut() = Some(Rc::clone(data));
                if stagger > 0.0 {
                    work((stagger * worker.random()).round() as u64);
                }
                loop {
                    let began = worker.records.now.get();
                    worker.think();
                    section(&lock.0, worker);
                    assert!(
                        worker.records.now.get() > began,
                        "a section that takes no time would run for ever"
                    );
                }
            },
        )
    }

    fn outcome(&self, world: &World, records: &Records) -> Result<Outcome, CostError> {
        let state = world.state();
        let stuck = state.stuck();
        if !stuck.is_empty() {
            let describe = |thread: usize| {
                let waits = &state.threads[thread];
                StuckThread { thread, spins: waits.status != Status::Asleep, place: waits.at.to_string() }
            };
            let threads = stuck.into_iter().map(describe).collect();
            return Err(CostError::Stuck(Stuck { at_ns: ns(state.now()), threads }));
        }
        let all_done = state.threads.iter().all(|thread| thread.status == Status::Ended);
        let (operations_by_thread, waits) = records.collect(self.threads);
        let operations: u64 = operations_by_thread.iter().sum();
        let counted = records.counted();
        let per_us = if counted == 0 { 0.0 } else { operations as f64 * 1e6 / counted as f64 };
        Ok(Outcome {
            predicted: Predicted,
            machine: self.machine.clone(),
            cpus: self.cpus,
            threads: self.threads,
            time_ns: ns(counted),
            ended: if all_done { Ended::AllDone } else { Ended::TimeUp },
            operations,
            per_us,
            transfers_per_operation: state.directory.traffic.transfers as f64 / operations.max(1) as f64,
            traffic: state.directory.traffic.clone(),
            kernel: state.kernel.clone(),
            fairness: Fairness::of(&operations_by_thread),
            operations_by_thread,
            waits: Waits::of(&waits),
            event_hash: state.hash,
        })
    }
}

/// What lies on lines of its own, two of them against machines that fetch pairs.
#[derive(Debug)]
#[repr(align(128))]
struct OwnLines<T>(T);

/// What the lock protects.
#[derive(Debug)]
struct Data {
    lines: Vec<OwnLines<UnsafeCell<u64>>>,
    inside: Cell<Option<usize>>,
    readers: Cell<usize>,
}

impl Data {
    fn new(lines: usize) -> Rc<Self> {
        let lines = (0..lines).map(|_| OwnLines(UnsafeCell::new(0))).collect();
        Rc::new(Self { lines, inside: Cell::new(None), readers: Cell::new(0) })
    }
}

/// One of the threads of a run, as its body sees it. What it observes takes no time.
#[derive(Debug)]
pub struct Worker {
    index: usize,
    hold_ns: f64,
    stalls: Vec<(f64, f64)>,
    think_ns: f64,
    random: Cell<u64>,
    records: Rc<Records>,
    data: RefCell<Option<Rc<Data>>>,
}

impl Worker {
    fn new(index: usize, run: &Run, records: Rc<Records>) -> Self {
        // The odd multiplier takes neighbouring seeds far apart; a xorshift must not start at 0.
        let mixed = (run.seed ^ (index as u64) << 32).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self {
            index,
            hold_ns: run.hold_ns,
            stalls: run.stalls.clone(),
            think_ns: run.think_ns,
            random: Cell::new(mixed | 1),
            records,
            data: RefCell::default(),
        }
    }

    /// The number of the worker, from 0.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// The time since the run began, in nanoseconds.
    #[must_use]
    pub fn now_ns(&self) -> f64 {
        ns(self.records.now.get())
    }

    /// Counts one operation.
    pub fn count(&self) {
        self.records.operation(self.index);
    }

    /// Times `lock`, and counts one operation when it is done.
    pub fn acquire<R>(&self, lock: impl FnOnce() -> R) -> R {
        self.records.begin_wait(self.index);
        let result = lock();
        self.records.end_wait(self.index);
        self.count();
        result
    }

    /// The critical section of [`Run::contend`]: writes the protected data and works for the time
    /// inside the lock.
    ///
    /// # Panics
    /// If another worker is inside: the lock does not exclude.
    #[track_caller]
    pub fn hold(&self) {
        let data = self.data.borrow().clone();
        if let Some(data) = &data {
            let other = data.inside.replace(Some(self.index));
            assert_eq!(other, None, "worker {} enters a critical section that this worker is in", self.index);
            assert_eq!(data.readers.get(), 0, "worker {} writes beside so many readers", self.index);
            for line in &data.lines {
                // SAFETY: the engine runs one thread at a time and switches in operations only, so
                // nothing else has a pointer to the number while the closure runs.
                line.0.with_mut(|number| unsafe { *number += 1 });
            }
        }
        self.spend_hold();
        if let Some(data) = &data {
            data.inside.set(None);
        }
    }

    /// As [`hold`](Self::hold), but it only reads the protected data, beside others that do.
    ///
    /// # Panics
    /// If a worker is inside that writes: the lock does not exclude.
    #[track_caller]
    pub fn hold_shared(&self) {
        let data = self.data.borrow().clone();
        if let Some(data) = &data {
            let writer = data.inside.get();
            assert_eq!(writer, None, "worker {} reads beside this worker, which writes", self.index);
            data.readers.set(data.readers.get() + 1);
            for line in &data.lines {
                line.0.with(|_| ());
            }
        }
        self.spend_hold();
        if let Some(data) = &data {
            data.readers.set(data.readers.get() - 1);
        }
    }

    /// The time inside the lock.
    fn spend_hold(&self) {
        self.work_about(self.hold_ns);
        for &(probability, time) in &self.stalls {
            if self.random() < probability {
                work(time.round() as u64);
            }
        }
    }

    /// Works for the time outside the lock.
    #[track_caller]
    pub fn think(&self) {
        self.work_about(self.think_ns);
    }

    /// Works for half to one and a half of `mean`.
    #[track_caller]
    pub fn work_about(&self, mean_ns: f64) {
        if mean_ns > 0.0 {
            work((mean_ns * (0.5 + self.random())).round() as u64);
        }
    }

    /// An even number from 0 to below 1, from the seed of the run.
    #[must_use]
    pub fn random(&self) -> f64 {
        let mut bits = self.random.get();
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        self.random.set(bits);
        (bits >> 11) as f64 / (1_u64 << 53) as f64
    }
}
