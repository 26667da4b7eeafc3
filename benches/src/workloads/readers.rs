//! Reader-writer locks in the runs of the test module of 2008, and in those that came later.
//!
//! | test | threads | where |
//! |---|---|---|
//! | writer | one writer, 100 us of work between | alone |
//! | try-writer | one, up to 100 attempts, 1 ms of work between | alone |
//! | bulk, urgent, nested | one reader that does nothing else | alone |
//! | readers | 2 Bulk, 2 Urgent, nothing else | dealt to the CPUs in turn |
//! | contention | 2 writers (100 us between), a try-writer (1 ms), 2 Bulk, 2 Urgent, a try-reader, all busy; as asked, each writer and reader struck by a timer | dealt in that order |
//! | invariance | a Bulk reader that holds for so long, over and over, 50 us apart; a writer every millisecond; the probe | probe on a CPU of its own |
//! | queue | so many writers, each holding 10 us, one behind the other; the probe | probe on a CPU of its own |
//! | behind | a Bulk reader that holds 3 ms, 50 us apart; a writer every millisecond, struck by a timer | writer on a CPU of its own |
//!
//! The numbers of the module's own tests are those of [`Module`] as it is by default.
//!
//! The probe asks for the lock every 50 us or so, as a thread, or in a handler that a timer runs;
//! it is what is measured. It does not ask all the time, or nearly all its delays would be those of
//! an idle lock and no percentile would show what happens when the writer comes.
//!
//! The 50 us are for peers that wake a writer and let it race with readers that run already:
//! without them the reader is back before the writer has woken up, and it starves. That is another
//! property, which `contention` shows.
//!
//! On one CPU there is no CPU of its own, and delays are time slices.
//!
//! Where a thread is alone its figures are `wait-min` and so on; among others they are those of its
//! role, `writer/wait-min`, and those of signal handlers `handler/wait-min`. A thread that is alone
//! is timed a second time, in batches, far below a step of the clock.

mod threads;
mod timer;

use super::*;
use crate::engine::figures::Figure;
use crate::run::clock::Calibration;
use crate::run::crew::Crew;
use crate::run::pinning;
use crate::run::threads::{Urgent, keep_a_thread_asleep};
use crate::statistics::delays::Delays;
pub use crate::subjects::rwlocks::Rank;
use crate::subjects::rwlocks::{Ask, Entry, ROW, Subject, mask};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Release;
use std::thread::{self, Builder};
use std::time::Instant;
use threads::{Data, MEASURE, STOP, Shared, Tally};

/// The reader that asks for the lock to see how long that takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Probe {
    /// A reader of class `Urgent`.
    Urgent,
    /// A reader in a signal handler.
    Handler,
}

/// Which threads there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Test {
    /// One writer.
    Writer,
    /// One writer that tries.
    TryWriter,
    /// One reader.
    Reader(Rank),
    /// Readers and no writer.
    Readers,
    /// All threads.
    Contention,
    /// Readers of class `Bulk` that hold so long, and a writer now and then.
    Invariance {
        /// In microseconds.
        hold_us: u32,
        /// The reader that is looked at.
        probe: Probe,
    },
    /// Writers that queue.
    Queue {
        /// How many.
        writers: u32,
        /// The reader that is looked at.
        probe: Probe,
    },
    /// A writer behind a long reader, struck by signals.
    Behind,
}

/// The parameters of the test module, by default as it had them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    /// `NR_WRITERS`.
    pub writers: u32,
    /// `NR_TRYLOCK_WRITERS`.
    pub try_writers: u32,
    /// `NR_PREEMPTABLE_READERS`.
    pub bulk: u32,
    /// `NR_NON_PREEMPTABLE_READERS`.
    pub urgent: u32,
    /// `NR_TRYLOCK_READERS`.
    pub try_readers: u32,
    /// `WRITER_DELAY`.
    pub writer_delay_us: u32,
    /// `TRYLOCK_WRITER_DELAY`.
    pub try_writer_delay_us: u32,
    /// `TRYLOCK_WRITERS_FAIL_ITER`.
    pub attempts: u32,
    /// `THREAD_READER_DELAY`.
    pub reader_delay_us: u32,
    /// `INTERRUPT_READER_DELAY`: how often a timer strikes each writer and reader under contention;
    /// 0 for never. It needs a lock that is read in signal handlers.
    pub handler_every_us: u32,
    /// Whether each thread is a role of its own, such as `writer/1`.
    pub by_thread: bool,
}

impl Module {
    /// As the module had them, without interrupts.
    pub const DEFAULT: Self = Self {
        writers: 2,
        try_writers: 1,
        bulk: 2,
        urgent: 2,
        try_readers: 1,
        writer_delay_us: 100,
        try_writer_delay_us: 1_000,
        attempts: 100,
        reader_delay_us: 0,
        handler_every_us: 0,
        by_thread: false,
    };

    fn is_default(&self) -> bool {
        *self == Self::DEFAULT
    }
}

impl Default for Module {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Roles around a reader-writer lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Which threads there are.
    pub test: Test,
    /// What they do.
    #[serde(default, skip_serializing_if = "Module::is_default")]
    pub module: Module,
}

/// A thread of a run.
#[derive(Clone, Copy, Debug)]
struct Duty {
    role: &'static str,
    /// What it asks of the lock; nothing if its timer is what it is there for.
    ask: Option<Ask>,
    /// How often it asks before it gives up; a thread that waits has what it wants the first time.
    attempts: u32,
    /// How long it works with the lock held, beside looking at the variables.
    hold_ns: u64,
    /// How long it works without it.
    work_ns: u64,
    /// How long it sleeps without it.
    sleep_ns: u64,
    /// How often its timer strikes, in nanoseconds, if it has one.
    timer_ns: Option<u64>,
    /// Whether it has a CPU of its own, where there are two.
    apart: bool,
}

/// Between two holds of a reader that a thread waits for.
const BULK_GAP_NS: u64 = 50_000;
/// Between two writes where a reader is looked at. The writer sleeps and does not work, so that it
/// wakes up while the reader is at it on the same CPU.
const PERIOD_NS: u64 = 1_000_000;
/// Between two looks.
const PROBE_NS: u64 = 50_000;
/// Between two handlers that are looked at: what a signal takes must not fill the CPU.
const PROBE_TIMER_NS: u64 = 100_000;
/// How long queued writers hold.
const QUEUED_HOLD_NS: u64 = 10_000;
/// How long the reader holds that the writer is behind.
const BEHIND_HOLD_NS: u64 = 3_000_000;
/// Pairs in a batch: some tens of microseconds.
const PAIRS: usize = 4_000;
/// Rows in a batch.
const ROWS: usize = 32;
/// Batches.
const BATCHES: usize = 300;

impl Duty {
    const fn new(role: &'static str, ask: Option<Ask>, work_ns: u64) -> Self {
        let (hold_ns, sleep_ns, timer_ns) = (0, 0, None);
        Self { role, ask, attempts: 1, hold_ns, work_ns, sleep_ns, timer_ns, apart: false }
    }

    /// A reader.
    const fn reader(rank: Rank, work_ns: u64) -> Self {
        let role = match rank {
            Rank::Bulk => "bulk",
            Rank::Urgent => "urgent",
            Rank::Nested => "nested",
        };
        Self::new(role, Some(Ask::Read(rank)), work_ns)
    }
}

impl Run {
    /// A test with the module's own parameters.
    pub const fn new(test: Test) -> Self {
        Self { test, module: Module::DEFAULT }
    }

    /// Workers that it starts.
    pub fn workers(self) -> u32 {
        self.duties().len() as u32
    }

    /// How long its window is where that of the plan is `window_ms`.
    pub fn window_ms(self, window_ms: u64) -> u64 {
        // As the module had it: a minute of contention, and ten seconds of all else.
        if self.module.by_thread && self.test == Test::Contention { 6 * window_ms } else { window_ms }
    }

    /// Whether a lock can take part in it.
    pub fn is_for(self, lock: &Entry) -> bool {
        (lock.handler() || !self.has_handlers()) && (lock.nested || self.test != Test::Reader(Rank::Nested))
    }

    /// Whether some of its readers are signal handlers.
    pub fn has_handlers(self) -> bool {
        self.duties().iter().any(|duty| duty.timer_ns.is_some())
    }

    /// Its threads.
    fn duties(self) -> Vec<Duty> {
        let Self { test, module } = self;
        let ns = |us: u32| 1000 * u64::from(us);
        let writer = Duty::new("writer", Some(Ask::Write), ns(module.writer_delay_us));
        let try_writer = Duty {
            attempts: module.attempts,
            ..Duty::new("try-writer", Some(Ask::TryWrite), ns(module.try_writer_delay_us))
        };
        let try_reader = Duty::new("try-reader", Some(Ask::TryRead), ns(module.reader_delay_us));
        let reader = |rank| Duty::reader(rank, ns(module.reader_delay_us));
        let [bulk, urgent] = [Rank::Bulk, Rank::Urgent].map(reader);
        let periodic = Duty { sleep_ns: PERIOD_NS, work_ns: 0, ..writer };
        let probe = |probe| match probe {
            Probe::Urgent => Duty { apart: true, ..Duty::reader(Rank::Urgent, PROBE_NS) },
            Probe::Handler => {
                Duty { apart: true, timer_ns: Some(PROBE_TIMER_NS), ..Duty::new("idle", None, PROBE_NS) }
            }
        };
        let holding = |ns| Duty { hold_ns: ns, ..Duty::reader(Rank::Bulk, BULK_GAP_NS) };
        let all = |of: &[(u32, Duty)]| -> Vec<Duty> {
            of.iter().flat_map(|&(count, duty)| (0..count).map(move |_| duty)).collect()
        };
        match test {
            Test::Writer => vec![writer],
            Test::TryWriter => vec![try_writer],
            Test::Reader(rank) => vec![reader(rank)],
            Test::Readers => all(&[(module.bulk, bulk), (module.urgent, urgent)]),
            Test::Contention => {
                let timer_ns = (module.handler_every_us > 0).then(|| ns(module.handler_every_us));
                let [writer, bulk, urgent] = [writer, bulk, urgent].map(|duty| Duty { timer_ns, ..duty });
                all(&[
                    (module.writers, writer),
                    (module.try_writers, try_writer),
                    (module.bulk, bulk),
                    (module.urgent, urgent),
                    (module.try_readers, try_reader),
                ])
            }
            Test::Invariance { hold_us, probe: of } => vec![probe(of), holding(ns(hold_us)), periodic],
            Test::Queue { writers, probe: of } => {
                let writer = Duty { work_ns: 0, hold_ns: QUEUED_HOLD_NS, ..writer };
                all(&[(1, probe(of)), (writers, writer)])
            }
            Test::Behind => {
                let writer = Duty { apart: true, timer_ns: Some(PROBE_TIMER_NS), ..periodic };
                vec![writer, holding(BEHIND_HOLD_NS)]
            }
        }
    }

    /// Carries it out in this process.
    pub fn carry_out(self, subject: &str, conditions: &Conditions) -> Result<Outcome> {
        self.with(Entry::find(subject)?, conditions)
    }

    /// The same with a lock that need not be in the list.
    fn with(self, lock: &Entry, conditions: &Conditions) -> Result<Outcome> {
        let (duties, name) = (self.duties(), lock.name);
        ensure!(!duties.is_empty(), "a run without threads measures nothing; allowed: at least one thread");
        ensure!(
            lock.nested || self.test != Test::Reader(Rank::Nested),
            "lock '{name}' has no class Nested; allowed: locks that have"
        );
        keep_a_thread_asleep();
        // Inherited by all threads; only those with a timer unblock it.
        mask::change(libc::SIG_BLOCK);
        if self.has_handlers() {
            // SAFETY: it reads clocks and the timer's overrun, looks at atomics, and notes delays in
            // memory that its thread has allocated; it is the only function that is named here.
            unsafe { lock.install(mask::signal(), timer::on_signal)? };
        }
        let clock = Calibration::new();
        // The process carries out one trial, and handlers have what they need as long as it lives.
        let shared: &'static Shared = Box::leak(Box::new(Shared {
            lock: lock.place(1)?,
            data: Data::new(),
            phase: Default::default(),
            clock,
            timed_mask: lock.timed_mask,
        }));
        let loads = duties.iter().map(|duty| threads::Loads::new(duty, conditions.iterations_per_us));
        let loads = loads.collect::<Result<Vec<_>>>()?;
        let cpus = pinning::order(Pin::Scatter)?;
        let places = places(&duties, &cpus);
        let (duties, loads, places) = (&duties, &loads, &places);
        let body = move |index: usize, bound: Result<()>| {
            bound.and_then(|()| shared.serve(&duties[index], loads[index], conditions.seed + index as u64))
        };
        let (tallies, elapsed_s) = thread::scope(|scope| {
            let small = |_| Builder::new().stack_size(256 * 1024);
            let bind = move |index: usize| places.get(index).map_or(Ok(()), |&cpu| pinning::bind(cpu));
            let crew = Crew::start(scope, duties.len(), small, bind, body)?;
            let elapsed_s = shared.conduct(conditions);
            Ok::<_, anyhow::Error>((crew.join().into_iter().collect::<Result<Vec<Tally>>>()?, elapsed_s))
        })?;
        let torn: u64 = tallies.iter().map(Tally::torn).sum();
        ensure!(torn == 0, "lock '{name}' let somebody see a half-written state, {torn} times");

        let mut figures = Figures { outcome: Outcome::new(), clock, elapsed_s };
        figures.roles(&self, duties, tallies);
        if self.module.by_thread && self.test == Test::Writer {
            for (kind, ticks) in ["min", "mean", "max"].into_iter().zip(clock.empty) {
                figures.put("get_cycles/", &format!("clock-{kind}"), clock.ns(ticks as f64));
            }
        }
        if let [Duty { ask: Some(ask), timer_ns: None, .. }] = **duties {
            if let Some(&cpu) = cpus.first() {
                pinning::bind(cpu)?;
            }
            figures.batches(lock, ask, Duration::from_millis(conditions.window_ms))?;
        }
        Ok(figures.outcome)
    }
}

/// Where each runs: those that are to be apart on the first CPUs, the others dealt to the rest.
fn places(duties: &[Duty], cpus: &[usize]) -> Vec<usize> {
    let apart = duties.iter().filter(|duty| duty.apart).count().min(cpus.len().saturating_sub(1));
    let (own, common) = cpus.split_at(apart);
    let (mut own, mut common) = (own.iter(), common.iter().cycle());
    let mut place = |apart: bool| if apart { own.next().or_else(|| common.next()) } else { common.next() };
    duties.iter().filter_map(|duty| place(duty.apart).copied()).collect()
}

impl Shared {
    /// Opens and closes the window; returns its length in seconds.
    fn conduct(&self, conditions: &Conditions) -> f64 {
        let _urgent = Urgent::new();
        thread::sleep(Duration::from_millis(conditions.warmup_ms));
        let start = Instant::now();
        self.phase.store(MEASURE, Release);
        thread::sleep(Duration::from_millis(conditions.window_ms));
        let elapsed = start.elapsed();
        self.phase.store(STOP, Release);
        elapsed.as_secs_f64()
    }
}

/// What is said of delays, by the end of a figure's name.
const KINDS: [&str; 6] = ["min", "mean", "p50", "p99", "p99.9", "max"];

/// The figures of a run.
struct Figures {
    outcome: Outcome,
    clock: Calibration,
    elapsed_s: f64,
}

impl Figures {
    /// Those of threads of one role together, or of each thread.
    fn roles(&mut self, run: &Run, duties: &[Duty], tallies: Vec<Tally>) {
        let (mut roles, mut handlers) = (BTreeMap::new(), BTreeMap::<String, Vec<Delays>>::new());
        let mut numbers = BTreeMap::new();
        let alone = duties.len() == 1;
        for (duty, tally) in duties.iter().zip(tallies) {
            let number: &mut usize = numbers.entry(duty.role).or_default();
            let role = match (run.module.by_thread, alone) {
                (true, _) => format!("{}/{number}/", duty.role),
                (false, true) => String::new(),
                (false, false) => format!("{}/", duty.role),
            };
            *number += 1;
            if let Some(handled) = &tally.handled {
                let each = if run.module.by_thread { format!("{}/", handlers.len()) } else { String::new() };
                let sum = handlers.entry(format!("handler/{each}"));
                let sum = sum.or_insert_with(|| vec![Delays::new(); handled.delays.len()]);
                sum.iter_mut().zip(&handled.delays).for_each(|(sum, delays)| sum.add(delays));
            }
            if duty.ask.is_some() {
                roles.entry(role).or_insert_with(Vec::new).push(tally);
            }
        }
        for (role, tallies) in roles {
            self.role(&role, &tallies);
        }
        for (role, delays) in handlers {
            for (delays, name) in delays.iter().zip(["delivery", "wait", "unlock"]) {
                self.delays(&role, name, delays);
            }
            let count = delays[0].delay().map_or(0, |delay| delay.count);
            self.put(&role, "iterations", count as f64);
        }
    }

    fn role(&mut self, role: &str, tallies: &[Tally]) {
        let sum = |of: fn(&Tally) -> u64| tallies.iter().map(of).sum::<u64>() as f64;
        let iterations = sum(|tally| tally.counted);
        self.put(role, "iterations", iterations);
        self.put(role, "rate", iterations / self.elapsed_s.max(1e-9));
        if tallies.iter().any(|tally| tally.attempts > tally.counted) {
            self.put(role, "attempts", sum(|tally| tally.attempts));
            self.put(role, "failures", sum(|tally| tally.failures));
        }
        if tallies.len() > 1 && iterations > 0.0 {
            let least = tallies.iter().map(|tally| tally.counted).min().unwrap_or(0);
            self.put(role, "least", least as f64 * tallies.len() as f64 / iterations);
        }
        let merged = |of: fn(&Tally) -> Option<&Delays>| {
            let mut all = Delays::new();
            tallies.iter().filter_map(of).for_each(|delays| all.add(delays));
            all
        };
        self.delays(role, "wait", &merged(|tally| Some(&tally.lock)));
        self.delays(role, "unlock", &merged(|tally| Some(&tally.unlock)));
        let masked = merged(|tally| Some(&tally.masked.as_ref()?.masked));
        self.delays(role, "masked", &masked);
        self.delays(role, "held-off", &merged(|tally| Some(&tally.masked.as_ref()?.held_off)));
        if let Some(delay) = masked.delay() {
            self.put(role, "masked-times", delay.count as f64);
        }
    }

    /// Delays in ticks, those figures of them that there are. What is below the clock's own part is
    /// not nothing.
    fn delays(&mut self, role: &str, name: &str, delays: &Delays) {
        let Some(delay) = delays.delay() else { return };
        let whole = [delay.min, 0, delay.p50, delay.p99, delay.p999, delay.max].map(|ticks| ticks as f64);
        for (kind, ticks) in KINDS.into_iter().zip(whole) {
            let ticks = if kind == "mean" { delay.mean } else { ticks };
            self.put(role, &format!("{name}-{kind}"), self.clock.ns(ticks.max(1.0)));
        }
    }

    fn put(&mut self, role: &str, name: &str, value: f64) {
        if Figure::find(name).is_some() {
            self.outcome.insert(format!("{role}{name}"), value);
        }
    }

    /// Lock and unlock where no thread contends: some nanoseconds each, which no clock can time one
    /// by one.
    ///
    /// A batch takes a row of locks, all of them, and then lets go of all. A pair is timed on one
    /// lock, over and over. Of many batches the best is kept: what disturbs a batch makes it slower.
    /// A lock that keeps signals off while it is held would do so once for a whole row; of such a
    /// lock there are pairs only. Some milliseconds are enough for all batches; a smoke run has none
    /// to spare.
    fn batches(&mut self, lock: &Entry, ask: Ask, limit: Duration) -> Result<()> {
        let (row, start, overhead) = (lock.place(ROW)?, Instant::now(), self.clock.overhead());
        let mut best = [f64::INFINITY; 3];
        for batch in 0..BATCHES {
            if batch >= 3 && start.elapsed() >= limit {
                break;
            }
            let each = if lock.timed_mask { [f64::INFINITY; 2] } else { self.row(row, ask, overhead) };
            let pair = row.pairs(ask, PAIRS).saturating_sub(overhead) as f64 / PAIRS as f64;
            best = [best[0].min(each[0]), best[1].min(each[1]), best[2].min(pair)];
        }
        for (name, ticks) in ["lock", "unlock", "pair"].into_iter().zip(best) {
            if ticks.is_finite() {
                self.put("", name, self.clock.ns(ticks));
            }
        }
        Ok(())
    }

    fn row(&self, row: &dyn Subject, ask: Ask, overhead: u64) -> [f64; 2] {
        row.rows(ask, ROWS, overhead).map(|ticks| ticks as f64 / (ROW * ROWS) as f64)
    }
}

#[cfg(test)]
mod tests;
