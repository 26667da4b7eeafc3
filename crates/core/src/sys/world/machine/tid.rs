//! The kernel's id of the calling thread, kept at hand.
//!
//! The id is cached in a thread-local word that has no destructor, so that locks can ask for it in
//! global allocators, in signal handlers and while a thread is being torn down. What makes a cache
//! of ids hard is fork: the one thread of the child is a copy of its parent's, cache and all, and
//! has another id.
//!
//! # State
//!
//! The cache is valid while the generation beside it is the generation of the process. That one
//! lives in a page which the kernel wipes in every child that gets a copy of it (`MADV_WIPEONFORK`,
//! Linux 4.14):
//!
//! | generation in the page | meaning |
//! |---|---|
//! | 0 | the process is new, no thread has asked for an id yet: every cache is invalid |
//! | g | caches of generation g are valid |
//!
//! # Invariants
//!
//! 1. Nothing that a process inherits is of its own generation, which is one more than the highest
//!    that its ancestors had used when they forked. That one is counted in ordinary memory, which a
//!    child inherits, before the generation is begun. Of threads that come at the same time the
//!    first to write the candidate decides: a word of the page, so that it is of this process.
//! 2. A cache is filled with the id before the generation, so a signal handler that comes between
//!    finds it invalid.
//!
//! By 1, a thread that was copied by fork never finds its cache valid, also when another thread of
//! the child has started the child's generation before.
//!
//! # Why not `pthread_atfork`
//!
//! It is not called for `clone`, `_Fork` or a raw system call, its list is not async-signal-safe,
//! and it stays behind when a library is unloaded. The page needs no call in the child and costs
//! one load.
//!
//! # What is covered
//!
//! - `fork`, `_Fork`, `clone` and `clone3` without `CLONE_VM`, from any language: yes, by the page.
//! - New threads: yes, their thread-local word is fresh.
//! - `vfork`, and `clone` with `CLONE_VM` but without `CLONE_SETTLS`: **no**. Such a child runs on
//!   the memory and the thread-local words of its parent, which the kernel suspends meanwhile. It
//!   gets its parent's id if the parent's thread has asked before. Otherwise it gets its own, and
//!   its parent's thread gets that one from then on. It may take no locks, as it may do hardly
//!   anything before `execve` or `_exit`. Code that it may run must not ask.
//! - A fork by a signal handler that interrupts [`current`] itself: **no**, the interrupted call
//!   returns the parent's id.
//! - Kernels without `MADV_WIPEONFORK`, or no memory for a page: yes, without a cache, by a system
//!   call each time.
//! - Emulators and filters that answer success to every `madvise` and do nothing: yes, likewise, by
//!   `wipe.rs`.

#[cfg(not(miri))]
use super::wipe::wipe_on_fork;
use core::cell::Cell;
use core::ptr::null_mut;
use core::sync::atomic::{
    AtomicPtr, AtomicU32,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
    compiler_fence,
};

struct Cache {
    id: Cell<u32>,
    generation: Cell<u32>,
}

thread_local! {
    static CACHE: Cache = const { Cache { id: Cell::new(0), generation: Cell::new(0) } };
}

/// What the page has.
struct Page {
    generation: AtomicU32,
    /// The generation that is about to begin.
    candidate: AtomicU32,
}

/// The page, once there is one; [`UNCACHED`] if there can be none.
static PAGE: AtomicPtr<Page> = AtomicPtr::new(null_mut());
/// A generation that stays 0: with it, no cache is ever valid.
static UNCACHED: Page = Page { generation: AtomicU32::new(0), candidate: AtomicU32::new(0) };
/// The highest generation in use, in this process or before it was forked (Invariant 1).
static NEWEST: AtomicU32 = AtomicU32::new(0);

/// The kernel's id of the calling thread.
#[inline]
pub(crate) fn current() -> u32 {
    let page = PAGE.load(Acquire); // Acquire: pairs with (publish page) in `page`.
    if !page.is_null() {
        // SAFETY: what PAGE points to is never unmapped, and is a static or a page that `map` has
        // handed out.
        let generation = unsafe { &*page }.generation.load(Relaxed);
        let cached = CACHE
            .with(|cache| (generation != 0 && cache.generation.get() == generation).then(|| cache.id.get()));
        if let Some(id) = cached {
            return id;
        }
    }
    ask()
}

/// The generation of the process (Invariant 1). `None` without a page: then it is not known.
#[inline]
pub(crate) fn generation() -> Option<u32> {
    let page = PAGE.load(Acquire); // Acquire: pairs with (publish page) in `page`.
    if !page.is_null() {
        // SAFETY: as in `current`.
        let generation = unsafe { &*page }.generation.load(Relaxed);
        if generation != 0 {
            return Some(generation);
        }
    }
    ask();
    Some(self::page().generation.load(Relaxed)).filter(|&generation| generation != 0)
}

/// Tells the calling process from its parent and its children, also where no generation is known:
/// by its number then, of which an ancestor that has ended may have had the same.
#[inline]
pub(crate) fn this_process() -> u64 {
    match generation() {
        Some(generation) => generation.into(),
        None => 1 << u32::BITS | u64::from(std::process::id()),
    }
}

/// The id by a system call.
///
/// It does not go through libc's function. The standard library refers to `gettid` weakly. In a
/// static program with fat link-time optimisation that makes this reference weak too, and then a
/// linker need not find the function: the call would be to address zero.
pub(crate) fn by_kernel() -> libc::pid_t {
    // SAFETY: the call takes nothing and cannot fail.
    unsafe { if cfg!(miri) { libc::gettid() } else { libc::syscall(libc::SYS_gettid) as libc::pid_t } }
}

/// Begins the generation of the process, if no other thread does, and returns it. It is the next
/// one, since some words of locks tell generations apart by two bits.
fn begin(page: &Page, newest: &AtomicU32) -> u32 {
    // Acquire (count): a thread that finds the candidate counted finds it in the page, too.
    let next = newest.load(Acquire) + 1;
    let chosen =
        page.candidate.compare_exchange(0, next, Relaxed, Relaxed).map_or_else(|first| first, |_| next);
    newest.fetch_max(chosen, AcqRel); // (count)
    // Release: (publish generation), pairs with the loads of the page. A thread that sees a
    // generation sees it counted, and so does the child that it forks.
    _ = page.generation.compare_exchange(0, chosen, Release, Relaxed);
    chosen
}

#[cold]
#[inline(never)]
fn ask() -> u32 {
    let id = by_kernel() as u32;
    let page = page();
    if !core::ptr::eq(page, &UNCACHED) {
        let generation = match page.generation.load(Acquire) {
            0 => begin(page, &NEWEST),
            generation => generation, // (publish generation)
        };
        CACHE.with(|cache| {
            cache.generation.set(0);
            compiler_fence(AcqRel);
            cache.id.set(id);
            compiler_fence(AcqRel);
            cache.generation.set(generation);
        });
    }
    id
}

/// The page, mapped at the first call.
fn page() -> &'static Page {
    let mut page = PAGE.load(Acquire);
    if page.is_null() {
        let mapped = map().unwrap_or((&raw const UNCACHED).cast_mut());
        // Release: (publish page), pairs with the loads of PAGE: a thread that sees the page finds
        // it mapped and zero.
        match PAGE.compare_exchange(null_mut(), mapped, AcqRel, Acquire) {
            Ok(_) => page = mapped,
            Err(first) => {
                unmap(mapped);
                page = first;
            }
        }
    }
    // SAFETY: as in `current`.
    unsafe { &*page }
}

#[cfg(miri)] // There is no fork under Miri.
fn map() -> Option<*mut Page> {
    static PAGE: Page = Page { generation: AtomicU32::new(0), candidate: AtomicU32::new(0) };
    Some((&raw const PAGE).cast_mut())
}

#[cfg(miri)]
fn unmap(_: *mut Page) {}

/// Any length is rounded up to a page.
#[cfg(not(miri))]
const LENGTH: usize = size_of::<Page>();

#[cfg(not(miri))]
fn map() -> Option<*mut Page> {
    let _errno = crate::sys::errno::Guard::new();
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping at an address of the kernel's choice touches no memory in use.
    let page = unsafe { libc::mmap(null_mut(), LENGTH, access, kind, -1, 0) };
    if page == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the mapping is ours, private, and of no file. It is there to be wiped in a child.
    if !unsafe { wipe_on_fork(page.cast(), LENGTH) } {
        unmap(page.cast());
        return None;
    }
    Some(page.cast())
}

#[cfg(not(miri))]
fn unmap(page: *mut Page) {
    if !core::ptr::eq(page, &UNCACHED) {
        let _errno = crate::sys::errno::Guard::new();
        // SAFETY: the page comes from `map` and was not published: no other thread has its address.
        unsafe { libc::munmap(page.cast(), LENGTH) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However many come at the same time.
    #[test]
    fn the_generation_is_the_next_one() {
        for round in 0..200 {
            let page = Page { generation: AtomicU32::new(0), candidate: AtomicU32::new(0) };
            let newest = AtomicU32::new(round);
            let begun = std::thread::scope(|scope| {
                let threads = [(); 4].map(|()| scope.spawn(|| begin(&page, &newest)));
                threads.map(|thread| thread.join().unwrap())
            });
            let kept = [page.generation, page.candidate, newest].map(AtomicU32::into_inner);
            assert_eq!((begun, kept), ([round + 1; 4], [round + 1; 3]));
        }
    }
}
