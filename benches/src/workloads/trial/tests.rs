use super::*;
use crate::run::busy_work;
use crate::subjects::locks::{self, Entry, Lock, NoLock, Scope, SysV};
use anyhow::Result;
use std::cell::UnsafeCell;
use std::ptr::addr_of_mut;
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

fn spec(lock: &str, workers: Workers) -> TrialSpec {
    static CALIBRATION: OnceLock<f64> = OnceLock::new();
    TrialSpec {
        lock: lock.into(),
        workers,
        lock_count: 1,
        hold_ns: 0,
        non_hold_ns: 0,
        read_share: 0,
        warmup_ms: 2,
        window_ms: 20,
        pin: Pin::Scatter,
        waits: false,
        iterations_per_us: *CALIBRATION.get_or_init(busy_work::calibrate),
        seed: 1,
    }
}

fn each(which: impl Fn(&Entry) -> bool, check: impl Fn(&'static Entry)) {
    locks::Entry::all().iter().filter(|entry| which(entry)).for_each(check);
}

/// Runs a trial, with a longer window if other programs left no time to the workers in a short one.
fn busy(spec: TrialSpec) -> TrialResult {
    for window_ms in [spec.window_ms, 200, 2_000, 20_000] {
        let result = run(&TrialSpec { window_ms, ..spec.clone() }).unwrap();
        let cpu_s = result.user_s + result.system_s; // by the tick on some kernels
        if result.counts.iter().sum::<u64>() > 0 && cpu_s > 0.0 {
            return result;
        }
    }
    panic!("lock '{}': no operation in 20 s, or no CPU time for it", spec.lock);
}

/// Workers may take `grace` to end after the window: a short one where they hang, a long one where
/// they do not, since to print a panic with its backtrace can take a second.
fn fails<L: Lock>(spec: &TrialSpec, grace: Duration) -> String {
    run_lock::<L>(spec, grace).expect_err("the lock is broken").to_string()
}

const SHORT: Duration = Duration::from_millis(300);
const LONG: Duration = Duration::from_secs(30);

#[test]
fn every_lock_excludes_threads() {
    each(
        |_| true,
        |entry| {
            let result = busy(spec(entry.name, Workers::Threads(3)));
            assert_eq!(result.counts.len(), 3);
            assert!(result.elapsed_s >= 0.02 && result.speed > 0.0, "{}: {result:?}", entry.name);
            assert!(result.user_s + result.system_s > 0.0, "{}: {result:?}", entry.name);
            assert!(result.waits.is_none() && result.meters.is_some() == entry.metered);
        },
    );
}

#[test]
fn every_lock_that_can_excludes_processes() {
    each(
        |entry| entry.processes,
        |entry| {
            let spec = TrialSpec { waits: true, hold_ns: 1_000, ..spec(entry.name, Workers::Processes(3)) };
            let result = busy(spec);
            assert!(result.user_s + result.system_s > 0.0, "{}: {result:?}", entry.name);
            let waits = result.waits.unwrap();
            assert!(waits.p50 <= waits.p99 && waits.p99 <= waits.p999 && waits.p999 <= waits.max);
            assert!(waits.max > 0 && waits.mean > 0.0 && waits.mean <= waits.max as f64);
        },
    );
}

#[test]
fn each_worker_uses_its_lock() {
    // Workers 0 and 2 share one lock, worker 1 has the other; the check of each counter relies on
    // it.
    let spec = TrialSpec { lock_count: 2, hold_ns: 500, ..spec("pthread", Workers::Threads(3)) };
    assert_eq!(busy(spec).counts.len(), 3);
}

#[test]
fn a_counting_lock_reports_the_window() {
    let metered = locks::Entry::all().iter().filter(|entry| entry.metered);
    for entry in metered {
        let workers = if entry.processes { Workers::Processes(3) } else { Workers::Threads(3) };
        let spec = TrialSpec { hold_ns: 2_000, ..spec(entry.name, workers) };
        let mut seen = Vec::new();
        // The two are read at different moments. Other programs may stop this one between them, so
        // the difference is small only by a window that is longer.
        let agree = [20, 200, 2_000, 20_000].iter().any(|&window_ms| {
            let result = run(&TrialSpec { window_ms, ..spec.clone() }).unwrap();
            let (meters, counted) = (result.meters.unwrap(), result.counts.iter().sum::<u64>());
            assert_eq!(meters.reader_contended, 0, "{}", entry.name);
            seen.push((counted, meters));
            meters.acquired > 0
                && meters.contended <= meters.acquired + 3
                && meters.acquired.abs_diff(counted) <= counted / 2 + 10
        });
        assert!(agree, "{}: {seen:?}", entry.name);
    }
}

#[test]
fn a_wait_that_outlives_the_window_is_recorded() {
    /// Lets go 30 ms after each acquisition, without the holder's help.
    struct Slow(std::sync::Mutex<()>);
    impl Lock for Slow {
        unsafe fn place(place: *mut Self, _: Scope) -> Result<()> {
            // SAFETY: by the contract of `place`.
            unsafe { place.write(Self(std::sync::Mutex::new(()))) };
            Ok(())
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
    let spec = TrialSpec { waits: true, window_ms: 10, ..spec("slow", Workers::Threads(2)) };
    let waits = run_lock::<Slow>(&spec, Duration::from_secs(30)).unwrap().waits.unwrap();
    assert!(waits.max >= 30_000_000, "{waits:?}");
}

/// The seeded bug: a lock that lets every thread in.
struct Open;

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
        let spec = TrialSpec { hold_ns: 100_000, window_ms: 100, ..spec("open", workers) };
        let error = fails::<Open>(&spec, LONG);
        let (words, numbers) = error.split_at("lost updates: lock 'open' (instance 0) was held ".len());
        assert_eq!(words, "lost updates: lock 'open' (instance 0) was held ");
        let numbers: Vec<u64> =
            numbers.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect();
        assert!(numbers.len() == 2 && numbers[0] > numbers[1], "{error}");
    }
    // The base line excludes nothing, loses updates, and says so in the registry instead of
    // failing.
    let spec = TrialSpec { hold_ns: 100_000, window_ms: 100, ..spec("none", Workers::Threads(4)) };
    assert!(run(&spec).is_ok() && !NoLock::EXCLUDES && !locks::Entry::find("none").unwrap().excludes);
}

/// A reader-writer lock; `BROKEN` lets writers in beside readers.
struct Rw<const BROKEN: bool>(RwLock<()>);

impl<const BROKEN: bool> Lock for Rw<BROKEN> {
    const SHARED_MODE: bool = true;
    unsafe fn place(place: *mut Self, _: Scope) -> Result<()> {
        // SAFETY: by the contract of `place`.
        unsafe { place.write(Self(RwLock::new(()))) };
        Ok(())
    }
    type Held<'a> = std::sync::RwLockWriteGuard<'a, ()>;
    fn acquire(&self) -> Self::Held<'_> {
        self.0.write().unwrap()
    }
    fn try_acquire(&self) -> Option<Self::Held<'_>> {
        self.0.try_write().ok()
    }
    fn with_shared<R>(&self, f: impl FnOnce() -> R) -> R {
        let _held = (!BROKEN).then(|| self.0.read().unwrap());
        f()
    }
}

#[test]
fn readers_and_writers_are_checked() {
    let spec =
        TrialSpec { read_share: 50, hold_ns: 100_000, window_ms: 100, ..spec("rw", Workers::Threads(4)) };
    assert!(run_lock::<Rw<false>>(&spec, Duration::from_secs(30)).is_ok());
    let error = fails::<Rw<true>>(&spec, LONG);
    assert!(error.starts_with("torn reads: ") && error.contains("lock 'rw'"), "{error}");

    let spec = TrialSpec { lock: "std".into(), read_share: 20, ..spec };
    let error = run(&spec).unwrap_err().to_string();
    assert_eq!(error, "lock 'std' has no shared mode: a read share of 20 % is impossible; allowed: 0");
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
                    panic!("two are enough");
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

/// These tests fork while threads of theirs panic; one at a time, or a child inherits the lock of
/// the panic's printer.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn faulty(workers: Workers) -> TrialSpec {
    TrialSpec { window_ms: 200, ..spec("faulty", workers) }
}

fn set_is_gone(kind: u8) -> bool {
    // SAFETY: no pointers are involved.
    unsafe { libc::semctl(SETS[kind as usize].load(Relaxed), 0, libc::GETVAL) < 0 }
}

#[test]
fn a_worker_that_hangs_does_not_hang_the_trial() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    for workers in [Workers::Threads(2), Workers::Processes(2)] {
        let error = fails::<Faulty<HANGS>>(&faulty(workers), SHORT);
        assert!(error.starts_with("lock 'faulty': 2 of 2 workers did not end within 0."), "{error}");
        assert!(error.ends_with("they hang") && set_is_gone(HANGS), "{error}");
    }
}

#[test]
fn a_worker_that_panics_ends_the_trial_with_its_message() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    for workers in [Workers::Threads(2), Workers::Processes(2)] {
        let error = fails::<Faulty<PANICS>>(&faulty(workers), LONG);
        assert!(
            error.starts_with("lock 'faulty': worker ") && error.ends_with(": two are enough"),
            "{error}"
        );
        assert!(set_is_gone(PANICS));
    }
}

#[test]
fn a_worker_that_dies_ends_the_trial_and_none_is_left() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let mut ends = [0; 2];
    // SAFETY: the array has room for two descriptors.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    let error = fails::<Faulty<KILLS>>(&faulty(Workers::Processes(3)), LONG);
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
fn a_specification_that_cannot_be_run_is_refused() {
    let good = spec("std", Workers::Threads(1));
    type Case = (fn(&mut TrialSpec), &'static str);
    let cases: [Case; 8] = [
        (|spec| spec.lock = "mutex".into(), "unknown lock 'mutex'; allowed: none, std, "),
        (|spec| spec.workers = Workers::Threads(0), "zero workers cannot contend; allowed: at least 1"),
        (
            |spec| spec.workers = Workers::Processes(2),
            "lock 'std' does not work between processes; allowed: ",
        ),
        (|spec| spec.lock_count = 0, "zero locks cannot be contended; allowed: at least 1"),
        (|spec| spec.window_ms = 0, "a window of 0 ms measures nothing; allowed: at least 1 ms"),
        (|spec| spec.hold_ns = 1, "a hold time of 1 ns cannot be measured; allowed: 0, or "),
        (
            |spec| spec.non_hold_ns = 2_000_000_000,
            "a non-hold time of 2000000000 ns cannot be measured; allowed: 0, or ",
        ),
        (
            |spec| spec.hold_ns = 21_000_000,
            "one loop of 21000000 ns does not fit the window of 20 ms; allowed: ",
        ),
    ];
    for (spoil, expected) in cases {
        let mut spec = good.clone();
        spoil(&mut spec);
        let error = run(&spec).unwrap_err().to_string();
        assert!(error.starts_with(expected) && !error.contains('\n'), "{error}");
    }
}
