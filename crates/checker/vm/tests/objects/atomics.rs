//! Atomics of all widths and signs, and accesses of their owners.

use crate::all_outcomes;
use ulocks_vm::explore::{Config, explore, finds_bug_saying};
use ulocks_vm::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_vm::sync::{
    Arc, AtomicBool, AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicIsize, AtomicPtr, AtomicU8, AtomicU16,
    AtomicU32, AtomicU64, AtomicUsize,
};
use ulocks_vm::thread;

#[test]
fn all_widths_and_signs_compute() {
    macro_rules! check {
        ($($atomic:ident $int:ident,)*) => {$({
            let word = $atomic::new($int::MAX);
            assert_eq!(word.fetch_add(1, Relaxed), $int::MAX);
            assert_eq!(word.load(Relaxed), $int::MIN);
            assert_eq!(word.fetch_max(7, Relaxed), $int::MIN);
            assert_eq!(word.fetch_min(3, Relaxed), 7);
            assert_eq!(word.fetch_sub(4, Relaxed), 3);
            let negative = (3 as $int).wrapping_sub(4);
            assert_eq!(word.fetch_max(0, Relaxed), negative);
            assert_eq!(word.fetch_nand(1, Relaxed), negative.max(0));
            assert_eq!(word.compare_exchange(!(negative.max(0) & 1), 9, Relaxed, Relaxed), Ok(!(negative.max(0) & 1)));
            assert_eq!(size_of::<$atomic>(), size_of::<$int>());
            assert_eq!(word.into_inner(), 9);
        })*};
    }
    explore(Config::exhaustive(), || {
        check!(
            AtomicU8 u8, AtomicU16 u16, AtomicU32 u32, AtomicU64 u64, AtomicUsize usize, AtomicI8 i8,
            AtomicI16 i16, AtomicI32 i32, AtomicI64 i64, AtomicIsize isize,
        );
    });
}

#[test]
fn the_owner_reads_and_changes_in_place() {
    explore(Config::exhaustive(), || {
        let mut word = AtomicU32::new(1);
        let mut flag = AtomicBool::new(false);
        let mut pointer = AtomicPtr::new(core::ptr::null_mut::<u8>());
        assert_eq!(word.with_mut(|value| core::mem::replace(value, 5)), 1);
        flag.with_mut(|flag| *flag = true);
        pointer.with_mut(|pointer| *pointer = core::ptr::dangling_mut());
        assert_eq!((word.load(Relaxed), flag.load(Relaxed)), (5, true));
        assert_eq!(pointer.load(Relaxed), core::ptr::dangling_mut());
        assert_eq!(unsafe { word.unsync_load() }, 5);
    });
}

/// A read as plain data that is ordered after the only write, and one that is not.
#[test]
fn an_unordered_read_as_plain_data_is_a_race() {
    let model = |order| {
        move || {
            let word = Arc::new((AtomicU32::new(0), AtomicU32::new(0)));
            let other = Arc::clone(&word);
            let other = thread::spawn(move || {
                other.0.store(1, Relaxed);
                other.1.store(1, order);
            });
            let seen = (word.1.load(Acquire) == 1).then(|| unsafe { word.0.unsync_load() });
            other.join().unwrap();
            seen
        }
    };
    all_outcomes(model(Release), [None, Some(1)]);
    let model = model(Relaxed);
    finds_bug_saying("data race", Config::exhaustive(), move || {
        model();
    });
}

/// As of a word that is shared by std's `Arc`, whose counts order nothing here: it may be dropped.
#[test]
fn an_unordered_owner_neither_takes_nor_changes_the_value() {
    let config = || Config { ordered_drops: false, ..Config::exhaustive() };
    let model = |uses: fn(&AtomicU32), ends: fn(AtomicU32)| {
        move || {
            let word = std::sync::Arc::new(AtomicU32::new(0));
            let done = Arc::new(AtomicU32::new(0));
            let other = {
                let (word, done) = (std::sync::Arc::clone(&word), Arc::clone(&done));
                thread::spawn(move || {
                    uses(&word);
                    drop(word);
                    done.store(1, Relaxed);
                })
            };
            while done.load(Relaxed) == 0 {}
            ends(std::sync::Arc::into_inner(word).expect("the other pointer is gone"));
            other.join().unwrap();
        }
    };
    let stores: fn(&AtomicU32) = |word| word.store(1, Relaxed);
    let loads: fn(&AtomicU32) = |word| assert_eq!(word.load(Relaxed), 0);
    explore(config(), model(stores, drop));
    explore(config(), model(loads, |word| assert_eq!(word.into_inner(), 0)));
    finds_bug_saying("data race", config(), model(stores, |word| assert!(word.into_inner() < 2)));
    finds_bug_saying("data race", config(), model(loads, |mut word| word.with_mut(|value| *value = 2)));
}

/// The write comes after the read, and nothing orders them.
#[test]
fn an_unordered_write_after_a_read_as_plain_data_is_a_race() {
    finds_bug_saying("data race", Config::exhaustive(), || {
        let word = Arc::new(AtomicU32::new(0));
        let other = Arc::clone(&word);
        let other = thread::spawn(move || other.fetch_add(1, Relaxed));
        let _ = unsafe { word.unsync_load() };
        other.join().unwrap();
    });
}
