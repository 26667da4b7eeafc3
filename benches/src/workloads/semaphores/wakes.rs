//! `sembench`, the program of the seed of 2010, written anew from the description of what it does.
//!
//! Each of many workers says that it is ready and waits, for a semaphore of its own in arrays of
//! [`EACH`], or for a word of its own. The main thread looks through the workers in a circle,
//! begins where it found the last one, takes up to so many that are ready, and posts to all of
//! them: array by array, up to [`PER_CALL`] semaphores a call, or one by one. A worker that comes
//! back must find that it was posted to, and everything that was posted must have arrived in the
//! end; else the run is an error.
//!
//! Workers are dealt to the CPUs in turn, the main thread runs where it likes. Where no thread is
//! ready it looks again at once: that is CPU time of its own, in all modes alike.
//!
//! What differs from his program: his list of those to post to is in the order in which they were
//! found, which was the best case of what the patch replaced; here it may be reversed or shuffled
//! too. His futex mode wakes while it looks, this one when it has looked. The clock starts when all
//! workers work, and a window is measured, not a whole run.

use super::{Order, Outcome, Run, Spec};
use crate::run::crew::Crew;
use crate::run::pinning::{self, Pin};
use crate::run::syscalls;
use crate::run::threads::clock_time;
use crate::statistics::random::Rng;
use crate::subjects::semaphores::arrays::{Array, Kernel, Ours};
use crate::subjects::semaphores::{Entry, Made};
use crate::workloads::window::{MEASURE, STOP, WARM_UP};
use anyhow::{Result, bail, ensure};
use crossbeam_utils::CachePadded;
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

/// Semaphores in an array.
pub const EACH: usize = 250;
/// The most operations in a call.
pub const PER_CALL: usize = 64;

/// What worker and main thread say to each other.
#[derive(Debug, Default)]
struct Worker {
    /// One as long as no thread has posted to it; the word that a futex sleeps on.
    waiting: AtomicU32,
    /// One when it may be posted to.
    ready: AtomicU32,
}

/// How it waits, and how it is posted to.
trait Post: Sync {
    /// What posting needs from round to round.
    type Scratch;
    fn scratch(&self) -> Self::Scratch;
    /// Waits for a post.
    fn wait(&self, index: usize, worker: &Worker);
    /// Posts to these workers in this order; says how many system calls that took, if it knows.
    fn post(&self, scratch: &mut Self::Scratch, workers: &[CachePadded<Worker>], found: &[usize]) -> u64;
    /// Whether nothing is left over.
    fn is_clean(&self) -> Result<bool>;
}

/// Semaphores in arrays.
struct Arrays<A> {
    arrays: Vec<A>,
    per_call: usize,
}

impl<A: Array> Arrays<A> {
    fn new(workers: usize, one_by_one: bool, make: impl Fn(&[u32]) -> Result<A>) -> Result<Self> {
        let arrays = (0..workers.div_ceil(EACH)).map(|_| make(&[0; EACH])).collect::<Result<_>>()?;
        Ok(Self { arrays, per_call: if one_by_one { 1 } else { PER_CALL } })
    }
}

impl<A: Array> Post for Arrays<A> {
    type Scratch = Vec<Vec<A::Op>>;

    fn scratch(&self) -> Self::Scratch {
        self.arrays.iter().map(|_| Vec::with_capacity(EACH)).collect()
    }

    fn wait(&self, index: usize, _: &Worker) {
        self.arrays[index / EACH].apply(&[A::sub(index % EACH, 1)]);
    }

    fn post(&self, scratch: &mut Self::Scratch, workers: &[CachePadded<Worker>], found: &[usize]) -> u64 {
        for &index in found {
            workers[index].waiting.store(0, Relaxed);
            scratch[index / EACH].push(A::add_at_once(index % EACH, 1));
        }
        let mut calls = 0;
        for (array, ops) in self.arrays.iter().zip(scratch) {
            for set in ops.chunks(self.per_call) {
                array.apply(set);
                calls += 1;
            }
            ops.clear();
        }
        calls
    }

    fn is_clean(&self) -> Result<bool> {
        let values = self.arrays.iter().map(Array::values).collect::<Result<Vec<_>>>()?;
        Ok(values.iter().flatten().all(|&value| value == 0))
    }
}

/// A word a worker.
struct Words {
    flag: libc::c_int,
}

impl Post for Words {
    type Scratch = ();

    fn scratch(&self) {}

    fn wait(&self, _: usize, worker: &Worker) {
        // Acquire: with the Release in `post`.
        while worker.waiting.load(Acquire) == 1 {
            let (operation, forever) = (libc::FUTEX_WAIT | self.flag, ptr::null::<libc::timespec>());
            // SAFETY: the word lives until all workers have been joined; without a timeout no other
            // pointer is followed.
            unsafe { libc::syscall(libc::SYS_futex, worker.waiting.as_ptr(), operation, 1, forever) };
        }
    }

    fn post(&self, (): &mut (), workers: &[CachePadded<Worker>], found: &[usize]) -> u64 {
        for &index in found {
            let word = &workers[index].waiting;
            word.store(0, Release);
            // SAFETY: a wake needs the address alone.
            unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | self.flag, 1) };
        }
        found.len() as u64
    }

    fn is_clean(&self) -> Result<bool> {
        Ok(true)
    }
}

/// Carries out a run of this kind.
pub(super) fn run(spec: &Spec, entry: &Entry) -> Result<Outcome> {
    let Run::Wakes { threads, wakes, .. } = spec.run else { bail!("a run of another kind") };
    ensure!(threads > 0 && wakes > 0, "nobody waits or nobody is posted to; allowed: at least 1 of each");
    let workers = threads as usize;
    match entry.made_of {
        Made::Kernel => run_with(spec, &Arrays::new(workers, entry.one_by_one, Kernel::new)?, true),
        Made::Ours(fairness) => {
            let make = |values: &[u32]| Ours::new(values, fairness);
            run_with(spec, &Arrays::new(workers, entry.one_by_one, make)?, false)
        }
        Made::Futex { private } => {
            run_with(spec, &Words { flag: if private { libc::FUTEX_PRIVATE_FLAG } else { 0 } }, true)
        }
        Made::Posix | Made::Floor => bail!("'{}' takes no part in sembench", entry.name),
    }
}

/// What all threads share.
struct Shared<'a, P> {
    post: &'a P,
    workers: Vec<CachePadded<Worker>>,
    phase: AtomicU64,
    /// Workers that have ended.
    ended: AtomicU64,
    /// How often one came back and had not been posted to.
    unposted: AtomicU64,
}

/// What one has done.
struct Tally {
    counted: u64,
    all: u64,
}

impl<P: Post> Shared<'_, P> {
    fn work(&self, index: usize) -> Tally {
        let worker = &self.workers[index];
        let mut tally = Tally { counted: 0, all: 0 };
        loop {
            worker.waiting.store(1, Relaxed);
            // Release: the finder of a ready worker overwrites the line above.
            worker.ready.store(1, Release);
            self.post.wait(index, worker);
            if worker.waiting.load(Relaxed) != 0 {
                self.unposted.fetch_add(1, Relaxed);
            }
            tally.all += 1;
            match self.phase.load(Relaxed) {
                WARM_UP => {}
                MEASURE => tally.counted += 1,
                _ => {
                    self.ended.fetch_add(1, Relaxed);
                    return tally;
                }
            }
        }
    }
}

/// Finds workers that are ready.
struct Finder {
    /// Where the last one was found.
    last: usize,
    order: Order,
    rng: Rng,
    found: Vec<usize>,
}

impl Finder {
    /// Finds up to `most` that are ready.
    fn find(&mut self, workers: &[CachePadded<Worker>], most: usize) -> &[usize] {
        self.found.clear();
        'next: while self.found.len() < most {
            for step in 0..workers.len() {
                let index = (self.last + step) % workers.len();
                // Acquire: with the Release in `work`.
                if workers[index].ready.load(Acquire) == 1 {
                    workers[index].ready.store(0, Relaxed);
                    self.last = index;
                    self.found.push(index);
                    continue 'next;
                }
            }
            break;
        }
        match self.order {
            Order::Fifo => {}
            Order::Lifo => self.found.reverse(),
            Order::Random => {
                for last in (1..self.found.len()).rev() {
                    self.found.swap(last, self.rng.below(last as u64 + 1) as usize);
                }
            }
        }
        &self.found
    }
}

/// What the window is between two of.
#[derive(Clone, Copy)]
struct Reading {
    at: Instant,
    cpu: Duration,
    posts: u64,
    calls: u64,
}

/// `own_calls`: whether every system call of posting is a call that [`Post::post`] counts. Else
/// they are those that wake.
fn run_with<P: Post>(spec: &Spec, post: &P, own_calls: bool) -> Result<Outcome> {
    let Run::Wakes { threads, wakes, order } = spec.run else { bail!("a run of another kind") };
    let cpus = pinning::order(Pin::Scatter)?;
    let shared = Shared {
        post,
        workers: (0..threads).map(|_| CachePadded::default()).collect(),
        phase: AtomicU64::new(WARM_UP),
        ended: AtomicU64::new(0),
        unposted: AtomicU64::new(0),
    };
    let mut finder =
        Finder { last: 0, order, rng: Rng::new(spec.seed), found: Vec::with_capacity(wakes as usize) };
    let (posts, calls, wakeups) = (Cell::new(0), Cell::new(0), syscalls::Counters::default());
    let read = || Reading {
        at: Instant::now(),
        cpu: clock_time(libc::CLOCK_PROCESS_CPUTIME_ID),
        posts: posts.get(),
        calls: if own_calls { calls.get() } else { wakeups.read().wakes },
    };
    let bind = |index: usize| pinning::bind(cpus[index % cpus.len()]);
    // One that cannot be bound works all the same: the main thread waits for all of them.
    let work = |index: usize, bound: Result<()>| {
        let tally = shared.work(index);
        bound.map(|()| tally)
    };
    let (tally, [from, to]) = thread::scope(|s| {
        let small = |_| Builder::new().stack_size(64 * 1024);
        let crew = Crew::start(s, threads as usize, small, &bind, &work)?;
        let mut scratch = post.scratch();
        let mut round = || {
            let found = finder.find(&shared.workers, wakes as usize);
            calls.set(calls.get() + post.post(&mut scratch, &shared.workers, found));
            posts.set(posts.get() + found.len() as u64);
        };
        let window = syscalls::count(&wakeups, || {
            let mut until = |end: Instant| {
                while Instant::now() < end {
                    round();
                }
                read()
            };
            let from = until(Instant::now() + Duration::from_millis(spec.warmup_ms));
            shared.phase.store(MEASURE, Relaxed);
            let to = until(from.at + Duration::from_millis(spec.window_ms));
            shared.phase.store(STOP, Relaxed);
            [from, to]
        });
        while shared.ended.load(Relaxed) < u64::from(threads) {
            round();
            thread::sleep(Duration::from_micros(200));
        }
        anyhow::Ok((crew.join().into_iter().collect::<Result<Vec<Tally>>>()?, window))
    })?;

    let unposted = shared.unposted.load(Relaxed);
    ensure!(unposted == 0, "'{}': {unposted} workers came back and had not been posted to", spec.subject);
    let arrived: u64 = tally.iter().map(|tally| tally.all).sum();
    ensure!(
        arrived == posts.get() && post.is_clean()?,
        "'{}': {} posts, but {arrived} arrived, or some are left over",
        spec.subject,
        posts.get()
    );
    Ok(Outcome {
        elapsed_s: (to.at - from.at).as_secs_f64(),
        cpu_s: (to.cpu - from.cpu).as_secs_f64(),
        ops: to.posts - from.posts,
        counts: tally.iter().map(|tally| tally.counted).collect(),
        beside: Vec::new(),
        calls: (own_calls || syscalls::countable()).then_some(to.calls - from.calls),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::semaphores::tests::{Open, spec};

    #[test]
    fn workers_notice_that_nobody_has_posted_to_them() {
        let open = Arrays { arrays: vec![Open], per_call: PER_CALL };
        let run = Run::Wakes { threads: 4, wakes: 4, order: Order::Fifo };
        let error = run_with(&spec("open", run), &open, true).unwrap_err().to_string();
        assert!(error.starts_with("'open': ") && error.ends_with("had not been posted to"), "{error}");
    }

    #[test]
    fn those_who_are_ready_are_found_in_a_circle_and_put_in_order() {
        let workers: Vec<CachePadded<Worker>> = (0..5).map(|_| CachePadded::default()).collect();
        let mut finder = Finder { last: 3, order: Order::Fifo, rng: Rng::new(1), found: Vec::new() };
        let mut find = |order, ready: &[usize], most| {
            ready.iter().for_each(|&index| workers[index].ready.store(1, Relaxed));
            finder.order = order;
            finder.find(&workers, most).to_vec()
        };
        assert_eq!(find(Order::Fifo, &[0, 1, 3, 4], 3), [3, 4, 0]);
        assert_eq!(find(Order::Fifo, &[], 3), [1]);
        assert_eq!(find(Order::Lifo, &[0, 2, 4], 9), [0, 4, 2]);
        let mut all = find(Order::Random, &[0, 1, 2, 3, 4], 9);
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3, 4]);
        assert!(find(Order::Lifo, &[], 9).is_empty());
    }
}
