//! What threads do with the queue in a model.

use super::spawn;
use std::sync::Arc;
use std::time::Duration;
use ulocks_examples::{BoundedQueue, PopError};

const LATER: Duration = Duration::from_secs(1);

/// Two producers, one consumer that then sees the end.
pub fn two_to_one() {
    let queue = Arc::new(BoundedQueue::<u32>::new(1));
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
pub fn one_to_two() {
    let queue = Arc::new(BoundedQueue::<u32>::new(1));
    let consumers = [(); 2].map(|()| spawn(&queue, |queue| queue.pop().expect("the queue is open")));
    queue.push(1).unwrap();
    queue.push(2).unwrap();
    let received: u32 = consumers.into_iter().map(|consumer| consumer.join().unwrap()).sum();
    assert_eq!(received, 3);
}

/// Two consumers that wait for nothing, and an end.
pub fn close_on_two() {
    let queue = Arc::new(BoundedQueue::<u32>::new(1));
    let consumers = [(); 2].map(|()| spawn(&queue, |queue| queue.pop()));
    queue.close();
    for consumer in consumers {
        assert_eq!(consumer.join().unwrap(), None);
    }
}

/// Items come out in the order they went in.
pub fn in_order() {
    let queue = Arc::new(BoundedQueue::new(2));
    let producer = spawn(&queue, |queue| (1..=3).for_each(|item| queue.push(item).unwrap()));
    assert_eq!([(); 3].map(|()| queue.pop()), [Some(1), Some(2), Some(3)]);
    producer.join().unwrap();
}

/// A pop that gives up leaves the item where it is.
pub fn timed_pop() {
    let queue = Arc::new(BoundedQueue::new(1));
    let producer = spawn(&queue, |queue| queue.push(7).unwrap());
    let popped = queue.pop_timeout(LATER);
    producer.join().unwrap();
    match popped {
        Ok(item) => assert_eq!((item, queue.try_pop()), (7, Err(PopError::Empty))),
        Err(error) => assert_eq!((error, queue.try_pop()), (PopError::Empty, Ok(7))),
    }
}
