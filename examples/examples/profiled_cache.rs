//! A cache that a profiler's signal handler reads. The kernel sends `SIGPROF` while the program
//! uses CPU time. The handler looks up which module the interrupted thread was in, and counts a
//! sample for it. Other threads look things up in the same table, and one of them renews it.
//!
//! # Which lock, and why
//! [`PsRwLock`](ulocks::psrwlock::PsRwLock) with the class `HANDLER`. A handler reads by an attempt
//! that makes no system call and allocates nothing. A handler that strikes the writing thread is
//! put aside until the write has ended, so it does not wait for its own thread.
//!
//! # What would go wrong with another
//! `std::sync::RwLock` and the like: the handler strikes the thread that writes, and waits for it
//! for ever, since that thread does not go on before the handler returns. With `try_read` it would
//! miss each sample of the writer itself. To block the signal around each write costs two system
//! calls a write.

use std::cell::Cell;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::{io, mem, ptr, thread};
use ulocks::psrwlock::signal::Handlers;
use ulocks::psrwlock::{BULK, ByClass, HANDLER, PsRwLockWith, Sifted};

const MODULES: usize = 3;
const NAMES: [&str; MODULES] = ["parser", "planner", "executor"];
/// The program ends when there are so many samples.
const SAMPLES: u64 = 60;

/// The module of each function. `sum` says whether a reader sees a table that is half renewed.
struct Table {
    module_of: [usize; 64],
    sum: usize,
    renewed: u64,
}

static TABLE: PsRwLockWith<Table, Sifted<{ BULK | HANDLER }>> =
    PsRwLockWith::new(Table { module_of: [0; 64], sum: 0, renewed: 0 });

// What the handler writes: atomics only.
static READ: [AtomicU64; MODULES] = [const { AtomicU64::new(0) }; MODULES];
static MISSED: AtomicU64 = AtomicU64::new(0);
static DEFERRED: AtomicU64 = AtomicU64::new(0);
static TORN: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The function that this thread is in. A constant without a destructor, so that a handler may
    /// look at it.
    static FUNCTION: Cell<usize> = const { Cell::new(0) };
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    renew();
    // SAFETY: the closure is async-signal-safe: it attempts to read, uses atomics and a constant
    // thread-local, allocates nothing, and returns.
    let installed = unsafe {
        Handlers::new().signal(libc::SIGPROF).install(|context| match TABLE.read_handler(context) {
            Some(table) => {
                DEFERRED.fetch_add(u64::from(context.is_deferred()), Relaxed);
                TORN.fetch_or(table.module_of.iter().sum::<usize>() != table.sum, Relaxed);
                READ[table.module_of[FUNCTION.get()]].fetch_add(1, Relaxed);
            }
            // A writer on another CPU is in its last stage.
            None => _ = MISSED.fetch_add(1, Relaxed),
        })
    }?;

    // A signal strikes the thread that writes. It is handled when the write has ended.
    let table = TABLE.write();
    // SAFETY: the signal has a handler.
    assert_eq!(unsafe { libc::raise(libc::SIGPROF) }, 0);
    assert_eq!(samples(), 0);
    drop(table);
    assert_eq!((samples(), DEFERRED.load(Relaxed)), (1, 1));

    set_timer(1_000)?;
    let done = || samples() >= SAMPLES;
    thread::scope(|scope| {
        for first in 0..3 {
            scope.spawn(move || {
                for function in (first..).step_by(7).take_while(|_| !done()) {
                    FUNCTION.set(function % 64);
                    let module = TABLE.read().module_of[function % 64];
                    assert!(module < MODULES);
                    (0..1_000).for_each(|step| _ = black_box(step));
                }
            });
        }
        scope.spawn(|| {
            while !done() {
                renew();
                (0..2_000).for_each(|step| _ = black_box(step));
            }
        });
    });
    set_timer(0)?;
    installed.uninstall();

    assert!(!TORN.load(Relaxed), "a handler saw a table that was half renewed");
    println!("{} samples; the table was renewed {} times.", samples(), TABLE.read().renewed);
    for (name, read) in NAMES.iter().zip(&READ) {
        println!("{name:>10} {:>4}", read.load(Relaxed));
    }
    println!("{:>10} {:>4} (a writer on another CPU was in its last stage)", "missed", MISSED.load(Relaxed));
    println!("{} samples struck the writer, and were handled after its write.", DEFERRED.load(Relaxed));
    Ok(())
}

/// Renews the table. A signal that strikes this thread meanwhile is handled after it.
fn renew() {
    let mut table = TABLE.write();
    let shift = table.renewed as usize;
    table.sum = 0;
    for function in 0..64 {
        let module = (function + shift) % MODULES;
        table.module_of[function] = module;
        table.sum += module;
    }
    table.renewed += 1;
}

fn samples() -> u64 {
    READ.iter().chain([&MISSED]).map(|count| count.load(Relaxed)).sum()
}

/// A `SIGPROF` for each so many microseconds of CPU time, as often as the kernel's clock allows. 0
/// stops the timer.
fn set_timer(microseconds: i64) -> io::Result<()> {
    // SAFETY: the structure is made of integers.
    let mut timer: libc::itimerval = unsafe { mem::zeroed() };
    timer.it_interval.tv_usec = microseconds as _;
    timer.it_value.tv_usec = microseconds as _;
    // SAFETY: `timer` is valid for the call; the old value is not asked for.
    match unsafe { libc::setitimer(libc::ITIMER_PROF, &raw const timer, ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
