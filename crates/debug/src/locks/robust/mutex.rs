//! The methods of a checked robust mutex.

use super::{Robust, RobustGuard, acquisitions, repairs};
use crate::locks::listed::Listed;
use crate::rules::faults;
use crate::seen::access::Access::Exclusive;
use crate::seen::asked::Asked;
use crate::seen::thread::Record;
use core::time::Duration;
use ulocks_core::Policy;
use ulocks_core::futex::Global;
use ulocks_core::time::Deadline;
use ulocks_shm::robust::RawRobust;
use ulocks_shm::{Condvar, LockError, Member, Mutex, MutexGuard, Refused, WaitResult};

type Guard<'a, T, L> = RobustGuard<MutexGuard<'a, T, L>>;

repairs!(MutexGuard, L: RawRobust);

impl<T: ?Sized, L: RawRobust> Robust<'_, Mutex<T, L>> {
    acquisitions! { Mutex, Guard<'b, T, L>, Exclusive: lock try_lock lock_until try_lock_for reset }
}

/// The waits of a [`Condvar`] of the region. The thread does not hold the mutex meanwhile.
impl<T: ?Sized, L: RawRobust> Guard<'_, T, L> {
    /// As [`Condvar::wait`], with this guard.
    ///
    /// # Errors
    /// As [`Condvar::wait`].
    pub fn wait<P: Policy<Scope = Global>>(&mut self, condvar: &Condvar<P>) -> WaitResult {
        self.released(|guard| condvar.wait(guard))
    }

    /// As [`Condvar::wait_until`], with this guard.
    ///
    /// # Errors
    /// As [`Condvar::wait_until`].
    pub fn wait_until<P: Policy<Scope = Global>>(
        &mut self,
        condvar: &Condvar<P>,
        deadline: Deadline,
    ) -> WaitResult<bool> {
        self.released(|guard| condvar.wait_until(guard, deadline))
    }

    /// As [`Condvar::wait_while`], with this guard.
    ///
    /// # Errors
    /// As [`Condvar::wait_while`].
    pub fn wait_while<P: Policy<Scope = Global>>(
        &mut self,
        condvar: &Condvar<P>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> WaitResult {
        while condition(&mut self.guard) {
            self.wait(condvar)?;
        }
        Ok(())
    }

    /// Calls `wait`, which releases the mutex and mostly acquires it again.
    fn released<R>(
        &mut self,
        wait: impl FnOnce(&mut MutexGuard<'_, T, L>) -> WaitResult<R>,
    ) -> WaitResult<R> {
        let held = self.entry.take();
        let again = Again { guard: self, held };
        if let Some((me, asked)) = &again.held
            && me.holds_any()
        {
            faults::wait(me, asked);
        }
        wait(&mut again.guard.guard)
    }
}

/// Lists the mutex again when dropped, also by a panic, if the guard has it then.
struct Again<'a, 'b, T: ?Sized, L: RawRobust> {
    guard: &'a mut Guard<'b, T, L>,
    held: Option<(&'static Record, Asked)>,
}

impl<T: ?Sized, L: RawRobust> Drop for Again<'_, '_, T, L> {
    fn drop(&mut self) {
        if self.guard.guard.has_mutex() {
            self.guard.entry = Listed::new(self.held.as_ref().map(|(me, asked)| (*me, asked)));
        }
    }
}
