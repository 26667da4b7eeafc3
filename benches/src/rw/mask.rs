//! Signals kept off a thread while it has to do with a lock, and for how long: the counterpart of the seed's "irqs off".
//!
//! [`Blocking`] is the design that the sifting lock is compared with: whoever wants the lock blocks the signals of
//! those who read it in handlers, really, by `pthread_sigmask`, until it has let go again. [`Masked`] gives it to a peer.
//! The writer's acquisition is part of it, since a handler that struck a waiting writer would find itself behind it;
//! and readers block the signals, too, because a reader in a handler would wait for a writer who waits for the very
//! reader that it interrupted.
//!
//! [`Timed`] notes how long a mask is up, around any mask. The clock is read after the mask is raised and before it is
//! lowered. Where masks nest the outermost counts. The note is made when the mask is down.

use super::clock;
use super::peers::{Plain, place_inside};
use super::{Delays, OnSignal, RwLock};
use anyhow::{Result, ensure};
use std::cell::Cell;
use std::io;
use std::marker::PhantomData;
use std::mem::{self, MaybeUninit};
use std::ptr;
use ulocks_core::signal::Mask;

/// The signal of readers in handlers.
pub fn signal() -> i32 {
    libc::SIGRTMIN() + 1
}

/// That signal alone.
pub(super) fn set() -> libc::sigset_t {
    // SAFETY: all-zero is a valid set, and both calls write only to it.
    unsafe {
        let mut set = mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, signal());
        set
    }
}

/// Blocks or unblocks the signal for the calling thread.
pub(super) fn change(how: i32) {
    let set = set();
    // SAFETY: the set is initialised; the old mask is not wanted.
    let rc = unsafe { libc::pthread_sigmask(how, &set, ptr::null_mut()) };
    debug_assert_eq!(rc, 0);
}

/// `pthread_sigmask`, at the outermost of masks that nest.
#[derive(Debug)]
pub enum Blocking {}

thread_local! {
    /// How many [`Blocking`] masks are up.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// How many [`Timed`] masks are up, and since when.
    static UP: Cell<(u32, u64)> = const { Cell::new((0, 0)) };
    /// Where to note it; handlers have no business here.
    static LOG: Cell<Option<Box<Delays>>> = const { Cell::new(None) };
}

impl Mask for Blocking {
    const MASKS: bool = true;

    #[inline]
    fn raise() {
        let depth = DEPTH.get();
        if depth == 0 {
            change(libc::SIG_BLOCK);
        }
        DEPTH.set(depth + 1);
    }

    #[inline]
    fn lower() {
        let depth = DEPTH.get() - 1;
        DEPTH.set(depth);
        if depth == 0 {
            change(libc::SIG_UNBLOCK);
        }
    }
}

/// A mask, and how long it is up.
#[derive(Debug)]
pub struct Timed<M>(PhantomData<fn() -> M>);

/// To be called when a mask has been raised.
#[inline]
pub fn raised() {
    match UP.get() {
        (0, _) => UP.set((1, clock::now())),
        (depth, since) => UP.set((depth + 1, since)),
    }
}

/// Calls `lower`, which lowers a mask, and notes how long the mask was up.
#[inline]
pub fn lowered(lower: impl FnOnce()) {
    let (depth, since) = UP.get();
    UP.set((depth - 1, since));
    if depth > 1 {
        return lower();
    }
    let until = clock::now();
    lower();
    if let Some(mut log) = LOG.take() {
        log.record(until - since);
        LOG.set(Some(log));
    }
}

impl<M: Mask> Mask for Timed<M> {
    const MASKS: bool = M::MASKS;

    #[inline]
    fn raise() {
        M::raise();
        raised();
    }

    #[inline]
    fn lower() {
        lowered(M::lower);
    }
}

/// From here on the calling thread notes how long masks are up.
pub(super) fn start() {
    LOG.set(Some(Box::default()));
}

/// What it has noted since then.
pub(super) fn take() -> Option<Delays> {
    LOG.take().map(|log| *log)
}

/// A peer whose users block the signals of readers in handlers for as long as they want or have it.
#[derive(Debug)]
#[repr(transparent)]
pub struct Masked<P>(P);

/// Holding it: the lock is released first, then the mask lowered.
#[derive(Debug)]
pub struct Held<G> {
    guard: Option<G>,
    /// The mask is the thread's.
    not_send: PhantomData<*mut ()>,
}

impl<G> Held<G> {
    #[inline]
    fn new(take: impl FnOnce() -> Option<G>) -> Option<Self> {
        Timed::<Blocking>::raise();
        let guard = take();
        if guard.is_none() {
            Timed::<Blocking>::lower();
            return None;
        }
        Some(Self { guard, not_send: PhantomData })
    }

    #[inline]
    fn waiting(take: impl FnOnce() -> G) -> Self {
        Self::new(|| Some(take())).expect("it was waited for")
    }
}

impl<G> Drop for Held<G> {
    #[inline]
    fn drop(&mut self) {
        drop(self.guard.take());
        Timed::<Blocking>::lower();
    }
}

impl<P: Plain> RwLock for Masked<P> {
    const HANDLER: bool = true;
    const TIMED_MASK: bool = true;
    const COUNTABLE: bool = P::COUNTABLE;

    type Write<'a> = Held<P::Write<'a>>;
    type Bulk<'a> = Held<P::Read<'a>>;
    type Urgent<'a> = Held<P::Read<'a>>;
    type Nested<'a> = Held<P::Read<'a>>;
    type Handler<'a> = P::Read<'a>;
    type Context<'a> = ();

    fn place(place: &mut MaybeUninit<Self>) -> Result<()> {
        place_inside::<P, Self>(place)
    }

    #[inline]
    fn write(&self) -> Self::Write<'_> {
        Held::waiting(|| self.0.write())
    }

    #[inline]
    fn try_write(&self) -> Option<Self::Write<'_>> {
        Held::new(|| self.0.try_write())
    }

    #[inline]
    fn read(&self) -> Self::Bulk<'_> {
        Held::waiting(|| self.0.read())
    }

    #[inline]
    fn try_read(&self) -> Option<Self::Bulk<'_>> {
        Held::new(|| self.0.try_read())
    }

    #[inline]
    fn read_urgent(&self) -> Self::Urgent<'_> {
        self.read()
    }

    #[inline]
    fn try_read_urgent(&self) -> Option<Self::Urgent<'_>> {
        self.try_read()
    }

    #[inline]
    fn read_nested(&self) -> Self::Nested<'_> {
        self.read()
    }

    #[inline]
    fn try_read_nested(&self) -> Option<Self::Nested<'_>> {
        self.try_read()
    }

    /// Waits: whoever has the lock is another thread, and not this one below the handler.
    #[inline]
    fn read_handler<'a>(&'a self, (): &'a ()) -> Option<P::Read<'a>> {
        Some(self.0.read())
    }

    #[inline]
    fn try_read_handler<'a>(&'a self, (): &'a ()) -> Option<P::Read<'a>> {
        self.0.try_read()
    }

    unsafe fn install<H: OnSignal<Self>>(signal: i32) -> Result<()> {
        extern "C" fn handler<P: Plain, H: OnSignal<Masked<P>>>(_: i32) {
            // SAFETY: errno is the thread's own.
            let errno = unsafe { &mut *libc::__errno_location() };
            let before = *errno;
            H::run(&());
            *errno = before;
        }
        // SAFETY: all-zero is a valid action with an empty mask; the signal itself is blocked while it runs. `H` is
        // async-signal-safe by the caller's word.
        let rc = unsafe {
            let mut action: libc::sigaction = mem::zeroed();
            action.sa_sigaction = handler::<P, H> as extern "C" fn(i32) as usize;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(signal, &action, ptr::null_mut())
        };
        ensure!(rc == 0, "sigaction: {}", io::Error::last_os_error());
        Ok(())
    }
}
