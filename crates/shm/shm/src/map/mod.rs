//! [`HashMap`]: keys and values between processes, of which any may be killed.

mod hash;
mod table;

use crate::robust::mutex::raw::RawMutex;
use crate::robust::mutex::{LockError, Mutex, MutexGuard, Refused};
use crate::slots::Member;
use core::fmt;
use core::hash::Hash;
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_core::{Policy, Shared, futex};

use hash::hash_of;
use table::Table;

/// A map of up to `CAPACITY` keys between processes, of which any may be killed: a change is there
/// whole or not at all. 32 bytes for each key, beside the key and the value.
///
/// Any number of threads use it. Each takes part in the region in which the map lies
/// (`Region::with_member`), and passes its [`Member`]. Keys and values are copied in and out.
///
/// # Keys
/// Two keys are one if they are equal. [`Hash`] must give equal keys the same bytes in all programs
/// that share the map. Build them from the same type with the same compiler, and let it depend on
/// no address. A program with other bytes may use a file when no other one does: the first call
/// finds each key again.
///
/// The hash has no seed. So whoever chooses the keys can choose such that collide, and a look for
/// one of them passes all of them.
///
/// # Fairness
/// None: threads contend for a barging mutex, and readers exclude one another too.
///
/// # Blocking
/// Each call but the looks acquires a robust mutex. It spins for some microseconds, and then sleeps
/// in the kernel, until the mutex is released or its holder dies. A key is found in a few steps,
/// whatever was removed before. The first call after a death looks at each key, to repair the
/// index. So does the first call after a reset of the region, and [`clear`](Self::clear).
///
/// # Errors
/// [`MapError::Full`] gives the value back. [`MapError::Refused`] and [`Refused`]: a closure of the
/// map uses the same map with the same member, or memory was overwritten. A death is no error: the
/// map repairs itself. A closure that uses the same map with another member waits for ever.
///
/// # Panics
/// If the member is not of this map's region, or is that of the process's parent. If a closure or
/// the key's `Eq` panics, the map is as it was before the call.
///
/// # Process-shared
/// That is what it is for. A file keeps its keys and values. What is said of a death is not true of
/// a power cut. The disk has pages of different moments then, so a key may be lost, or come back,
/// and a value may be torn. The map still works: of two entries with one key it keeps one.
///
/// # Signals and forks
/// A signal handler must not use it. A child of fork joins by itself.
///
/// # Sources
/// Linear probing with the removal of D. E. Knuth, "The Art of Computer Programming", volume 3,
/// 6.4, algorithm R. FNV-1a of Fowler, Noll and Vo, and the end of Appleby's MurmurHash3. What a
/// death leaves is this project's.
///
/// # Examples
/// ```
/// use ulocks_shm::{HashMap, MapError, Region};
///
/// let stock = Region::<HashMap<u64, i64, 100>>::options().anonymous()?;
/// stock.with_member(|me| {
///     assert_eq!(stock.insert(me, 7, 3)?, None);
///     assert_eq!(stock.get(me, &7)?, Some(3));
///     // One more, or the first one.
///     stock.update(me, 7, |number| Some(number.unwrap_or(0) + 1))?;
///     assert_eq!(stock.remove(me, &7)?, Some(4));
///     assert!(stock.is_empty());
///     Ok::<_, Box<dyn std::error::Error>>(())
/// })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[repr(C)]
pub struct HashMap<K, V, const CAPACITY: usize, P: Policy<Scope = futex::Global> = Shared> {
    mutex: Mutex<(), RawMutex<P>>,
    table: Table<K, V, CAPACITY>,
}

// SAFETY: the table is accessed by the holder of the mutex only, but for atomics. Keys and values
// move between threads, and are `Send`.
unsafe impl<K: Send, V: Send, const N: usize, P: Policy<Scope = futex::Global>> Sync for HashMap<K, V, N, P> {}

/// Why a [`HashMap`] did not take a value, which it gives back. Its text says what to do.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MapError<V> {
    /// The key is new, and there are as many keys as the map has room for.
    Full(V),
    /// The mutex of the map was refused: the caller is in a closure of the same map with the same
    /// member, or memory was overwritten.
    Refused(V, Refused),
}

impl<V> MapError<V> {
    /// The value.
    pub fn into_inner(self) -> V {
        match self {
            Self::Full(value) | Self::Refused(value, _) => value,
        }
    }
}

impl<V> fmt::Display for MapError<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(_) => {
                f.write_str("the map is full: remove a key first, or give the map a greater capacity")
            }
            Self::Refused(_, refused) => write!(f, "the mutex of the map: {refused}"),
        }
    }
}

/// Without the value, which need not have it.
impl<V> fmt::Debug for MapError<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(_) => f.write_str("Full(..)"),
            Self::Refused(_, refused) => write!(f, "Refused(.., {refused:?})"),
        }
    }
}

impl<V> core::error::Error for MapError<V> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Full(_) => None,
            Self::Refused(_, refused) => Some(refused),
        }
    }
}

impl<K, V, const CAPACITY: usize, P: Policy<Scope = futex::Global>> HashMap<K, V, CAPACITY, P>
where
    K: Copy + Send + Eq + Hash,
    V: Copy + Send,
{
    /// A map without keys. All-zero bytes are one.
    #[allow(clippy::new_without_default)]
    #[must_use]
    pub fn new() -> Self {
        Self { mutex: Mutex::new(()), table: Table::new() }
    }

    /// The value of `key`.
    ///
    /// # Errors
    /// See [the type](Self#errors).
    ///
    /// # Panics
    /// See [the type](Self#panics).
    pub fn get(&self, me: &Member<'_>, key: &K) -> Result<Option<V>, Refused> {
        let hash = hash_of(key);
        let held = self.lock(me)?;
        let found = self.table.find(hash, key).map(|found| self.table.value(found.entry));
        drop(held);
        Ok(found)
    }

    /// Whether `key` has a value.
    ///
    /// # Errors
    /// See [the type](Self#errors).
    ///
    /// # Panics
    /// See [the type](Self#panics).
    pub fn contains_key(&self, me: &Member<'_>, key: &K) -> Result<bool, Refused> {
        let hash = hash_of(key);
        let held = self.lock(me)?;
        let found = self.table.find(hash, key).is_some();
        drop(held);
        Ok(found)
    }

    /// Gives `key` this value. Returns the value that it had.
    ///
    /// # Errors
    /// [`MapError::Full`] if the key is new, and there is no room.
    ///
    /// # Panics
    /// See [the type](Self#panics).
    pub fn insert(&self, me: &Member<'_>, key: K, value: V) -> Result<Option<V>, MapError<V>> {
        let hash = hash_of(&key);
        let held = self.lock(me).map_err(|refused| MapError::Refused(value, refused))?;
        let found = self.table.find(hash, &key);
        let old = found.map(|found| self.table.value(found.entry));
        let mut room = true;
        match found {
            Some(found) => self.table.replace(found.entry, value),
            None => room = self.table.insert(hash, key, value),
        }
        drop(held);
        if room { Ok(old) } else { Err(MapError::Full(value)) }
    }

    /// Takes `key` out. Returns the value that it had.
    ///
    /// # Errors
    /// See [the type](Self#errors).
    ///
    /// # Panics
    /// See [the type](Self#panics).
    pub fn remove(&self, me: &Member<'_>, key: &K) -> Result<Option<V>, Refused> {
        let hash = hash_of(key);
        let held = self.lock(me)?;
        let old = self.table.find(hash, key).map(|found| {
            let old = self.table.value(found.entry);
            self.table.remove(found);
            old
        });
        drop(held);
        Ok(old)
    }

    /// Gives `key` the value that `change` makes of the one that it has; takes it out if that is
    /// `None`. Returns the value that it had. No other thread comes between.
    ///
    /// `change` may not use the map: with `me` it is refused, with another member it waits for
    /// ever. If it panics, or the process is killed in it, nothing changes. Nor does anything when
    /// a child of a `fork` in it returns from it: that panics in the child.
    ///
    /// # Errors
    /// As [`insert`](Self::insert). [`MapError::Refused`] has `None`: `change` was not called.
    ///
    /// # Panics
    /// See [the type](Self#panics), and if `change` does.
    pub fn update(
        &self,
        me: &Member<'_>,
        key: K,
        change: impl FnOnce(Option<V>) -> Option<V>,
    ) -> Result<Option<V>, MapError<Option<V>>> {
        let hash = hash_of(&key);
        let held = self.lock(me).map_err(|refused| MapError::Refused(None, refused))?;
        let found = self.table.find(hash, &key);
        let old = found.map(|found| self.table.value(found.entry));
        let mut room = true;
        let new = change(old);
        // The child of a fork in `change` returns from it, too.
        me.check_process();
        match (new, found) {
            (Some(new), Some(found)) => self.table.replace(found.entry, new),
            (Some(new), None) => room = self.table.insert(hash, key, new),
            (None, Some(found)) => self.table.remove(found),
            (None, None) => {}
        }
        drop(held);
        if room { Ok(old) } else { Err(MapError::Full(new)) }
    }

    /// Calls `each` with each key and its value, in no order. It may not use the map, as with
    /// [`update`](Self::update).
    ///
    /// # Errors
    /// See [the type](Self#errors).
    ///
    /// # Panics
    /// See [the type](Self#panics), and if `each` does.
    pub fn for_each(&self, me: &Member<'_>, mut each: impl FnMut(K, V)) -> Result<(), Refused> {
        let held = self.lock(me)?;
        for entry in self.table.live() {
            each(self.table.key(entry), self.table.value(entry));
        }
        drop(held);
        Ok(())
    }

    /// Takes all keys out: all of them, or none if the process is killed.
    ///
    /// # Errors
    /// See [the type](Self#errors).
    ///
    /// # Panics
    /// See [the type](Self#panics).
    pub fn clear(&self, me: &Member<'_>) -> Result<(), Refused> {
        let held = self.lock(me)?;
        self.table.clear();
        drop(held);
        Ok(())
    }

    /// Acquires the mutex. After a death the map is repaired.
    #[inline]
    fn lock<'a>(&'a self, me: &'a Member<'_>) -> Result<MutexGuard<'a, (), RawMutex<P>>, Refused> {
        let mut held = match self.mutex.lock(me) {
            Ok(held) => return Ok(held),
            Err(LockError::OwnerDied(held)) => held,
            Err(LockError::NotRecoverable) => self.mutex.reset(me)?,
            Err(LockError::Refused(refused)) => return Err(refused),
        };
        self.table.repair();
        held.mark_consistent();
        Ok(held)
    }
}

impl<K, V, const CAPACITY: usize, P: Policy<Scope = futex::Global>> HashMap<K, V, CAPACITY, P> {
    /// How many keys there are, at the moment of the look.
    #[must_use]
    pub fn len(&self) -> usize {
        (self.table.len.load(Relaxed) as usize).min(CAPACITY)
    }

    /// Whether there is no key, at the moment of the look.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many keys it has room for.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        CAPACITY
    }

    /// Unlocks a map that no thread uses. The keys and values stay. The next call makes the index
    /// anew: a power cut may have kept another one, or another program may have other hashes.
    ///
    /// # Safety
    /// `this` is valid for reads and writes, and no thread of any process uses it.
    #[cfg(regions)]
    pub(crate) unsafe fn reset_lock_of(this: *mut Self) {
        // SAFETY: the caller's promise; the mutex is in `this`.
        unsafe { Mutex::reset_as_dirty(&raw mut (*this).mutex) };
    }
}

impl<K, V, const CAPACITY: usize, P: Policy<Scope = futex::Global>> fmt::Debug
    for HashMap<K, V, CAPACITY, P>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("HashMap");
        shown.field("len", &self.len()).field("capacity", &CAPACITY).finish_non_exhaustive()
    }
}
