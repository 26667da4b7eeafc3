//! parking_lot's `deadlock`: deadlocks are returned once, with the lines of their threads.

use ::ulocks_parking_lot::checked::Mutex;
use ::ulocks_parking_lot::checked::deadlock::check_deadlock;
use std::env;
use std::process::Command;
use std::sync::Barrier;
use ulocks_testkit::limit::{output, until};

/// In a process of its own, since the threads stay.
#[test]
fn a_deadlock_is_returned_once() {
    const SECOND: &str = "ULOCKS_TEST_DEADLOCK";
    if env::var_os(SECOND).is_none() {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["deadlock::a_deadlock_is_returned_once", "--exact"]).env(SECOND, "1");
        let output = output(command.env("ULOCKS_CHECKED", "warn"));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
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
