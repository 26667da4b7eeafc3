//! The futex2 calls. On a kernel without them, the tests check that they say so.

#![cfg(not(any(miri, ulocks_loom, ulocks_vm)))]

mod support;

use std::thread;
use std::time::{Duration, Instant, SystemTime};
use support::{Child, Mapping, Sleeper, asleep, memory_file};
use ulocks_core::capabilities::{Capability, capabilities};
use ulocks_core::futex::{Bits, Futex, Futex2Error, FutexKey, Private, Requeued, Shared, Waited, futex2};
use ulocks_core::time::Deadline;

/// Whether to go on: if not, all three calls were seen to be refused.
fn supported() -> bool {
    let futex = Futex::<Private>::new(1);
    let supported = capabilities().has(Capability::Futex2Wait);
    let refused = |error| if supported { None } else { Some(error) };
    assert_eq!(futex2::wait(&futex, 0, Bits::ANY, None).err(), refused(Futex2Error::Unsupported));
    assert_eq!(futex2::wake(futex.key(), 1, Bits::ANY).err(), refused(Futex2Error::Unsupported));
    assert_eq!(futex2::requeue(&futex, 1, 1, 1, futex.key()).err(), refused(Futex2Error::Unsupported));
    supported
}

#[test]
fn waits_end_as_they_should() {
    if !supported() {
        return;
    }
    let futex = Futex::<Private>::new(1);
    assert_eq!(futex2::wait(&futex, 0, Bits::ANY, None), Ok(Waited::Mismatch));
    let end = Instant::now() + Duration::from_millis(3);
    assert_eq!(futex2::wait(&futex, 1, Bits::ANY, Some(end.into())), Ok(Waited::TimedOut));
    assert!(Instant::now() >= end);
    let end = SystemTime::now() + Duration::from_millis(3);
    assert_eq!(futex2::wait(&futex, 1, Bits::ANY, Some(end.into())), Ok(Waited::TimedOut));
    assert!(SystemTime::now() >= end);
    thread::scope(|scope| {
        let sleeper = asleep(scope, || futex2::wait(&futex, 1, Bits::ANY, Some(Deadline::NEVER)));
        assert_eq!(futex2::wake(futex.key(), 1, Bits::ANY), Ok(1));
        assert_eq!(sleeper.join(), Ok(Waited::Woken));
    });
}

#[test]
fn old_and_new_calls_meet_and_bits_select() {
    if !supported() {
        return;
    }
    let futex = Futex::<Private>::new(1);
    thread::scope(|scope| {
        asleep(scope, || futex2::wait(&futex, 1, Bits::one(3), None));
        asleep(scope, || futex.wait_bits(1, Bits::one(4), None));
        assert_eq!(futex2::wake(futex.key(), u32::MAX, Bits::one(5)), Ok(0));
        assert_eq!(futex2::wake(futex.key(), 0, Bits::ANY), Ok(0));
        assert_eq!(futex2::wake(futex.key(), u32::MAX, Bits::one(4)), Ok(1));
        assert_eq!(futex.key().wake_bits(u32::MAX, Bits::one(3)), 1);
    });
}

#[test]
fn requeue_counts_and_compares() {
    if !supported() {
        return;
    }
    let (from, to) = (Futex::<Private>::new(1), Futex::<Private>::new(2));
    thread::scope(|scope| {
        let sleepers: Vec<_> = (0..4).map(|_| asleep(scope, || from.wait(1, None))).collect();
        assert_eq!(futex2::requeue(&from, 0, 1, 1, to.key()), Err(Futex2Error::Mismatch));
        let moved = futex2::requeue(&from, 1, 1, u32::MAX, to.key());
        assert_eq!(moved, Ok(Requeued { woken: 1, requeued: 3 }));
        assert_eq!(to.key().wake(u32::MAX), 3);
        assert!(sleepers.into_iter().map(Sleeper::join).all(|waited| waited == Waited::Woken));
    });
}

#[test]
fn processes_meet() {
    if !supported() {
        return;
    }
    let page = Mapping::anonymous();
    let (from, to) = (page.futex::<Shared>(0), page.futex::<Shared>(1));
    let child = Child::run(|| (futex2::wait(from, 0, Bits::ANY, None) != Ok(Waited::Woken)).into());
    child.until_asleep();
    assert_eq!(futex2::requeue(from, 0, 0, 1, to.key()), Ok(Requeued { woken: 0, requeued: 1 }));
    assert_eq!(futex2::wake(to.key(), 1, Bits::ANY), Ok(1));
    assert_eq!(child.join(), 0);
}

#[test]
fn memory_that_is_gone() {
    if !supported() {
        return;
    }
    let nowhere = Mapping::inaccessible();
    let gone = nowhere.futex::<Shared>(0).key();
    assert_eq!(futex2::wake(gone, 1, Bits::ANY), Ok(0));
    assert_eq!(futex2::wake(FutexKey::<Private>::of(std::ptr::null()), 1, Bits::ANY), Ok(0));
    let from = Futex::<Shared>::new(1);
    assert_eq!(futex2::requeue(&from, 1, 1, 1, gone), Err(Futex2Error::Inaccessible));
    let file = memory_file();
    let page = Mapping::of_file(&file, libc::PROT_READ | libc::PROT_WRITE);
    file.set_len(0).unwrap();
    let answer = futex2::wait(page.futex::<Shared>(0), 0, Bits::ANY, None);
    assert_eq!(answer, Err(Futex2Error::Inaccessible));
}
