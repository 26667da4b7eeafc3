//! The queue under loom: the code of `src/bounded_queue.rs` as it stands.
//!
//! `RUSTFLAGS="--cfg ulocks_loom" cargo test --profile model --features loom -p ulocks-examples --test loom`
#![cfg(all(ulocks_loom, feature = "loom"))]

use std::sync::Arc;
use std::time::Duration;

use loom::thread::{self, JoinHandle};
use ulocks::model::{self, Config};
use ulocks_examples::{BoundedQueue, PopError, seeded};

const LATER: Duration = Duration::from_secs(1);

fn spawn<T: Send + Sync + 'static, R: 'static>(
    shared: &Arc<T>,
    f: impl FnOnce(&T) -> R + 'static,
) -> JoinHandle<R> {
    let shared = Arc::clone(shared);
    thread::spawn(move || f(&shared))
}

/// Two producers, one consumer that then sees the end.
fn two_to_one<const BUG: u8>() {
    let queue = Arc::new(BoundedQueue::<u32, BUG>::with_bug(1));
    let producers = [1, 2].map(|item| spawn(&queue, move |queue| queue.push(item).unwrap()));
    let received = queue.pop().unwrap() + queue.pop().unwrap();
    assert_eq!(received, 3);
    for producer in producers {
        producer.join().unwrap();
    }
    queue.close();
    assert_eq!(queue.pop(), None);
}

/// One producer of two items, two consumers.
fn one_to_two<const BUG: u8>() {
    let queue = Arc::new(BoundedQueue::<u32, BUG>::with_bug(1));
    let consumers = [(); 2].map(|()| spawn(&queue, |queue| queue.pop().expect("the queue is open")));
    queue.push(1).unwrap();
    queue.push(2).unwrap();
    let received: u32 = consumers.into_iter().map(|consumer| consumer.join().unwrap()).sum();
    assert_eq!(received, 3);
}

/// Two consumers that wait for nothing, and an end.
fn close_on_two<const BUG: u8>() {
    let queue = Arc::new(BoundedQueue::<u32, BUG>::with_bug(1));
    let consumers = [(); 2].map(|()| spawn(&queue, |queue| queue.pop()));
    queue.close();
    for consumer in consumers {
        assert_eq!(consumer.join().unwrap(), None);
    }
}

#[test]
fn every_item_comes_out_once() {
    model::explore(Config::bounded(2), two_to_one::<{ seeded::NOTHING }>);
    model::explore(Config::bounded(2), one_to_two::<{ seeded::NOTHING }>);
}

#[test]
fn spurious_wake_ups_change_nothing() {
    model::explore(Config { spurious: 2, ..Config::bounded(1) }, two_to_one::<{ seeded::NOTHING }>);
}

#[test]
fn items_come_out_in_the_order_they_went_in() {
    model::explore(Config::bounded(3), || {
        let queue = Arc::new(BoundedQueue::new(2));
        let producer = spawn(&queue, |queue| (1..=3).for_each(|item| queue.push(item).unwrap()));
        assert_eq!([(); 3].map(|()| queue.pop()), [Some(1), Some(2), Some(3)]);
        producer.join().unwrap();
    });
}

#[test]
fn closing_ends_every_wait() {
    model::explore(Config::bounded(2), close_on_two::<{ seeded::NOTHING }>);
}

#[test]
fn a_timed_pop_gets_the_item_or_leaves_it() {
    model::explore(Config { timeouts: 2, ..Config::bounded(2) }, || {
        let queue = Arc::new(BoundedQueue::new(1));
        let producer = spawn(&queue, |queue| queue.push(7).unwrap());
        let popped = queue.pop_timeout(LATER);
        producer.join().unwrap();
        match popped {
            Ok(item) => assert_eq!((item, queue.try_pop()), (7, Err(PopError::Empty))),
            Err(error) => assert_eq!((error, queue.try_pop()), (PopError::Empty, Ok(7))),
        }
    });
}

#[test]
fn the_seeded_bugs_are_found() {
    let config = || Config::bounded(2);
    model::finds_bug_saying("deadlock", config(), two_to_one::<{ seeded::WRONG_SIDE }>);
    model::finds_bug_saying("deadlock", config(), close_on_two::<{ seeded::CLOSES_ONE }>);
    model::finds_bug_saying("the queue is open", config(), one_to_two::<{ seeded::LOOKS_ONCE }>);
    // A place becomes free and the other consumer is told, who sleeps again; the producer sleeps on.
    model::finds_bug_saying("deadlock", config(), one_to_two::<{ seeded::ONE_CONDVAR }>);
}
