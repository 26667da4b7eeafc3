//! A bounded queue for any number of producers and consumers: a mutex around a ring, two condition
//! variables.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;
use ulocks::unfair::{BargingCondvar, BargingMutex, BargingMutexGuard};

/// A first-in first-out queue of at most `capacity` items.
///
/// Producers wait while it is full and consumers while it is empty, both with or without a time
/// limit. Once it is [closed](Self::close), nothing more goes in. Items that are in it still come
/// out.
///
/// # Fairness
/// Items come out in the order they went in. Threads are served in no particular order.
///
/// # Examples
/// ```
/// use ulocks_examples::BoundedQueue;
///
/// let queue = BoundedQueue::new(2);
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         for item in 0..10 {
///             queue.push(item).unwrap();
///         }
///         queue.close();
///     });
///     let mut received = Vec::new();
///     while let Some(item) = queue.pop() {
///         received.push(item);
///     }
///     assert!(received.into_iter().eq(0..10));
/// });
/// ```
pub struct BoundedQueue<T> {
    state: BargingMutex<State<T>>,
    /// Consumers wait here. Notified once for each item that comes.
    not_empty: BargingCondvar,
    /// Producers wait here. Notified once for each item that leaves.
    not_full: BargingCondvar,
    capacity: usize,
}

struct State<T> {
    items: VecDeque<T>,
    closed: bool,
}

/// Why an item did not go in. The error gives the item back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushError<T> {
    /// The queue is full, and the call does not wait longer.
    Full(T),
    /// The queue is closed.
    Closed(T),
}

/// Why no item came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PopError {
    /// The queue is empty, and the call does not wait longer.
    Empty,
    /// The queue is empty and closed: there will be no more items.
    Closed,
}

impl<T> BoundedQueue<T> {
    /// An empty queue for at most `capacity` items.
    ///
    /// # Panics
    /// If `capacity` is zero.
    pub fn new(capacity: usize) -> Self {
        assert!(capacity > 0, "a queue for no items: capacity must be at least 1");
        Self {
            state: BargingMutex::new(State { items: VecDeque::with_capacity(capacity), closed: false }),
            not_empty: BargingCondvar::new(),
            not_full: BargingCondvar::new(),
            capacity,
        }
    }

    /// Puts `item` at the end. Waits while the queue is full.
    ///
    /// # Errors
    /// [`PushError::Closed`] with the item.
    pub fn push(&self, item: T) -> Result<(), PushError<T>> {
        let mut state = self.state.lock();
        self.not_full.wait_while(&mut state, |state| self.must_wait_to_push(state));
        self.finish_push(state, item)
    }

    /// Puts `item` at the end. Waits while the queue is full, but no longer than `timeout`.
    ///
    /// # Errors
    /// [`PushError::Full`] or [`PushError::Closed`] with the item.
    pub fn push_timeout(&self, item: T, timeout: Duration) -> Result<(), PushError<T>> {
        let mut state = self.state.lock();
        self.not_full.wait_while_for(&mut state, |state| self.must_wait_to_push(state), timeout);
        self.finish_push(state, item)
    }

    /// Puts `item` at the end if the queue is not full now.
    ///
    /// # Errors
    /// [`PushError::Full`] or [`PushError::Closed`] with the item.
    pub fn try_push(&self, item: T) -> Result<(), PushError<T>> {
        self.finish_push(self.state.lock(), item)
    }

    /// Takes the first item. Waits while the queue is empty. `None` means that the queue is closed,
    /// and will stay empty.
    pub fn pop(&self) -> Option<T> {
        let mut state = self.state.lock();
        self.not_empty.wait_while(&mut state, |state| Self::must_wait_to_pop(state));
        self.finish_pop(state).ok()
    }

    /// Takes the first item. Waits while the queue is empty, but no longer than `timeout`.
    ///
    /// # Errors
    /// [`PopError::Empty`] or [`PopError::Closed`].
    pub fn pop_timeout(&self, timeout: Duration) -> Result<T, PopError> {
        let mut state = self.state.lock();
        self.not_empty.wait_while_for(&mut state, |state| Self::must_wait_to_pop(state), timeout);
        self.finish_pop(state)
    }

    /// Takes the first item if there is one now.
    ///
    /// # Errors
    /// [`PopError::Empty`] or [`PopError::Closed`].
    pub fn try_pop(&self) -> Result<T, PopError> {
        self.finish_pop(self.state.lock())
    }

    /// Closes the queue: nothing more goes in. Ends the waits of producers, and of consumers if the
    /// queue is empty.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.not_empty.notify_all();
        self.not_full.notify_all();
    }

    /// Whether the queue is closed. Items may be left in it.
    pub fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    /// How many items are in the queue at this moment.
    pub fn len(&self) -> usize {
        self.state.lock().items.len()
    }

    /// Whether no item is in the queue at this moment.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many items the queue can hold.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    fn must_wait_to_push(&self, state: &State<T>) -> bool {
        state.items.len() == self.capacity && !state.closed
    }

    fn must_wait_to_pop(state: &State<T>) -> bool {
        state.items.is_empty() && !state.closed
    }

    /// Notifies after the release, so that the woken thread finds the mutex free.
    fn finish_push(&self, mut state: BargingMutexGuard<'_, State<T>>, item: T) -> Result<(), PushError<T>> {
        if state.closed {
            return Err(PushError::Closed(item));
        }
        if state.items.len() == self.capacity {
            return Err(PushError::Full(item));
        }
        state.items.push_back(item);
        drop(state);
        self.not_empty.notify_one();
        Ok(())
    }

    fn finish_pop(&self, mut state: BargingMutexGuard<'_, State<T>>) -> Result<T, PopError> {
        let Some(item) = state.items.pop_front() else {
            return Err(if state.closed { PopError::Closed } else { PopError::Empty });
        };
        drop(state);
        self.not_full.notify_one();
        Ok(item)
    }
}

impl<T> fmt::Debug for BoundedQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("BoundedQueue");
        shown.field("capacity", &self.capacity);
        match self.state.try_lock() {
            Some(state) => shown.field("len", &state.items.len()).field("closed", &state.closed).finish(),
            None => shown.finish_non_exhaustive(),
        }
    }
}

impl<T> fmt::Display for PushError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "the queue is full",
            Self::Closed(_) => "the queue is closed",
        })
    }
}

impl<T: fmt::Debug> std::error::Error for PushError<T> {}

impl fmt::Display for PopError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "the queue is empty",
            Self::Closed => "the queue is empty and closed",
        })
    }
}

impl std::error::Error for PopError {}
