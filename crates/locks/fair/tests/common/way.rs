//! How the clients of a semaphore wait: as threads, or as tasks.

use core::marker::PhantomData;
use ulocks_core::Private;
use ulocks_core::meter::Meter;
use ulocks_core::policy::{InOneProcess, Policy};
use ulocks_core::spin::Spin;
use ulocks_core::time::Deadline;
use ulocks_fair::{Closed, RawSemaphore};
use ulocks_testkit::tasks::{block_on, block_on_until};

/// A policy that says how its clients wait, too.
pub trait Way: InOneProcess + Sized {
    fn acquire(semaphore: &RawSemaphore<Self>, count: u32);
    fn acquire_until(semaphore: &RawSemaphore<Self>, count: u32, deadline: Deadline) -> bool;
    fn acquire_unless_closed(semaphore: &RawSemaphore<Self>, count: u32) -> Result<(), Closed>;
}

impl<W: Spin, M: Meter> Way for Private<W, M> {
    fn acquire(semaphore: &RawSemaphore<Self>, count: u32) {
        semaphore.acquire(count);
    }

    fn acquire_until(semaphore: &RawSemaphore<Self>, count: u32, deadline: Deadline) -> bool {
        semaphore.acquire_until(count, deadline)
    }

    fn acquire_unless_closed(semaphore: &RawSemaphore<Self>, count: u32) -> Result<(), Closed> {
        semaphore.acquire_unless_closed(count)
    }
}

/// `P`, with waiters that are tasks, which poll `POLLS` times before they wait; or, if not `ALL`,
/// those that want one permit.
pub struct ByTasks<P, const ALL: bool = true, const POLLS: u32 = 1>(PhantomData<P>);

impl<P: Policy, const ALL: bool, const POLLS: u32> Policy for ByTasks<P, ALL, POLLS> {
    type Scope = P::Scope;
    type Spin = P::Spin;
    type Meter = P::Meter;
}

impl<P: InOneProcess, const ALL: bool, const POLLS: u32> InOneProcess for ByTasks<P, ALL, POLLS> {}

impl<P: InOneProcess, const ALL: bool, const POLLS: u32> Way for ByTasks<P, ALL, POLLS> {
    fn acquire(semaphore: &RawSemaphore<Self>, count: u32) {
        if ALL || count == 1 {
            block_on(semaphore.acquire_async(count)).expect("nobody closes it");
        } else {
            semaphore.acquire(count);
        }
    }

    fn acquire_until(semaphore: &RawSemaphore<Self>, count: u32, deadline: Deadline) -> bool {
        if ALL || count == 1 {
            block_on_until(semaphore.acquire_async(count), Some(deadline), POLLS) == Some(Ok(()))
        } else {
            semaphore.acquire_until(count, deadline)
        }
    }

    fn acquire_unless_closed(semaphore: &RawSemaphore<Self>, count: u32) -> Result<(), Closed> {
        if ALL || count == 1 {
            block_on_until(semaphore.acquire_async(count), None, POLLS).expect("there is no deadline")
        } else {
            semaphore.acquire_unless_closed(count)
        }
    }
}
