//! Signal handlers with locks that interrupt the checker at any instruction, one that waits for its
//! own thread, and contexts of handlers that are misused. Each test runs a part of itself in a
//! process of its own.

#![cfg(not(any(ulocks_loom, ulocks_vm)))]

mod common;

use std::cell::Cell;
use std::mem;
use std::os::unix::process::ExitStatusExt;
use std::process::Output;
use std::thread;
use ulocks_debug::{FairMutex, Mutex, SignalContext, TryLockError};
use ulocks_testkit::limit::child;

fn text(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

#[test]
fn a_handler_that_waits_for_its_own_thread_is_reported() {
    let Some(output) = child("a_handler_that_waits_for_its_own_thread_is_reported") else {
        let mutex: &Mutex<()> = Box::leak(Box::new(Mutex::new(())));
        // A handler that is not reported never ends.
        // SAFETY: the signal ends the process.
        unsafe { libc::alarm(10) };
        let (_held, before) = (mutex.lock(), line!());
        eprintln!("\nlines {before} {}", line!() + 1);
        common::interrupt(libc::SIGUSR1, || drop(mutex.lock()));
        return;
    };
    let text = text(&output);
    assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{text}");
    let lines = text.lines().find_map(|line| line.strip_prefix("lines ")).expect("the lines");
    let (before, here) = lines.split_once(' ').expect("two");
    let file = file!();
    for part in [
        "fault: self-deadlock: a thread asks for a lock that it holds".to_owned(),
        format!("  here    {file}:{here}:"),
        format!("  before  {file}:{before}:"),
        format!("  signal  {}\n", libc::SIGUSR1),
    ] {
        assert!(text.contains(&part), "{part}\n{text}");
    }
}

/// The first acquisition of the thread, and those of two locks for the first time and once more.
#[cfg(target_arch = "x86_64")]
fn inside_of_the_checker(outer: &Mutex<u32>, inner: &FairMutex<u32>) {
    for _ in 0..2 {
        let mut in_outer = outer.lock();
        *inner.lock() += 1;
        *in_outer += 1;
    }
}

/// The trap flag has each instruction followed by `SIGTRAP`. So the handler interrupts the thread
/// at each instruction of the checker, and acquires two locks each time.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_handler_with_locks_at_each_instruction_of_the_checker() {
    use ulocks_debug::held;

    let Some(output) = child("a_handler_with_locks_at_each_instruction_of_the_checker") else {
        static FIRST: Mutex<u64> = Mutex::new(0);
        static SECOND: FairMutex<u64> = FairMutex::new(0);
        common::install(libc::SIGTRAP, || {
            let mut first = FIRST.lock();
            *SECOND.lock() += 1;
            *first += 1;
        });
        // A new thread, whose first acquisition makes its record.
        std::thread::spawn(|| {
            let (outer, inner) = (Mutex::new(0), FairMutex::new(0));
            // SAFETY: sets the trap flag; the signal has a handler. The stack is as before.
            unsafe { std::arch::asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq") };
            inside_of_the_checker(&outer, &inner);
            // SAFETY: clears the trap flag.
            unsafe { std::arch::asm!("pushfq", "and qword ptr [rsp], 0xfffffffffffffeff", "popfq") };
            assert!(held().locks().is_empty(), "{}", held());
            assert_eq!((outer.into_inner(), inner.into_inner()), (2, 2));
        })
        .join()
        .unwrap();
        let counts = common::blocked(&[libc::SIGTRAP], || (*FIRST.lock(), *SECOND.lock()));
        assert_eq!(counts.0, counts.1);
        println!("signals: {}", counts.0);
        return;
    };
    let text = text(&output);
    assert!(output.status.success(), "{text}");
    let count = text.lines().find_map(|line| line.split_once("signals: ")).expect("the number of signals").1;
    assert!(count.parse::<u32>().unwrap() > 2_000, "{count} signals");
}

/// The resident memory of the process, in bytes.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

/// A handler and threads have a lock. Behind it, with the signal blocked, is one of no class, and
/// many others of its name come and go.
#[test]
fn locks_behind_one_of_a_handler_leave_nothing() {
    let Some(output) = child("locks_behind_one_of_a_handler_leave_nothing") else {
        static FIRST: Mutex<u32> = Mutex::new(0);
        common::interrupt(libc::SIGUSR1, || *FIRST.lock() += 1);
        let make = || Box::<Mutex<u32>>::default();
        let take = |lock: &Mutex<u32>| *lock.lock() += 1;
        let behind = make();
        common::blocked(&[libc::SIGUSR1], || {
            let _first = FIRST.lock();
            take(&behind);
        });
        (0..200).for_each(|_| take(&make()));
        let before = resident();
        (0..3_000).for_each(|_| take(&make()));
        let grown = resident().saturating_sub(before);
        assert!(grown < 256 << 10, "{grown} bytes more");
        return;
    };
    assert!(output.status.success(), "{}", text(&output));
}

#[test]
fn locks_that_handlers_nest_leave_nothing() {
    let Some(output) = child("locks_that_handlers_nest_leave_nothing") else {
        let nest = || {
            let [one, other] = [(); 2].map(|()| Box::<Mutex<u32>>::default());
            let _context = SignalContext::enter(libc::SIGUSR1);
            drop((one.lock(), other.lock()));
        };
        common::blocked(&[libc::SIGUSR1], || {
            (0..200).for_each(|_| nest());
            let before = resident();
            (0..2_000).for_each(|_| nest());
            let grown = resident().saturating_sub(before);
            assert!(grown < 256 << 10, "{grown} bytes more");
        });
        return;
    };
    assert!(output.status.success(), "{}", text(&output));
}

/// What the process prints before it aborts because of a context.
fn assert_aborts(output: &Output) {
    let text = text(output);
    assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{text}");
    assert!(text.contains("`SignalContext` is not the last one of its thread"), "{text}");
}

/// Two threads would have one record otherwise.
#[test]
fn contexts_that_are_dropped_in_the_order_of_their_making_abort() {
    let Some(output) = child("contexts_that_are_dropped_in_the_order_of_their_making_abort") else {
        let (one, other) = (SignalContext::enter(libc::SIGUSR1), SignalContext::enter(libc::SIGUSR2));
        drop(one);
        drop(other);
        return;
    };
    assert_aborts(&output);
}

#[test]
fn a_context_that_is_dropped_after_the_end_of_its_thread_aborts() {
    let Some(output) = child("a_context_that_is_dropped_after_the_end_of_its_thread_aborts") else {
        thread_local! {
            static KEPT: Cell<Option<SignalContext>> = const { Cell::new(None) };
        }
        let thread = thread::spawn(|| {
            // Before the first acquisition: so it is destroyed after the record.
            KEPT.set(None);
            drop(Mutex::new(0).lock());
            KEPT.set(Some(SignalContext::enter(libc::SIGUSR1)));
        });
        thread.join().unwrap();
        return;
    };
    assert_aborts(&output);
}

/// A later thread would be taken for a handler.
#[test]
fn the_record_of_a_forgotten_context_passes_to_no_thread() {
    let Some(output) = child("the_record_of_a_forgotten_context_passes_to_no_thread") else {
        static MUTEX: Mutex<u32> = Mutex::new(0);
        drop(MUTEX.lock());
        let forgets = || {
            drop(MUTEX.lock());
            mem::forget(SignalContext::enter(libc::SIGUSR1));
        };
        thread::spawn(forgets).join().unwrap();
        for _ in 0..3 {
            thread::spawn(|| drop(MUTEX.lock())).join().unwrap();
        }
        drop(MUTEX.lock());
        return;
    };
    assert!(output.status.success(), "{}", text(&output));
}

#[test]
fn what_a_handler_holds_beyond_the_64_is_not_that_of_a_later_thread() {
    let Some(output) = child("what_a_handler_holds_beyond_the_64_is_not_that_of_a_later_thread") else {
        static LAST: Mutex<u32> = Mutex::new(0);
        common::blocked(&[libc::SIGUSR1], || {
            let context = SignalContext::enter(libc::SIGUSR1);
            let many = [(); 64].map(|()| Mutex::new(()));
            let held = many.each_ref().map(|mutex| mutex.lock());
            mem::forget(LAST.lock());
            drop(held);
            drop(context);
            let later = || {
                drop(Mutex::new(0).lock());
                LAST.try_lock_checked().map(drop)
            };
            let asked = thread::spawn(later).join().unwrap();
            assert!(matches!(asked, Err(TryLockError::WouldBlock)), "{asked:?}");
        });
        return;
    };
    assert!(output.status.success(), "{}", text(&output));
}
