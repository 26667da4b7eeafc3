//! Readers that come in again, beside writers.

use super::Arrivals;
use ulocks_core::sync::UnsafeCell;
use ulocks_parking_lot::protocols::{Patience, RecursiveRwLock};
use ulocks_testkit::thread::{Arc, JoinHandle, spawn, with};

struct Guarded {
    lock: RecursiveRwLock,
    value: UnsafeCell<u32>,
}

// SAFETY: `value` is accessed under `lock` only.
unsafe impl Sync for Guarded {}
// SAFETY: its parts are `Send`.
unsafe impl Send for Guarded {}

/// How a reader acquires.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Read {
    Plain,
    Again,
}

use Read::{Again, Plain};

impl Guarded {
    fn look(&self) {
        // SAFETY: the caller reads.
        self.value.with(|value| unsafe { *value });
    }

    fn acquire(&self, how: Read) {
        let is_acquired = match how {
            Plain => self.lock.read(Patience::Forever),
            Again => self.lock.read_again(Patience::Forever),
        };
        assert!(is_acquired);
        self.look();
    }

    fn release(&self) {
        self.look();
        // SAFETY: each release is of one acquisition for reading.
        unsafe { self.lock.unlock_read() };
    }

    fn reader(self: &Arc<Self>, how: &'static [Read]) -> JoinHandle<()> {
        with(self, |guarded| {
            how.iter().for_each(|&how| guarded.acquire(how));
            how.iter().for_each(|_| guarded.release());
        })
    }

    fn writer(self: &Arc<Self>, does_downgrade: bool) -> JoinHandle<()> {
        with(self, move |guarded| {
            assert!(guarded.lock.write(Patience::Forever));
            // SAFETY: the lock is held for writing.
            guarded.value.with_mut(|value| unsafe { *value += 1 });
            // SAFETY: as above; after the downgrade it is held for reading.
            unsafe {
                if does_downgrade {
                    guarded.lock.downgrade();
                    guarded.look();
                    guarded.lock.unlock_read();
                } else {
                    guarded.lock.unlock_write();
                }
            }
        })
    }
}

/// These readers, each with its acquisitions one in the other, beside writers, one of which becomes
/// a reader.
pub fn readers_beside_writers(readers: &[&'static [Read]], writers: usize) {
    let guarded = Arc::new(Guarded { lock: RecursiveRwLock::new(), value: UnsafeCell::new(0) });
    let mut threads: Vec<_> = (0..writers).map(|nth| guarded.writer(nth == 1)).collect();
    threads.extend(readers.iter().map(|how| guarded.reader(how)));
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert!(!guarded.lock.is_locked(), "an acquisition is left behind");
    assert!(guarded.lock.write(Patience::Never), "the lock is not free");
    // SAFETY: acquired above.
    unsafe { guarded.lock.unlock_write() };
}

/// Readers that wait for each other inside, beside writers: a writer that waits for one of them
/// keeps none of the others out.
pub fn readers_meet_inside(readers: usize, writers: usize) {
    let guarded = Arc::new(Guarded { lock: RecursiveRwLock::new(), value: UnsafeCell::new(0) });
    let inside = Arc::new(Arrivals::new());
    let mut threads: Vec<_> = (0..writers).map(|_| guarded.writer(false)).collect();
    threads.extend((0..readers).map(|_| {
        let (guarded, inside) = (Arc::clone(&guarded), Arc::clone(&inside));
        spawn(move || {
            guarded.acquire(Again);
            inside.arrive();
            inside.wait_for(readers);
            guarded.release();
        })
    }));
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert!(!guarded.lock.is_locked(), "an acquisition is left behind");
}

/// A thread that reads plainly, and again, and again.
pub const DEEP: &[Read] = &[Plain, Again, Again];
/// A thread that has read again only.
pub const TWICE: &[Read] = &[Again, Again];
/// A thread that reads once, as if again.
pub const ONCE: &[Read] = &[Again];
/// A thread that reads once.
pub const PLAIN: &[Read] = &[Plain];
