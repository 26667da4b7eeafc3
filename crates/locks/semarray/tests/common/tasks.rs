//! Clients of the array whose waiters are tasks: each is the body of one execution of a model.

use core::time::Duration;
use std::sync::Arc;
use ulocks_core::time::Deadline;
use ulocks_semarray::{Builder, Error, Fairness, Op, SemArray, Set};
use ulocks_testkit::tasks::{block_on, block_on_until};
use ulocks_testkit::thread::{JoinHandle, with};

fn soon() -> Deadline {
    Deadline::after(Duration::from_millis(1))
}

/// A set of one of the first semaphore, or of one of each of two.
fn set(pair: bool) -> Set {
    if pair { Set::new().sub(0, 1).sub(1, 1) } else { Set::new().sub(0, 1) }
}

/// A task that waits for the set, and keeps it for good. With `polls` it gives up when its time is
/// up, after so many polls without a wake-up.
fn task(array: &Arc<SemArray>, pair: bool, polls: Option<u32>) -> JoinHandle<bool> {
    with(array, move |array| {
        let acquire = array.acquire_async(set(pair));
        let permit = match polls {
            Some(polls) => block_on_until(acquire, Some(soon()), polls),
            None => Some(block_on(acquire)),
        };
        permit.map(|permit| permit.expect("it is open").forget()).is_some()
    })
}

/// Tasks of both kinds, and threads, wait for what is posted one by one: each is served.
pub fn all_are_served(fairness: Fairness, singles: usize, pairs: usize, threads: usize) {
    let array: Arc<SemArray> = Arc::new(Builder::new(2).fairness(fairness).build().expect("all are zero"));
    let waiting: Vec<_> = (0..singles + pairs).map(|me| task(&array, me >= singles, None)).collect();
    let others: Vec<_> = (0..threads)
        .map(|me| with(&array, move |array| array.apply(&set(me % 2 == 1)).expect("it is open")))
        .collect();
    let ones = singles + pairs + threads;
    for nth in 0..ones {
        array.apply(&[Op::add(0, 1)]).expect("there is room");
        if nth < pairs + threads / 2 {
            array.apply(&[Op::add(1, 1)]).expect("there is room");
        }
    }
    assert!(waiting.into_iter().all(|task| task.join().unwrap()));
    others.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(array.values(), [0, 0]);
}

/// Of tasks that may give up, and posts: what none of them has got is there.
pub fn what_is_dropped_is_given_back(singles: usize, pairs: usize, posts: usize, polls: u32) {
    let array = Arc::new(SemArray::new(2));
    let tasks: Vec<_> = (0..singles + pairs).map(|me| task(&array, me >= singles, Some(polls))).collect();
    for _ in 0..posts {
        array.apply(&[Op::add(0, 1), Op::add(1, 1)]).expect("there is room");
    }
    let had: Vec<_> = tasks.into_iter().map(|task| task.join().unwrap()).collect();
    let count = |of: &[bool]| of.iter().filter(|&&had| had).count();
    let (one, two) = (count(&had[..singles]), count(&had[singles..]));
    assert_eq!(array.values(), [(posts - one - two) as u32, (posts - two) as u32]);
}

/// A task that gives up lets those pass that stop behind its set.
pub fn who_gives_up_lets_others_pass() {
    let array = Arc::new(SemArray::with_values([1, 0]));
    let pair = task(&array, true, Some(1));
    let single = task(&array, false, None);
    assert!(single.join().unwrap());
    assert!(!pair.join().unwrap(), "more was had than there is");
    assert_eq!(array.values(), [0, 0]);
}

/// A close ends the waits of tasks too.
pub fn all_leave(tasks: usize) {
    let array = Arc::new(SemArray::new(2));
    let waiting: Vec<_> = (0..tasks)
        .map(|me| with(&array, move |array| block_on(array.acquire_async(set(me % 2 == 1))).map(drop)))
        .collect();
    array.close();
    for task in waiting {
        assert_eq!(task.join().unwrap(), Err(Error::Closed));
    }
}

/// A thread asks for more while the aged set of a task waits for what it holds.
pub fn holds_and_waits() {
    let at_once = Builder::with_values([2]).fairness(Fairness::Strict { after: Duration::ZERO });
    let array: Arc<SemArray> = Arc::new(at_once.build().expect("the values are small"));
    let whole = with(&array, |array| drop(block_on(array.acquire_async(Op::sub(0, 2))).expect("it is open")));
    for _ in 0..2 {
        array.apply(&[Op::sub(0, 1)]).expect("it is open");
    }
    array.apply(&[Op::add(0, 2)]).expect("there is room");
    whole.join().unwrap();
    assert_eq!(array.values(), [2]);
}
