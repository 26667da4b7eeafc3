//! Carries out a run: starts the threads, opens and closes the window, gathers what they did.

use super::handler::{Handled, HandlerContext, ReadOnTimer};
use super::shared_data::SharedData;
use super::thread::{Loads, Shared, Tally};
use super::{Duty, Outcome, Rank, RoleOutcome, Run, Spec, batch};
use crate::run::clock::{self, Calibration};
use crate::run::pinning::{self, Pin};
use crate::run::threads::{Urgent, keep_a_thread_asleep};
use crate::statistics::delays::Delays;
use crate::subjects::rwlocks::{Entry, Placed, RwLock, Visitor, mask};
use crate::workloads::window::{self, MEASURE, STOP, WARM_UP};
use anyhow::{Result, ensure};
use crossbeam_utils::CachePadded;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::thread;
use std::time::{Duration, Instant};

/// Every thread is to get on in each span of so many milliseconds.
pub const SLOT_MS: u64 = 100;

/// Carries out the run for the lock that it is shown.
pub(super) struct Start<'a>(pub(super) &'a Spec);

impl Visitor for Start<'_> {
    type Output = Result<Outcome>;

    fn visit<L: RwLock>(self, entry: &'static Entry) -> Result<Outcome> {
        run::<L>(self.0, entry.name)
    }
}

/// A run over lock type `L`, which need not be registered; errors call it `name`.
pub(super) fn run<L: RwLock>(spec: &Spec, name: &str) -> Result<Outcome> {
    let duties = spec.run.duties();
    ensure!(
        L::HANDLER || !spec.run.has_handlers(),
        "lock '{name}' is not read in signal handlers; allowed: locks that are, or its masked twin"
    );
    ensure!(
        L::NESTED || spec.run != Run::Reader(Rank::Nested),
        "lock '{name}' has no class Nested; allowed: locks that have"
    );
    keep_a_thread_asleep();
    // Inherited by all threads; only those with a timer unblock it.
    mask::change(libc::SIG_BLOCK);
    if spec.run.has_handlers() {
        // SAFETY: `ReadOnTimer` reads clocks, the timer's overrun and atomics, and takes the lock
        // by its functions for that.
        unsafe { L::install::<ReadOnTimer>(mask::signal())? };
    }
    let cpus = pinning::order(Pin::Scatter)?;
    let placed = Placed::<L>::new()?;
    let clock = Calibration::new();
    let slot_ms = SLOT_MS.min(spec.window_ms);
    let shared = Shared {
        lock: placed.lock(),
        data: CachePadded::new(SharedData::new()),
        phase: CachePadded::new(AtomicU64::new(WARM_UP)),
        opened: AtomicU64::new(0),
        slot: ((slot_ms * 1_000_000) as f64 * clock.per_ns).max(1.0) as u64,
        slots: (spec.window_ms / slot_ms) as usize,
        overhead: clock.overhead(),
        per_ns: clock.per_ns,
    };
    let loads =
        duties.iter().map(|duty| Loads::new(duty, spec.iterations_per_us)).collect::<Result<Vec<_>>>()?;
    let contexts: Vec<Option<HandlerContext<'_, L>>> = duties
        .iter()
        .map(|duty| {
            let context = |period_ns| {
                let (lock, data, phase) = (shared.lock, &shared.data, &shared.phase);
                HandlerContext::new(lock, data, phase, duty.handler_tries, period_ns, spec.window_ms)
            };
            duty.timer_ns.map(context)
        })
        .collect();
    let places = places(&duties, &cpus);

    let body =
        |index: usize| shared.carry_out(&duties[index], loads[index], index as u64, contexts[index].as_ref());
    let (tallies, (elapsed_s, steal_s)) =
        window::together(duties.len(), |index| places[index], body, || shared.conduct(spec))?;

    let torn: u64 = tallies.iter().map(|tally| tally.torn).sum();
    let torn = torn + contexts.iter().flatten().map(HandlerContext::torn).sum::<u64>();
    ensure!(torn == 0, "lock '{name}' let somebody see a half-written state, {torn} times");
    let roles = roles(&duties, tallies, &contexts, &clock, slot_ms);
    let batch = batch::of::<L>(spec.run, &cpus, spec.window_ms)?;
    Ok(Outcome { clock, elapsed_s, steal_s, roles, batch })
}

/// Where each runs: those that are to be apart on the first CPUs, the others dealt to the rest.
fn places(duties: &[Duty], cpus: &[usize]) -> Vec<usize> {
    let apart = duties.iter().filter(|duty| duty.apart).count().min(cpus.len() - 1);
    let (own, common) = cpus.split_at(apart);
    let (mut own, mut common) = (own.iter().copied(), common.iter().copied().cycle());
    let mut next = || common.next().unwrap_or(cpus[0]);
    duties.iter().map(|duty| own.next().filter(|_| duty.apart).unwrap_or_else(&mut next)).collect()
}

impl<L: RwLock> Shared<'_, L> {
    /// Opens and closes the window; returns its length and the time stolen in it, in seconds.
    fn conduct(&self, spec: &Spec) -> (f64, Option<f64>) {
        let _urgent = Urgent::new();
        thread::sleep(Duration::from_millis(spec.warmup_ms));
        let stolen = steal_s();
        let start = Instant::now();
        self.opened.store(clock::now(), Relaxed);
        self.phase.store(MEASURE, Release);
        thread::sleep(Duration::from_millis(spec.window_ms));
        let elapsed = start.elapsed();
        self.phase.store(STOP, Release);
        (elapsed.as_secs_f64(), steal_s().zip(stolen).map(|(after, before)| after - before))
    }
}

/// What threads did, by name.
fn roles<L: RwLock>(
    duties: &[Duty],
    tallies: Vec<Tally>,
    contexts: &[Option<HandlerContext<'_, L>>],
    clock: &Calibration,
    slot_ms: u64,
) -> Vec<RoleOutcome> {
    let mut names: Vec<&str> = Vec::new();
    for duty in duties {
        if !names.contains(&duty.name) {
            names.push(duty.name);
        }
    }
    let mut roles = Vec::new();
    for name in names {
        let mine = || duties.iter().zip(&tallies).zip(contexts).filter(|((duty, _), _)| duty.name == name);
        let tallies = || mine().map(|((_, tally), _)| tally);
        let sum = |of: fn(&Tally) -> u64| tallies().map(of).sum();
        let merged = |of: fn(&Tally) -> Option<&Delays>| {
            let mut all = Delays::new();
            tallies().filter_map(of).for_each(|delays| all.add(delays));
            all.delay()
        };
        let slots = tallies().map(|tally| tally.slots.len()).max().unwrap_or(0);
        let in_slot = |slot: usize| tallies().map(|tally| tally.slots[slot]).sum::<u64>();
        let contexts: Vec<&HandlerContext<'_, L>> =
            mine().filter_map(|(_, context)| context.as_ref()).collect();
        let handler = (!contexts.is_empty()).then(|| {
            let mut handled = Handled::default();
            contexts.iter().for_each(|context| context.gather(&mut handled, clock.per_ns, clock.overhead()));
            handled.outcome()
        });
        roles.push(RoleOutcome {
            name: name.to_owned(),
            counts: tallies().map(|tally| tally.counted).collect(),
            attempts: sum(|tally| tally.attempts),
            failures: sum(|tally| tally.failures),
            lock: merged(|tally| Some(&tally.lock)),
            unlock: merged(|tally| Some(&tally.unlock)),
            masked: merged(|tally| Some(&tally.masked.as_ref()?.masked)),
            held_off: merged(|tally| Some(&tally.masked.as_ref()?.held_off)),
            handler,
            fewest: (0..slots).map(in_slot).min().unwrap_or(0),
            slot_ms,
            preemptions: sum(|tally| tally.preemptions),
        });
    }
    roles
}

/// CPU time that the hypervisor has given to others so far, of all CPUs.
fn steal_s() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/stat").ok()?;
    // cpu user nice system idle iowait irq softirq steal ..
    let ticks: f64 = stat.lines().next()?.split_whitespace().nth(8)?.parse().ok()?;
    // SAFETY: no pointers are involved.
    let per_s = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    (per_s > 0).then(|| ticks / per_s as f64)
}
