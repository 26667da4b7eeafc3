//! Inversions in which a signal handler has a part, and signals that are opened while a lock is
//! held.

use crate::Fault;
use crate::common::{blocked, install, interrupt, leaked, opened, own_signal, signals};
use crate::harness::{AT_EXIT, breaks, circle, fault};
use libc::SIGUSR1;
use std::sync::atomic::Ordering::Relaxed;
use ulocks_debug::*;
use ulocks_psrwlock::Nested;

pub const TABLE: &[Fault] = &[
    // The handler may interrupt a thread with `usual`, and waits for `table`. Its holder waits for
    // `usual`.
    ("a lock of a handler, and under it one that is held with the signal open", || {
        let signal = own_signal(0);
        let (usual, table) = (leaked(Mutex::new(())), leaked(Mutex::new(())));
        let (first, asked) = (open(usual, signal), handled(table, signal));
        let here = nests(table, usual);
        vec![circle(Rule::Order, &[here, (first, asked)])]
    }),
    ("the same, and the handler comes last", || {
        let signal = own_signal(1);
        let (usual, table) = (leaked(Mutex::new(())), leaked(Mutex::new(())));
        let (first, before) = (open(usual, signal), nests(table, usual));
        let asked = handled(table, signal);
        looks();
        vec![circle(Rule::Order, &[(first, asked), before])]
    }),
    ("the same, and no lock is acquired after it", || {
        let signal = own_signal(2);
        let (usual, table) = (leaked(Mutex::new(())), leaked(Mutex::new(())));
        let (first, before) = (open(usual, signal), nests(table, usual));
        AT_EXIT.store(true, Relaxed);
        let thread = std::thread::spawn(move || {
            drop(Mutex::new(()).lock());
            handled(table, signal)
        });
        let asked = thread.join().unwrap();
        AT_EXIT.store(false, Relaxed);
        vec![circle(Rule::Order, &[(first, asked), before])]
    }),
    ("the same, with a third lock between the two", || {
        let signal = own_signal(3);
        let (usual, table, third) = (leaked(Mutex::new(())), leaked(Mutex::new(())), leaked(Mutex::new(())));
        let (first, asked) = (open(usual, signal), handled(table, signal));
        let before = nests(table, third);
        let here = nests(third, usual);
        vec![circle(Rule::Order, &[here, (first, asked), before])]
    }),
    // Only then is it known that a handler may wait behind `usual`.
    ("the same, and the first of the two was blocked at first", || {
        let signal = own_signal(10);
        let (usual, table) = (leaked(Mutex::new(())), leaked(Mutex::new(())));
        let (asked, before) = (handled(table, signal), nests(table, usual));
        let first = line!() + 1;
        breaks(|| open_to(signal, || drop(usual.lock())));
        vec![circle(Rule::Order, &[(first, asked), before])]
    }),
    ("the same, with a third lock between, and the handler comes later", || {
        let signal = own_signal(11);
        let (usual, table, third) = (leaked(Mutex::new(())), leaked(Mutex::new(())), leaked(Mutex::new(())));
        let (second, before) = (nests(third, usual), nests(table, third));
        let asked = handled(table, signal);
        looks();
        let first = line!() + 1;
        breaks(|| open_to(signal, || drop(usual.lock())));
        vec![circle(Rule::Order, &[(first, asked), before, second])]
    }),
    // A read in a low class waits for a writer, and that for the handler's reads of the other lock.
    ("the same, with a write, and a handler that reads", || {
        let signal = own_signal(4);
        let (usual, table) = (leaked(RwLock::new(())), leaked(RwLock::new(())));
        let first = line!() + 1;
        open_to(signal, || drop(usual.write()));
        let asked = line!() + 1;
        interrupt(signal, || drop(table.read_in::<Nested>()));
        let here = (line!() + 2, line!() + 3);
        blocked(&signals(), || {
            let _table = table.write();
            breaks(|| drop(usual.read()));
        });
        vec![circle(Rule::Order, &[here, (first, asked)])]
    }),
    ("two locks of a handler, and the other way around in a thread", || {
        let signal = own_signal(5);
        let (a, b) = (leaked(Mutex::new(())), leaked(Mutex::new(())));
        let before = (line!() + 2, line!() + 3);
        interrupt(signal, || {
            let _a = a.lock();
            drop(b.lock());
        });
        let here = nests(b, a);
        vec![circle(Rule::Order, &[here, before])]
    }),
    ("two locks of a handler, and the other way around in another one", || {
        let (a, b, signal) = (leaked(Mutex::new(())), leaked(Mutex::new(())), own_signal(6));
        let first = line!() + 1;
        interrupt(signal, || drop((a.lock(), b.lock())));
        let second = line!() + 1;
        interrupt(own_signal(5), || drop((b.lock(), a.lock())));
        looks();
        // What was left last is entered first.
        vec![circle(Rule::Order, &[(first, first), (second, second)])]
    }),
    // The second handler may interrupt the first one with `outer`, and waits for `inner`.
    ("a lock of a handler of a handler, and the other way around", || {
        let (inner, outer, other) = (leaked(Mutex::new(())), leaked(Mutex::new(())), own_signal(7));
        let asked = line!() + 1;
        install(other, || drop(inner.lock()));
        let first = line!() + 2;
        interrupt(SIGUSR1, move || {
            let _outer = outer.lock();
            // SAFETY: the signal has a handler.
            opened(&[other], || assert_eq!(unsafe { libc::raise(other) }, 0));
        });
        let here = nests(inner, outer);
        vec![circle(Rule::Order, &[here, (first, asked)])]
    }),
    // The first acquisition of the class was with the signal blocked.
    ("a signal is opened while a lock is held, and its handler acquires one of the class", || {
        static TABLES: Class = Class::new("tables");
        let signal = own_signal(8);
        let mutexes = leaked([0, 1].map(|number| Mutex::new_in(&TABLES, number)));
        let (held, here) = (blocked(&signals(), || mutexes[0].lock()), line!());
        let before = line!() + 1;
        interrupt(signal, || *mutexes[1].lock() += 1);
        drop(held);
        breaks(|| blocked(&signals(), || *mutexes[0].lock() += 1));
        vec![fault(Rule::NoOpenSignal, here, before)]
    }),
    ("a signal is opened while a lock is held, and an inversion through its handler", || {
        let signal = own_signal(9);
        let (usual, table) = (leaked(Mutex::new(())), leaked(Mutex::new(())));
        let (held, first) = (blocked(&signals(), || usual.lock()), line!());
        let asked = handled(table, signal);
        drop(held);
        let here = nests(table, usual);
        vec![circle(Rule::Order, &[here, (first, asked)])]
    }),
];

/// Pairs of lines.
type Lines = (u32, u32);

/// Runs `work` with `signal` open, and no other signal of the tests. An edge to another test's lock
/// would be one of a program with both.
fn open_to<T>(signal: i32, work: impl FnOnce() -> T) -> T {
    let mut others = signals();
    others.retain(|&other| other != signal);
    blocked(&others, work)
}

/// Acquires the lock with `signal` open. Returns the line.
fn open(lock: &Mutex<()>, signal: i32) -> u32 {
    open_to(signal, || drop(lock.lock()));
    line!() - 1
}

/// A handler of `signal` acquires the lock. Returns the line.
fn handled(lock: &'static Mutex<()>, signal: i32) -> u32 {
    interrupt(signal, || drop(lock.lock()));
    line!() - 1
}

/// Acquires `inner` in `outer`, with all signals blocked. Returns the lines.
fn nests(outer: &Mutex<()>, inner: &Mutex<()>) -> Lines {
    blocked(&signals(), || {
        let _outer = outer.lock();
        breaks(|| drop(inner.lock()));
    });
    (line!() - 3, line!() - 2)
}

/// A lock of a new class is acquired: the thread looks at what handlers have left.
#[track_caller]
fn looks() {
    let lock = Mutex::new(());
    breaks(|| drop(lock.lock()));
}
