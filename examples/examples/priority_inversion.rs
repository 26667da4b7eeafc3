//! Priority inversion, shown and gone: three threads of real-time priority on one CPU.
//!
//! The low thread holds a mutex. The high thread waits for it. Then the middle thread, which does
//! not use the mutex, wants to compute for long. The urgent work is that of the high thread.
//!
//! # Which lock, and why
//! [`PiMutex`](ulocks::pi::PiMutex): the holder runs with the priority of its best waiter. The low
//! thread runs with high priority until it releases the mutex. Then the high thread goes on, and
//! the middle thread comes last.
//!
//! # What would go wrong with another
//! The middle thread keeps the low one from running, and so from the release. The high thread waits
//! for the middle one, for however long that computes: that is what happened to Mars Pathfinder.
//!
//! The program needs the right to `SCHED_FIFO`: root, `CAP_SYS_NICE`, or `ulimit -r 3`. Without it
//! the program says so. Then it shows only that all threads end.

use std::hint::black_box;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};
use std::{io, mem};
use ulocks::Mutex;
use ulocks::pi::{PiLockError, PiMutex};

const LOW: i32 = 1;
const MIDDLE: i32 = 2;
const HIGH: i32 = 3;

fn main() {
    let may = thread::spawn(|| run_at(LOW)).join().expect("it does not panic");
    if let Err(error) = &may {
        println!("No SCHED_FIFO here ({error}): the threads run without priorities, in any order.");
        println!("Try again as root, or with CAP_SYS_NICE, or after `ulimit -r 3`.");
    }
    let may = may.is_ok();

    let plain = Mutex::new(());
    let order = three_threads(may, &|work| {
        let _held = plain.lock();
        work();
    });
    println!("a plain mutex: the {} thread is done first, then the {} one", order[0], order[1]);
    assert!(!may || order == ["middle", "high"]);

    let inheriting = PiMutex::new(());
    let order = three_threads(may, &|work| {
        let _held = inheriting.lock().expect("no deadlock, no death");
        work();
    });
    println!("a PiMutex:     the {} thread is done first, then the {} one", order[0], order[1]);
    assert!(!may || order == ["high", "middle"]);

    // It also reports what other mutexes sleep on for ever. This needs no right.
    let held = inheriting.lock().expect("no deadlock, no death");
    assert!(matches!(inheriting.lock(), Err(PiLockError::Deadlock)));
    drop(held);
    println!("A thread that locks a PiMutex twice gets an error.");
}

/// Runs the three threads, and returns the order in which the high and the middle one were done.
/// `locked` does something while it holds the mutex.
fn three_threads(may: bool, locked: &(dyn Fn(&dyn Fn()) + Sync)) -> Vec<&'static str> {
    let start = move |priority| {
        if may {
            stay_on_one_cpu().and_then(|()| run_at(priority)).expect("it was allowed a moment ago");
        }
    };
    let (done, order) = mpsc::channel();
    let (is_ready, ready) = mpsc::channel();
    let (wake_high, high) = mpsc::channel();
    let (wake_middle, middle) = mpsc::channel();
    thread::scope(|scope| {
        let (is_done, is_prepared) = (done.clone(), is_ready.clone());
        scope.spawn(move || {
            start(HIGH);
            is_prepared.send(()).expect("the receiver lives");
            high.recv().expect("the low thread wakes this one");
            locked(&|| is_done.send("high").expect("the receiver lives"));
        });
        scope.spawn(move || {
            start(MIDDLE);
            is_ready.send(()).expect("the receiver lives");
            middle.recv().expect("the low thread wakes this one");
            compute();
            done.send("middle").expect("the receiver lives");
        });
        // Both wait with their priorities before the low thread begins.
        ready.iter().take(2).for_each(drop);
        scope.spawn(move || {
            start(LOW);
            locked(&|| {
                wake_high.send(()).expect("the receiver lives"); // It runs at once, up to the mutex.
                wake_middle.send(()).expect("the receiver lives");
                compute();
            });
        });
    });
    order.iter().collect()
}

/// Computes for some time.
fn compute() {
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(20) {
        black_box(start);
    }
}

/// Gives the calling thread a real-time priority.
fn run_at(priority: i32) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the structure lives for the call; 0 is the calling thread.
    result(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) })
}

/// Keeps the calling thread on the first CPU that the process may use.
fn stay_on_one_cpu() -> io::Result<()> {
    // SAFETY: the set is an array of integers.
    let mut allowed: libc::cpu_set_t = unsafe { mem::zeroed() };
    let size = mem::size_of_val(&allowed);
    // SAFETY: the set is as large as its size says; 0 is the calling thread.
    result(unsafe { libc::sched_getaffinity(0, size, &raw mut allowed) })?;
    // SAFETY: the number is below the size of the set.
    let first = (0..8 * size).find(|&cpu| unsafe { libc::CPU_ISSET(cpu, &allowed) });
    // SAFETY: as above.
    let mut one: libc::cpu_set_t = unsafe { mem::zeroed() };
    // SAFETY: as above.
    unsafe { libc::CPU_SET(first.expect("a process may use a CPU"), &mut one) };
    // SAFETY: as above.
    result(unsafe { libc::sched_setaffinity(0, size, &raw const one) })
}

fn result(code: i32) -> io::Result<()> {
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
