//! Lock and unlock where no thread contends: some nanoseconds each, which no clock can time one by
//! one.
//!
//! A batch takes a row of locks, all of them, and then lets go of all: two clock reads for each
//! half, and the locks fit into the first cache. So lock and unlock are timed apart. A pair is
//! timed on one lock, over and over. Of many batches the best and the median are kept: what
//! disturbs a batch makes it slower.
//!
//! A lock that keeps signals off while it is held would do so once for a whole row; of such a lock
//! there are pairs only.

use super::{Rank, Run};
use crate::run::clock::{self, Calibration};
use crate::run::pinning;
use crate::statistics;
use crate::subjects::rwlocks::{Bulk, Nested, Placed, RwLock, Urgent};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Locks in a row.
const ROW: usize = 64;
/// Rows in a batch.
const ROWS: usize = 32;
/// Pairs in a batch: some tens of microseconds.
const PAIRS: usize = 4_000;
/// Batches.
const BATCHES: usize = 300;

/// Nanoseconds: the best batch and the median.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Batch {
    /// Of a lock.
    pub lock: Option<(f64, f64)>,
    /// Of an unlock.
    pub unlock: Option<(f64, f64)>,
    /// Of both, the loop around them included.
    pub pair: (f64, f64),
}

/// What belongs to a run, if it is one without contention. Binds the calling thread to a CPU for
/// good.
pub(super) fn of<L: RwLock>(run: Run, cpus: &[usize], window_ms: u64) -> Result<Option<Batch>> {
    if let Some(&cpu) = cpus.first() {
        pinning::bind(cpu)?;
    }
    // Some milliseconds are enough for all batches; a smoke run has none to spare.
    let limit = Duration::from_millis(window_ms);
    Ok(Some(match run {
        Run::Writer => batches(limit, L::write)?,
        Run::TryWriter => batches(limit, |lock: &L| lock.try_write().expect("nobody else has it"))?,
        Run::Reader(Rank::Bulk) => batches(limit, L::read::<Bulk>)?,
        Run::Reader(Rank::Urgent) => batches(limit, L::read::<Urgent>)?,
        Run::Reader(Rank::Nested) => batches(limit, L::read::<Nested>)?,
        _ => return Ok(None),
    }))
}

/// All batches, or those before the limit: one at least.
fn batches<'l, L: RwLock, G>(limit: Duration, take: impl Fn(&'l L) -> G) -> Result<Batch> {
    // The locks live as long as the process: a guard borrows them for a lifetime that `take` has
    // chosen.
    let row = (0..ROW).map(|_| Ok(&*Box::leak(Placed::<L>::new()?))).collect::<Result<Vec<_>>>()?;
    let row: Vec<&'l L> = row.into_iter().map(Placed::lock).collect();
    let (clock, start) = (Calibration::new(), Instant::now());
    let (mut locks, mut unlocks, mut pairs) = (Vec::new(), Vec::new(), Vec::new());
    while pairs.len() < BATCHES && (pairs.len() < 3 || start.elapsed() < limit) {
        if !L::TIMED_MASK {
            let (lock, unlock) = rows(&row, &take, clock.overhead());
            locks.push(clock.ns(lock) / (ROW * ROWS) as f64);
            unlocks.push(clock.ns(unlock) / (ROW * ROWS) as f64);
        }
        let before = clock::now();
        for _ in 0..PAIRS {
            drop(take(black_box(row[0])));
        }
        let ticks = (clock::now() - before).saturating_sub(clock.overhead());
        pairs.push(clock.ns(ticks as f64) / PAIRS as f64);
    }
    let best = |all: &[f64]| all.iter().copied().fold(f64::INFINITY, f64::min);
    let both = |all: &[f64]| (!all.is_empty()).then(|| (best(all), statistics::median(all)));
    Ok(Batch { lock: both(&locks), unlock: both(&unlocks), pair: (best(&pairs), statistics::median(&pairs)) })
}

/// A batch of rows: the ticks of all locks and of all unlocks.
#[inline(never)]
fn rows<'l, L: RwLock, G>(row: &[&'l L], take: &impl Fn(&'l L) -> G, overhead: u64) -> (f64, f64) {
    let (mut lock, mut unlock) = (0, 0);
    for _ in 0..ROWS {
        let start = clock::now();
        let held: [G; ROW] = std::array::from_fn(|index| take(black_box(row[index])));
        let had = clock::now();
        // The last first, as masks nest.
        held.into_iter().rev().for_each(drop);
        let free = clock::now();
        lock += (had - start).saturating_sub(overhead);
        unlock += (free - had).saturating_sub(overhead);
    }
    (lock as f64, unlock as f64)
}
