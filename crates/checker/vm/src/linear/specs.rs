//! Specifications of the objects one meets most often.

use super::Specification;
use core::fmt::Debug;
use core::hash::Hash;
use core::marker::PhantomData;
use std::collections::VecDeque;

/// A value that is read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register<T>(
    /// The value at the start.
    pub T,
);

/// What is called on a [`Register`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterCall<T> {
    /// Returns the value.
    Read,
    /// Sets the value; returns `None`.
    Write(T),
}

impl<T: Clone + Eq + Hash + Debug> Specification for Register<T> {
    type State = T;
    type Call = RegisterCall<T>;
    type Return = Option<T>;

    fn start(&self) -> T {
        self.0.clone()
    }

    fn outcomes(&self, value: &T, call: &RegisterCall<T>) -> impl IntoIterator<Item = (T, Option<T>)> {
        Some(match call {
            RegisterCall::Read => (value.clone(), Some(value.clone())),
            RegisterCall::Write(new) => (new.clone(), None),
        })
    }
}

/// A mutual exclusion lock, free at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mutex;

/// What is called on a [`Mutex`]. Each returns whether it did what it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MutexCall {
    /// Waits until the mutex is free, and acquires it.
    Lock,
    /// Acquires the mutex if and only if it is free.
    TryLock,
    /// Acquires the mutex if it is free, or gives up, free or not: a wait with a deadline, or a
    /// `try_lock` that may fail for no reason.
    Attempt,
    /// Releases the mutex, which has to be held.
    Unlock,
}

impl Specification for Mutex {
    /// Whether it is held.
    type State = bool;
    type Call = MutexCall;
    type Return = bool;

    fn start(&self) -> bool {
        false
    }

    fn outcomes(&self, &held: &bool, call: &MutexCall) -> impl IntoIterator<Item = (bool, bool)> {
        let acquires = (!held).then_some((true, true));
        let (first, second) = match call {
            MutexCall::Lock => (acquires, None),
            MutexCall::TryLock => (acquires.or(Some((held, false))), None),
            MutexCall::Attempt => (acquires, Some((held, false))),
            MutexCall::Unlock => (held.then_some((false, true)), None),
        };
        first.into_iter().chain(second)
    }
}

/// A reader-writer lock, free at the start. Which thread comes first is left open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RwLock;

/// The holders of an [`RwLock`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Holders {
    /// So many readers; none if it is free.
    Readers(usize),
    /// A writer.
    Writer,
}

/// What is called on an [`RwLock`]. Each returns whether it did what it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RwLockCall {
    /// Waits until no writer holds the lock, and acquires it as a reader.
    Read,
    /// Acquires the lock as a reader if no writer holds it, or gives up, in any state: also a lock
    /// that prefers writers turns readers away.
    AttemptRead,
    /// A reader releases the lock.
    ReadUnlock,
    /// Waits until no thread holds the lock, and acquires it as a writer.
    Write,
    /// Acquires the lock as a writer if no thread holds it, or gives up, in any state.
    AttemptWrite,
    /// The writer releases the lock.
    WriteUnlock,
    /// The writer becomes a reader.
    Downgrade,
}

impl Specification for RwLock {
    type State = Holders;
    type Call = RwLockCall;
    type Return = bool;

    fn start(&self) -> Holders {
        Holders::Readers(0)
    }

    fn outcomes(&self, &holders: &Holders, call: &RwLockCall) -> impl IntoIterator<Item = (Holders, bool)> {
        use Holders::{Readers, Writer};
        let does = match (call, holders) {
            (RwLockCall::Read | RwLockCall::AttemptRead, Readers(count)) => Some(Readers(count + 1)),
            (RwLockCall::ReadUnlock, Readers(count)) if count > 0 => Some(Readers(count - 1)),
            (RwLockCall::Write | RwLockCall::AttemptWrite, Readers(0)) => Some(Writer),
            (RwLockCall::WriteUnlock, Writer) => Some(Readers(0)),
            (RwLockCall::Downgrade, Writer) => Some(Readers(1)),
            _ => None,
        };
        let attempt = matches!(call, RwLockCall::AttemptRead | RwLockCall::AttemptWrite);
        let gives_up = attempt.then_some((holders, false));
        does.map(|holders| (holders, true)).into_iter().chain(gives_up)
    }
}

/// A counting semaphore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Semaphore(
    /// How many permits there are at the start.
    pub u64,
);

/// What is called on a [`Semaphore`]. Each returns whether it did what it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SemaphoreCall {
    /// Waits until there are so many permits, and takes them all at once.
    Acquire(u64),
    /// Takes so many permits at once if and only if there are as many.
    TryAcquire(u64),
    /// Takes so many permits at once if there are as many, or gives up, in any state.
    Attempt(u64),
    /// Gives back so many permits.
    Release(u64),
}

impl Specification for Semaphore {
    /// How many permits there are.
    type State = u64;
    type Call = SemaphoreCall;
    type Return = bool;

    fn start(&self) -> u64 {
        self.0
    }

    fn outcomes(&self, &permits: &u64, call: &SemaphoreCall) -> impl IntoIterator<Item = (u64, bool)> {
        let take = |count: u64| permits.checked_sub(count).map(|left| (left, true));
        let give_up = Some((permits, false));
        let (first, second) = match *call {
            SemaphoreCall::Acquire(count) => (take(count), None),
            SemaphoreCall::TryAcquire(count) => (take(count).or(give_up), None),
            SemaphoreCall::Attempt(count) => (take(count), give_up),
            SemaphoreCall::Release(count) => (permits.checked_add(count).map(|all| (all, true)), None),
        };
        first.into_iter().chain(second)
    }
}

/// A first-in, first-out queue, empty at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue<T>(PhantomData<T>);

impl<T> Queue<T> {
    /// The specification.
    #[must_use]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// What is called on a [`Queue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueCall<T> {
    /// Appends a value; returns `None`.
    Push(T),
    /// Removes and returns the first value; `None` if the queue is empty.
    Pop,
    /// Waits until the queue is not empty, and removes and returns the first value.
    Take,
}

impl<T: Clone + Eq + Hash + Debug> Specification for Queue<T> {
    type State = VecDeque<T>;
    type Call = QueueCall<T>;
    type Return = Option<T>;

    fn start(&self) -> VecDeque<T> {
        VecDeque::new()
    }

    fn outcomes(
        &self,
        queue: &VecDeque<T>,
        call: &QueueCall<T>,
    ) -> impl IntoIterator<Item = (VecDeque<T>, Option<T>)> {
        let mut queue = queue.clone();
        let returned = match call {
            QueueCall::Push(value) => {
                queue.push_back(value.clone());
                None
            }
            QueueCall::Pop => queue.pop_front(),
            QueueCall::Take => Some(queue.pop_front()?),
        };
        Some((queue, returned))
    }
}
