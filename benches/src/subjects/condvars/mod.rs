//! Condition variables under test, each with its mutex: the family's, the peers', and one for
//! mutexes that have none.

mod peers;
mod placed;
mod registry;

pub use registry::{Entry, Visitor, all, find, visit};

use anyhow::Result;
use std::ops::DerefMut;
use std::time::Duration;

/// What every condition variable is compared with.
pub const PEERS: [&str; 2] = ["std", "parking_lot"];

/// A kind of mutex and a kind of condition variable that work together.
///
/// Guards go in and out of a wait by value: std and the PI mutex want it so, and the others do not
/// mind.
pub trait Monitor: 'static {
    /// The mutex over a value.
    type Mutex<T: Send + 'static>: Send + Sync + 'static;
    /// What holds the mutex.
    type Guard<'a, T: Send + 'static>: DerefMut<Target = T>;
    /// The condition variable.
    type Condvar: Send + Sync + 'static;

    /// A mutex that nobody holds.
    fn mutex<T: Send + 'static>(value: T) -> Result<Self::Mutex<T>>;

    /// A condition variable that nobody waits on.
    fn condvar() -> Result<Self::Condvar>;

    /// Acquires the mutex.
    fn lock<T: Send + 'static>(mutex: &Self::Mutex<T>) -> Self::Guard<'_, T>;

    /// Releases the mutex, sleeps until notified, and holds the mutex again.
    fn wait<'a, T: Send + 'static>(condvar: &Self::Condvar, guard: Self::Guard<'a, T>) -> Self::Guard<'a, T>;

    /// The same for a limited time; says whether the time ran out.
    fn wait_for<'a, T: Send + 'static>(
        condvar: &Self::Condvar,
        guard: Self::Guard<'a, T>,
        timeout: Duration,
    ) -> (Self::Guard<'a, T>, bool);

    /// Notifies one thread that waits with this mutex.
    fn notify_one<T: Send + 'static>(condvar: &Self::Condvar, mutex: &Self::Mutex<T>);

    /// Notifies all threads that wait with this mutex.
    fn notify_all<T: Send + 'static>(condvar: &Self::Condvar, mutex: &Self::Mutex<T>);
}
