//! What the bytes of a robust lock say: `SharedSafe::SHOWN_AS` says which lock it is.
//!
//! | low byte | lock | the other bits |
//! |---|---|---|
//! | 0 | none of these: a plain lock, or a struct | |
//! | 1 | `Mutex` | |
//! | 2 | `FairMutex` | |
//! | 3 | `RwLock` | its number of slots |
//! | 4 | `SemArray`, `Semaphore` | semaphores (12 bits), operations of a set |
//! | 5 | `Condvar` | |

use super::slots::{Life, Slots};
use super::word;
use crate::robust::fair_mutex::{self, RawFairMutex};
use crate::robust::mutex::raw::{self, RawMutex};
use crate::robust::rwlock::raw as rwlock;
use crate::robust::semarray::raw::RawSemArray;
use crate::robust::{RawRobust, health};
use crate::slots::Owner;
use ulocks_core::Shared;

const MUTEX: u32 = 1;
const FAIR_MUTEX: u32 = 2;
pub(crate) const RWLOCK: u32 = 3;
const ARRAY: u32 = 4;
pub(crate) const CONDVAR: u32 = 5;

/// How a mutex of this raw lock is shown.
pub(crate) const fn shown_mutex<L: RawRobust>() -> u32 {
    match L::NAME.as_bytes() {
        b"shm::Mutex" => MUTEX,
        b"shm::FairMutex" => FAIR_MUTEX,
        _ => 0,
    }
}

/// How a lock of that kind with a parameter is shown.
pub(crate) const fn shown_parameter(kind: u32, parameter: usize) -> u32 {
    if parameter < 1 << 24 { kind | (parameter as u32) << 8 } else { 0 }
}

/// How an array with so many semaphores, and operations of a set, is shown.
pub(crate) const fn shown_array(semaphores: usize, operations: usize) -> u32 {
    if semaphores < 1 << 12 && operations < 1 << 12 {
        shown_parameter(ARRAY, semaphores | operations << 12)
    } else {
        0
    }
}

/// What a lock knows of its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// Nothing is known against it.
    Consistent,
    /// A holder died or panicked: the next one is told.
    Dirty,
    /// No holder has repaired it.
    NotRecoverable,
    /// The word has none of its values.
    Corrupt(u32),
}

/// Which threads wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiters {
    /// So many.
    Number(usize),
    /// The lock does not count them: some may sleep.
    Maybe,
}

/// A thread that has a lock, or a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its slot.
    pub slot: usize,
    /// Whether it lives; `None` if there is no such slot.
    pub life: Option<Life>,
    /// Whether it is one of several that may hold the lock together.
    pub is_shared: bool,
    /// The changes of values that its death takes back.
    pub undo: Vec<(usize, i32)>,
}

/// What a lock says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundLock {
    /// The threads that have it.
    pub holders: Vec<Holder>,
    /// The threads that wait for it.
    pub waiters: Option<Waiters>,
    /// What it knows of its data.
    pub health: Option<Health>,
    /// The values of its semaphores.
    pub values: Vec<i32>,
    /// The word of a mutex that names no owner and is not free.
    pub corrupt: Option<u32>,
}

impl FoundLock {
    /// Whether a word has none of its values.
    pub(super) fn is_damaged(&self) -> bool {
        let unknown = self.holders.iter().any(|holder| holder.life.is_none());
        unknown || self.corrupt.is_some() || matches!(self.health, Some(Health::Corrupt(_)))
    }
}

/// The lock that is shown as `shown_as` and has these bytes, which begin at `offset` of the region.
/// `None` if it cannot be shown.
pub(super) fn lock(shown_as: u32, bytes: &[u8], offset: u64, slots: &Slots) -> Option<FoundLock> {
    let parameter = (shown_as >> 8) as usize;
    let queued = || Some(Waiters::Number(slots.waiters(offset, bytes.len() as u64)));
    let holder = |at: usize, is_shared: bool| {
        let owner = Owner::of(word(bytes, at))?;
        Some(Holder { slot: owner.slot(), life: slots.life(owner), is_shared, undo: Vec::new() })
    };
    let state = word(bytes, 0);
    let corrupt = |flags: u32| (Owner::of(state).is_none() && state & !flags != 0).then_some(state);
    Some(match shown_as & 0xff {
        MUTEX => FoundLock {
            holders: holder(0, false).into_iter().collect(),
            // Without the flag threads may sleep, too, if one of them is on its way: not known.
            waiters: (state & raw::WAITERS != 0).then_some(Waiters::Maybe),
            health: Some(health_of(word(bytes, size_of::<RawMutex>()))),
            corrupt: corrupt(0),
            ..FoundLock::default()
        },
        FAIR_MUTEX => FoundLock {
            holders: holder(0, false)
                .filter(|_| word(bytes, 0) & fair_mutex::CLEAN == 0)
                .into_iter()
                .collect(),
            waiters: queued(),
            health: Some(health_of(word(bytes, size_of::<RawFairMutex<Shared>>()))),
            corrupt: corrupt(0),
            ..FoundLock::default()
        },
        RWLOCK => {
            // `writer`, `reading`, `health`; without slots it ends where the readers begin.
            let readers = size_of::<rwlock::RawRwLock<Shared, 0>>();
            let writer = holder(0, false).filter(|_| state & rwlock::CLEAN == 0);
            let readers = (0..parameter).filter_map(|slot| holder(readers + slot * 4, true));
            FoundLock {
                holders: writer.into_iter().chain(readers).collect(),
                waiters: queued(),
                health: Some(health_of(word(bytes, 8))),
                ..FoundLock::default()
            }
        }
        ARRAY => array(parameter, bytes, slots, queued()),
        CONDVAR => FoundLock { waiters: queued(), ..FoundLock::default() },
        _ => return None,
    })
}

fn array(parameter: usize, bytes: &[u8], slots: &Slots, waiters: Option<Waiters>) -> FoundLock {
    let (semaphores, operations) = (parameter & 0xfff, parameter >> 12);
    // The queue, two words, and the journal, with three words for each operation; then the values,
    // the process of each, and when it was set; then a row for each slot: five words, two for each
    // operation, and what its death takes back.
    let values = ARRAY_HEAD + operations * 12;
    let rows = values + semaphores * 12;
    let row = 20 + operations * 8 + semaphores * 4;
    let value = |at: usize| word(bytes, at).cast_signed();
    let begins = (0..).map(|slot| rows + slot * row).take_while(|begin| begin + row <= bytes.len());
    let holders = begins.filter_map(|begin| {
        let owner = Owner::of(word(bytes, begin))?;
        let undo = (0..semaphores).map(|index| (index, value(begin + row - (semaphores - index) * 4)));
        let undo: Vec<_> = undo.filter(|&(_, undo)| undo != 0).collect();
        let holder = Holder { slot: owner.slot(), life: slots.life(owner), is_shared: true, undo };
        (!holder.undo.is_empty()).then_some(holder)
    });
    FoundLock {
        holders: holders.collect(),
        waiters,
        values: (0..semaphores).map(|index| value(values + index * 4)).collect(),
        ..FoundLock::default()
    }
}

/// The queue, two counts, and the journal but for its operations.
const ARRAY_HEAD: usize = 40;
const _: () = assert!(size_of::<RawSemArray<2, 1, 2, Shared>>() == ARRAY_HEAD + 24 + 24 + 20 + 16 + 8 + 4);
const _: () = assert!(size_of::<rwlock::RawRwLock<Shared, 2>>() == 32 + 8);

fn health_of(word: u32) -> Health {
    match word {
        health::CONSISTENT => Health::Consistent,
        health::DIRTY => Health::Dirty,
        health::NOT_RECOVERABLE => Health::NotRecoverable,
        word => Health::Corrupt(word),
    }
}
