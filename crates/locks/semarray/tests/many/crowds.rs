//! Crowds of threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use ulocks_semarray::{Builder, Fairness, Op, SemArray, Waiters};
use ulocks_testkit::crowd::{self, TEN_THOUSAND};

/// Sleepers of a crowd that have some hundred semaphores: four bulks serve them.
const CROWD: usize = 2_000;
const BULK: usize = 500;

/// How many sleep at the semaphores before `end`. Allocates nothing.
fn sleeping(array: &SemArray, end: usize) -> usize {
    (0..end)
        .map(|index| array.waiters(index).unwrap())
        .map(|Waiters { increase, zero }| increase + zero)
        .sum()
}

#[test]
fn ten_thousand_wait_for_one_semaphore_and_one_addition_serves_them() {
    let _alone = crate::alone();
    for fairness in [Fairness::Barging, Fairness::Strict { after: std::time::Duration::from_secs(1_000) }] {
        let array: Arc<SemArray> = Arc::new(Builder::with_values([0]).fairness(fairness).build().unwrap());
        let pass = {
            let array = Arc::clone(&array);
            move || array.apply(&[Op::sub(0, 1)]).unwrap()
        };
        let crowd = crowd::wait(TEN_THOUSAND, pass, || {
            // As many as the machine permits.
            let all = sleeping(&array, 1);
            array.apply(&[Op::add(0, 1)]).unwrap();
            assert_eq!(sleeping(&array, 1), all - 1);
            array.apply(&[Op::add(0, all as u32)]).unwrap();
            assert_eq!(sleeping(&array, 1), 0, "one addition serves all");
        });
        crowd.check();
        assert_eq!(array.values(), [1]);
    }
}

#[test]
fn a_bulk_serves_the_oldest_of_each_semaphore() {
    let _alone = crate::alone();
    // Simple sets first, then sets that need a second semaphore.
    for complex in [false, true] {
        let array = Arc::new(SemArray::new(BULK + 1));
        array.set(BULK, 1).unwrap();
        let numbers = AtomicUsize::new(0);
        let pass = {
            let array = Arc::clone(&array);
            move || {
                let index = numbers.fetch_add(1, Relaxed) % BULK;
                let set = [Op::sub(index, 1), Op::sub(BULK, 1), Op::add(BULK, 1)];
                array.apply(if complex { &set } else { &set[..1] }).unwrap();
            }
        };
        let bulk: Vec<_> = (0..BULK).map(|index| Op::add(index, 1)).collect();
        let crowd = crowd::wait(CROWD, pass, || {
            for served in 1..=CROWD / BULK {
                // The last one in the inverted order.
                let mut bulk = bulk.iter().copied();
                let mut ops = [Op::add(0, 0); BULK];
                ops.iter_mut()
                    .for_each(|op| *op = if served == 4 { bulk.next_back() } else { bulk.next() }.unwrap());
                array.apply(&ops).unwrap();
                assert_eq!(sleeping(&array, BULK + 1), CROWD - served * BULK);
            }
        });
        assert_eq!((crowd.waited, crowd.allocations), (CROWD, if complex { 4 } else { 0 }), "{crowd:?}");
        assert!(array.values()[..BULK].iter().all(|value| *value == 0));
    }
}

/// All sets wait behind one semaphore, and each change of it concerns all.
#[test]
fn thousands_share_the_beginning_of_their_sets() {
    let _alone = crate::alone();
    let array = Arc::new(SemArray::new(BULK + 1));
    array.set(BULK, CROWD as u32).unwrap();
    let numbers = AtomicUsize::new(0);
    let pass = {
        let array = Arc::clone(&array);
        move || {
            let index = numbers.fetch_add(1, Relaxed) % BULK;
            array.apply(&[Op::sub(BULK, 1), Op::sub(index, 1)]).unwrap();
        }
    };
    let crowd = crowd::wait(CROWD, pass, || {
        // All of them count there now, and not where they did.
        array.set(BULK, 0).unwrap();
        let Waiters { increase, .. } = array.waiters(BULK).unwrap();
        assert_eq!((increase, sleeping(&array, BULK)), (CROWD, 0));
        array.set(BULK, CROWD as u32).unwrap();
        assert_eq!(sleeping(&array, BULK), CROWD);
        for index in 0..BULK {
            array.apply(&[Op::add(index, 4)]).unwrap();
            assert_eq!(sleeping(&array, BULK + 1), CROWD - 4 * (index + 1));
        }
    });
    crowd.check();
    assert_eq!(crowd.waited, CROWD, "this machine permits too few threads for the test");
    assert_eq!(array.values(), [0; BULK + 1]);
}
