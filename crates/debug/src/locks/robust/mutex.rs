//! The methods of a checked robust mutex.

use super::{Robust, RobustGuard, acquisitions, repairs};
use crate::seen::access::Access::Exclusive;
use core::time::Duration;
use ulocks_core::time::Deadline;
use ulocks_shm::robust::RawRobust;
use ulocks_shm::robust::mutex::{self, LockError, Refused, RobustMutex};
use ulocks_shm::slots::Member;

type Guard<'a, T, L> = RobustGuard<mutex::RobustGuard<'a, T, L>>;

use mutex::RobustGuard as OfMutex;
repairs!(OfMutex, L: RawRobust);

impl<T: ?Sized, L: RawRobust> Robust<'_, RobustMutex<T, L>> {
    acquisitions! { RobustMutex, Guard<'b, T, L>, Exclusive: lock try_lock lock_until try_lock_for reset }
}
