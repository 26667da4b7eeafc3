//! Predicted against measured, for locks that took no part in the calibration. Errors are shown as
//! they are.

use crate::probes::median;
use crate::topology::{Cpus, pin, pin_to};
use crate::{real, simulated};
use std::fmt;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::*};
use std::time::{Duration, Instant};
use ulocks_vm_cost::{Machine, Outcome, Run};

/// Rounds of all cells, one after the other, so that whatever disturbs a round disturbs all alike.
const ROUNDS: usize = 7;
const WINDOW: Duration = Duration::from_millis(50);

/// Mean times inside and outside the lock, in ns.
#[derive(Clone, Copy, PartialEq)]
struct Load {
    hold: f64,
    think: f64,
}

const LOADS: [Load; 4] = [
    Load { hold: 0.0, think: 0.0 },
    Load { hold: 30.0, think: 150.0 },
    Load { hold: 200.0, think: 500.0 },
    Load { hold: 2_000.0, think: 5_000.0 },
];

/// No lock at all: what the loop around it costs.
struct Nothing;

impl real::locks::Lock for Nothing {
    fn new(_: usize) -> Self {
        Self
    }
    fn lock(&self, _: usize) {}
    fn unlock(&self, _: usize) {}
}

impl simulated::locks::Lock for Nothing {
    fn new(_: usize) -> Self {
        Self
    }
    fn lock(&self, _: usize) {}
    fn unlock(&self, _: usize) {}
}

/// A lock in both worlds.
struct Subject {
    name: &'static str,
    measure: fn(&Bench, usize, Load) -> f64,
    /// On so many CPUs, by so many threads.
    predict: fn(&Machine, usize, usize, Load) -> Option<Outcome>,
}

macro_rules! subject {
    ($name:literal, $($lock:tt)+) => {
        Subject { name: $name, measure: measure::<real::locks::$($lock)+>, predict: predict::<simulated::locks::$($lock)+> }
    };
}

const SUBJECTS: [Subject; 7] = [
    Subject { name: "none", measure: measure::<Nothing>, predict: predict::<Nothing> },
    subject!("tas", Tas),
    subject!("ttas", Ttas),
    subject!("ticket", Ticket),
    subject!("mcs", Mcs),
    subject!("futex", ThreeState<0>),
    subject!("futex, 100 looks", ThreeState<100>),
];

/// One line of the table.
pub struct Row {
    /// In [`SUBJECTS`].
    subject: usize,
    threads: usize,
    load: Load,
    /// Operations per microsecond, by round.
    measured: Vec<f64>,
    predicted: f64,
    transfers: f64,
}

impl Row {
    fn error(&self) -> f64 {
        self.predicted / median(self.measured.clone()) - 1.0
    }
}

/// What the measurements share.
struct Bench<'a> {
    cpus: &'a [usize],
    links_per_ns: f64,
}

/// Predicts and measures every lock in every cell.
pub fn validate(machine: &Machine, cpus: &Cpus) -> Vec<Row> {
    let most = cpus.list.len().min(machine.topology.total());
    let sizes = || (0..).map(|doublings| 1 << doublings).take_while(|&threads| threads <= 4 * most);
    let mut rows = Vec::new();
    for load in LOADS {
        for threads in sizes() {
            for (number, subject) in SUBJECTS.iter().enumerate() {
                if subject.name == "none" && (threads > 1 || load == LOADS[0]) {
                    continue; // nothing keeps its threads apart, or nothing is left
                }
                if threads > most && !subject.name.starts_with("futex") {
                    // A thread that spins for one without a CPU shows nothing but time slices.
                    continue;
                }
                let outcome = (subject.predict)(machine, most, threads, load);
                let figure = |of: fn(&Outcome) -> f64| outcome.as_ref().map_or(f64::NAN, of);
                rows.push(Row {
                    subject: number,
                    threads,
                    load,
                    measured: Vec::new(),
                    predicted: figure(|outcome| outcome.per_us),
                    transfers: figure(|outcome| outcome.transfers_per_operation),
                });
            }
        }
    }
    for round in 0..ROUNDS {
        eprintln!("measuring: round {} of {ROUNDS}", round + 1);
        pin(cpus.list[0]);
        let bench = Bench { cpus: &cpus.list[..most], links_per_ns: links_per_ns() };
        for row in &mut rows {
            row.measured.push((SUBJECTS[row.subject].measure)(&bench, row.threads, row.load));
        }
    }
    rows
}

fn predict<L: simulated::locks::Lock>(
    machine: &Machine,
    cpus: usize,
    threads: usize,
    load: Load,
) -> Option<Outcome> {
    // A thousand operations of each, and some time slices.
    let long = 1_000.0 * (load.hold + load.think + 100.0) * threads as f64;
    let run = Run {
        time_ns: long.max(if threads > cpus { 1e8 } else { 1e6 }),
        hold_ns: load.hold,
        think_ns: load.think,
        cpus: cpus.min(threads),
        ..Run::new(machine.clone(), threads)
    };
    let outcome = run.contend(
        move || L::new(threads),
        |lock, worker| {
            worker.acquire(|| lock.lock(worker.index()));
            worker.hold();
            lock.unlock(worker.index());
        },
    );
    outcome.inspect_err(|error| eprintln!("{threads} threads cannot be predicted: {error}")).ok()
}

/// As `Run::contend`: outside, lock, a write to the protected line, inside, unlock.
fn measure<L: real::locks::Lock>(bench: &Bench, threads: usize, Load { hold, think }: Load) -> f64 {
    let lock = Arc::new((L::new(threads), real::locks::Line(AtomicU32::new(0))));
    let (ready, stop) = (AtomicU32::new(0), AtomicBool::new(false));
    let work = |mean: f64, random: f64| chain((mean * (0.5 + random) * bench.links_per_ns) as u32);
    let body = |me: usize| {
        match bench.cpus.get(me) {
            Some(&cpu) if threads <= bench.cpus.len() => pin(cpu),
            _ => pin_to(bench.cpus),
        }
        let (lock, data) = &*lock;
        let (mut count, mut random) = (0_u64, Random(me as u64 + 1));
        ready.fetch_add(1, AcqRel);
        while ready.load(Acquire) as usize != threads {
            std::thread::yield_now();
        }
        let start = Instant::now();
        while !stop.load(Relaxed) {
            let (inside, outside) = (random.next(), random.next());
            if think > 0.0 {
                work(think, outside);
            }
            lock.lock(me);
            data.0.store(me as u32, Relaxed);
            if hold > 0.0 {
                work(hold, inside);
            }
            lock.unlock(me);
            count += 1;
        }
        count as f64 * 1e3 / start.elapsed().as_nanos() as f64
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|me| {
                scope.spawn({
                    let body = &body;
                    move || body(me)
                })
            })
            .collect();
        std::thread::sleep(WINDOW);
        stop.store(true, Relaxed);
        workers.into_iter().map(|worker| worker.join().expect("a worker")).sum()
    })
}

/// As the model's workers draw.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Work that is done only by doing it: a holder that is preempted still has it before itself.
fn chain(links: u32) {
    let mut value = 1_u64;
    for _ in 0..links {
        value = black_box(value.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }
}

fn links_per_ns() -> f64 {
    const LINKS: u32 = 100_000;
    let attempts = (0..31).map(|_| {
        let start = Instant::now();
        chain(LINKS);
        f64::from(LINKS) / start.elapsed().as_nanos() as f64
    });
    median(attempts.collect())
}

/// The table, as text.
pub struct Table<'a>(pub &'a [Row]);

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "operations/us: measured is the median of {ROUNDS} rounds (least to most), PREDICTED is the model's;"
        )?;
        writeln!(
            f,
            "transfers/op are the model's too. times in ns, drawn from half to one and a half of the mean."
        )?;
        writeln!(
            f,
            "{:<18} {:>7} {:>6} {:>6} {:>9} {:>19} {:>9} {:>7} {:>12}",
            "lock",
            "threads",
            "hold",
            "think",
            "measured",
            "(least to most)",
            "PREDICTED",
            "error",
            "transfers/op"
        )?;
        for row in self.0 {
            let least = row.measured.iter().copied().fold(f64::INFINITY, f64::min);
            let most = row.measured.iter().copied().fold(0.0, f64::max);
            writeln!(
                f,
                "{:<18} {:>7} {:>6} {:>6} {:>9.3} {:>19} {:>9.3} {:>+6.0}% {:>12.2}",
                SUBJECTS[row.subject].name,
                row.threads,
                row.load.hold,
                row.load.think,
                median(row.measured.clone()),
                format!("({least:.3} to {most:.3})"),
                row.predicted,
                row.error() * 100.0,
                row.transfers,
            )?;
        }
        let mut errors: Vec<_> = self.0.iter().map(|row| row.error().abs()).collect();
        errors.sort_by(f64::total_cmp);
        let within = |most: f64| errors.iter().filter(|&&error| error <= most).count();
        writeln!(
            f,
            "{} cells: {} within 20 %, {} within 50 %; median error {:.0} %, worst {:.0} %",
            errors.len(),
            within(0.2),
            within(0.5),
            errors[errors.len() / 2] * 100.0,
            errors[errors.len() - 1] * 100.0
        )
    }
}
