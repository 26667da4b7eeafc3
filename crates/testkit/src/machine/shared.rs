//! Clients of a lock in memory that processes share: forked children over one mapping.

use super::child::Child;
use super::stress::{Counts, Load, Protected, Random, unlock};
use super::watchdog::watch;
use crate::model::lock_within;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use ulocks_core::raw::RawMutex;

const PAGE: usize = 4096;

/// Zeroed memory of one page, unmapped when dropped.
pub struct Mapping(*mut libc::c_void);

impl Mapping {
    /// A page that children of this process share with it.
    pub fn shared() -> Self {
        Self::new(libc::MAP_SHARED)
    }

    /// A page of this process alone.
    pub fn private() -> Self {
        Self::new(libc::MAP_PRIVATE)
    }

    fn new(sharing: libc::c_int) -> Self {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new anonymous mapping at an address of the kernel's choice disturbs nothing.
        let page = unsafe {
            libc::mmap(std::ptr::null_mut(), PAGE, protection, sharing | libc::MAP_ANONYMOUS, -1, 0)
        };
        assert_ne!(page, libc::MAP_FAILED, "mmap: {}", io::Error::last_os_error());
        Self(page)
    }

    /// The page as a place for a `T`; it stays mapped until a thread unmaps it.
    ///
    /// # Panics
    /// If `T` does not fit into a page.
    pub fn leak<T>(self) -> *mut T {
        let page = self.place();
        std::mem::forget(self);
        page
    }

    /// The page as a place for a `T`.
    ///
    /// # Panics
    /// If `T` does not fit into a page.
    pub fn place<T>(&self) -> *mut T {
        assert!(size_of::<T>() <= PAGE && align_of::<T>() <= PAGE, "the type is larger than a page");
        self.0.cast()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        unmap(self.0.expose_provenance());
    }
}

/// Takes the page at `address` away.
pub(super) fn unmap(address: usize) {
    // SAFETY: the address is that of a page mapped above which no thread refers to any more.
    let result = unsafe { libc::munmap(std::ptr::with_exposed_provenance_mut(address), PAGE) };
    assert_eq!(result, 0, "munmap: {}", io::Error::last_os_error());
}

/// Runs `body(0)` to `body(children - 1)` in a forked child each and waits for them.
///
/// # Panics
/// If a child panics or dies, or does not end within the limit of a process. The others are killed
/// when the calling thread ends.
pub fn forked(children: usize, body: impl Fn(usize)) {
    let children: Vec<_> = (0..children).map(|me| Child::runs(|| body(me))).collect();
    for (me, child) in children.into_iter().enumerate() {
        let status = child.waited();
        assert_eq!(status, 0, "child {me} ended with status {status:#x}");
    }
}

/// What the processes share, and how many operations of each got the lock.
struct Region<S> {
    shared: S,
    acquired: [AtomicUsize; 32],
}

/// Puts `load` on what `make` makes, and watches, as `drive` does for threads. What `end` makes of
/// it and of the number of operations of each process that returned true.
///
/// # Panics
/// If a child does, and if there are more than 32.
pub(super) fn drive<S, R>(
    name: &str,
    load: Load,
    make: impl FnOnce() -> S,
    describe: impl Fn(&S) -> String + Send + 'static,
    operation: impl Fn(&S, &mut Random, u32) -> bool,
    end: impl FnOnce(&S, Vec<usize>) -> R,
) -> R {
    assert!(load.threads <= 32, "at most 32 processes");
    let mapping = Mapping::shared();
    let region = mapping.place::<Region<S>>();
    // SAFETY: a fresh page that is large enough.
    let region = unsafe {
        region.write(Region { shared: make(), acquired: [const { AtomicUsize::new(0) }; 32] });
        &*region
    };
    let address = std::ptr::from_ref(region).expose_provenance();
    let _watchdog = watch(name, move || {
        // SAFETY: the mapping outlives the watchdog.
        let region = unsafe { &*std::ptr::with_exposed_provenance::<Region<S>>(address) };
        format!("acquired {:?}, {}", region.acquired, describe(&region.shared))
    });
    forked(load.threads, |me| {
        let mut random = Random::new(me);
        for _ in 0..load.operations {
            let hold = random.below(load.hold + 1);
            let had = operation(&region.shared, &mut random, hold);
            region.acquired[me].fetch_add(had.into(), Relaxed);
        }
    });
    let acquired = region.acquired[..load.threads].iter().map(|count| count.load(Relaxed)).collect();
    end(&region.shared, acquired)
}

fn run<L: RawMutex>(name: &str, load: Load, acquire: fn(&L, &mut Random) -> Option<L::Token>) -> Counts {
    drive(
        name,
        load,
        Protected::<L>::new,
        |protected| format!("locked {}", protected.lock.is_locked()),
        |protected, random, hold| {
            let token = acquire(&protected.lock, random);
            token.map(|token| unlock(protected, token, hold)).is_some()
        },
        |protected, acquired| Counts::new(protected, acquired, 0),
    )
}

/// At most one process is inside.
pub fn exclusion<L: RawMutex>(load: Load) -> Counts {
    run::<L>(
        "shared exclusion",
        load,
        |lock, random| {
            if random.below(4) == 0 { lock.try_lock() } else { Some(lock.lock()) }
        },
    )
}

/// Waits that expire, across processes: a thread gives up when its deadline has passed, and strands
/// no thread.
pub fn timed<L: RawMutex>(load: Load) -> Counts {
    run::<L>("shared timed", load, |lock, random| match random.below(4) {
        0 => Some(lock.lock()),
        _ => lock_within(lock, Duration::from_nanos(random.below(200_000).into())),
    })
}
