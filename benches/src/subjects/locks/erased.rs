//! Locks without their types, so that all but the measured loops is compiled once.

use super::loops::{self, Lane, Turned, Worker};
use super::{Form, Lock, Meters, Scope, Traits};
use crate::subjects::Entry;
use anyhow::{Result, ensure};
use std::any::Any;
use std::mem::MaybeUninit;
use std::sync::atomic::AtomicU8;
use std::time::Duration;
use std::{io, ptr};

/// Three more locks of a lock's type.
pub type Others<'a> = [&'a dyn Mutex; 3];

/// A lock under test; every [`Lock`] is one. It works also in a forked process, which has the same
/// code at the same addresses.
pub trait Mutex: Any + Sync {
    /// Runs `f` while holding the lock.
    fn with(&self, f: &mut dyn FnMut());
    /// The same if that needs no waiting; whether it has run.
    fn try_with(&self, f: &mut dyn FnMut()) -> bool;
    /// Runs `f` while holding the lock together with other readers.
    fn with_shared(&self, f: &mut dyn FnMut());
    /// The loop of 2002, until the phase is [`STOP`](loops::phase::STOP).
    fn turns(&self, lane: Lane<'_>, worker: &mut dyn Worker) -> Turned;
    /// The time of so many acquisitions and releases.
    fn pairs(&self, times: u32, reads: bool) -> Duration;
    /// This lock and three more of its type, passed around between two threads, of which this one
    /// is the `first` or the second. `ready` is called once it has its first two locks.
    fn hand_over(&self, others: Others<'_>, first: bool, turns: u64, ready: &mut dyn FnMut()) -> Duration;
    /// What the lock counted, if it counts.
    fn meters(&self) -> Option<Meters>;
}

impl<L: Lock> Mutex for L {
    fn with(&self, f: &mut dyn FnMut()) {
        let _held = self.acquire(true);
        f();
    }

    fn try_with(&self, f: &mut dyn FnMut()) -> bool {
        let held = self.acquire(false);
        if held.is_some() {
            f();
        }
        held.is_some()
    }

    fn with_shared(&self, f: &mut dyn FnMut()) {
        self.shared(f);
    }

    fn turns(&self, lane: Lane<'_>, worker: &mut dyn Worker) -> Turned {
        if lane.bare {
            loops::turns::<L, true>(self, lane, worker)
        } else {
            loops::turns::<L, false>(self, lane, worker)
        }
    }

    fn pairs(&self, times: u32, reads: bool) -> Duration {
        self.time_pairs(times, reads)
    }

    fn hand_over(&self, others: Others<'_>, first: bool, turns: u64, ready: &mut dyn FnMut()) -> Duration {
        loops::hand_over(self, others, first, turns, ready)
    }

    fn meters(&self) -> Option<Meters> {
        Lock::meters(self)
    }
}

/// The type of a lock, as a value.
#[derive(Clone, Copy, Debug)]
pub struct Type {
    /// Whether it excludes at all.
    pub excludes: bool,
    /// Whether it has a mode for several readers.
    pub shared_mode: bool,
    /// Whether its calls to sleep and to wake can be counted.
    pub countable: bool,
    /// Its name in the language.
    pub name: fn() -> &'static str,
    size: usize,
    place: unsafe fn(*mut u8, Scope) -> Result<()>,
    lock: fn(*mut u8) -> *mut dyn Mutex,
}

/// A lock on lines of its own, 128 bytes because of adjacent-line prefetch.
#[repr(C, align(128))]
struct Spaced<L>(L);

impl Type {
    /// That of `L`.
    pub const fn of<L: Lock>() -> Self {
        Self {
            excludes: L::EXCLUDES,
            shared_mode: L::SHARED_MODE,
            countable: L::COUNTABLE,
            name: std::any::type_name::<L>,
            size: size_of::<Spaced<L>>(),
            // SAFETY: the place has room for `L` and is aligned, by the word of `Locks::of`.
            place: |place, scope| L::place(unsafe { &mut *place.cast::<MaybeUninit<L>>() }, scope),
            lock: |place| place.cast::<L>(),
        }
    }

    /// Whether a counter that is raised by a load and a store in each section shows all of them.
    pub fn check(&self, name: &str, done: u64, kept: u64) -> Result<()> {
        ensure!(
            done == kept || !self.excludes,
            "lost updates: lock '{name}' was held {done} times, but the counter that it protects says {kept}"
        );
        Ok(())
    }
}

/// So many `T` in memory that forked processes share. They stay as long as the process, which is
/// that of a trial.
///
/// # Safety
/// Zeros are a valid `T`. It is not aligned to more than a page.
pub unsafe fn zeroed<T: Sync>(len: usize) -> Result<&'static [T]> {
    let bytes = (len * size_of::<T>()).max(1);
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: a fresh mapping harms no other.
    let base = unsafe { libc::mmap(ptr::null_mut(), bytes, access, flags, -1, 0) };
    ensure!(base != libc::MAP_FAILED, "cannot map {bytes} bytes: {}", io::Error::last_os_error());
    // SAFETY: so many are mapped, aligned, valid by the contract, and never moved or unmapped.
    Ok(unsafe { std::slice::from_raw_parts(base.cast(), len) })
}

/// Locks of one type, each on lines of its own, in memory that forked processes share.
pub struct Locks {
    memory: &'static [AtomicU8],
    kind: Type,
    len: usize,
}

impl Locks {
    /// So many locks of the registry.
    pub fn new(entry: &Entry<Traits>, form: Form, len: usize) -> Result<Self> {
        Self::of(entry.make(form)?, form.scope, len)
    }

    /// So many locks of a type.
    pub fn of(kind: Type, scope: Scope, len: usize) -> Result<Self> {
        // SAFETY: bytes may be zero.
        let mut locks = Self { memory: unsafe { zeroed(len * kind.size)? }, kind, len: 0 };
        while locks.len < len {
            // Counted only once it stands, so that a failure drops those before it. SAFETY: the
            // mapping has room for it, is writable, and aligned to a page; sizes are multiples of
            // 128, which is the alignment. The lock stays there until `drop`.
            unsafe { (kind.place)(locks.at(locks.len), scope)? };
            locks.len += 1;
        }
        Ok(locks)
    }

    fn at(&self, index: usize) -> *mut u8 {
        self.memory.as_ptr().cast::<u8>().cast_mut().wrapping_add(index * self.kind.size)
    }

    /// Their type.
    pub fn kind(&self) -> Type {
        self.kind
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.len
    }

    /// The lock with this index.
    pub fn get(&self, index: usize) -> &dyn Mutex {
        assert!(index < self.len, "there are {} locks", self.len);
        // SAFETY: that lock was placed there; it lives as long as `self`.
        unsafe { &*(self.kind.lock)(self.at(index)) }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &dyn Mutex> {
        (0..self.len).map(|index| self.get(index))
    }
}

impl Drop for Locks {
    fn drop(&mut self) {
        for index in 0..self.len {
            // SAFETY: this lock was placed and no thread uses it: the locks are owned by all their
            // users, and forked workers leave through `_exit`, so that only their maker is here.
            unsafe { ptr::drop_in_place((self.kind.lock)(self.at(index))) };
        }
    }
}
