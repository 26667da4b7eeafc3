//! Signals kept off a thread while it has to do with a lock, and for how long: the counterpart of
//! the seed's "irqs off".
//!
//! [`Blocking`] is the design that the sifting lock is compared with: a thread that wants the lock
//! blocks the signals whose handlers read it, really, by `pthread_sigmask`, until it has let go
//! again. [`Masked`] gives it to a peer. The writer's acquisition is part of it, since a handler
//! that struck a waiting writer would find itself behind it; and readers block the signals, too,
//! because a reader in a handler would wait for a writer that waits for the very reader that it
//! interrupted.
//!
//! [`Timed`] notes how long a mask is up, around any mask that does not nest. The clock is read
//! after the mask is raised and before it is lowered. The note is made when the mask is down.
//!
//! There are two notes. *Masked* is the time from mask up to mask down, whatever the thread did.
//! *Held off* is that time without what the scheduler took: the time for which the thread was ready
//! and had no CPU. The seed's "irqs off" is both at once, since a CPU with its interrupts off runs
//! no other thread. A thread that was preempted runs no handler, mask or not: that time is as long
//! as time slices are. All the rest counts: work, spinning, system calls, and sleep with the signal
//! blocked, because a thread that sleeps would be woken for its handler.
//!
//! The kernel counts for each thread how long it was ready without a CPU (`schedstat` of proc(5),
//! the second number). It is read before the mask is raised and after it is lowered. What is
//! between a reading and the mask is taken to be all of it waiting for a CPU, which can only make
//! *held off* longer than it was. Where the kernel does not count, there is no second note.

use super::family::install;
use super::timed::struck;
use super::{Rank, RwLock};
use crate::run::clock;
use crate::run::waits::Waits;
use anyhow::Result;
use std::cell::Cell;
use std::fs::File;
use std::marker::PhantomData;
use std::mem::{self, MaybeUninit};
use std::os::unix::fs::FileExt;
use std::ptr;
use ulocks_core::signal::Mask;

/// The signal of readers in handlers.
pub fn signal() -> i32 {
    libc::SIGRTMIN() + 1
}

/// Blocks or unblocks the signal for the calling thread.
pub(crate) fn change(how: i32) {
    // SAFETY: all-zero is a valid set, and the calls write only to it; the old mask is not wanted.
    let rc = unsafe {
        let mut set: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, signal());
        libc::pthread_sigmask(how, &set, ptr::null_mut())
    };
    debug_assert_eq!(rc, 0);
}

/// `pthread_sigmask`; it does not nest.
#[derive(Debug)]
pub enum Blocking {}

impl Mask for Blocking {
    const MASKS: bool = true;

    #[inline]
    fn raise() {
        change(libc::SIG_BLOCK);
    }

    #[inline]
    fn lower() {
        change(libc::SIG_UNBLOCK);
    }
}

/// A mask that does not nest, and how long it is up.
#[derive(Debug)]
pub struct Timed<M>(PhantomData<fn() -> M>);

thread_local! {
    /// Where to note it; handlers have no business here.
    static LOG: Cell<Option<Box<Log>>> = const { Cell::new(None) };
}

impl<M: Mask> Mask for Timed<M> {
    const MASKS: bool = M::MASKS;

    #[inline]
    fn raise() {
        let mut log = LOG.take();
        if let Some(log) = &mut log {
            log.before = log.reading();
        }
        M::raise();
        if let Some(log) = &mut log {
            log.since = clock::now();
        }
        LOG.set(log);
    }

    #[inline]
    fn lower() {
        let until = clock::now();
        M::lower();
        if let Some(mut log) = LOG.take() {
            log.record(until);
            LOG.set(Some(log));
        }
    }
}

/// How long masks were up, on a thread.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// From mask up to mask down.
    pub(crate) masked: Box<Waits>,
    /// That without the time for which the thread was ready and did not run; nothing where that is
    /// not known.
    pub(crate) held_off: Box<Waits>,
    schedstat: Option<File>,
    per_ns: f64,
    /// Since when the mask is up, and what was read before.
    since: u64,
    before: Option<Reading>,
}

/// When the thread had been ready without a CPU for how long, in ticks of the clock.
#[derive(Clone, Copy, Debug)]
struct Reading {
    at: u64,
    waited: u64,
}

impl Log {
    /// As the kernel counts it.
    fn reading(&self) -> Option<Reading> {
        let (at, mut bytes) = (clock::now(), [0; 80]);
        let len = self.schedstat.as_ref()?.read_at(&mut bytes, 0).ok()?;
        // ran waited slices, the first two in nanoseconds
        let ns = std::str::from_utf8(&bytes[..len]).ok()?.split_ascii_whitespace().nth(1)?;
        Some(Reading { at, waited: (ns.parse::<u64>().ok()? as f64 * self.per_ns) as u64 })
    }

    /// The mask was up until then.
    fn record(&mut self, until: u64) {
        let masked = until - self.since;
        self.masked.record(masked);
        if let (Some(before), Some(mut after)) = (self.before, self.reading()) {
            // The clock is read outside of both readings.
            after.at = clock::now();
            self.held_off.record(masked - lost(masked, before, self.since, until, after));
        }
    }
}

/// For how long, of `masked`, a thread was ready without a CPU, at least.
fn lost(masked: u64, before: Reading, since: u64, until: u64, after: Reading) -> u64 {
    // The counters of two CPUs may differ by a little.
    let outside = since.saturating_sub(before.at) + after.at.saturating_sub(until);
    after.waited.saturating_sub(before.waited).saturating_sub(outside).min(masked)
}

/// From here on the calling thread notes how long masks are up; the clock has `per_ns` ticks a
/// nanosecond.
pub(crate) fn start(per_ns: f64) {
    let schedstat = File::open("/proc/thread-self/schedstat").ok();
    LOG.set(Some(Box::new(Log { schedstat, per_ns, ..Log::default() })));
}

/// What it has noted since then.
pub(crate) fn take() -> Option<Box<Log>> {
    LOG.take()
}

/// A peer whose users block the signals of readers in handlers for as long as they want or have it.
#[derive(Debug)]
#[repr(transparent)]
pub struct Masked<P>(P);

/// Holding it: the lock is released first, then the mask lowered, which is the thread's.
#[derive(Debug)]
pub struct Held<G>(Option<G>, PhantomData<*mut ()>);

impl<G> Held<G> {
    #[inline]
    fn new(take: impl FnOnce() -> Option<G>) -> Option<Self> {
        Timed::<Blocking>::raise();
        let held = Self(take(), PhantomData);
        held.0.is_some().then_some(held)
    }
}

impl<G> Drop for Held<G> {
    #[inline]
    fn drop(&mut self) {
        drop(self.0.take());
        Timed::<Blocking>::lower();
    }
}

impl<P: RwLock> RwLock for Masked<P> {
    const TIMED_MASK: bool = true;
    const COUNTABLE: bool = P::COUNTABLE;
    /// The handler waits for the peer: its holder is another thread, and not the one below it.
    const INSTALL: Option<fn(i32) -> Result<()>> =
        Some(|signal| install(signal, |_| struck(|lock: &'static Self| lock.0.read(Rank::Bulk, true))));

    type Write<'a> = Held<P::Write<'a>>;
    type Read<'a> = Held<P::Read<'a>>;

    fn place(place: &mut MaybeUninit<Self>) -> Result<()> {
        // SAFETY: `Masked` is a transparent wrapper; uninitialised memory of one is that of the
        // other.
        P::place(unsafe { &mut *place.as_mut_ptr().cast::<MaybeUninit<P>>() })
    }

    #[inline]
    fn write(&self, wait: bool) -> Option<Self::Write<'_>> {
        Held::new(|| self.0.write(wait))
    }

    #[inline]
    fn read(&self, rank: Rank, wait: bool) -> Option<Self::Read<'_>> {
        Held::new(|| self.0.read(rank, wait))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_have_been_outside_of_the_mask_is_not_taken_out() {
        let reading = |at, waited| Reading { at, waited };
        // Ready without a CPU for 500 of the thousand ticks between the readings; 30 of these were
        // outside of the mask.
        assert_eq!(lost(970, reading(0, 7), 10, 980, reading(1000, 507)), 470);
        // All of it may have been outside.
        assert_eq!(lost(50, reading(0, 0), 900, 950, reading(1000, 500)), 0);
        // The clock of another CPU, a little behind; and never more than there was.
        assert_eq!(lost(100, reading(12, 0), 10, 110, reading(108, 500)), 100);
    }

    #[test]
    fn a_mask_blocks_the_signal_and_is_timed() {
        let is_blocked = || {
            // SAFETY: both sets are valid; a null set changes nothing.
            unsafe {
                let mut set = mem::zeroed();
                libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), &mut set);
                libc::sigismember(&set, signal()) == 1
            }
        };
        start(1.0);
        Timed::<Blocking>::raise();
        assert!(is_blocked());
        Timed::<Blocking>::lower();
        assert!(!is_blocked());
        let log = take().unwrap();
        let longest = |waits: &Waits| Waits::figures(&[waits]).map(|(count, all)| (count, all[5].1));
        let masked = longest(&log.masked).unwrap();
        assert_eq!(masked.0, 1);
        assert!(longest(&log.held_off).is_none_or(|off| off.0 == 1 && off.1 <= masked.1));
    }
}
