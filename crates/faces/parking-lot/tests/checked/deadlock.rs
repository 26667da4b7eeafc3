//! parking_lot's `deadlock`: deadlocks are returned once, with the lines of their threads.

use ::ulocks_parking_lot::checked::deadlock::check_deadlock;
use ::ulocks_parking_lot::checked::ulocks_debug::{Rule, deadlocks, waiters};
use ::ulocks_parking_lot::checked::{Mutex, RwLock};
use std::sync::Barrier;
use ulocks_testkit::limit::{again, output, until};

/// In a process of its own, since the threads stay.
#[test]
fn a_deadlock_is_returned_once() {
    if let Some(mut command) = again("deadlock::a_deadlock_is_returned_once") {
        let output = output(command.env("ULOCKS_CHECKED", "warn"));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    static LOCKS: [Mutex<u32>; 2] = [const { Mutex::new(0) }; 2];
    static MET: Barrier = Barrier::new(2);
    assert!(check_deadlock().is_empty());
    let (held, asked) = (line!() + 3, line!() + 5);
    for own in 0..2 {
        std::thread::spawn(move || {
            let held = LOCKS[own].lock();
            MET.wait();
            let asked = LOCKS[1 - own].lock();
            drop((asked, held));
        });
    }
    let mut found = Vec::new();
    until("the threads wait for each other", || {
        found = check_deadlock();
        !found.is_empty()
    });
    assert_eq!((found.len(), found[0].len()), (1, 2));
    assert_ne!(found[0][0].thread_id(), found[0][1].thread_id());
    for thread in &found[0] {
        let text = format!("{:?}", thread.backtrace());
        assert!([held, asked].iter().all(|line| text.contains(&format!("deadlock.rs:{line}:"))), "{text}");
    }
    assert!(check_deadlock().is_empty());
}

/// As above.
#[test]
fn a_thread_that_waits_for_itself_is_a_deadlock() {
    if let Some(mut command) = again("deadlock::a_thread_that_waits_for_itself_is_a_deadlock") {
        let output = output(command.env("ULOCKS_CHECKED", "warn"));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    static MUTEX: Mutex<u32> = Mutex::new(0);
    static LOCK: RwLock<u32> = RwLock::new(0);
    let lines = [line!() + 1, line!() + 2];
    std::thread::spawn(|| (MUTEX.lock(), MUTEX.lock()).1.to_string());
    std::thread::spawn(|| (LOCK.read(), LOCK.write()).1.to_string());
    let mut found = Vec::new();
    until("two threads wait for themselves", || {
        found.extend(check_deadlock());
        found.len() >= 2
    });
    for threads in &found {
        assert_eq!(threads.len(), 1, "{threads:?}");
        let text = format!("{:?}", threads[0].backtrace());
        assert!(lines.iter().any(|line| text.contains(&format!("deadlock.rs:{line}:"))), "{text}");
    }
    assert!(deadlocks().iter().all(|report| report.rule() == Rule::NoRecursion));
    assert_eq!((found.len(), waiters().len()), (2, 2));
    // A wait that ends is none.
    let timed = std::thread::spawn(|| {
        static OTHER: Mutex<u32> = Mutex::new(0);
        let _held = OTHER.lock();
        assert!(OTHER.try_lock_for(std::time::Duration::from_millis(300)).is_none());
    });
    until("a thread waits with a deadline", || waiters().iter().any(|waiter| waiter.has_deadline));
    assert!(check_deadlock().is_empty());
    timed.join().unwrap();
}
