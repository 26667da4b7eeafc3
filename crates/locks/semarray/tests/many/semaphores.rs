//! Thousands of semaphores: as many as an array of System V may have.

use std::time::Duration;
use ulocks_semarray::{Error, Op, SemArray};

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
