//! Waiting on many futexes at once. On a kernel without the call, the tests check that it says so.

#![cfg(all(world = "machine", not(miri)))]

mod support;

use std::thread;
use std::time::{Duration, Instant, SystemTime};
use support::{Mapping, asleep, memory_file, until_child_asleep};
use ulocks_core::capabilities::{Capability, capabilities};
use ulocks_core::futex::{Futex, Global, Local, Waiter, WaitvError, WaitvOutcome, waitv};
use ulocks_core::time::Deadline;
use ulocks_testkit::Child;

/// Whether to go on: if not, the call was seen to be refused.
fn supported() -> bool {
    let futex = Futex::<Local>::new(1);
    let supported = capabilities().has(Capability::Waitv);
    let answer = waitv(&[Waiter::new(&futex, 0)], None);
    assert_eq!(answer, if supported { Ok(WaitvOutcome::Mismatch) } else { Err(WaitvError::Unsupported) });
    supported
}

#[test]
fn none_and_too_many_are_refused() {
    let futex = Futex::<Local>::new(1);
    let many = [Waiter::new(&futex, 1); 129];
    assert_eq!(waitv(&[], None), Err(WaitvError::Empty));
    assert_eq!(waitv(&many, None), Err(WaitvError::TooMany(129)));
    assert_eq!(WaitvError::TooMany(129).to_string(), "129 futexes to wait on; give 1 to 128");
    assert_eq!(WaitvError::Empty.to_string(), "no futex to wait on; give 1 to 128");
    assert!(WaitvError::Unsupported.to_string().contains("Linux 5.16"));
}

#[test]
fn the_index_is_that_of_the_woken_futex() {
    if !supported() {
        return;
    }
    let futexes: Vec<_> = (0..128).map(Futex::<Local>::new).collect();
    let waiters: Vec<_> = futexes.iter().zip(0..).map(|(futex, value)| Waiter::new(futex, value)).collect();
    for index in [0, 1, 64, 127] {
        thread::scope(|scope| {
            let sleeper = asleep(scope, || waitv(&waiters, None));
            assert_eq!(futexes[index].key().wake(u32::MAX), 1);
            assert_eq!(sleeper.join(), Ok(WaitvOutcome::Woken(index)));
        });
    }
    // It sleeps nowhere any more.
    assert!(futexes.iter().all(|futex| futex.key().wake(1) == 0));
}

#[test]
fn one_wrong_value_is_a_mismatch() {
    if !supported() {
        return;
    }
    let (first, second) = (Futex::<Local>::new(1), Futex::<Global>::new(2));
    let waiters = [Waiter::new(&first, 1), Waiter::new(&second, 3)];
    assert_eq!(waitv(&waiters, None), Ok(WaitvOutcome::Mismatch));
}

#[test]
fn a_wait_does_not_end_before_its_deadline() {
    if !supported() {
        return;
    }
    let futex = Futex::<Local>::new(1);
    let waiters = [Waiter::new(&futex, 1)];
    let end = Instant::now() + Duration::from_millis(3);
    assert_eq!(waitv(&waiters, Some(end.into())), Ok(WaitvOutcome::TimedOut));
    assert!(Instant::now() >= end);
    let end = SystemTime::now() + Duration::from_millis(3);
    assert_eq!(waitv(&waiters, Some(end.into())), Ok(WaitvOutcome::TimedOut));
    assert!(SystemTime::now() >= end);
}

#[test]
fn a_far_deadline_is_taken() {
    if !supported() {
        return;
    }
    let futex = Futex::<Local>::new(1);
    thread::scope(|scope| {
        let sleeper = asleep(scope, || waitv(&[Waiter::new(&futex, 1)], Some(Deadline::NEVER)));
        assert_eq!(futex.key().wake(1), 1);
        assert_eq!(sleeper.join(), Ok(WaitvOutcome::Woken(0)));
    });
}

#[test]
fn scopes_mix_across_processes() {
    if !supported() {
        return;
    }
    let page = Mapping::anonymous();
    let (ours, other) = (page.futex::<Global>(0), page.futex::<Global>(1));
    for woken in 1..=2 {
        let child = Child::runs(|| {
            let mine = Futex::<Local>::new(9);
            let waiters = [Waiter::new(&mine, 9), Waiter::new(ours, 0), Waiter::new(other, 0)];
            assert_eq!(waitv(&waiters, None), Ok(WaitvOutcome::Woken(woken)));
        });
        until_child_asleep(&child);
        assert_eq!(page.futex::<Global>(woken - 1).key().wake(1), 1);
        child.ends();
    }
}

#[test]
fn a_truncated_file_is_an_error() {
    if !supported() {
        return;
    }
    let file = memory_file();
    let page = Mapping::of_file(&file, libc::PROT_READ | libc::PROT_WRITE);
    file.set_len(0).unwrap();
    let waiters = [Waiter::new(page.futex::<Global>(0), 0)];
    assert_eq!(waitv(&waiters, None), Err(WaitvError::Inaccessible));
}
