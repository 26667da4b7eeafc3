//! The throughput mutex with time slice extensions: as it is on this kernel, and with a kernel that
//! a signal handler plays.

use std::cell::{Cell, UnsafeCell};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Once, mpsc};
use std::thread;
use std::time::Duration;
use ulocks_core::raw::RawMutex;
use ulocks_core::slice::{self, Control, Extended};
use ulocks_core::spin::NoSpin;
use ulocks_core::time::Deadline;
use ulocks_core::{Private, api};
use ulocks_testkit::stress::{self, Load};
use ulocks_testkit::task;
use ulocks_unfair::{After, HandOff, RawThroughputMutex};

type Plain = Extended<RawThroughputMutex>;
type Strict = Extended<RawThroughputMutex<Private<NoSpin>, HandOff>>;
type Quick = Extended<RawThroughputMutex<Private, After<1_000>>>;

#[test]
fn does_what_the_mutex_within_does() {
    fn check<L: RawMutex + Send + Sync + 'static>() {
        let load = Load { operations: 4_000, signals: true, ..Load::default() };
        stress::exclusion::<L>(load).check(load);
        stress::timed::<L>(load).check(load);
        stress::cancel::<L>(load).check(load);
        assert_eq!(stress::last_unlocker_unmaps::<L>(4, 100), 100);
    }
    check::<Plain>();
    check::<Strict>();
}

/// The part of a kernel that deals with one thread.
struct Kernel {
    control: Control,
    granted: AtomicUsize,
    given_back: AtomicUsize,
    expired: AtomicUsize,
}

thread_local! {
    static KERNEL: Cell<Option<&'static Kernel>> = const { Cell::new(None) };
}

/// What went wrong in a handler, which cannot panic.
static WRONG: AtomicBool = AtomicBool::new(false);

/// A signal is an interrupt that would preempt the thread; and a handler with a section of its own,
/// before or after.
extern "C" fn interrupt(_: libc::c_int) {
    let Some(kernel) = KERNEL.get() else { return };
    let control = &kernel.control;
    let handles_first = kernel.granted.load(Relaxed).is_multiple_of(2);
    if handles_first {
        slice::enter();
        slice::leave();
    }
    match (control.request.load(Relaxed), control.granted.load(Relaxed)) {
        (0, 0) => {}
        (1, 0) => {
            control.request.store(0, Relaxed);
            control.granted.store(1, Relaxed);
            kernel.granted.fetch_add(1, Relaxed);
        }
        (0, 1) => {
            control.granted.store(0, Relaxed);
            kernel.expired.fetch_add(1, Relaxed);
        }
        _ => WRONG.store(true, Relaxed), // a kernel may kill the thread for that
    }
    if !handles_first {
        slice::enter();
        slice::leave();
    }
}

/// The system call by which the thread gives the CPU back.
fn give_back() {
    let kernel = KERNEL.get().expect("a thread that is enabled has a kernel");
    if kernel.control.request.load(Relaxed) != 0 {
        WRONG.store(true, Relaxed);
    }
    // A signal may have ended the extension after the thread saw it.
    if kernel.control.granted.swap(0, Relaxed) != 0 {
        kernel.given_back.fetch_add(1, Relaxed);
    }
}

fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // SAFETY: the handler touches atomics and thread-local words without destructors.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = interrupt as extern "C" fn(libc::c_int) as usize;
            assert_eq!(libc::sigaction(libc::SIGUSR2, &raw const action, std::ptr::null_mut()), 0);
        }
    });
}

struct Counted<L> {
    locks: [L; 2],
    halves: UnsafeCell<[usize; 2]>,
}
// SAFETY: `halves` is accessed by holders of the first lock only, which the test is about.
unsafe impl<L: Sync> Sync for Counted<L> {}

impl<L: RawMutex> Counted<L> {
    /// The caller holds the first lock.
    fn count(&self) {
        // SAFETY: the lock is held; volatile, so a broken lock yields wrong numbers.
        unsafe {
            let halves = self.halves.get();
            let (one, two) = ((*halves)[0], (&raw const (*halves)[1]).read_volatile());
            (&raw mut (*halves)[0]).write_volatile(one + 1);
            (0..50).for_each(|_| std::hint::spin_loop());
            (&raw mut (*halves)[1]).write_volatile(two + 1);
        }
    }

    /// Plainly, nested, overlapping, and with a deadline. How often it has counted.
    fn round(&self, nth: usize) -> usize {
        let [first, second] = &self.locks;
        // SAFETY: each token comes from the acquisition above it, and is used once.
        unsafe {
            if nth.is_multiple_of(4) {
                let Some(token) = first.lock_until(Deadline::after(Duration::from_micros(20))) else {
                    return 0;
                };
                self.count();
                first.unlock(token);
            } else {
                let outer = first.lock();
                self.count();
                if nth.is_multiple_of(2) {
                    first.unlock(outer);
                } else {
                    let inner = second.lock();
                    first.unlock(outer);
                    second.unlock(inner);
                }
            }
        }
        1
    }
}

fn under_interrupts<L: RawMutex + Send + Sync>() {
    install();
    const THREADS: usize = 4;
    let shared = Counted { locks: [L::INIT, L::INIT], halves: UnsafeCell::new([0; 2]) };
    let (over, counted) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (sender, started) = mpsc::channel();
    let kernels = [(); THREADS].map(|()| {
        &*Box::leak(Box::new(Kernel {
            control: Control::new(),
            granted: AtomicUsize::new(0),
            given_back: AtomicUsize::new(0),
            expired: AtomicUsize::new(0),
        }))
    });
    thread::scope(|scope| {
        for kernel in kernels {
            let (shared, over, counted, sender) = (&shared, &over, &counted, sender.clone());
            scope.spawn(move || {
                assert!(slice::pretend(&kernel.control, give_back));
                KERNEL.set(Some(kernel));
                sender.send(task::id()).expect("somebody listens");
                let mut done = 0;
                for nth in 0.. {
                    if over.load(Relaxed) {
                        break;
                    }
                    done += shared.round(nth);
                }
                counted.fetch_add(done, Relaxed);
                // The last signal may have come in a section.
                let control = &kernel.control;
                assert_eq!((control.request.load(Relaxed), control.granted.load(Relaxed)), (0, 0));
            });
        }
        let threads: Vec<_> = started.iter().take(THREADS).collect();
        let granted = || kernels.iter().map(|kernel| kernel.granted.load(Relaxed)).sum::<usize>();
        while granted() < 2_000 {
            for &thread in &threads {
                // The threads run until `over`.
                task::signal(thread, libc::SIGUSR2);
            }
            thread::sleep(Duration::from_micros(20));
        }
        over.store(true, Relaxed);
    });
    assert!(!WRONG.load(Relaxed), "asked during an extension, or gave back and went on asking");
    let halves = shared.halves.into_inner();
    assert_eq!(halves, [counted.into_inner(); 2]);
    let mut sum = [0; 3];
    for kernel in kernels {
        let counts = [&kernel.granted, &kernel.given_back, &kernel.expired].map(|count| count.load(Relaxed));
        assert_eq!(counts[0], counts[1] + counts[2], "each extension ends in one way");
        (0..3).for_each(|nth| sum[nth] += counts[nth]);
    }
    assert!(sum[1] > 0, "nothing was ever given back");
    println!("{} extensions, {} given back, {} used up, {} sections", sum[0], sum[1], sum[2], halves[0]);
}

#[test]
fn survives_a_kernel_that_grants_and_revokes_at_any_instruction() {
    under_interrupts::<Plain>();
    under_interrupts::<Strict>();
    under_interrupts::<Quick>();
}

/// While a condition variable waits nothing is asked; and a panic ends the request as it ends the
/// lock.
#[test]
fn waits_and_panics_ask_for_nothing() {
    static CONTROL: Control = Control::new();
    let asks = || CONTROL.request.load(Relaxed) != 0;
    thread::scope(|scope| {
        scope.spawn(|| {
            assert!(slice::pretend(&CONTROL, || ()));
            let (mutex, condvar) = (api::Mutex::<Plain, bool>::new(false), api::Condvar::<Plain>::new());
            let mut guard = mutex.lock();
            assert!(asks());
            assert!(mutex.try_lock().is_none() && asks());
            thread::scope(|scope| {
                scope.spawn(|| {
                    let mut told = mutex.lock();
                    // The other one waits, or is about to: it stops asking once it has released.
                    // This one asks by nothing.
                    let patience = Deadline::after(Duration::from_secs(30));
                    while asks() && !patience.has_passed() {
                        thread::yield_now();
                    }
                    let asked = asks();
                    *told = true;
                    condvar.notify_all();
                    drop(told);
                    assert!(!asked, "who waits asks still");
                });
                while !*guard {
                    condvar.wait(&mut guard);
                }
            });
            assert!(asks());
            let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
                let _held = guard;
                std::panic::resume_unwind(Box::new("on purpose"));
            }));
            assert!(panics.is_err() && !asks() && !mutex.is_locked());
            std::mem::forget(mutex.lock());
            assert!(mutex.try_lock().is_none() && asks(), "a forgotten guard goes on asking");
        });
    });
}

/// What the kernel counts in `/sys/kernel/debug/rseq/stats`, if it counts: extensions granted,
/// given back by the thread after its section, and ended by the kernel because they took too long.
fn counts() -> Option<[u64; 3]> {
    let text = std::fs::read_to_string("/sys/kernel/debug/rseq/stats").ok()?;
    let count =
        |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    Some([count("sgrant:")?, count("syield:")?, count("sexpir:")?])
}

/// More threads than CPUs, so the kernel's clock interrupts holders. Where it extends time slices
/// and counts them, most of these holders leave their section before they are preempted.
#[test]
fn a_holder_that_is_interrupted_leaves_its_section_first() {
    let threads = 2 * thread::available_parallelism().map_or(1, usize::from);
    let lock = api::Mutex::<Plain, u64>::new(0);
    let before = counts();
    let answers: Vec<_> = thread::scope(|scope| {
        let run = || {
            let answer = slice::enable();
            for _ in 0..if answer.is_ok() { 100_000 } else { 100 } {
                let mut total = lock.lock();
                // SAFETY: the reference is exclusive; volatile, so that the section takes its time.
                (0..50).for_each(|_| unsafe { (&raw mut *total).write_volatile(*total + 1) });
            }
            answer
        };
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    if let Some(error) = answers.into_iter().find_map(Result::err) {
        println!("not enabled: {error}");
    } else if let (Some(before), Some(after)) = (before, counts()) {
        let [granted, given_back, expired] = std::array::from_fn(|nth| after[nth] - before[nth]);
        println!("{granted} extensions: {given_back} were given back, {expired} were too short");
        assert!(given_back > 0, "no holder was let go on");
    }
}
