//! What a run says: throughput, remote memory references, fairness, waits, and what the kernel did.

use super::machine::Machine;
use super::mesi::Traffic;
use super::units::{Ps, ns};
use serde::{Serialize, Serializer};
use std::cell::{Cell, RefCell};
use std::fmt;

/// What the threads did, and the time; shared between the engine and the observers inside threads,
/// which look for free.
#[derive(Debug, Default)]
pub(super) struct Records {
    pub(super) now: Cell<Ps>,
    /// When counting began.
    from: Cell<Ps>,
    threads: RefCell<Vec<Record>>,
}

#[derive(Debug, Default)]
struct Record {
    operations: u64,
    waits: Vec<Ps>,
    waiting_since: Option<Ps>,
}

impl Records {
    pub(super) fn add(&self) {
        self.threads.borrow_mut().push(Record::default());
    }

    /// What was counted so far does not count.
    pub(super) fn restart(&self) {
        self.from.set(self.now.get());
        for record in self.threads.borrow_mut().iter_mut() {
            record.operations = 0;
            record.waits.clear();
        }
    }

    pub(super) fn operation(&self, thread: usize) {
        self.threads.borrow_mut()[thread].operations += 1;
    }

    pub(super) fn begin_wait(&self, thread: usize) {
        self.threads.borrow_mut()[thread].waiting_since = Some(self.now.get());
    }

    pub(super) fn end_wait(&self, thread: usize) {
        let record = &mut self.threads.borrow_mut()[thread];
        if let Some(since) = record.waiting_since.take() {
            record.waits.push(self.now.get() - since);
        }
    }

    /// How long was counted.
    pub(super) fn counted(&self) -> Ps {
        self.now.get() - self.from.get()
    }

    /// Operations by thread, and waits in order of length. A wait that had not ended counts with
    /// the length it came to.
    pub(super) fn collect(&self, workers: usize) -> (Vec<u64>, Vec<Ps>) {
        let threads = self.threads.borrow();
        let operations = threads[..workers].iter().map(|record| record.operations).collect();
        let open =
            threads.iter().filter_map(|record| record.waiting_since).map(|since| self.now.get() - since);
        let mut waits: Vec<_> =
            threads.iter().flat_map(|record| record.waits.iter().copied()).chain(open).collect();
        waits.sort_unstable();
        (operations, waits)
    }
}

/// Marks every outcome: `"predicted": true`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Predicted;

impl Serialize for Predicted {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(true)
    }
}

/// What a run came to.
///
/// It is a prediction, and says so in its JSON (`"predicted": true`), which also carries the whole
/// machine, so that no figure is ever without its parameters.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// Never a measurement.
    pub predicted: Predicted,
    /// The parameters.
    pub machine: Machine,
    /// How many CPUs were used.
    pub cpus: usize,
    /// How many threads worked.
    pub threads: usize,
    /// For how long operations were counted, in nanoseconds.
    pub time_ns: f64,
    /// How it ended.
    pub ended: Ended,
    /// How many operations the workers did.
    pub operations: u64,
    /// The same by worker.
    pub operations_by_thread: Vec<u64>,
    /// Operations per microsecond.
    pub per_us: f64,
    /// Remote memory references per operation.
    pub transfers_per_operation: f64,
    /// What went over the wires.
    pub traffic: Traffic,
    /// What the kernel did.
    pub kernel: KernelCounts,
    /// How evenly the operations are spread.
    pub fairness: Fairness,
    /// How long acquisitions took. `None` if none was timed.
    pub waits: Option<Waits>,
    /// A number that depends on every event of the run and its time: two equal runs have the same.
    pub event_hash: u64,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// Its time was up; threads that had not ended were abandoned.
    TimeUp,
    /// All threads had ended.
    AllDone,
}

/// What the kernel did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct KernelCounts {
    /// Calls.
    pub calls: u64,
    /// Those that asked to sleep.
    pub waits: u64,
    /// Those that found another value than expected.
    pub mismatches: u64,
    /// Sleeps that came about.
    pub sleeps: u64,
    /// Sleeps that ended by their deadline.
    pub timeouts: u64,
    /// Calls that asked to wake.
    pub wakes: u64,
    /// Threads that were woken.
    pub woken: u64,
    /// Threads that were moved to another queue.
    pub requeued: u64,
    /// Threads that got a CPU from another thread.
    pub context_switches: u64,
    /// Threads that had to leave their CPU at the end of a time slice.
    pub preemptions: u64,
    /// Threads that went on on another CPU.
    pub migrations: u64,
}

/// How evenly operations are spread over the workers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Fairness {
    /// Jain's index: 1 is even, one over the number of threads is one thread alone.
    pub jain: f64,
    /// The least served thread by the most served.
    pub min_by_max: f64,
    /// How many threads did nothing at all.
    pub starved: usize,
}

impl Fairness {
    pub(super) fn of(operations: &[u64]) -> Self {
        let sum: u64 = operations.iter().sum();
        let squares: f64 = operations.iter().map(|&count| (count as f64).powi(2)).sum();
        let (min, max) = (operations.iter().min().unwrap_or(&0), operations.iter().max().unwrap_or(&0));
        let if_any = |value: f64| if sum == 0 { 1.0 } else { value };
        Self {
            jain: if_any((sum as f64).powi(2) / (operations.len() as f64 * squares)),
            min_by_max: if_any(*min as f64 / *max as f64),
            starved: operations.iter().filter(|&&count| count == 0).count(),
        }
    }
}

/// How long acquisitions took, in nanoseconds: exact percentiles, of all samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Waits {
    /// How many.
    pub count: usize,
    /// On average.
    pub mean: f64,
    /// Half are shorter.
    pub p50: f64,
    /// Nine in ten are shorter.
    pub p90: f64,
    /// 99 in a hundred are shorter.
    pub p99: f64,
    /// 999 in a thousand are shorter.
    pub p999: f64,
    /// The longest.
    pub max: f64,
}

impl Waits {
    /// Of sorted samples.
    pub(super) fn of(waits: &[Ps]) -> Option<Self> {
        let max = *waits.last()?;
        let at =
            |part: f64| ns(waits[((waits.len() as f64 * part).ceil() as usize).clamp(1, waits.len()) - 1]);
        Some(Self {
            count: waits.len(),
            mean: ns(waits.iter().sum()) / waits.len() as f64,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: ns(max),
        })
    }
}

impl Outcome {
    /// The outcome as JSON text.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("numbers and strings") + "\n"
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "predicted: {} threads on {} CPUs: {:.3} operations/us, {:.2} transfers/operation, {:.3} kernel calls/operation, \
             Jain {:.3}, min/max {:.3}",
            self.threads,
            self.cpus,
            self.per_us,
            self.transfers_per_operation,
            self.kernel.calls as f64 / self.operations.max(1) as f64,
            self.fairness.jain,
            self.fairness.min_by_max,
        )?;
        if let Some(waits) = &self.waits {
            write!(f, ", waits p50 {:.0} p99 {:.0} max {:.0} ns", waits.p50, waits.p99, waits.max)?;
        }
        Ok(())
    }
}

/// Why a run came to nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum CostError {
    /// What was asked for cannot be run; the text says why, and what is allowed.
    BadRun(String),
    /// Every thread that had not ended waited for another, without a deadline.
    Stuck(Stuck),
}

impl fmt::Display for CostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadRun(why) => f.write_str(why),
            Self::Stuck(stuck) => stuck.fmt(f),
        }
    }
}

impl std::error::Error for CostError {}

/// A deadlock: which threads wait, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct Stuck {
    /// Since when nothing could change, or when it was noticed, in nanoseconds.
    pub at_ns: f64,
    /// Which thread waits for what.
    pub threads: Vec<StuckThread>,
}

/// A thread that waits for ever.
#[derive(Clone, Debug, PartialEq)]
pub struct StuckThread {
    /// Its number.
    pub thread: usize,
    /// Whether it spins; otherwise it sleeps in the kernel.
    pub spins: bool,
    /// The line of source it waits on.
    pub place: String,
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 16;
        write!(f, "stuck at {:.0} ns: {} threads wait for ever:", self.at_ns, self.threads.len())?;
        for stuck in self.threads.iter().take(SHOWN) {
            let how = if stuck.spins { "spins" } else { "sleeps" };
            write!(f, " thread {} {how} at {};", stuck.thread, stuck.place)?;
        }
        if self.threads.len() > SHOWN {
            write!(f, " and {} more", self.threads.len() - SHOWN)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fairness_of_known_shares() {
        assert_eq!(Fairness::of(&[5, 5, 5, 5]), Fairness { jain: 1.0, min_by_max: 1.0, starved: 0 });
        assert_eq!(Fairness::of(&[8, 0, 0, 0]), Fairness { jain: 0.25, min_by_max: 0.0, starved: 3 });
        assert_eq!(Fairness::of(&[0, 0]), Fairness { jain: 1.0, min_by_max: 1.0, starved: 2 });
    }

    #[test]
    fn percentiles_are_samples() {
        assert_eq!(Waits::of(&[]), None);
        let waits = Waits::of(&(1..=1_000).map(|ns| ns * 1_000).collect::<Vec<_>>()).unwrap();
        assert_eq!(
            (waits.p50, waits.p90, waits.p99, waits.p999, waits.max),
            (500.0, 900.0, 990.0, 999.0, 1000.0)
        );
        assert_eq!((waits.count, waits.mean), (1000, 500.5));
        let one = Waits::of(&[7_000]).unwrap();
        assert_eq!((one.p50, one.p999, one.max), (7.0, 7.0, 7.0));
    }
}
