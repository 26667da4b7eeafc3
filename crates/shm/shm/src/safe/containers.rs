//! A queue and a map in a region: words under a mutex of their own, and data behind it.

use super::{SharedSafe, named};
use crate::map::HashMap;
use crate::queue::Queue;
use crate::robust::condvar::Condvar;
use crate::robust::mutex::Mutex;
use crate::robust::mutex::raw::RawMutex;
use core::hash::Hash;
use ulocks_core::Shared;
use ulocks_core::spin::Spin;

/// The first field of both: so each is shown as its mutex, with its holder.
type First<W> = Mutex<(), RawMutex<Shared<W>>>;

// SAFETY: clause by clause:
// - Each value of the counts is handled, and each bit pattern of a message is one, by its promise.
// - All zero is an empty queue: both counts are equal, its locks are unlocked.
// - The counts are of messages, and no addresses.
// - It is `repr(C)`, without `usize`, and without `Drop`: a message is `Copy`.
// - It changes through atomics, or under its mutex.
// - The hash has the layouts of a message and of the locks, where they lie, and the number of the
//   protocol.
// - A message is `Copy`, so it has no lock; the locks of the queue are reset.
unsafe impl<T: SharedSafe + Copy + Send, W: Spin, const N: usize> SharedSafe for Queue<T, N, Shared<W>> {
    const LAYOUT: u64 = {
        let message = [T::LAYOUT, size_of::<T>() as u64, align_of::<T>() as u64, N as u64];
        let locks = [<First<W>>::LAYOUT, <Condvar<Shared<W>>>::LAYOUT];
        let parts = [super::layout(&message), super::layout(&locks), size_of::<Self>() as u64];
        named("shm::Queue 1", &parts)
    };
    const SHOWN_AS: u32 = <First<W>>::SHOWN_AS;

    unsafe fn reset_locks(this: *mut Self) {
        // SAFETY: the caller's promise.
        unsafe { Self::reset_locks_of(this) };
    }
}

// SAFETY: clause by clause:
// - Each value of the words is handled, and each bit pattern of a key and of a value is one, by
//   their promises.
// - All zero is a map without keys: no entry has the stamp 1, and the mutex is unlocked.
// - The words are numbers of entries in the map, and no addresses. The hash of a key has no seed.
// - It is `repr(C)`, without `usize`, and without `Drop`: keys and values are `Copy`.
// - It changes through atomics, or under its mutex.
// - The hash has the layouts of a key, a value and the mutex, where they lie, and the number of the
//   protocol.
// - Keys and values are `Copy`, so they have no locks; the mutex of the map is reset.
unsafe impl<K, V, W: Spin, const N: usize> SharedSafe for HashMap<K, V, N, Shared<W>>
where
    K: SharedSafe + Copy + Send + Eq + Hash,
    V: SharedSafe + Copy + Send,
{
    const LAYOUT: u64 = {
        let key = [K::LAYOUT, size_of::<K>() as u64, align_of::<K>() as u64];
        let value = [V::LAYOUT, size_of::<V>() as u64, align_of::<V>() as u64];
        let parts = [super::layout(&key), super::layout(&value), N as u64, size_of::<Self>() as u64];
        named("shm::HashMap 1", &[<First<W>>::LAYOUT, super::layout(&parts)])
    };
    const SHOWN_AS: u32 = <First<W>>::SHOWN_AS;

    unsafe fn reset_locks(this: *mut Self) {
        // SAFETY: the caller's promise.
        unsafe { Self::reset_lock_of(this) };
    }
}
