//! Histories of a reader-writer lock, on the virtual machine: there is an order of all its
//! operations, one at a time, that explains what each returned. It says nothing of memory, and sees
//! overlaps without any data to race on.

use super::rw::{Role, soon};
use crate::new_lock;
use crate::thread::{Arc, together};
use ulocks_core::model::linear::Recorder;
use ulocks_core::model::linear::specs::{self, RwLockCall};
use ulocks_core::raw::RawRwLock;

/// Threads play their roles `rounds` times. Attempts may fail in any state: a lock may turn readers
/// away for a writer that waits.
///
/// # Panics
/// If no order explains the history.
pub fn linearizable<L: RawRwLock + Send + Sync + 'static>(roles: &'static [Role], rounds: usize) {
    let lock = Arc::new(new_lock::<L>());
    let recorder = Recorder::new();
    let recorded = recorder.clone();
    together(roles.len(), move |me| {
        for _ in 0..rounds {
            once(&*lock, roles[me], &recorded);
        }
    });
    recorder.check(&specs::RwLock).unwrap_or_else(|error| panic!("{error}"));
}

fn once<L: RawRwLock>(lock: &L, role: Role, recorder: &Recorder<RwLockCall, bool>) {
    let (mut read, mut written) = (None, None);
    let call = match role {
        Role::Read => RwLockCall::Read,
        Role::Write => RwLockCall::Write,
        Role::TimedRead | Role::TryRead => RwLockCall::AttemptRead,
        Role::TimedWrite | Role::TryWrite => RwLockCall::AttemptWrite,
    };
    recorder.record(call, || {
        match role {
            Role::Read => read = Some(lock.read()),
            Role::TimedRead => read = lock.read_until(soon()),
            Role::TryRead => read = lock.try_read(),
            Role::Write => written = Some(lock.write()),
            Role::TimedWrite => written = lock.write_until(soon()),
            Role::TryWrite => written = lock.try_write(),
        }
        read.is_some() || written.is_some()
    });
    if let Some(token) = read {
        recorder.record(RwLockCall::ReadUnlock, || {
            // SAFETY: the token is from the acquisition above.
            unsafe { lock.unlock_read(token) };
            true
        });
    }
    if let Some(token) = written {
        recorder.record(RwLockCall::WriteUnlock, || {
            // SAFETY: the token is from the acquisition above.
            unsafe { lock.unlock_write(token) };
            true
        });
    }
}
