//! `wake_op`: every change, every condition, against a table computed here.

#![cfg(not(any(miri, ulocks_loom, ulocks_vm)))]

mod support;

use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use support::{Mapping, asleep, memory_file};
use ulocks_core::futex::{Change, Condition, Futex, Private, Shared, WakeOpError};

const ALWAYS: Condition = Condition::GreaterOrEqual(-2048);

#[test]
fn every_change_does_what_it_says() {
    let event = Futex::<Private>::new(0);
    let operands = [0, 1, -1, 5, 2047, -2048, 2048, 1 << 20, 1 << 30, i32::MIN];
    for before in [0, 1, 0xff, 0x7fff_ffff, 0x8000_0000, u32::MAX] {
        for operand in operands {
            let bits = operand.cast_unsigned();
            for (change, after) in [
                (Change::Set(operand), bits),
                (Change::Add(operand), before.wrapping_add(bits)),
                (Change::Or(operand), before | bits),
                (Change::AndNot(operand), before & !bits),
                (Change::Xor(operand), before ^ bits),
            ] {
                let word = Futex::<Private>::new(before);
                assert_eq!(word.wake_op(change, event.key(), 1, ALWAYS, 1), Ok(0), "{change:?}");
                assert_eq!(word.load(Relaxed), after, "{before:#x} {change:?}");
            }
        }
    }
}

#[test]
fn every_condition_compares_the_old_value_as_a_signed_number() {
    let (event, word) = (Futex::<Private>::new(0), Futex::<Private>::new(0));
    for comparand in [-2048, -1, 0, 7, 2047] {
        for old in [comparand - 1, comparand, comparand + 1, i32::MIN, i32::MAX] {
            for (condition, holds) in [
                (Condition::Equal(comparand), old == comparand),
                (Condition::NotEqual(comparand), old != comparand),
                (Condition::Less(comparand), old < comparand),
                (Condition::LessOrEqual(comparand), old <= comparand),
                (Condition::Greater(comparand), old > comparand),
                (Condition::GreaterOrEqual(comparand), old >= comparand),
            ] {
                word.store(old.cast_unsigned(), Relaxed);
                thread::scope(|scope| {
                    asleep(scope, || word.wait(old.cast_unsigned(), None));
                    let woken = word.wake_op(Change::Set(77), event.key(), 1, condition, 1);
                    assert_eq!(woken, Ok(holds.into()), "{old} {condition:?}");
                    assert_eq!(word.load(Relaxed), 77);
                    word.key().wake(1);
                });
            }
        }
    }
}

#[test]
fn both_futexes_have_their_counts() {
    let (event, word) = (Futex::<Private>::new(1), Futex::<Private>::new(2));
    thread::scope(|scope| {
        for _ in 0..3 {
            asleep(scope, || event.wait(1, None));
            asleep(scope, || word.wait(2, None));
        }
        // Without the condition, the word's own sleepers sleep on.
        assert_eq!(word.wake_op(Change::Set(3), event.key(), 1, Condition::Equal(9), 1), Ok(1));
        assert_eq!(word.wake_op(Change::Set(4), event.key(), 1, Condition::Equal(3), 2), Ok(3));
        assert_eq!(word.wake_op(Change::Set(5), event.key(), u32::MAX, ALWAYS, u32::MAX), Ok(2));
        assert_eq!(word.load(Relaxed), 5);
    });
}

#[test]
fn what_cannot_be_encoded_is_refused_and_changes_nothing() {
    let (event, word) = (Futex::<Private>::new(0), Futex::<Private>::new(6));
    for operand in [2049, 4095, -2049, 3 << 20, i32::MAX, i32::MIN + 1] {
        let answer = word.wake_op(Change::Add(operand), event.key(), 1, ALWAYS, 1);
        assert_eq!(answer, Err(WakeOpError::Operand(operand)));
    }
    for comparand in [2048, -2049, 1 << 20, i32::MIN] {
        let answer = word.wake_op(Change::Set(1), event.key(), 1, Condition::Less(comparand), 1);
        assert_eq!(answer, Err(WakeOpError::Comparand(comparand)));
    }
    for (count, own_count) in [(0, 1), (1, 0), (0, 0)] {
        let answer = word.wake_op(Change::Set(1), event.key(), count, ALWAYS, own_count);
        assert_eq!(answer, Err(WakeOpError::ZeroCount));
    }
    assert_eq!(word.load(Relaxed), 6);
}

#[test]
fn memory_that_is_gone_or_read_only_is_an_error() {
    let file = memory_file();
    let page = Mapping::of_file(&file, libc::PROT_READ);
    let (event, word) = (Futex::<Shared>::new(0), Futex::<Shared>::new(6));
    let answer = page.futex::<Shared>(0).wake_op(Change::Set(1), event.key(), 1, ALWAYS, 1);
    assert_eq!(answer, Err(WakeOpError::Inaccessible));
    let nowhere = Mapping::inaccessible();
    let gone = nowhere.futex::<Shared>(0).key();
    assert_eq!(word.wake_op(Change::Set(1), gone, 1, ALWAYS, 1), Err(WakeOpError::Inaccessible));
    assert_eq!(word.load(Relaxed), 6);
}

#[test]
fn errors_say_what_to_do() {
    for (error, advice) in [
        (WakeOpError::Operand(2049), "2049 is neither in -2048..=2047 nor a single bit"),
        (WakeOpError::Comparand(2048), "2048 is not in -2048..=2047"),
        (WakeOpError::ZeroCount, "above zero"),
        (WakeOpError::Inaccessible, "mapped"),
        (WakeOpError::PriorityInheriting, "unlock_pi"),
    ] {
        assert!(error.to_string().contains(advice), "{error}");
    }
}
