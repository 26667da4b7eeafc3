//! The methods of a checked robust reader-writer lock.

use super::{Robust, RobustGuard, acquisitions, repairs};
use crate::seen::access::Access::{Read, Write};
use core::time::Duration;
use ulocks_core::Policy;
use ulocks_core::futex::Global;
use ulocks_core::time::Deadline;
use ulocks_psrwlock::{Bulk, Class, Urgent};
use ulocks_shm::{LockError, Member, Refused, RwLock, RwLockReadGuard, RwLockWriteGuard};

type ReadGuard<'a, T, const N: usize, P> = RobustGuard<RwLockReadGuard<'a, T, N, P>>;
type WriteGuard<'a, T, const N: usize, P> = RobustGuard<RwLockWriteGuard<'a, T, N, P>>;

const BULK: crate::Access = Read(Bulk::RANK as u8);
const URGENT: crate::Access = Read(Urgent::RANK as u8);

repairs!(RwLockWriteGuard, [const N: usize], P: Policy<Scope = Global>);

impl<'a, T: ?Sized, const N: usize, P: Policy<Scope = Global>> WriteGuard<'a, T, N, P> {
    /// Lets the thread read from now on, and other readers with it. A dirty lock stays dirty.
    pub fn downgrade(self) -> ReadGuard<'a, T, N, P> {
        let Self { entry, guard } = self;
        RobustGuard { entry: entry.turned(BULK), guard: guard.downgrade() }
    }
}

impl<T: ?Sized, const N: usize, P: Policy<Scope = Global>> Robust<'_, RwLock<T, N, P>> {
    acquisitions! { RwLock, ReadGuard<'b, T, N, P>, BULK: read try_read read_until try_read_for }
    acquisitions! { RwLock, ReadGuard<'b, T, N, P>, URGENT:
    read_urgent try_read_urgent read_urgent_until }
    acquisitions! { RwLock, WriteGuard<'b, T, N, P>, Write:
    write try_write write_until try_write_for reset }
}
