//! The protocol of a [`HashMap`](super::HashMap): entries under a robust mutex, and an index of
//! them that can be made anew.
//!
//! # Properties
//! - A key that was inserted is found with the value of its last change, until it is removed.
//! - If a thread dies at any step of a change, the change is there whole, or not at all.
//! - There is room for `CAPACITY` keys, whatever was removed before, and whoever died.
//!
//! # State
//! An *entry* has a key, a value and a stamp. It is *live* if its stamp is `epoch + 1`, so all-zero
//! memory has none. The live entries are the map. All words change by the holder of the mutex only.
//! Each transition is one store:
//!
//! | transition | by | label |
//! |---|---|---|
//! | the stamp of an entry to `epoch + 1`, when its key and value are written | a thread that inserts | (insert) |
//! | the stamp of a live entry to 0 | a thread that removes, or one that repairs | (remove) |
//! | `replacing` to the entry, when the new value is written to `new` | a thread that gives a key another value | (replace) |
//! | `replacing` to 0, when `new` is copied into the entry | the same thread, or one that repairs | (replaced) |
//! | `epoch` increased | a thread that clears the map | (clear) |
//!
//! The other words are the *index*: `buckets` lead from the hash of a key to its entry, by linear
//! probing. Entries from `used` on are not live. Those before it that are not live are in a list
//! that begins at `free`. `len` is the number of the live ones.
//!
//! # Invariants
//! 1. The key of a live entry does not change. Its value changes between (replace) and (replaced)
//!    only, and is `new` then, whatever is in the entry.
//! 2. A thread writes to a key and a value of an entry that is not live only, but for (replaced).
//! 3. So the stamps, the keys, the values and `new` say what the map is after each step. The index
//!    follows from them: a thread that is told of a death makes (replaced) if `replacing` says so,
//!    and the index anew. If it dies too, the next one does it again: nothing that it reads is
//!    changed but by (replaced), which can be repeated, and as invariant 6 says.
//! 4. The buckets from that of a key's hash to that of its entry are not empty. A removal moves
//!    later buckets back (Knuth's algorithm R), so it leaves no mark that a look would have to
//!    pass.
//! 5. Of the `2 * CAPACITY` buckets half are empty at least. So each look ends.
//! 6. Two live entries have different keys. Deaths keep that. A power cut need not, nor a program
//!    with other hashes that used the file alone. So a reset of the region counts as a death, and a
//!    repair removes a live entry whose key an entry before it has. It can be repeated: the entry
//!    before it stays.
//!
//! # Ordering
//! The mutex orders all accesses of its holders. (insert), (replace) and (replaced) release, for
//! the compiler: what they say was written before. (remove) and (clear) say nothing of what was
//! written, and are Relaxed.
//!
//! A fence of the compiler keeps what follows (replace) and
//! what precedes the end of a repair in place. Memory that was overwritten leads a look to wrong
//! data, never out of the table: each number of an entry is compared with the capacity.
//!
//! # Sources
//! D. E. Knuth, "The Art of Computer Programming", volume 3, 6.4, algorithms L and R. The one value
//! that is written ahead is a redo log of one record.

use super::hash::hash_of;
use core::hash::Hash;
use core::mem::MaybeUninit;
use ulocks_core::sync::Ordering::{Relaxed, Release, SeqCst};
use ulocks_core::sync::{AtomicU32, AtomicU64, UnsafeCell, compiler_fence, interruption_point};

/// A bucket: 0 if it is empty; otherwise the hash in the upper half, and the number of the entry
/// increased by one.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Bucket(u64);

impl Bucket {
    const EMPTY: Self = Self(0);

    fn new(hash: u32, entry: usize) -> Self {
        Self(u64::from(hash) << 32 | (entry as u64 + 1))
    }

    fn hash(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Out of range if memory was overwritten.
    fn entry(self) -> usize {
        (self.0 as u32 as usize).wrapping_sub(1)
    }
}

/// Where a key is.
#[derive(Clone, Copy)]
pub(super) struct Found {
    bucket: usize,
    pub(super) entry: usize,
}

#[repr(C)]
struct Entry<K, V> {
    stamp: AtomicU64,
    /// The next free entry, increased by one.
    next: AtomicU32,
    reserved: AtomicU32,
    key: UnsafeCell<MaybeUninit<K>>,
    value: UnsafeCell<MaybeUninit<V>>,
}

#[repr(C)]
pub(super) struct Table<K, V, const CAPACITY: usize> {
    epoch: AtomicU64,
    /// The entry whose value is `new`, increased by one.
    replacing: AtomicU32,
    free: AtomicU32,
    used: AtomicU32,
    pub(super) len: AtomicU32,
    buckets: [[AtomicU64; 2]; CAPACITY],
    new: UnsafeCell<MaybeUninit<V>>,
    entries: [Entry<K, V>; CAPACITY],
}

/// All of it but [`new`](Self::new) is for the holder of the mutex.
impl<K: Copy + Eq + Hash, V: Copy, const CAPACITY: usize> Table<K, V, CAPACITY> {
    const BUCKETS: usize = {
        assert!(CAPACITY > 0 && CAPACITY < 1 << 31, "a map has room for a key, and for less than 2^31");
        2 * CAPACITY
    };

    pub(super) fn new() -> Self {
        let word = || AtomicU32::new(0);
        Self {
            epoch: AtomicU64::new(0),
            replacing: word(),
            free: word(),
            used: word(),
            len: word(),
            buckets: [(); CAPACITY].map(|()| [AtomicU64::new(0), AtomicU64::new(0)]),
            new: UnsafeCell::new(MaybeUninit::uninit()),
            entries: [(); CAPACITY].map(|()| Entry {
                stamp: AtomicU64::new(0),
                next: word(),
                reserved: word(),
                key: UnsafeCell::new(MaybeUninit::uninit()),
                value: UnsafeCell::new(MaybeUninit::uninit()),
            }),
        }
    }

    /// The entry of `key`.
    pub(super) fn find(&self, hash: u32, key: &K) -> Option<Found> {
        let mut bucket = Self::home(hash);
        for _ in 0..Self::BUCKETS {
            let seen = self.bucket(bucket);
            if seen == Bucket::EMPTY {
                return None;
            }
            let entry = seen.entry();
            if seen.hash() == hash && entry < CAPACITY && self.key(entry) == *key {
                return Some(Found { bucket, entry });
            }
            bucket = Self::after(bucket);
        }
        None
    }

    /// The key of an entry that is live.
    pub(super) fn key(&self, entry: usize) -> K {
        // SAFETY: the caller has the mutex, so no thread writes. The key is whole: invariant 2. If
        // memory was overwritten, it is another `K`: in a region each bit pattern is one.
        self.entries[entry].key.with(|key| unsafe { (*key).assume_init_read() })
    }

    /// The value of an entry that is live.
    pub(super) fn value(&self, entry: usize) -> V {
        // SAFETY: as the key's; invariant 1.
        self.entries[entry].value.with(|value| unsafe { (*value).assume_init_read() })
    }

    /// The live entries.
    pub(super) fn live(&self) -> impl Iterator<Item = usize> {
        let used = (self.used.load(Relaxed) as usize).min(CAPACITY);
        (0..used).filter(|&entry| self.is_live(entry))
    }

    /// Inserts a key that is not there. Whether there is room.
    pub(super) fn insert(&self, hash: u32, key: K, value: V) -> bool {
        let Some(entry) = self.allocate() else { return false };
        let place = &self.entries[entry];
        // SAFETY: the caller has the mutex, and the entry is not live: no other thread has a
        // pointer into it.
        place.key.with_mut(|place| unsafe { (*place).write(key) });
        interruption_point();
        // SAFETY: as above.
        place.value.with_mut(|place| unsafe { (*place).write(value) });
        interruption_point();
        // Mutant: Release -> Relaxed: for the compiler, whose order counts at a death.
        place.stamp.store(self.stamp(), Release); // (insert)
        self.lead(hash, entry);
        self.len.store(self.len.load(Relaxed).wrapping_add(1), Relaxed);
        true
    }

    /// Gives a live entry another value.
    pub(super) fn replace(&self, entry: usize, value: V) {
        // SAFETY: the caller has the mutex, and no entry has `new` for its value: no other thread
        // has a pointer to it.
        self.new.with_mut(|new| unsafe { (*new).write(value) });
        interruption_point();
        // Mutant: Release -> Relaxed: for the compiler, whose order counts at a death.
        self.replacing.store(entry as u32 + 1, Release); // (replace)
        compiler_fence(SeqCst);
        self.copy_new(entry);
    }

    /// Removes a live entry.
    pub(super) fn remove(&self, found: Found) {
        let entry = &self.entries[found.entry];
        entry.stamp.store(0, Relaxed); // (remove)
        self.close_gap(found.bucket);
        entry.next.store(self.free.load(Relaxed), Relaxed);
        self.free.store(found.entry as u32 + 1, Relaxed);
        self.len.store(self.len.load(Relaxed).wrapping_sub(1), Relaxed);
    }

    /// Removes all entries.
    pub(super) fn clear(&self) {
        self.epoch.store(self.stamp(), Relaxed); // (clear)
        self.empty_index();
        self.used.store(0, Relaxed);
        self.len.store(0, Relaxed);
    }

    /// After a death or a reset: invariant 3. The length stays what it was until the end: threads
    /// look at it meanwhile.
    pub(super) fn repair(&self) {
        let replacing = (self.replacing.load(Relaxed) as usize).wrapping_sub(1);
        if replacing < CAPACITY {
            self.copy_new(replacing);
        }
        self.empty_index();
        let end = (0..CAPACITY).rev().find(|&entry| self.is_live(entry)).map_or(0, |last| last + 1);
        let mut len = 0;
        for entry in 0..end {
            if self.is_live(entry) {
                let key = self.key(entry);
                let hash = hash_of(&key);
                if self.find(hash, &key).is_none() {
                    self.lead(hash, entry);
                    len += 1;
                    continue;
                }
                // Invariant 6.
                self.entries[entry].stamp.store(0, Relaxed); // (remove)
            }
            self.entries[entry].next.store(self.free.load(Relaxed), Relaxed);
            self.free.store(entry as u32 + 1, Relaxed);
        }
        self.used.store(end as u32, Relaxed);
        self.len.store(len, Relaxed);
        // Before the caller says that the map is whole.
        compiler_fence(SeqCst);
    }

    /// Copies `new` into the entry, and makes (replaced).
    fn copy_new(&self, entry: usize) {
        // SAFETY: the caller has the mutex, so no thread writes. It is whole: invariant 1.
        let value = self.new.with(|new| unsafe { *new });
        // SAFETY: the caller has the mutex: no other thread has a pointer into the entry.
        self.entries[entry].value.with_mut(|place| unsafe { *place = value });
        interruption_point();
        // Mutant: Release -> Relaxed: for the compiler, whose order counts at a death.
        self.replacing.store(0, Release); // (replaced)
    }

    /// An entry that is not live.
    fn allocate(&self) -> Option<usize> {
        let free = (self.free.load(Relaxed) as usize).wrapping_sub(1);
        if free < CAPACITY {
            self.free.store(self.entries[free].next.load(Relaxed), Relaxed);
            return Some(free);
        }
        let used = self.used.load(Relaxed);
        let fresh = (used as usize) < CAPACITY;
        fresh.then(|| {
            self.used.store(used + 1, Relaxed);
            used as usize
        })
    }

    /// Leads from `hash` to the entry.
    fn lead(&self, hash: u32, entry: usize) {
        let mut bucket = Self::home(hash);
        for _ in 0..Self::BUCKETS {
            if self.bucket(bucket) == Bucket::EMPTY {
                return self.set_bucket(bucket, Bucket::new(hash, entry));
            }
            bucket = Self::after(bucket);
        }
    }

    /// Empties a bucket: invariant 4.
    fn close_gap(&self, mut gap: usize) {
        let distance = |from: usize, to: usize| (to + Self::BUCKETS - from) % Self::BUCKETS;
        let mut at = gap;
        for _ in 0..Self::BUCKETS {
            at = Self::after(at);
            let seen = self.bucket(at);
            if seen == Bucket::EMPTY {
                break;
            }
            if distance(Self::home(seen.hash()), at) >= distance(gap, at) {
                self.set_bucket(gap, seen);
                gap = at;
            }
        }
        self.set_bucket(gap, Bucket::EMPTY);
    }

    fn empty_index(&self) {
        (0..Self::BUCKETS).for_each(|bucket| self.set_bucket(bucket, Bucket::EMPTY));
        self.free.store(0, Relaxed);
    }

    fn is_live(&self, entry: usize) -> bool {
        self.entries[entry].stamp.load(Relaxed) == self.stamp()
    }

    /// The stamp of live entries.
    fn stamp(&self) -> u64 {
        self.epoch.load(Relaxed).wrapping_add(1)
    }

    /// The first bucket for a hash: as far in the buckets as the hash is in its range.
    fn home(hash: u32) -> usize {
        ((u64::from(hash) * Self::BUCKETS as u64) >> 32) as usize
    }

    fn after(bucket: usize) -> usize {
        if bucket + 1 == Self::BUCKETS { 0 } else { bucket + 1 }
    }

    fn bucket(&self, bucket: usize) -> Bucket {
        Bucket(self.buckets[bucket / 2][bucket % 2].load(Relaxed))
    }

    fn set_bucket(&self, bucket: usize, value: Bucket) {
        self.buckets[bucket / 2][bucket % 2].store(value.0, Relaxed);
    }
}
