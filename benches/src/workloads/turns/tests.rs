use super::*;
use crate::run::busy_work;
use crate::subjects::locks::{Lock, NORMAL, Posix};
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ptr::addr_of_mut;
use std::sync::OnceLock;
use std::thread::sleep;

pub(in crate::workloads) fn conditions() -> Conditions {
    static CALIBRATION: OnceLock<f64> = OnceLock::new();
    let iterations_per_us = *CALIBRATION.get_or_init(busy_work::calibrate);
    Conditions { warmup_ms: 2, window_ms: 20, iterations_per_us, seed: 1, pin: Pin::Scatter }
}

/// Carries it out, with a longer window if other programs left no time to the workers in a short
/// one.
pub(in crate::workloads) fn busy(scenario: Scenario, subject: &str) -> Outcome {
    for window_ms in [20, 200, 2_000, 20_000] {
        let conditions = Conditions { window_ms, ..conditions() };
        let outcome = Trial::new(scenario, vec![subject.into()], conditions).carry_out().unwrap().remove(0);
        if outcome.contains_key("rate") {
            return outcome;
        }
    }
    panic!("lock '{subject}': no operation in 20 s");
}

/// The quantiles of the waits, which must be in order.
pub(in crate::workloads) fn waits_are_sorted(figures: &Outcome) -> bool {
    let waits = ["wait-p50", "wait-p99", "wait-p99.9", "wait-max"].map(|name| figures.get(name));
    waits.iter().flatten().is_sorted()
}

fn turns(workers: Workers, hold_ns: u64) -> Turns {
    let times = Times { hold_ns, think_ns: 0 };
    let (counted, timed) = (false, false);
    Turns { times, workers, read_share: 0, locks: 1, timed, least_ms: 0, counted, patience_ns: None }
}

/// Workers may take `patience` to end after the window: a short one where they hang, a long one
/// where they do not, since to print a panic with its backtrace can take a second.
fn fails<L: Lock>(turns: Turns, patience: Duration) -> String {
    let conditions = Conditions { window_ms: 100, ..conditions() };
    turns.run("broken", Type::of::<L>(), &conditions, patience).expect_err("the lock is broken").to_string()
}

const LONG: Duration = Duration::from_secs(30);

#[test]
fn every_lock_excludes_threads_and_those_that_can_processes() {
    for entry in Entry::all() {
        let figures = busy(Scenario::Turns(turns(Workers::Threads(3), 300)), entry.name);
        for name in ["rate", "cov", "least", "starved", "switches"] {
            assert!(figures[name] >= 0.0, "{}: {figures:?}", entry.name);
        }
        assert!(!figures.contains_key("wait-max") && !figures.contains_key("contended"));
        if entry.processes {
            let run = Turns { timed: true, ..turns(Workers::Processes(3), 0) };
            let figures = busy(Scenario::Turns(run), entry.name);
            assert!(waits_are_sorted(&figures) && figures["wait-max"] > 0.0, "{}: {figures:?}", entry.name);
            let means = ["wait-mean", "wait-now", "wait-max"].map(|name| figures[name]);
            assert!(means.is_sorted(), "{}: {figures:?}", entry.name);
        }
    }
    for lock in ["none", "std", "unfair", "calock", "mcs", "sysv"] {
        busy(Scenario::Turns(turns(Workers::Threads(2), 0)), lock);
    }
}

#[test]
fn each_worker_uses_its_lock() {
    // Workers 0 and 2 share one lock, worker 1 has the other; the check of each counter relies on
    // it.
    busy(Scenario::Turns(Turns { locks: 2, ..turns(Workers::Threads(3), 500) }), "pthread");
}

#[test]
fn locks_count_and_spin_as_they_are_asked_to_between_threads_and_processes() {
    let (threads, processes) = (Workers::Threads(3), Workers::Processes(3));
    for (workers, patience_ns) in [(threads, None), (processes, Some(0)), (processes, Some(3_000))] {
        let can = |entry: &&Entry| {
            entry.counts
                && patience_ns.is_none_or(|ns| entry.patience_ns.contains(&ns))
                && (workers == threads || entry.processes)
        };
        for entry in Entry::all().iter().filter(can) {
            let run = Turns { counted: true, patience_ns, least_ms: 50, ..turns(workers, 2_000) };
            let figures = busy(Scenario::Turns(run), entry.name);
            assert!(figures["contended"] >= 0.0, "{}: {figures:?}", entry.name);
            // Also one that never spins may have its turn before it sleeps.
            let spun = figures.get("spun").is_none_or(|share| (0.0..=1.0).contains(share));
            assert!(spun && figures.contains_key("spun") == figures.contains_key("reentries"), "{figures:?}");
            assert!(!figures.contains_key("read-contended"), "{}: {figures:?}", entry.name);
        }
    }
    // A lock that cannot count has no such figures, and is run all the same.
    let run = Turns { counted: true, ..turns(threads, 0) };
    assert!(!busy(Scenario::Turns(run), "std").contains_key("contended"));
}

#[test]
fn readers_share_a_lock_between_threads_and_processes() {
    for workers in [Workers::Threads(3), Workers::Processes(3)] {
        for (lock, read_share) in [("psrw", 50), ("robust-rw", 100)] {
            busy(Scenario::Turns(Turns { read_share, ..turns(workers, 0) }), lock);
        }
    }
}

/// A lock that does something at each acquisition, and excludes nobody where it says so.
struct Odd<const WHAT: u8> {
    lock: Posix<NORMAL>,
    /// Acquisitions that are left before it hangs, panics or kills.
    left: UnsafeCell<u32>,
}

// SAFETY: `left` is touched by the holder of `lock`.
unsafe impl<const WHAT: u8> Sync for Odd<WHAT> {}

/// Holds for 30 ms.
const SLOW: u8 = 0;
/// Lets readers in beside writers.
const TORN: u8 = 1;
/// From here on: at the third acquisition.
const HANGS: u8 = 2;
const PANICS: u8 = 3;
const KILLS: u8 = 4;

impl<const WHAT: u8> Lock for Odd<WHAT> {
    const SHARED_MODE: bool = WHAT == TORN;
    fn place(place: &mut MaybeUninit<Self>, scope: Scope) -> Result<()> {
        let place = place.as_mut_ptr();
        // SAFETY: both fields of the place are writable, and `MaybeUninit` may be uninitialised.
        unsafe {
            addr_of_mut!((*place).left).write(UnsafeCell::new(2));
            Posix::<NORMAL>::place(&mut *addr_of_mut!((*place).lock).cast(), scope)
        }
    }
    type Held<'a> = <Posix<NORMAL> as Lock>::Held<'a>;
    fn acquire(&self, wait: bool) -> Option<Self::Held<'_>> {
        let held = self.lock.acquire(wait)?;
        // SAFETY: the lock is held.
        let left = unsafe { &mut *self.left.get() };
        if WHAT >= HANGS && *left == 0 {
            // Without a word on stderr: a forked worker may have inherited the lock of the panic's
            // printer from a thread of another test.
            match WHAT {
                HANGS => sleep(Duration::from_secs(600)),
                PANICS => std::panic::resume_unwind(Box::new("two are enough")),
                // SAFETY: this test's own worker process ends itself.
                _ => drop(unsafe { libc::raise(libc::SIGKILL) }),
            }
        }
        *left = left.saturating_sub(1);
        if WHAT == SLOW {
            sleep(Duration::from_millis(30));
        }
        Some(held)
    }
    fn shared<R>(&self, f: impl FnOnce() -> R) -> R {
        f()
    }
}

/// The seeded bug: a lock that lets every thread in.
pub(in crate::workloads) struct Open;

impl Lock for Open {
    fn place(_: &mut MaybeUninit<Self>, _: Scope) -> Result<()> {
        Ok(())
    }
    type Held<'a> = ();
    fn acquire(&self, _: bool) -> Option<()> {
        Some(())
    }
}

#[test]
fn a_wait_that_outlives_the_window_is_recorded() {
    let run = Turns { timed: true, ..turns(Workers::Threads(2), 0) };
    let figures = run.run("slow", Type::of::<Odd<SLOW>>(), &conditions(), LONG).unwrap();
    assert!(figures["wait-max"] >= 30e6, "{figures:?}");
}

#[test]
fn lost_updates_and_torn_reads_are_found() {
    for workers in [Workers::Threads(4), Workers::Processes(4)] {
        let error = fails::<Open>(turns(workers, 100_000), LONG);
        let numbers = error.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok());
        let numbers: Vec<u64> = numbers.collect();
        assert!(error.starts_with("lost updates: lock 'broken' was held "), "{error}");
        assert!(numbers.len() == 2 && numbers[0] > numbers[1], "{error}");
    }
    let run = Turns { read_share: 50, ..turns(Workers::Threads(4), 100_000) };
    let error = fails::<Odd<TORN>>(run, LONG);
    assert!(error.starts_with("torn reads: ") && error.contains("lock 'broken'"), "{error}");
    // The base line excludes nothing, loses updates, and says so in the registry instead of
    // failing.
    busy(Scenario::Turns(turns(Workers::Threads(4), 100_000)), "none");
}

#[test]
fn workers_that_hang_or_panic_do_not_hang_the_trial() {
    for workers in [Workers::Threads(2), Workers::Processes(2)] {
        let error = fails::<Odd<HANGS>>(turns(workers, 0), Duration::from_millis(300));
        assert!(error.starts_with("lock 'broken': 2 of 2 workers are left 0."), "{error}");
        let error = fails::<Odd<PANICS>>(turns(workers, 0), LONG);
        let words = ["a worker panicked", "worker 0 left with status 1", "worker 1 left with status 1"];
        assert!(words.iter().any(|words| error == format!("lock 'broken': {words}")), "{error}");
    }
}

#[test]
fn a_worker_that_dies_ends_the_trial_and_none_is_left() {
    let mut ends = [0; 2];
    // SAFETY: the array has room for two descriptors.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    let error = fails::<Odd<KILLS>>(turns(Workers::Processes(3), 0), LONG);
    assert!(error.contains("was killed by signal 9"), "{error}");
    // The workers have inherited the write end: the pipe ends when the last of them is gone. Other
    // tests' workers may have inherited it as well, and end too.
    let mut byte = 0u8;
    // SAFETY: both descriptors are this test's own; the byte is writable.
    unsafe {
        libc::close(ends[1]);
        assert_eq!(libc::read(ends[0], (&raw mut byte).cast(), 1), 0);
        libc::close(ends[0]);
    }
}

#[test]
fn what_cannot_be_run_is_refused() {
    type Case = (&'static str, fn(&mut Turns), &'static str);
    let cases: [Case; 8] = [
        ("mutex", |_| (), "unknown lock 'mutex'; allowed: none, std, "),
        ("std", |run| run.workers = Workers::Threads(0), "zero workers cannot contend; allowed: at least 1"),
        ("std", |run| run.workers = Workers::Processes(2), "lock 'std' does not work between processes; "),
        ("std", |run| run.locks = 0, "zero locks cannot be contended; allowed: at least 1"),
        ("std", |run| run.times.hold_ns = 1, "a hold time of 1 ns cannot be measured; allowed: 0, or "),
        (
            "std",
            |run| run.times.think_ns = 21_000_000,
            "one loop of 21000000 ns does not fit the window of 20 ms; ",
        ),
        ("std", |run| run.read_share = 20, "lock 'std' has no shared mode: a read share of 20 % is "),
        ("pi", |run| run.patience_ns = Some(3_000), "lock 'pi' has no patience of 3us; allowed: 0"),
    ];
    for (lock, spoil, expected) in cases {
        let mut run = turns(Workers::Threads(1), 0);
        spoil(&mut run);
        let error = run.carry_out(lock, &conditions()).unwrap_err().to_string();
        assert!(error.starts_with(expected) && !error.contains('\n'), "{error}");
    }
}
