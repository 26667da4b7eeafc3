//! Thousands of semaphores: as many as an array of System V may have.

use std::sync::Arc;
use std::time::Duration;
use ulocks_semarray::{Error, Op, SemArray};
use ulocks_testkit::crowd;

const MANY: usize = 32_000;

#[test]
fn an_array_of_thousands_of_semaphores() {
    let _alone = crate::alone();
    let array = SemArray::new(MANY);
    for first in (0..MANY).step_by(500) {
        let set: Vec<_> = (first..first + 500).map(|index| Op::add(index, 2)).collect();
        array.apply(&set).unwrap();
    }
    assert!(array.values().iter().all(|value| *value == 2));
    // From end to end, in no order. The set stops at its last operation.
    let mut set: Vec<_> = (0..499).map(|nth| Op::sub(nth * 7_919 % MANY, 1)).collect();
    set.push(Op::sub(MANY - 1, 3));
    assert_eq!(array.try_apply(&set), Err(Error::WouldBlock));
    assert_eq!(array.apply_for(&set, Duration::from_millis(1)), Err(Error::TimedOut));
    assert!(array.values().iter().all(|value| *value == 2));
    array.set(MANY - 1, 3).unwrap();
    array.apply(&set).unwrap();
    assert_eq!(array.values().iter().sum::<u32>() as usize, 2 * MANY + 1 - 499 - 3);
    array.set_all(&vec![1; MANY]).unwrap();
    drop(array.acquire(&set[..499]).unwrap());
    assert_eq!(array.values(), vec![1; MANY]);
    array.close();
    assert_eq!(array.apply(&set), Err(Error::Closed));
}

/// A few sets wait here and there, and all values are set at once.
#[test]
fn all_values_at_once_serve_all_sleepers() {
    let _alone = crate::alone();
    const CROWD: usize = 320;
    let array = Arc::new(SemArray::new(MANY));
    let numbers = std::sync::atomic::AtomicUsize::new(0);
    let pass = {
        let array = Arc::clone(&array);
        move || {
            let number = numbers.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let (one, other) = (number * 100, MANY - 1 - number * 100);
            let result = match number % 3 {
                0 => array.apply(&[Op::sub(one, 1)]),
                1 => array.apply(&[Op::sub(other, 1), Op::sub(one, 1)]),
                _ => array.apply(&[Op::add(one, 1), Op::sub(other, 1)]),
            };
            result.unwrap();
        }
    };
    let values = vec![1; MANY];
    let crowd = crowd::wait(CROWD, pass, || array.set_all(&values).unwrap());
    assert_eq!(crowd.waited, CROWD);
    let left: u32 = array.values().iter().sum();
    let taken: usize = (0..CROWD).map(|number| [1, 2, 0][number % 3]).sum();
    assert_eq!(left as usize, MANY - taken);
}
