//! Every scenario of a lock is put to locks that work, to locks that are broken in one way each,
//! and to what it cannot be run with.

use super::fixed::{Fixed, Inside};
use super::pairs::Pairs;
use super::recovery::Recovery;
use super::turns::Turns;
use super::*;
use crate::run::busy_work;
use crate::run::syscalls;
use crate::subjects::locks::{Lock, NORMAL, Posix};
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ptr::addr_of_mut;
use std::sync::OnceLock;
use std::thread::sleep;

fn conditions(window_ms: u64) -> Conditions {
    static CALIBRATION: OnceLock<f64> = OnceLock::new();
    let iterations_per_us = *CALIBRATION.get_or_init(busy_work::calibrate);
    Conditions { warmup_ms: 2, window_ms, iterations_per_us, seed: 1, pin: Pin::Scatter }
}

fn carry_out(scenario: Scenario, subjects: &[&str], window_ms: u64) -> Result<Vec<Outcome>> {
    let subjects = subjects.iter().map(|&name| name.to_owned()).collect();
    Trial::new(scenario, subjects, conditions(window_ms)).carry_out()
}

/// Its figures, with a longer window if other programs left no time to the workers in a short one.
fn figures(scenario: Scenario, lock: &str) -> Outcome {
    let windows = [20, 200, 2_000, 20_000].into_iter();
    let mut outcomes =
        windows.map(|window_ms| (window_ms, carry_out(scenario, &[lock], window_ms).unwrap().remove(0)));
    // A window of nothing says one operation.
    let (_, figures) = outcomes
        .find(|(window_ms, outcome)| {
            let rates = ["rate", "hog-rate"].map(|name| outcome.get(name));
            rates.iter().flatten().all(|rate| *rate * *window_ms as f64 > 1500.0)
        })
        .expect("operations in 20 s");
    assert!(figures.values().all(|value| value.is_finite() && *value >= 0.0), "{lock}: {figures:?}");
    for order in [
        &["wait-p50", "wait-p99", "wait-p99.9", "wait-max"][..],
        &["wait-mean", "wait-now", "wait-max"],
        &["first", "mean-done", "last"],
        &["recovery", "recovery-max"],
    ] {
        assert!(order.iter().filter_map(|name| figures.get(*name)).is_sorted(), "{lock}: {figures:?}");
    }
    figures
}

fn turns(workers: Workers, hold_ns: u64) -> Turns {
    let times = Times { hold_ns, think_ns: 0 };
    let (counted, timed) = (false, false);
    Turns { times, workers, read_share: 0, locks: 1, timed, least_ms: 0, counted, patience_ns: None }
}

const HOGS: hogs::Hogs = hogs::Hogs { hogs: 1, victims: 1, hold_ns: 100_000, together: true };
const FIVE: Scenario = Scenario::Recovery(Recovery { sleepers: 5 });

fn fixed(threads: u32, operations: u64, inside: Inside) -> Scenario {
    Scenario::Fixed(Fixed { threads, operations, inside })
}

fn files(tasks: u32, files: bool) -> Scenario {
    Scenario::Files(files::Files { tasks, files })
}

/// Workers may take `patience` to end after the window: a short one where they hang, a long one
/// where they do not, since to print a panic with its backtrace can take a second. On a busy
/// machine one worker may have a window to itself, in which nothing breaks: longer ones follow.
fn fails<L: Lock>(scenario: Scenario, patience: Duration) -> String {
    let run =
        |window_ms| scenario.carry_out("broken", Type::of::<L>(), &conditions(window_ms), patience).err();
    [100, 200, 400, 800, 1_600].into_iter().find_map(run).expect("the lock is broken").to_string()
}

const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(300);

#[test]
fn every_lock_excludes_threads_and_those_that_can_processes() {
    for entry in Entry::all() {
        let figures = figures(Scenario::Turns(turns(Workers::Threads(3), 300)), entry.name);
        let known = ["rate", "cov", "least", "starved", "switches"];
        assert!(known.iter().all(|name| figures.contains_key(*name)), "{}: {figures:?}", entry.name);
        assert!(!figures.contains_key("wait-max") && !figures.contains_key("contended"));
        if entry.processes {
            let run = Turns { timed: true, ..turns(Workers::Processes(3), 0) };
            let figures = self::figures(Scenario::Turns(run), entry.name);
            assert!(figures["rate"] > 0.0 && figures["wait-max"] > 0.0, "{}: {figures:?}", entry.name);
        }
    }
}

/// The check of each counter relies on it that worker i uses lock i % locks, and that readers leave
/// the counter alone.
#[test]
fn a_scenario_has_its_figures() {
    let two_locks = Scenario::Turns(Turns { locks: 2, ..turns(Workers::Threads(3), 500) });
    let bare = Scenario::Turns(turns(Workers::Threads(2), 0));
    let readers = |workers, read_share| Scenario::Turns(Turns { read_share, ..turns(workers, 0) });
    let (threads, processes) = (Workers::Threads(3), Workers::Processes(3));
    let more = Scenario::Hogs(hogs::Hogs { hogs: 3, victims: 5, hold_ns: 10_000, together: true });
    let sleep = fixed(3, 20, Inside::Sleep(1_000));
    let calls = if syscalls::countable() { "sleep-calls" } else { "last" };
    let cases: &[(Scenario, &[&str], &str)] = &[
        (two_locks, &["pthread"], "rate"),
        (bare, &["none", "std", "unfair", "calock", "mcs", "sysv"], "rate"),
        (readers(threads, 50), &["psrw", "std-rw"], "rate"),
        (readers(processes, 50), &["psrw"], "rate"),
        (Scenario::Hogs(HOGS), &["std", "throughput", "mcs-park"], "hog-rate"),
        (more, &["sysv"], "wait-max"),
        (Scenario::Handoff, &["std", "sem_t", "mcs", "mcs-park", "unfair", "robust"], "rate"),
        (FIVE, &["robust", "robust-fair", "robust-rw", "pthread-robust"], "recovery"),
        (fixed(3, 1_000, Inside::Pauses(10)), &["std"], "first"),
        (sleep, &["wait-wake"], calls),
        (fixed(3, 500, Inside::Pauses(0)), &["pi"], "wait-max"),
        (files(3, false), &["std", "sysv", "semaphore"], "op-cost"),
        (files(3, true), &["std", "sysv", "semaphore"], "op-deviance"),
    ];
    for (scenario, locks, name) in cases {
        for lock in *locks {
            let figures = figures(*scenario, lock);
            assert!(figures.contains_key(*name), "{scenario:?}, {lock}: {figures:?}");
            assert!(figures.get("refused").is_none_or(|share| *share <= 1.0), "{figures:?}");
            let counts = figures.contains_key("busy") == figures.contains_key("cpu");
            assert!(counts || !matches!(scenario, Scenario::Files(_)), "{lock}: {figures:?}");
        }
    }
}

#[test]
fn uncontended_every_lock_has_a_figure_in_each_of_its_forms() {
    let names = |wanted: fn(&Entry) -> bool| -> Vec<&str> {
        Entry::all().iter().filter(|entry| wanted(entry)).map(|entry| entry.name).collect()
    };
    for (reads, processes, names) in [
        (false, false, names(|_| true)),
        (true, false, names(|entry| entry.shared_mode)),
        (false, true, names(|entry| entry.processes)),
        (true, true, vec!["psrw"]),
    ] {
        let outcomes = carry_out(Scenario::Pairs(Pairs { reads, processes }), &names, 1).unwrap();
        assert_eq!(outcomes.len(), names.len());
        assert!(outcomes.iter().all(|outcome| outcome["pair"] > 0.0), "{outcomes:?}");
    }
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
            let figures = self::figures(Scenario::Turns(run), entry.name);
            assert!(figures["contended"] >= 0.0, "{}: {figures:?}", entry.name);
            // Also one that never spins may have its turn before it sleeps.
            let spun = figures.get("spun").is_none_or(|share| (0.0..=1.0).contains(share));
            assert!(spun && figures.contains_key("spun") == figures.contains_key("reentries"), "{figures:?}");
        }
    }
    // A lock that cannot count has no such figures, and is run all the same.
    let run = Turns { counted: true, ..turns(threads, 0) };
    assert!(!figures(Scenario::Turns(run), "std").contains_key("contended"));
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
struct Open;

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
    let run = Scenario::Turns(Turns { timed: true, ..turns(Workers::Threads(2), 0) });
    let figures = run.carry_out("slow", Type::of::<Odd<SLOW>>(), &conditions(20), LONG).unwrap();
    assert!(figures["wait-max"] >= 30e6, "{figures:?}");
    // The hog's first hold is longer than warm-up and window: the victim asks during it and waits
    // for its end. Unless the victim was first, which a sleep of a millisecond makes unlikely and
    // not impossible.
    let run = Scenario::Hogs(hogs::Hogs { hold_ns: 200_000_000, ..HOGS });
    let figures = carry_out(run, &["mcs-park"], 50).unwrap().remove(0);
    assert!(figures["wait-max"] > 50e6 || figures["wait-p50"] < 50e6, "{figures:?}");
}

#[test]
fn lost_updates_and_torn_reads_are_found() {
    for scenario in [
        Scenario::Turns(turns(Workers::Threads(4), 100_000)),
        Scenario::Turns(turns(Workers::Processes(4), 100_000)),
        Scenario::Hogs(hogs::Hogs { hogs: 4, hold_ns: 1_000_000, ..HOGS }),
        fixed(4, 20, Inside::Sleep(100_000)),
        files(4, false),
    ] {
        let error = fails::<Open>(scenario, LONG);
        let numbers = error.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok());
        let numbers: Vec<u64> = numbers.collect();
        assert!(error.starts_with("lost updates: lock 'broken' was held "), "{error}");
        assert!(numbers.len() == 2 && numbers[0] > numbers[1], "{error}");
    }
    let run = Turns { read_share: 50, ..turns(Workers::Threads(4), 100_000) };
    let error = fails::<Odd<TORN>>(Scenario::Turns(run), LONG);
    assert!(error.starts_with("torn reads: ") && error.contains("lock 'broken'"), "{error}");
    // The base line excludes nothing, loses updates, and says so in the registry instead of
    // failing.
    figures(Scenario::Turns(turns(Workers::Threads(4), 100_000)), "none");
}

#[test]
fn workers_that_hang_or_panic_do_not_hang_the_trial() {
    for workers in [Workers::Threads(2), Workers::Processes(2)] {
        let error = fails::<Odd<HANGS>>(Scenario::Turns(turns(workers, 0)), SHORT);
        assert!(error.starts_with("lock 'broken': 2 of 2 workers are left 0."), "{error}");
        let error = fails::<Odd<PANICS>>(Scenario::Turns(turns(workers, 0)), LONG);
        let words = ["a worker panicked", "worker 0 left with status 1", "worker 1 left with status 1"];
        assert!(words.iter().any(|words| error == format!("lock 'broken': {words}")), "{error}");
    }
}

#[test]
fn a_worker_that_dies_ends_the_trial_and_none_is_left() {
    let mut ends = [0; 2];
    // SAFETY: the array has room for two descriptors.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    let error = fails::<Odd<KILLS>>(Scenario::Turns(turns(Workers::Processes(3), 0)), LONG);
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
fn a_lock_that_is_lost_with_its_holder_is_an_error() {
    let said = "lock 'broken': not all processes have the lock after SIGKILL of its holder within 300 ms";
    assert_eq!(fails::<Posix<NORMAL>>(FIVE, SHORT), said);
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
            "one loop of 21000000 ns does not fit the window of 20 ms",
        ),
        ("std", |run| run.read_share = 20, "lock 'std' has no shared mode: a read share of 20 % is "),
        ("pi", |run| run.patience_ns = Some(3_000), "lock 'pi' has no patience of 3us; allowed: 0"),
    ];
    let spoilt = cases.map(|(lock, spoil, expected)| {
        let mut run = turns(Workers::Threads(1), 0);
        spoil(&mut run);
        (Scenario::Turns(run), vec![lock], expected)
    });
    let pairs = |reads, processes| Scenario::Pairs(Pairs { reads, processes });
    let nobody = Scenario::Hogs(hogs::Hogs { hogs: 0, ..HOGS });
    let others = [
        (nobody, vec!["std"], "hogs and victims are both needed; allowed: at least 1 of each"),
        (Scenario::Handoff, vec!["none"], "lock 'none' is never handed over; allowed: "),
        (files(2, true), vec!["none"], "lock 'none' does not exclude, and files would be lost"),
        (pairs(false, false), vec![], "nothing to compare; allowed: at least one subject"),
        (
            pairs(true, false),
            vec!["none", "std"],
            "lock 'std' has no mode for readers; allowed: none, std-rw, ",
        ),
        (pairs(false, true), vec!["std"], "lock 'std' does not work between processes"),
    ];
    for (scenario, subjects, expected) in spoilt.into_iter().chain(others) {
        let error = carry_out(scenario, &subjects, 20).unwrap_err().to_string();
        assert!(error.starts_with(expected) && !error.contains('\n'), "{error}");
    }
}
