//! Waiting and waking.

#![cfg(all(world = "machine", not(miri)))]

mod support;

use std::thread;
use std::time::{Duration, Instant, SystemTime};
use support::{Mapping, Sleeper, asleep, memory_file, until, until_child_asleep};
use ulocks_core::futex::{Bits, Futex, FutexKey, Global, Local, Scope, Waited};
use ulocks_core::time::{Clock, Deadline};
use ulocks_testkit::Child;

const SHORT: Duration = Duration::from_millis(3);

#[test]
fn another_value_is_a_mismatch() {
    assert_eq!(Futex::<Local>::new(1).wait(0, None), Waited::Mismatch);
    assert_eq!(Futex::<Global>::new(1).wait(0, None), Waited::Mismatch);
}

#[test]
fn a_mismatch_comes_before_a_deadline() {
    let futex = Futex::<Local>::new(1);
    let past = Deadline::new(Clock::Monotonic, Duration::ZERO);
    assert_eq!(futex.wait(0, Some(past)), Waited::Mismatch);
    assert_eq!(futex.wait(1, Some(past)), Waited::TimedOut);
}

#[test]
fn a_wait_does_not_end_before_its_deadline() {
    let futex = Futex::<Local>::new(1);
    let end = Instant::now() + SHORT;
    assert_eq!(futex.wait(1, Some(Deadline::at(end))), Waited::TimedOut);
    assert!(Instant::now() >= end);
    let end = SystemTime::now() + SHORT;
    let deadline = Deadline::from(end);
    assert_eq!(deadline.clock(), Clock::Realtime);
    assert_eq!(futex.wait(1, Some(deadline)), Waited::TimedOut);
    assert!(SystemTime::now() >= end);
}

#[test]
fn the_farthest_deadlines_are_taken() {
    let futex = Futex::<Local>::new(1);
    let far = Deadline::after_on(Clock::Realtime, Duration::MAX);
    for deadline in [Deadline::NEVER, Deadline::after(Duration::MAX), far] {
        thread::scope(|scope| {
            let sleeper = asleep(scope, || futex.wait(1, Some(deadline)));
            assert_eq!(futex.key().wake(1), 1);
            assert_eq!(sleeper.join(), Waited::Woken);
        });
    }
}

fn counts<S: Scope>() {
    let futex = Futex::<S>::new(1);
    thread::scope(|scope| {
        let sleepers: Vec<_> = (0..4).map(|_| asleep(scope, || futex.wait(1, None))).collect();
        assert_eq!(futex.key().wake(0), 0);
        assert_eq!(futex.key().wake(2), 2);
        until(|| sleepers.iter().filter(|sleeper| sleeper.is_finished()).count() == 2);
        assert_eq!(futex.key().wake(u32::MAX), 2);
        assert_eq!(futex.key().wake(u32::MAX), 0);
        assert!(sleepers.into_iter().map(Sleeper::join).all(|waited| waited == Waited::Woken));
    });
}

#[test]
fn wakes_are_counted() {
    counts::<Local>();
    counts::<Global>();
}

#[test]
fn the_longest_sleeper_is_woken_first() {
    let futex = Futex::<Local>::new(1);
    thread::scope(|scope| {
        let sleepers: Vec<_> = (0..4).map(|_| asleep(scope, || futex.wait(1, None))).collect();
        for sleeper in sleepers {
            assert_eq!(futex.key().wake(1), 1);
            assert_eq!(sleeper.join(), Waited::Woken);
        }
    });
}

#[test]
fn bits_select_whom_a_wake_up_finds() {
    let futex = Futex::<Local>::new(1);
    let wait = |bits| futex.wait_bits(1, Bits::new(bits).unwrap(), None);
    thread::scope(|scope| {
        let [zero, one, both] =
            [asleep(scope, || wait(0b01)), asleep(scope, || wait(0b10)), asleep(scope, || wait(0b11))];
        assert_eq!(futex.key().wake_bits(u32::MAX, Bits::one(2)), 0);
        assert_eq!(futex.key().wake_bits(1, Bits::one(33)), 1); // 33 is bit 1: `one` slept before `both`
        assert_eq!(one.join(), Waited::Woken);
        assert_eq!(futex.key().wake_bits(u32::MAX, Bits::one(1)), 1);
        assert_eq!(both.join(), Waited::Woken);
        assert_eq!(futex.key().wake_bits(u32::MAX, Bits::ANY), 1);
        assert_eq!(zero.join(), Waited::Woken);
    });
}

#[test]
fn private_and_shared_do_not_meet() {
    let private = Futex::<Local>::new(1);
    let shared = Futex::<Global>::new(1);
    thread::scope(|scope| {
        asleep(scope, || private.wait(1, None));
        asleep(scope, || shared.wait(1, None));
        assert_eq!(FutexKey::<Global>::of((&raw const private).cast()).wake(1), 0);
        assert_eq!(FutexKey::<Local>::of((&raw const shared).cast()).wake(1), 0);
        assert_eq!(private.key().wake(1), 1);
        assert_eq!(shared.key().wake(1), 1);
    });
}

#[test]
fn processes_meet_at_the_same_word_of_different_mappings() {
    let file = memory_file();
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let (mine, theirs) = (Mapping::of_file(&file, access), Mapping::of_file(&file, access));
    let (mine, theirs) = (mine.futex::<Global>(5), theirs.futex::<Global>(5));
    assert_ne!(mine.key(), theirs.key());
    let child = Child::runs(|| assert_eq!(theirs.wait(0, None), Waited::Woken));
    until_child_asleep(&child);
    assert_eq!(mine.key().wake(2), 1);
    child.ends();
}

#[test]
fn processes_do_not_meet_at_a_private_futex() {
    let page = Mapping::anonymous();
    let futex = page.futex::<Local>(0);
    let child = Child::runs(|| _ = futex.wait(0, Some(Deadline::after(Duration::from_secs(100)))));
    until_child_asleep(&child);
    assert_eq!(futex.key().wake(1), 0);
    child.killed();
}

#[test]
fn a_key_outlives_its_memory() {
    fn none_woken_after_unmapping<S: Scope>() {
        let page = Mapping::anonymous();
        let key = page.futex::<S>(0).key();
        drop(page);
        assert_eq!(key.wake(u32::MAX), 0);
    }
    // In a child, which is alone, so that no other thread maps or sleeps at that address meanwhile.
    Child::runs(none_woken_after_unmapping::<Local>).ends();
    Child::runs(none_woken_after_unmapping::<Global>).ends();
    assert_eq!(FutexKey::<Local>::of(std::ptr::null()).wake(1), 0);
    assert_eq!(FutexKey::<Global>::of(std::ptr::null()).wake(1), 0);
}

#[test]
#[should_panic = "futex wait: the kernel answers \"Bad address"]
fn a_wait_on_a_truncated_file_panics() {
    let file = memory_file();
    let page = Mapping::of_file(&file, libc::PROT_READ | libc::PROT_WRITE);
    file.set_len(0).unwrap();
    page.futex::<Global>(0).wait(0, None);
}

#[test]
fn one_can_sleep_on_memory_one_cannot_write() {
    let file = memory_file();
    let page = Mapping::of_file(&file, libc::PROT_READ);
    let futex = page.futex::<Global>(0);
    assert_eq!(futex.wait(1, None), Waited::Mismatch);
    assert_eq!(futex.wait(0, Some(Deadline::after(SHORT))), Waited::TimedOut);
}
