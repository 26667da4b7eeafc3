//! A lock without its type, and the code that is compiled for each: clock reads around one
//! acquisition, and a loop in which none is.

use super::{Rank, RwLock};
use crate::run::clock;
use anyhow::Result;
use std::any::Any;
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::sync::OnceLock;

/// What a thread asks of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// To write.
    Write,
    /// To write if that needs no waiting.
    TryWrite,
    /// To read.
    Read(Rank),
    /// To read, in class `Bulk`, if that needs no waiting.
    TryRead,
}

/// A lock without its type.
pub trait Subject: Any + Send + Sync {
    /// One attempt, and if it succeeds `section` with the lock held: the ticks of lock and of
    /// unlock, the clock's own part included.
    fn once(&self, ask: Ask, section: &mut dyn FnMut()) -> Option<[u64; 2]>;

    /// Takes the lock and lets go of it, so many times: the ticks of all that.
    fn pairs(&self, ask: Ask, times: usize) -> u64;
}

/// A lock on lines of its own.
#[derive(Debug)]
#[repr(align(128))]
pub struct Placed<L>(L);

impl<L: RwLock> Placed<L> {
    pub(super) fn place() -> Result<&'static dyn Subject> {
        let mut place = Box::<Self>::new_uninit();
        // SAFETY: a pointer to the field of an allocated, aligned value; `MaybeUninit` may be
        // uninitialised, and no other code refers to it.
        L::place(unsafe { &mut *(&raw mut (*place.as_mut_ptr()).0).cast::<MaybeUninit<L>>() })?;
        // SAFETY: the only field has just been initialised, where it stays.
        Ok(Box::leak(unsafe { place.assume_init() }))
    }
}

/// Calls a function with one that takes the lock as it is asked to, compiled for just that.
macro_rules! asked {
    ($ask:expr, $lock:expr => $use:ident($argument:expr)) => {
        match $ask {
            Ask::Write => $use(|| $lock.write(true), $argument),
            Ask::TryWrite => $use(|| $lock.write(false), $argument),
            Ask::Read(Rank::Bulk) => $use(|| $lock.read(Rank::Bulk, true), $argument),
            Ask::Read(Rank::Urgent) => $use(|| $lock.read(Rank::Urgent, true), $argument),
            Ask::Read(Rank::Nested) => $use(|| $lock.read(Rank::Nested, true), $argument),
            Ask::TryRead => $use(|| $lock.read(Rank::Bulk, false), $argument),
        }
    };
}

impl<L: RwLock> Subject for Placed<L> {
    fn once(&self, ask: Ask, section: &mut dyn FnMut()) -> Option<[u64; 2]> {
        asked!(ask, self.0 => timed(section))
    }

    fn pairs(&self, ask: Ask, times: usize) -> u64 {
        asked!(ask, black_box(&self.0) => pairs(times))
    }
}

#[inline(always)]
fn pairs<G>(take: impl Fn() -> Option<G>, times: usize) -> u64 {
    let before = clock::now();
    for _ in 0..times {
        drop(take());
    }
    clock::now() - before
}

/// One attempt. Fence, clock, lock, clock, section, clock, unlock, clock: so in the seed, so here.
#[inline(always)]
fn timed<G>(take: impl FnOnce() -> Option<G>, section: &mut dyn FnMut()) -> Option<[u64; 2]> {
    let asked = clock::now();
    let held = take();
    let had = clock::now();
    let held = held?;
    section();
    let done = clock::now();
    drop(held);
    let free = clock::now();
    Some([had - asked, free - done])
}

/// Reads a lock in a signal handler, once, for as long as it takes, and runs a section with it
/// held. None if this is not the lock whose handler it is.
pub type Read<'r> = &'r mut dyn FnMut(&'static dyn Subject, &mut dyn FnMut()) -> Option<[u64; 2]>;

/// What is run in signal handlers.
pub(super) static ON_SIGNAL: OnceLock<fn(Read<'_>)> = OnceLock::new();

/// The body of a signal handler, which reads the lock by `read`: an attempt, or patience. It asks
/// until it has the lock, as the seed's interrupt did. The holder is another thread and gets on.
pub(super) fn struck<L: RwLock, G>(read: impl Fn(&'static L) -> Option<G>) {
    let Some(run) = ON_SIGNAL.get() else { return };
    run(&mut |subject, section| {
        let subject: &'static dyn Any = subject;
        let lock = &subject.downcast_ref::<Placed<L>>()?.0;
        let patiently = || loop {
            if let Some(held) = read(lock) {
                return Some(held);
            }
        };
        timed(patiently, section)
    });
}
