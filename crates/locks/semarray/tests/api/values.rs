//! All values are read at one moment, and no read shows a part of a set.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use ulocks_semarray::{Error, Op, SemArray};

#[test]
fn values_are_of_one_moment() {
    const TOTAL: u32 = 12;
    let array = SemArray::with_values([TOTAL, 0, 0, 0]);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for from in 0..3 {
            let (array, over) = (&array, &over);
            scope.spawn(move || {
                while !over.load(Relaxed) {
                    for step in 1..4 {
                        let to = (from + step) % 4;
                        _ = array.try_apply(&[Op::sub(from, 1), Op::add(to, 1)]);
                        _ = array.try_apply(&[Op::add(from, 1), Op::sub(to, 1)]);
                        _ = array.try_apply(&[Op::sub(to, 2), Op::add(from, 1), Op::add(3, 1)]);
                    }
                }
            });
        }
        for _ in 0..20_000 {
            let values = array.values();
            assert_eq!(values.iter().sum::<u32>(), TOTAL, "{values:?}");
        }
        over.store(true, Relaxed);
    });
}

/// No read shows what a set makes of a value before the set stops, or before it takes that back
/// itself.
#[test]
fn a_value_is_never_that_of_half_a_set() {
    let array = SemArray::with_values([1, 0]);
    let (over, tried) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Relaxed) {
                _ = array.try_apply(&[Op::sub(0, 1), Op::sub(1, 1)]).unwrap_err();
                array.apply(&[Op::sub(0, 1), Op::add(1, 1), Op::sub(1, 1), Op::add(0, 1)]).unwrap();
                tried.fetch_add(1, Relaxed);
            }
        });
        while tried.load(Relaxed) < 100_000 {
            let seen = (array.value(0), array.value(1), array.try_apply(&[Op::wait_zero(0)]));
            if seen != (Ok(1), Ok(0), Err(Error::WouldBlock)) {
                over.store(true, Relaxed);
                panic!("{seen:?}");
            }
        }
        over.store(true, Relaxed);
    });
}
