//! `sembench`, the program of 2010, written anew from the description of what it does.
//!
//! Each of many workers says that it is ready and waits, for a semaphore of its own in arrays of
//! [`EACH`], or for a word of its own. A thread looks through the workers in a circle, begins where
//! it found the last one, takes up to so many that are ready, and posts to all of them: array by
//! array, in sets, or one by one. A worker that comes back must find that it was posted to, and
//! everything that was posted must have arrived in the end; else the run is an error.
//!
//! Workers are dealt to the CPUs in turn, the poster runs where it likes. Where no worker is ready
//! it looks again at once: that is CPU time of its own, in all modes alike.
//!
//! What differs from his program: his list of those to post to is in the order in which they were
//! found, which was the best case of what the patch replaced; here it may be reversed or shuffled
//! too. His futex mode wakes while it looks, this one when it has looked. The clock starts when all
//! workers work, and a window is measured, not a whole run.

use super::{Order, Outcome};
use crate::run::syscalls::countable;
use crate::statistics::random::Rng;
use crate::subjects::laps::{Cell, Lap, cells};
use crate::subjects::locks::Scope;
use crate::subjects::semaphores::{Entry, Semaphores};
use crate::workloads::Workers;
use crate::workloads::watched::{Watch, Work};
use anyhow::{Result, ensure};
use crossbeam_utils::CachePadded;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread;
use std::time::Duration;
use ulocks_semarray::Op;

/// Semaphores in an array.
pub const EACH: usize = 250;

/// Workers, and one who posts.
struct Wakes {
    arrays: Vec<Box<dyn Semaphores>>,
    /// The word of each is one as long as no thread has posted to it. Behind those of the workers
    /// is one for all: how many have ended, and how often one came back and had not been posted to.
    cells: &'static [CachePadded<Cell>],
    workers: usize,
    /// The most that are posted to in a round, and in a call.
    wakes: usize,
    per_call: usize,
    order: Order,
    seed: u64,
    posts: AtomicU64,
}

/// Carries out a run of so many workers, of whom so many are posted to in a round at most.
pub(super) fn carry_out(
    entry: &Entry,
    watch: &Watch<'_>,
    (workers, wakes): (usize, usize),
    order: Order,
) -> Result<Outcome> {
    ensure!(workers > 0 && wakes > 0, "nobody waits or nobody is posted to; allowed: at least 1 of each");
    let scope = match watch.workers {
        Workers::Threads(_) => Scope::Threads,
        Workers::Processes(_) => Scope::Processes,
    };
    let array = |_| (entry.make)(&[0; EACH], scope);
    let arrays = (0..workers.div_ceil(EACH)).map(array).collect::<Result<Vec<_>>>()?;
    let work = Arc::new(Wakes {
        arrays,
        cells: cells(workers + 1)?,
        workers,
        wakes,
        per_call: entry.per_call,
        order,
        seed: watch.conditions.seed,
        posts: AtomicU64::new(0),
    });
    let seen = watch.run(work.clone())?;
    let (who, unposted) = (&watch.who, work.cells[workers].word.load(Relaxed));
    ensure!(unposted == 0, "{who}: workers came back {unposted} times and had not been posted to");
    let (posts, arrived) = (work.posts.load(Relaxed), seen.turns[..workers].iter().sum::<u64>());
    let values = work.arrays.iter().flat_map(|array| array.values());
    let left: u32 = values.sum();
    ensure!(
        arrived == posts && left == 0,
        "{who}: {posts} posts, but {arrived} arrived, and {left} are left over"
    );
    let mut outcome = seen.figures(0..workers, entry.family);
    if entry.in_kernel || countable() {
        let calls = if entry.in_kernel { seen.counts[workers] } else { seen.calls[workers].wakes };
        let arrived = seen.counts[..workers].iter().sum::<u64>().max(1);
        outcome.insert("calls".into(), calls.max(1) as f64 / arrived as f64);
    }
    Ok(outcome)
}

impl Wakes {
    /// Looks from `last` on for workers that are ready.
    fn find(&self, last: &mut usize, rng: &mut Rng, found: &mut Vec<usize>) {
        found.clear();
        let cells = &self.cells[..self.workers];
        let from = *last;
        for index in (0..cells.len()).map(|step| (from + step) % cells.len()) {
            if found.len() == self.wakes {
                break;
            }
            // Acquire: with the Release of the worker.
            if cells[index].ready.load(Acquire) == 1 {
                cells[index].ready.store(0, Relaxed);
                *last = index;
                found.push(index);
            }
        }
        match self.order {
            Order::Fifo => {}
            Order::Lifo => found.reverse(),
            Order::Random => rng.shuffle(found),
        }
    }

    fn work(&self, index: usize, lap: &mut Lap<'_>) {
        let (cell, all) = (&self.cells[index], &self.cells[self.workers]);
        let wait = self.arrays[index / EACH].set(&[Op::sub(index % EACH, 1)]);
        lap.run(|| {
            cell.word.store(1, Relaxed);
            // Release: the finder of a ready worker overwrites the line above.
            cell.ready.store(1, Release);
            wait();
            all.word.fetch_add(cell.word.load(Relaxed), Relaxed);
        });
        all.turns.fetch_add(1, Relaxed);
    }

    /// What the lap of the poster counts are calls.
    fn post(&self, lap: &mut Lap<'_>) {
        let (mut last, mut rng, mut found) = (0, Rng::new(self.seed), Vec::with_capacity(self.wakes));
        let mut posters: Vec<_> = self.arrays.iter().map(|array| array.poster(self.per_call)).collect();
        let mut of_array: Vec<Vec<usize>> = vec![Vec::with_capacity(EACH); posters.len()];
        let mut round = |lap: &mut Lap<'_>| {
            self.find(&mut last, &mut rng, &mut found);
            for &index in &found {
                self.cells[index].word.store(0, Relaxed);
                of_array[index / EACH].push(index % EACH);
            }
            let mut calls = 0;
            for (post, semaphores) in posters.iter_mut().zip(&mut of_array) {
                calls += post(semaphores);
                semaphores.clear();
            }
            lap.add(calls);
            self.posts.store(self.posts.load(Relaxed) + found.len() as u64, Relaxed);
        };
        while lap.goes_on() {
            round(lap);
        }
        // The others end when they have been posted to once more.
        while self.cells[self.workers].turns.load(Relaxed) < self.workers as u64 {
            round(lap);
            thread::sleep(Duration::from_micros(200));
        }
    }
}

impl Work for Wakes {
    fn go_round(&self, index: usize, lap: &mut Lap<'_>) {
        if index < self.workers { self.work(index, lap) } else { self.post(lap) }
    }

    fn enough(&self) -> u64 {
        4 * self.workers as u64
    }
}
