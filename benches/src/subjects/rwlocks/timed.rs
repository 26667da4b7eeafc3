//! A lock without its type, and the code that is compiled for each: clock reads around one
//! acquisition, and the loops in which none is.

use super::{Rank, RwLock};
use crate::run::clock;
use anyhow::Result;
use std::any::Any;
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::sync::OnceLock;

/// Locks in a row: they fit into the first cache.
pub const ROW: usize = 64;

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

/// Locks without their type. The first of them is the one that threads contend for.
pub trait Subject: Any + Send + Sync {
    /// One attempt, and if it succeeds `section` with the lock held: the ticks of lock and of
    /// unlock, the clock's own part included.
    fn once(&self, ask: Ask, section: &mut dyn FnMut()) -> Option<[u64; 2]>;

    /// Takes all locks and lets go of them, so many times: the ticks of all locks and those of all
    /// unlocks. Two clock reads belong to [`ROW`] locks, so that the two are told apart though each
    /// takes some nanoseconds. Nobody else has the locks, and there are [`ROW`] of them.
    fn rows(&self, ask: Ask, times: usize, overhead: u64) -> [u64; 2];

    /// Takes the first lock and lets go of it, so many times: the ticks of all that.
    fn pairs(&self, ask: Ask, times: usize) -> u64;
}

/// A lock on lines of its own.
#[derive(Debug)]
#[repr(align(128))]
struct Placed<L>(L);

/// Locks of one type.
#[derive(Debug)]
pub struct Row<L>(Box<[Placed<L>]>);

impl<L: RwLock> Row<L> {
    pub(super) fn place(count: usize) -> Result<&'static dyn Subject> {
        let mut row = Box::<[Placed<L>]>::new_uninit_slice(count);
        for place in &mut row {
            // SAFETY: a pointer to the field of an allocated, aligned value; `MaybeUninit` may be
            // uninitialised, and no other code refers to it.
            L::place(unsafe { &mut *(&raw mut (*place.as_mut_ptr()).0).cast::<MaybeUninit<L>>() })?;
        }
        // SAFETY: the only field of each has just been initialised. A box moves nothing in it.
        Ok(Box::leak(Box::new(Self(unsafe { row.assume_init() }))))
    }
}

/// Calls `$use` with the function that does what is asked, compiled for just that.
macro_rules! asked {
    ($ask:expr, $lock:ident: $type:ty, $take:ident => $use:expr) => {
        asked!(@ $ask, $lock: $type, $take => $use;
            Ask::Write => write(true), Ask::TryWrite => write(false),
            Ask::Read(Rank::Bulk) => read(Rank::Bulk, true),
            Ask::Read(Rank::Urgent) => read(Rank::Urgent, true),
            Ask::Read(Rank::Nested) => read(Rank::Nested, true), Ask::TryRead => read(Rank::Bulk, false))
    };
    (@ $ask:expr, $lock:ident: $type:ty, $take:ident => $use:expr; $($which:pat => $call:ident($($arg:expr),*)),*) => {
        match $ask {$(
            $which => {
                let $take = |$lock: $type| $lock.$call($($arg),*);
                $use
            }
        )*}
    };
}

impl<L: RwLock> Subject for Row<L> {
    fn once<'l>(&'l self, ask: Ask, section: &mut dyn FnMut()) -> Option<[u64; 2]> {
        let first = &self.0[0].0;
        asked!(ask, lock: &'l L, take => timed(|| take(first), section))
    }

    fn rows<'l>(&'l self, ask: Ask, times: usize, overhead: u64) -> [u64; 2] {
        asked!(ask, lock: &'l L, take => {
            let mut ticks = [0; 2];
            for _ in 0..times {
                let start = clock::now();
                let held: [_; ROW] = std::array::from_fn(|index| take(black_box(&self.0[index].0)));
                let had = clock::now();
                // The last first, as masks nest.
                held.into_iter().rev().for_each(drop);
                let free = clock::now();
                ticks[0] += (had - start).saturating_sub(overhead);
                ticks[1] += (free - had).saturating_sub(overhead);
            }
            ticks
        })
    }

    fn pairs<'l>(&'l self, ask: Ask, times: usize) -> u64 {
        let first = &self.0[0].0;
        asked!(ask, lock: &'l L, take => {
            let before = clock::now();
            for _ in 0..times {
                drop(take(black_box(first)));
            }
            clock::now() - before
        })
    }
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
        let lock = &subject.downcast_ref::<Row<L>>()?.0[0].0;
        let patiently = || loop {
            if let Some(held) = read(lock) {
                return Some(held);
            }
        };
        timed(patiently, section)
    });
}
