//! A lock that is none: data behind it is free to all.

use ulocks_core::futex::Local;
use ulocks_core::raw::{RawMutex, RawRwLock};
use ulocks_core::time::Deadline;

/// Locks nothing: every acquisition succeeds.
pub struct Open;

ulocks_core::initial!([] Open = Self);

// SAFETY: none; the test that uses it must say so.
unsafe impl RawMutex for Open {
    type Scope = Local;
    type Token = ();
    type Condvar = ulocks_core::condvar::Sequence<Self>;
    fn lock(&self) {}
    fn try_lock(&self) -> Option<()> {
        Some(())
    }
    fn lock_until(&self, _: Deadline) -> Option<()> {
        Some(())
    }
    unsafe fn unlock(&self, (): ()) {}
    fn is_locked(&self) -> bool {
        false
    }
}

// SAFETY: as above.
unsafe impl RawRwLock for Open {
    type Scope = Local;
    type ReadToken = ();
    type WriteToken = ();
    fn read(&self) {}
    fn try_read(&self) -> Option<()> {
        Some(())
    }
    fn read_until(&self, _: Deadline) -> Option<()> {
        Some(())
    }
    unsafe fn unlock_read(&self, (): ()) {}
    fn write(&self) {}
    fn try_write(&self) -> Option<()> {
        Some(())
    }
    fn write_until(&self, _: Deadline) -> Option<()> {
        Some(())
    }
    unsafe fn unlock_write(&self, (): ()) {}
    fn is_locked(&self) -> bool {
        false
    }
    fn is_write_locked(&self) -> bool {
        false
    }
}
