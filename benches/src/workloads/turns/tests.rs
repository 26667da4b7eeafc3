use super::*;
use crate::run::busy_work;
use crate::subjects::locks::{Lock, SysV};
use std::cell::UnsafeCell;
use std::ptr::addr_of_mut;
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, OnceLock, RwLock};

pub(in crate::workloads) fn conditions() -> Conditions {
    static CALIBRATION: OnceLock<f64> = OnceLock::new();
    let iterations_per_us = *CALIBRATION.get_or_init(busy_work::calibrate);
    Conditions { warmup_ms: 2, window_ms: 20, iterations_per_us, seed: 1, pin: Pin::Scatter }
}

fn turns(workers: Workers) -> Turns {
    Turns {
        times: Times::default(),
        workers,
        read_share: 0,
        locks: 1,
        timed: false,
        least_ms: 0,
        counted: false,
        patience_ns: None,
    }
}

fn times(turns: Turns, hold_ns: u64) -> Turns {
    Turns { times: Times { hold_ns, ..turns.times }, ..turns }
}

/// Carries it out, with a longer window if other programs left no time to the workers in a short
/// one.
pub(in crate::workloads) fn busy(scenario: Scenario, subject: &str) -> Outcome {
    for window_ms in [20, 200, 2_000, 20_000] {
        let trial = Trial::new(scenario, vec![subject.into()], Conditions { window_ms, ..conditions() });
        let outcome = trial.carry_out().unwrap().remove(0);
        if outcome.contains_key("rate") {
            return outcome;
        }
    }
    panic!("lock '{subject}': no operation in 20 s");
}

/// Workers may take `grace` to end after the window: a short one where they hang, a long one where
/// they do not, since to print a panic with its backtrace can take a second.
fn fails<L: Lock>(name: &str, turns: Turns, grace: Duration) -> String {
    let conditions = Conditions { window_ms: 100, ..conditions() };
    turns.run(name, Type::of::<L>(), &conditions, grace).expect_err("the lock is broken").to_string()
}

const SHORT: Duration = Duration::from_millis(300);
const LONG: Duration = Duration::from_secs(30);

#[test]
fn every_lock_excludes_threads_and_those_that_can_processes() {
    for entry in Entry::all() {
        let run = times(turns(Workers::Threads(3)), 300);
        let figures = busy(Scenario::Turns(run), entry.name);
        for name in ["rate", "cov", "least", "starved", "switches"] {
            assert!(figures[name] >= 0.0, "{}: {figures:?}", entry.name);
        }
        assert!(!figures.contains_key("wait-max") && !figures.contains_key("contended"));
        if entry.processes {
            let run = Turns { timed: true, ..turns(Workers::Processes(3)) };
            let figures = busy(Scenario::Turns(run), entry.name);
            let waits = ["wait-p50", "wait-p99", "wait-p99.9", "wait-max"].map(|name| figures[name]);
            assert!(waits.is_sorted() && waits[3] > 0.0, "{}: {figures:?}", entry.name);
            assert!(figures["wait-mean"] <= waits[3] && figures["wait-now"] <= waits[3]);
            assert!(figures["wait-mean"] <= figures["wait-now"], "{}: {figures:?}", entry.name);
        }
    }
}

#[test]
fn bare_loops_exclude() {
    for lock in ["none", "std", "unfair", "calock", "mcs", "sysv"] {
        busy(Scenario::Turns(turns(Workers::Threads(2))), lock);
    }
}

#[test]
fn each_worker_uses_its_lock() {
    // Workers 0 and 2 share one lock, worker 1 has the other; the check of each counter relies on
    // it.
    let run = Turns { locks: 2, ..times(turns(Workers::Threads(3)), 500) };
    busy(Scenario::Turns(run), "pthread");
}

#[test]
fn locks_count_and_spin_as_they_are_asked_to_between_threads_and_processes() {
    for (workers, patience_ns) in
        [(Workers::Threads(3), None), (Workers::Processes(3), Some(0)), (Workers::Processes(3), Some(3_000))]
    {
        for entry in Entry::all().iter().filter(|entry| entry.counts) {
            let possible = patience_ns.is_none_or(|ns| entry.patience_ns.contains(&ns));
            if !possible || matches!(workers, Workers::Processes(_)) && !entry.processes {
                continue;
            }
            let run = Turns { counted: true, patience_ns, least_ms: 50, ..times(turns(workers), 2_000) };
            let figures = busy(Scenario::Turns(run), entry.name);
            assert!(figures["contended"] >= 0.0, "{}: {figures:?}", entry.name);
            // Also one that never spins may have its turn before it sleeps.
            let spun = figures.get("spun").is_none_or(|share| (0.0..=1.0).contains(share));
            assert!(spun && figures.contains_key("spun") == figures.contains_key("reentries"), "{figures:?}");
            assert!(!figures.contains_key("read-contended"), "{}: {figures:?}", entry.name);
        }
    }
    // A lock that cannot count has no such figures, and is run all the same.
    let run = Turns { counted: true, ..turns(Workers::Threads(2)) };
    assert!(!busy(Scenario::Turns(run), "std").contains_key("contended"));
}

#[test]
fn readers_share_a_lock_between_threads_and_processes() {
    for workers in [Workers::Threads(3), Workers::Processes(3)] {
        for lock in ["psrw", "robust-rw"] {
            for read_share in [50, 100] {
                busy(Scenario::Turns(Turns { read_share, ..turns(workers) }), lock);
            }
        }
    }
}

#[test]
fn a_wait_that_outlives_the_window_is_recorded() {
    /// Lets go 30 ms after each acquisition, without the holder's help.
    struct Slow(Mutex<()>);
    impl Lock for Slow {
        fn unlocked(_: Scope) -> Result<Self> {
            Ok(Self(Mutex::new(())))
        }
        type Held<'a> = std::sync::MutexGuard<'a, ()>;
        fn acquire(&self) -> Self::Held<'_> {
            let held = self.0.lock().unwrap();
            std::thread::sleep(Duration::from_millis(30));
            held
        }
        fn try_acquire(&self) -> Option<Self::Held<'_>> {
            self.0.try_lock().ok()
        }
    }
    let run = Turns { timed: true, ..turns(Workers::Threads(2)) };
    let conditions = Conditions { window_ms: 10, ..conditions() };
    let arena_waits = run.run("slow", Type::of::<Slow>(), &conditions, LONG).unwrap();
    assert!(arena_waits["wait-max"] >= 30e6, "{arena_waits:?}");
}

/// The seeded bug: a lock that lets every thread in.
pub(in crate::workloads) struct Open;

impl Lock for Open {
    fn unlocked(_: Scope) -> Result<Self> {
        Ok(Self)
    }
    type Held<'a> = ();
    fn acquire(&self) {}
    fn try_acquire(&self) -> Option<()> {
        Some(())
    }
}

#[test]
fn lost_updates_are_found() {
    for workers in [Workers::Threads(4), Workers::Processes(4)] {
        let error = fails::<Open>("open", times(turns(workers), 100_000), LONG);
        let said = "lost updates: lock 'open' (instance 0) was held ";
        let numbers = error.strip_prefix(said).unwrap_or_else(|| panic!("{error}"));
        let numbers = numbers.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok());
        let numbers: Vec<u64> = numbers.collect();
        assert!(numbers.len() == 2 && numbers[0] > numbers[1], "{error}");
    }
    // The base line excludes nothing, loses updates, and says so in the registry instead of
    // failing.
    busy(Scenario::Turns(times(turns(Workers::Threads(4)), 100_000)), "none");
}

/// A reader-writer lock that lets writers in beside readers.
struct Torn(RwLock<()>);

impl Lock for Torn {
    const SHARED_MODE: bool = true;
    fn unlocked(_: Scope) -> Result<Self> {
        Ok(Self(RwLock::new(())))
    }
    type Held<'a> = std::sync::RwLockWriteGuard<'a, ()>;
    fn acquire(&self) -> Self::Held<'_> {
        self.0.write().unwrap()
    }
    fn try_acquire(&self) -> Option<Self::Held<'_>> {
        self.0.try_write().ok()
    }
    fn shared<R>(&self, f: impl FnOnce() -> R) -> R {
        f()
    }
}

#[test]
fn torn_reads_are_found() {
    let run = Turns { read_share: 50, ..times(turns(Workers::Threads(4)), 100_000) };
    let error = fails::<Torn>("torn", run, LONG);
    assert!(error.starts_with("torn reads: ") && error.contains("lock 'torn'"), "{error}");
}

/// What goes wrong at the third acquisition of a [`Faulty`] lock.
const HANGS: u8 = 0;
const PANICS: u8 = 1;
const KILLS: u8 = 2;

/// A mutex that works twice.
struct Faulty<const HOW: u8> {
    lock: SysV,
    left: UnsafeCell<u32>,
}

// SAFETY: `left` is touched by the holder of `lock`.
unsafe impl<const HOW: u8> Sync for Faulty<HOW> {}

/// The set of the last [`Faulty`] lock made of each kind.
static SETS: [AtomicI32; 3] = [const { AtomicI32::new(-1) }; 3];

impl<const HOW: u8> Lock for Faulty<HOW> {
    unsafe fn place(place: *mut Self, scope: Scope) -> Result<()> {
        // SAFETY: by the contract of `place`, field by field; `SysV` starts with its id, which the
        // test asks for.
        unsafe {
            <SysV as Lock>::place(addr_of_mut!((*place).lock), scope)?;
            addr_of_mut!((*place).left).write(UnsafeCell::new(2));
            SETS[HOW as usize].store((*place).lock.id(), Relaxed);
        }
        Ok(())
    }
    type Held<'a> = <SysV as Lock>::Held<'a>;
    fn acquire(&self) -> Self::Held<'_> {
        let held = self.lock.acquire();
        // SAFETY: the lock is held.
        let left = unsafe { &mut *self.left.get() };
        if *left == 0 {
            match HOW {
                HANGS => std::thread::sleep(Duration::from_secs(600)),
                PANICS => {
                    std::mem::forget(held);
                    // Without a word on stderr: a forked worker may have inherited the lock of the
                    // panic's printer from a thread of another test.
                    std::panic::resume_unwind(Box::new("two are enough"));
                }
                // SAFETY: this test's own worker process ends itself.
                _ => drop(unsafe { libc::raise(libc::SIGKILL) }),
            }
        }
        *left -= 1;
        held
    }
    fn try_acquire(&self) -> Option<Self::Held<'_>> {
        self.lock.try_acquire()
    }
    fn abandon(&self) {
        self.lock.abandon();
    }
}

fn set_is_gone(kind: u8) -> bool {
    // SAFETY: no pointers are involved.
    unsafe { libc::semctl(SETS[kind as usize].load(Relaxed), 0, libc::GETVAL) < 0 }
}

#[test]
fn a_worker_that_hangs_does_not_hang_the_trial() {
    for workers in [Workers::Threads(2), Workers::Processes(2)] {
        let error = fails::<Faulty<HANGS>>("faulty", turns(workers), SHORT);
        assert!(error.starts_with("lock 'faulty': 2 of 2 workers did not end within 0."), "{error}");
        assert!(error.ends_with("they hang") && set_is_gone(HANGS), "{error}");
    }
}

#[test]
fn a_worker_that_panics_ends_the_trial_with_its_message() {
    for workers in [Workers::Threads(2), Workers::Processes(2)] {
        let error = fails::<Faulty<PANICS>>("faulty", turns(workers), LONG);
        assert!(
            error.starts_with("lock 'faulty': worker ") && error.ends_with(": two are enough"),
            "{error}"
        );
        assert!(set_is_gone(PANICS));
    }
}

#[test]
fn a_worker_that_dies_ends_the_trial_and_none_is_left() {
    let mut ends = [0; 2];
    // SAFETY: the array has room for two descriptors.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    let error = fails::<Faulty<KILLS>>("faulty", turns(Workers::Processes(3)), LONG);
    assert!(error.contains("was killed by signal 9") && set_is_gone(KILLS), "{error}");
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
    let cases: [Case; 9] = [
        ("mutex", |_| (), "unknown lock 'mutex'; allowed: none, std, "),
        ("std", |run| run.workers = Workers::Threads(0), "zero workers cannot contend; allowed: at least 1"),
        (
            "std",
            |run| run.workers = Workers::Processes(2),
            "lock 'std' does not work between processes; allowed: none, pthread, ",
        ),
        ("std", |run| run.locks = 0, "zero locks cannot be contended; allowed: at least 1"),
        ("std", |run| run.times.hold_ns = 1, "a hold time of 1 ns cannot be measured; allowed: 0, or "),
        (
            "std",
            |run| run.times.think_ns = 2_000_000_000,
            "a non-hold time of 2000000000 ns cannot be measured; allowed: 0, or ",
        ),
        (
            "std",
            |run| run.times.hold_ns = 21_000_000,
            "one loop of 21000000 ns does not fit the window of 20 ms; allowed: ",
        ),
        (
            "std",
            |run| run.read_share = 20,
            "lock 'std' has no shared mode: a read share of 20 % is impossible; allowed: 0",
        ),
        ("pi", |run| run.patience_ns = Some(3_000), "lock 'pi' has no patience of 3us; allowed: 0"),
    ];
    for (lock, spoil, expected) in cases {
        let mut run = turns(Workers::Threads(1));
        spoil(&mut run);
        let error = run.carry_out(lock, &conditions()).unwrap_err().to_string();
        assert!(error.starts_with(expected) && !error.contains('\n'), "{error}");
    }
}
