//! The queue on the machine.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use std::thread;
use std::time::{Duration, Instant};
use ulocks_examples::{BoundedQueue, PopError, PushError};
use ulocks_testkit as _;

const SHORT: Duration = Duration::from_millis(5);

#[test]
fn many_to_many_lose_and_double_nothing() {
    const THREADS: u64 = 4;
    const ITEMS: u64 = 2_000;
    let queue = BoundedQueue::new(3);
    let received: u64 = thread::scope(|scope| {
        let consumers: Vec<_> =
            (0..THREADS).map(|_| scope.spawn(|| std::iter::from_fn(|| queue.pop()).sum::<u64>())).collect();
        thread::scope(|scope| {
            for producer in 0..THREADS {
                let queue = &queue;
                scope.spawn(move || {
                    (producer * ITEMS..(producer + 1) * ITEMS).for_each(|item| queue.push(item).unwrap())
                });
            }
        });
        queue.close();
        consumers.into_iter().map(|consumer| consumer.join().unwrap()).sum()
    });
    assert_eq!(received, (0..THREADS * ITEMS).sum::<u64>());
}

#[test]
fn a_full_and_an_empty_queue_say_so() {
    let queue = BoundedQueue::new(1);
    assert_eq!(queue.try_pop(), Err(PopError::Empty));
    let start = Instant::now();
    assert_eq!(queue.pop_timeout(SHORT), Err(PopError::Empty));
    assert!(start.elapsed() >= SHORT);
    queue.try_push('a').unwrap();
    assert_eq!(queue.try_push('b'), Err(PushError::Full('b')));
    assert_eq!(queue.push_timeout('b', SHORT), Err(PushError::Full('b')));
    assert_eq!((queue.len(), queue.capacity(), queue.is_empty()), (1, 1, false));
    assert_eq!(format!("{queue:?}"), "BoundedQueue { capacity: 1, len: 1, closed: false }");
}

#[test]
fn a_closed_queue_gives_what_it_has_and_takes_nothing() {
    let queue = BoundedQueue::new(2);
    queue.push(1).unwrap();
    queue.close();
    assert!(queue.is_closed());
    assert_eq!(queue.push(2), Err(PushError::Closed(2)));
    assert_eq!(queue.pop(), Some(1));
    assert_eq!(queue.pop(), None);
    assert_eq!(queue.try_pop(), Err(PopError::Closed));
}

#[test]
#[should_panic = "capacity must be at least 1"]
fn a_queue_for_nothing_is_refused() {
    BoundedQueue::<u8>::new(0);
}
