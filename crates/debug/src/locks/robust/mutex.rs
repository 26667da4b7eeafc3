//! The methods of a checked robust mutex.

use super::{Robust, RobustGuard, acquisitions, repairs};
use crate::seen::access::Access::Exclusive;
use core::time::Duration;
use ulocks_core::time::Deadline;
use ulocks_shm::robust::RawRobust;
use ulocks_shm::{LockError, Member, Mutex, MutexGuard, Refused};

type Guard<'a, T, L> = RobustGuard<MutexGuard<'a, T, L>>;

repairs!(MutexGuard, L: RawRobust);

impl<T: ?Sized, L: RawRobust> Robust<'_, Mutex<T, L>> {
    acquisitions! { Mutex, Guard<'b, T, L>, Exclusive: lock try_lock lock_until try_lock_for reset }
}
