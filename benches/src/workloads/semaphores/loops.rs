//! Threads that do the same thing over and over, on semaphores of one array.
//!
//! Exclusion is checked: a thread that takes a fork, a turn or the reader-writer lock raises a
//! counter by a load and a store, and in the end the counters must say as much as the threads. And
//! an array must be left as it was found.

use super::{Outcome, Run, Spec};
use crate::run::busy_work::{self, Span};
use crate::run::pinning::{self, Pin};
use crate::run::threads::keep_a_thread_asleep;
use crate::statistics::random::Rng;
use crate::subjects::semaphores::arrays::{Array, Kernel, Ours, Posix, Singles};
use crate::subjects::semaphores::{Entry, Made};
use crate::workloads::Scenario as _;
use crate::workloads::window::{self, MEASURE, WARM_UP};
use anyhow::{Result, bail, ensure};
use crossbeam_utils::CachePadded;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// How many semaphores a poster posts to.
pub const BULK: usize = 64;

/// Carries out a run.
pub(super) fn run(spec: &Spec, entry: &Entry) -> Result<Outcome> {
    keep_a_thread_asleep();
    let n = spec.run.threads() as usize;
    ensure!(n > 0, "a run without threads; allowed: at least one");
    match (spec.run, entry.made_of) {
        (Run::Own { .. } | Run::PingPong { .. }, Made::Posix) => singles(spec, Posix::new),
        (Run::Own { .. } | Run::PingPong { .. }, Made::Kernel) => singles(spec, Kernel::new),
        (Run::Own { .. } | Run::PingPong { .. }, Made::Ours(fairness)) => {
            singles(spec, |values| Ours::new(values, fairness))
        }
        (_, Made::Kernel) => sets(spec, Kernel::new),
        (_, Made::Ours(fairness)) => sets(spec, |values| Ours::new(values, fairness)),
        _ => bail!("'{}' does not take sets", entry.name),
    }
}

/// Runs of single semaphores.
fn singles<S: Singles>(spec: &Spec, make: impl Fn(&[u32]) -> Result<S>) -> Result<Outcome> {
    match spec.run {
        Run::Own { threads, poster } => {
            let own = threads as usize;
            let mut values = vec![1; own];
            values.resize(own + BULK, 0);
            let s = make(&values)?;
            let turn = |index: usize| {
                let s = &s;
                let mut post = (index == own).then(|| s.poster(own..own + BULK));
                move || match &mut post {
                    None => {
                        s.down(index);
                        s.up(index);
                    }
                    Some(post) => post(),
                }
            };
            let crew = Crew { threads: own + usize::from(poster), beside: usize::from(poster) };
            let laps = crew.run(spec, turn, |_| {})?;
            as_found(spec, &s, &values)?;
            Ok(laps.outcome)
        }
        Run::PingPong { pairs } => {
            let threads = 2 * pairs as usize;
            let s = make(&vec![0; threads])?;
            // One turn in each pair: the first posts and waits, the second waits and posts.
            let turn = |index: usize| {
                let s = &s;
                move || {
                    if index.is_multiple_of(2) {
                        s.up(index + 1);
                        s.down(index);
                    } else {
                        s.down(index);
                        s.up(index - 1);
                    }
                }
            };
            let laps = Crew { threads, beside: 0 }.run(spec, turn, |index| s.up(index ^ 1))?;
            Ok(laps.outcome)
        }
        _ => bail!("a run of another kind"),
    }
}

/// A value on lines of its own.
#[derive(Default)]
struct Protected(CachePadded<AtomicU64>);

impl Protected {
    /// Adds one by a load and a store, which is right only if one thread at a time does it.
    fn raise(&self) {
        let next = self.0.load(Relaxed).wrapping_add(1);
        self.0.store(next, Relaxed);
    }
}

/// Runs of sets.
fn sets<A: Array>(spec: &Spec, make: impl Fn(&[u32]) -> Result<A>) -> Result<Outcome> {
    match spec.run {
        Run::Complex { threads } => complex(spec, &make(&vec![0; threads as usize])?),
        Run::Readers { reads, .. } => readers(spec, &make(&[0; 2])?, u64::from(reads)),
        Run::Philosophers { seats } => {
            ensure!(seats > 1, "a philosopher dines alone; allowed: at least 2");
            let of = |seat: usize| vec![seat, (seat + 1) % seats as usize];
            turns(spec, &make(&vec![1; seats as usize])?, seats as usize, 0, 0, of)
        }
        Run::Manager { workers, hold_us } => {
            let workers = workers as usize;
            // Workers that want the same semaphore run on all CPUs.
            let of = |index: usize| if index < workers { vec![2 * index / workers] } else { vec![0, 1] };
            turns(spec, &make(&[1; 2])?, 2, 1, hold_us, of)
        }
        _ => bail!("a run of another kind"),
    }
}

fn complex<A: Array>(spec: &Spec, a: &A) -> Result<Outcome> {
    let threads = spec.run.threads() as usize;
    let turn = |index: usize| {
        move || {
            a.apply(&[A::wait_zero(index), A::add(index, 1)]);
            a.apply(&[A::sub(index, 1)]);
        }
    };
    let laps = Crew { threads, beside: 0 }.run(spec, turn, |_| {})?;
    as_found(spec, a, &vec![0; threads])?;
    Ok(laps.outcome)
}

/// Thread `index` takes the semaphores `of(index)` of so many at once, holds them, and gives them
/// back; the last threads are beside.
fn turns<A: Array>(
    spec: &Spec,
    a: &A,
    semaphores: usize,
    beside: usize,
    hold_us: u32,
    of: impl Fn(usize) -> Vec<usize> + Sync,
) -> Result<Outcome> {
    let (threads, taken) = (spec.run.threads() as usize, counters(semaphores));
    let hold = Span::new("a hold time", u64::from(hold_us) * 1000, spec.iterations_per_us)?;
    let turn = |index: usize| {
        let (taken, mine) = (&taken, of(index));
        let mut rng = Rng::new(spec.seed.wrapping_add(index as u64));
        let take: Vec<A::Op> = mine.iter().map(|&semaphore| A::sub(semaphore, 1)).collect();
        let give: Vec<A::Op> = mine.iter().map(|&semaphore| A::add(semaphore, 1)).collect();
        move || {
            a.apply(&take);
            mine.iter().for_each(|&semaphore| taken[semaphore].raise());
            busy_work::burn(hold.draw(&mut rng));
            a.apply(&give);
        }
    };
    let laps = Crew { threads, beside }.run(spec, turn, |_| {})?;
    let each = laps.all.iter().enumerate().map(|(index, laps)| laps * of(index).len() as u64);
    excluded(spec, &taken, each.sum())?;
    as_found(spec, a, &vec![1; semaphores])?;
    Ok(laps.outcome)
}

/// Readers of semaphore 0, writers of semaphore 1: a reader waits until there is no writer, a
/// writer until there is no thread.
fn readers<A: Array>(spec: &Spec, a: &A, reads: u64) -> Result<Outcome> {
    const READERS: usize = 0;
    const WRITERS: usize = 1;
    let threads = spec.run.threads() as usize;
    let (written, writes, torn) = (Protected::default(), counters(threads), counters(threads));
    let turn = |index: usize| {
        let (written, writes, torn) = (&written, &writes[index], &torn[index]);
        let mut rng = Rng::new(spec.seed.wrapping_add(index as u64));
        move || {
            if rng.below(100) < reads {
                a.apply(&[A::wait_zero(WRITERS), A::add(READERS, 1)]);
                // A writer leaves it odd for a moment.
                if written.0.load(Relaxed) % 2 == 1 {
                    torn.raise();
                }
                a.apply(&[A::sub(READERS, 1)]);
            } else {
                a.apply(&[A::wait_zero(READERS), A::wait_zero(WRITERS), A::add(WRITERS, 1)]);
                written.raise();
                written.raise();
                a.apply(&[A::sub(WRITERS, 1)]);
                writes.raise();
            }
        }
    };
    let laps = Crew { threads, beside: 0 }.run(spec, turn, |_| {})?;
    let torn = sum(&torn);
    ensure!(torn == 0, "'{}' let a reader in beside a writer, {torn} times", spec.subject);
    excluded(spec, &[written], 2 * sum(&writes))?;
    as_found(spec, a, &[0, 0])?;
    Ok(laps.outcome)
}

fn counters(count: usize) -> Vec<Protected> {
    (0..count).map(|_| Protected::default()).collect()
}

fn sum(counters: &[Protected]) -> u64 {
    counters.iter().map(|counter| counter.0.load(Relaxed)).sum()
}

/// Counters must say as much as they were raised.
fn excluded(spec: &Spec, counters: &[Protected], raised: u64) -> Result<()> {
    let kept = sum(counters);
    ensure!(kept == raised, "'{}': lost updates: {raised} turns, but the counters say {kept}", spec.subject);
    Ok(())
}

fn as_found(spec: &Spec, s: &impl Singles, values: &[u32]) -> Result<()> {
    let now = s.values()?;
    ensure!(now == values, "'{}' was not left as it was found: {now:?}", spec.subject);
    Ok(())
}

/// Threads; the last of them are beside those that are looked at.
struct Crew {
    threads: usize,
    beside: usize,
}

/// What they did.
struct Laps {
    outcome: Outcome,
    /// Turns of each, from first to last.
    all: Vec<u64>,
}

impl Crew {
    /// Thread `index` does what `turn(index)` returns over and over, and in the end `leave(index)`.
    fn run<T: FnMut()>(
        &self,
        spec: &Spec,
        turn: impl Fn(usize) -> T + Sync,
        leave: impl Fn(usize) + Sync,
    ) -> Result<Laps> {
        let cpus = pinning::order(Pin::Scatter)?;
        let phase = Protected::default();
        let body = |index: usize| {
            let laps = work(&phase.0, turn(index));
            leave(index);
            Ok(laps)
        };
        let cpu = |index: usize| cpus[index % cpus.len()];
        let (laps, (elapsed_s, cpu_s)) =
            window::together(self.threads, cpu, body, || window::open(spec, &phase.0))?;
        let (mut counts, all): (Vec<u64>, Vec<u64>) = laps.into_iter().unzip();
        let beside = counts.split_off(self.threads - self.beside);
        let outcome = Outcome { elapsed_s, cpu_s, ops: counts.iter().sum(), counts, beside, calls: None };
        Ok(Laps { outcome, all })
    }
}

/// Turns in the window, and from first to last.
#[inline(never)]
fn work(phase: &AtomicU64, mut turn: impl FnMut()) -> (u64, u64) {
    let (mut counted, mut all) = (0, 0);
    loop {
        turn();
        all += 1;
        match phase.load(Relaxed) {
            WARM_UP => {}
            MEASURE => counted += 1,
            _ => return (counted, all),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::semaphores::tests::{Open, spec};

    #[test]
    fn what_does_not_exclude_is_found_out() {
        let (spec, counters) = (spec("open", Run::Philosophers { seats: 2 }), counters(2));
        counters.iter().for_each(Protected::raise);
        assert!(excluded(&spec, &counters, 2).is_ok());
        let error = excluded(&spec, &counters, 3).unwrap_err().to_string();
        assert_eq!(error, "'open': lost updates: 3 turns, but the counters say 2");
    }

    #[test]
    fn an_array_is_to_be_left_as_it_was_found() {
        let run = Run::Complex { threads: 2 };
        let error = complex(&spec("open", run), &Open).unwrap_err().to_string();
        assert_eq!(error, "'open' was not left as it was found: []");
    }
}
