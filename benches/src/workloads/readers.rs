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
//! is timed a second time, in batches of pairs, far below a step of the clock.

mod threads;
mod timer;

use super::window;
use super::*;
use crate::engine::figures::Figure;
use crate::run::clock::Calibration;
use crate::run::pinning;
use crate::run::threads::keep_a_thread_asleep;
use crate::run::waits::Waits;
pub use crate::subjects::rwlocks::Rank;
use crate::subjects::rwlocks::{Ask, Entry, Subject, mask};
use clap::value_parser;
use std::collections::BTreeMap;
use std::time::Instant;
use threads::{Data, Shared, Tally};

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
    /// A reader of class `Bulk` that holds so long, and a writer now and then.
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

macro_rules! module {
    ($($name:ident, $long:literal, $unit:literal, $default:literal, $allowed:expr, $about:literal;)*) => {
        /// The parameters of the test module, by default as it had them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::Args)]
        pub struct Module {
            $(#[doc = $about]
            #[arg(
                long = $long,
                value_name = $unit,
                default_value_t = $default,
                value_parser = value_parser!(u32).range($allowed)
            )]
            pub $name: u32,)*
            /// INTERRUPT_READER_DELAY, in microseconds: how often a signal strikes each writer and
            /// reader under contention; 0 for never. His was 100000
            #[arg(
                long = "interrupt-delay",
                value_name = "US",
                default_value_t = 10_000,
                value_parser = value_parser!(u32).range(..=10_000_000)
            )]
            pub handler_every_us: u32,
            /// Whether each thread is a role of its own, such as `writer/1`.
            #[arg(skip)]
            pub by_thread: bool,
        }

        impl Module {
            /// As the module had them, without interrupts.
            pub const DEFAULT: Self = Self { $($name: $default,)* handler_every_us: 0, by_thread: false };
        }
    };
}

module! {
    writers, "writers", "N", 2, ..=1000, "NR_WRITERS";
    try_writers, "trylock-writers", "N", 1, ..=1000, "NR_TRYLOCK_WRITERS";
    bulk, "bulk-readers", "N", 2, ..=1000, "NR_PREEMPTABLE_READERS: readers of class Bulk";
    urgent, "urgent-readers", "N", 2, ..=1000, "NR_NON_PREEMPTABLE_READERS: readers of class Urgent";
    try_readers, "trylock-readers", "N", 1, ..=1000, "NR_TRYLOCK_READERS";
    writer_delay_us, "writer-delay", "US", 100, ..=100_000, "WRITER_DELAY, in microseconds";
    try_writer_delay_us, "trylock-writer-delay", "US", 1000, ..=100_000,
        "TRYLOCK_WRITER_DELAY, in microseconds";
    attempts, "trylock-writers-fail-iter", "N", 100, 1..=1_000_000,
        "TRYLOCK_WRITERS_FAIL_ITER: attempts before a writer that tries gives up";
    reader_delay_us, "reader-delay", "US", 0, ..=100_000, "THREAD_READER_DELAY, in microseconds";
}

impl Module {
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
    /// How often its timer strikes, if it has one.
    timer_ns: Option<u64>,
    /// Whether it has a CPU of its own, where there are two.
    apart: bool,
}

/// Between two holds of a reader that a thread waits for, and between two looks of a probe.
const GAP_NS: u64 = 50_000;
/// Between two writes where a reader is looked at. The writer sleeps and does not work, so that it
/// wakes up while the reader is at it on the same CPU.
const PERIOD_NS: u64 = 1_000_000;
/// Between two handlers that are looked at: what a signal takes must not fill the CPU.
const PROBE_TIMER_NS: u64 = 100_000;
/// How long queued writers hold.
const QUEUED_HOLD_NS: u64 = 10_000;
/// How long the reader holds that the writer is behind.
const BEHIND_HOLD_NS: u64 = 3_000_000;
/// Batches, and pairs in each, some tens of microseconds.
const BATCHES: usize = 300;
const PAIRS: usize = 4_000;

impl Duty {
    const fn new(role: &'static str, ask: Option<Ask>, work_ns: u64) -> Self {
        let (hold_ns, sleep_ns, timer_ns) = (0, 0, None);
        Self { role, ask, attempts: 1, hold_ns, work_ns, sleep_ns, timer_ns, apart: false }
    }

    const fn reader(rank: Rank, work_ns: u64) -> Self {
        let role = match rank {
            Rank::Bulk => "bulk",
            Rank::Urgent => "urgent",
            Rank::Nested => "nested",
        };
        Self::new(role, Some(Ask::Read(rank)), work_ns)
    }

    fn probe(probe: Probe) -> Self {
        let timer_ns = Some(PROBE_TIMER_NS);
        match probe {
            Probe::Urgent => Self { apart: true, ..Self::reader(Rank::Urgent, GAP_NS) },
            Probe::Handler => Self { apart: true, timer_ns, ..Self::new("idle", None, GAP_NS) },
        }
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
    fn has_handlers(self) -> bool {
        self.duties().iter().any(|duty| duty.timer_ns.is_some())
    }

    /// Its threads.
    fn duties(self) -> Vec<Duty> {
        let Self { test, module } = self;
        let ns = |us: u32| 1000 * u64::from(us);
        let attempts = module.attempts;
        let writer = Duty::new("writer", Some(Ask::Write), ns(module.writer_delay_us));
        let try_writer = Duty::new("try-writer", Some(Ask::TryWrite), ns(module.try_writer_delay_us));
        let try_writer = Duty { attempts, ..try_writer };
        let try_reader = Duty::new("try-reader", Some(Ask::TryRead), ns(module.reader_delay_us));
        let reader = |rank| Duty::reader(rank, ns(module.reader_delay_us));
        let [bulk, urgent] = [Rank::Bulk, Rank::Urgent].map(reader);
        let periodic = Duty { sleep_ns: PERIOD_NS, work_ns: 0, ..writer };
        let holding = |hold_ns| Duty { hold_ns, ..Duty::reader(Rank::Bulk, GAP_NS) };
        let timer_ns = (module.handler_every_us > 0).then(|| ns(module.handler_every_us));
        let struck = |duty| Duty { timer_ns, ..duty };
        let all = match test {
            Test::Writer => vec![(1, writer)],
            Test::TryWriter => vec![(1, try_writer)],
            Test::Reader(rank) => vec![(1, reader(rank))],
            Test::Readers => vec![(module.bulk, bulk), (module.urgent, urgent)],
            Test::Contention => vec![
                (module.writers, struck(writer)),
                (module.try_writers, try_writer),
                (module.bulk, struck(bulk)),
                (module.urgent, struck(urgent)),
                (module.try_readers, try_reader),
            ],
            Test::Invariance { hold_us, probe } => {
                vec![(1, Duty::probe(probe)), (1, holding(ns(hold_us))), (1, periodic)]
            }
            Test::Queue { writers, probe } => {
                let queued = Duty { work_ns: 0, hold_ns: QUEUED_HOLD_NS, ..writer };
                vec![(1, Duty::probe(probe)), (writers, queued)]
            }
            Test::Behind => {
                let writer = Duty { apart: true, timer_ns: Some(PROBE_TIMER_NS), ..periodic };
                vec![(1, writer), (1, holding(BEHIND_HOLD_NS))]
            }
        };
        all.into_iter().flat_map(|(count, duty)| (0..count).map(move |_| duty)).collect()
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
            self.is_for(lock),
            "lock '{name}' has no such readers; allowed: locks with the class Nested, or that are read in handlers"
        );
        keep_a_thread_asleep();
        // Inherited by all threads; only those with a timer unblock it.
        mask::change(libc::SIG_BLOCK);
        if self.has_handlers() {
            // SAFETY: it reads clocks, looks at atomics, and notes delays in memory that its thread
            // has allocated; it is the only function that is named.
            unsafe { lock.install(mask::signal(), timer::on_signal)? };
        }
        // The process carries out one trial, and handlers have what they need as long as it lives.
        let shared: &'static Shared = Box::leak(Box::new(Shared {
            lock: (lock.place)()?,
            data: Data::new(),
            phase: Default::default(),
            clock: Calibration::take(),
            timed_mask: lock.timed_mask,
            iterations_per_us: conditions.iterations_per_us,
        }));
        let cpus = pinning::order(Pin::Scatter)?;
        let serve = |at: usize| shared.serve(&duties[at], conditions.seed + at as u64);
        let open = || window::open(conditions, &shared.phase).0.as_secs_f64();
        let (tallies, elapsed_s) = window::together(duties.len(), &places(&duties, &cpus), &serve, open)?;
        let tallies: Vec<Tally> = tallies.into_iter().flatten().collect();
        let torn: u64 = tallies.iter().map(|tally| tally.torn).sum();
        ensure!(torn == 0, "lock '{name}' let somebody see a half-written state, {torn} times");

        let mut figures = Figures { outcome: Outcome::new(), clock: shared.clock };
        // Threads of one role together, or each thread by itself.
        let mut roles: BTreeMap<String, Vec<&Tally>> = BTreeMap::new();
        for (at, tally) in tallies.iter().enumerate() {
            let number = tallies[..at].iter().filter(|other| other.role == tally.role).count();
            let role = match self.module.by_thread {
                true => format!("{}/{number}/", tally.role),
                false if duties.len() == 1 => String::new(),
                false => format!("{}/", tally.role),
            };
            roles.entry(role).or_default().push(tally);
        }
        for (role, tallies) in roles {
            figures.role(&role, &tallies, elapsed_s);
        }
        if self.module.by_thread && self.test == Test::Writer {
            for (kind, ticks) in ["min", "mean", "max"].into_iter().zip(shared.clock.empty) {
                figures.put("get_cycles/", &format!("clock-{kind}"), ticks as f64);
            }
        }
        if let [Duty { ask: Some(ask), timer_ns: None, .. }] = duties[..] {
            pinning::bind(cpus[0])?;
            figures.batches(shared.lock, ask, Duration::from_millis(conditions.window_ms));
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

/// The figures of a run.
struct Figures {
    outcome: Outcome,
    clock: Calibration,
}

impl Figures {
    fn role(&mut self, role: &str, tallies: &[&Tally], elapsed_s: f64) {
        let iterations: u64 = tallies.iter().map(|tally| tally.counted).sum();
        let mut number = |name: &str, value: f64| self.outcome.insert(format!("{role}{name}"), value);
        number("iterations", iterations as f64);
        // Who had none is taken to have had one, or ratios would leave out the rounds in which a
        // role starved.
        number("rate", iterations.max(1) as f64 / elapsed_s.max(1e-9));
        for name in ["wait", "unlock", "masked", "held-off"] {
            let all = tallies.iter().flat_map(|tally| tally.delays()).filter(|of| of.0 == name);
            let all: Vec<&Waits> = all.map(|of| of.1).collect();
            let Some((count, figures)) = Waits::figures(&all) else { continue };
            if name == "masked" {
                self.outcome.insert(format!("{role}masked-times"), count as f64);
            }
            for (kind, ticks) in figures.into_iter().filter(|figure| figure.0 != "now") {
                self.put(role, &format!("{name}-{kind}"), ticks);
            }
        }
    }

    /// A delay in ticks, if it is a figure. What is below the clock's own part is not nothing.
    fn put(&mut self, role: &str, name: &str, ticks: f64) {
        if Figure::find(name).is_some() {
            self.outcome.insert(format!("{role}{name}"), self.clock.ns(ticks.max(1.0)));
        }
    }

    /// Lock and unlock where no thread contends: some nanoseconds, which no clock can time one by
    /// one. The best batch is kept: what disturbs one makes it slower. Some milliseconds are enough
    /// for all; a smoke run has none to spare.
    fn batches(&mut self, lock: &dyn Subject, ask: Ask, limit: Duration) {
        let (start, overhead) = (Instant::now(), self.clock.overhead());
        let batches = (0..BATCHES).take_while(|&batch| batch < 3 || start.elapsed() < limit);
        let best = batches.map(|_| lock.pairs(ask, PAIRS).saturating_sub(overhead)).min();
        self.put("", "pair", best.expect("three at least") as f64 / PAIRS as f64);
    }
}

#[cfg(test)]
mod tests;
