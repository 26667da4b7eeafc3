//! Families of lock-free algorithms and locks, each right, and with the bugs that one plants first:
//! an ordering too weak, a fence that is missing, a step in the wrong place.
//!
//! An algorithm has words and plain data, of as many as it needs, and every word begins as zero.
//! Nodes of lists and queues are numbers of words, so that no program allocates.

pub mod idioms;
pub mod locks;
pub mod queues;
mod reclaim;

use super::programs::Program;
use super::world::{Arc, AtomicU32, UnsafeCell, fence, spawn, yield_now};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

/// All programs, family by family.
pub fn all() -> impl Iterator<Item = &'static Program> {
    [locks::ALL, queues::ALL, reclaim::ALL, idioms::ALL].into_iter().flatten()
}

/// What the threads of a program share.
pub struct Place<const W: usize, const D: usize> {
    words: [AtomicU32; W],
    data: [UnsafeCell<u32>; D],
}

// SAFETY: data is accessed by one thread at a time if the algorithm is right. The tools say if not.
unsafe impl<const W: usize, const D: usize> Sync for Place<W, D> {}
// SAFETY: as above.
unsafe impl<const W: usize, const D: usize> Send for Place<W, D> {}

impl<const W: usize, const D: usize> Place<W, D> {
    fn read(&self, which: usize) -> u32 {
        // SAFETY: nobody writes it now, if the algorithm is right.
        self.data[which].with(|data| unsafe { *data })
    }

    fn write(&self, which: usize, value: u32) {
        // SAFETY: nobody else accesses it now, if the algorithm is right.
        self.data[which].with_mut(|data| unsafe { *data = value });
    }

    /// A critical section.
    fn count(&self) {
        self.write(0, self.read(0) + 1);
    }
}

type Body<const W: usize, const D: usize> = Box<dyn FnOnce(&Place<W, D>) -> u32 + Send>;

/// What a thread does that returns nothing.
fn quiet<const W: usize, const D: usize>(body: impl FnOnce(&Place<W, D>) + Send + 'static) -> Body<W, D> {
    Box::new(move |place| {
        body(place);
        0
    })
}

/// Runs the bodies as threads, the last one on the calling thread. What they return, and what they
/// have shared.
fn run<const W: usize, const D: usize>(
    first: &[(usize, u32)],
    mut bodies: Vec<Body<W, D>>,
) -> (Vec<u32>, Arc<Place<W, D>>) {
    let words = std::array::from_fn(|_| AtomicU32::new(0));
    let data = std::array::from_fn(|_| UnsafeCell::new(0));
    let place = Arc::new(Place { words, data });
    first.iter().for_each(|&(word, value)| place.words[word].store(value, Relaxed));
    let own = bodies.pop().expect("a body");
    let others: Vec<_> = bodies
        .into_iter()
        .map(|body| {
            let place = Arc::clone(&place);
            spawn(move || body(&place))
        })
        .collect();
    let own = own(&place);
    let mut results: Vec<u32> = others.into_iter().map(|other| other.join().unwrap()).collect();
    results.push(own);
    (results, place)
}

/// How the threads of a program use a lock.
#[derive(Clone, Copy)]
pub struct Clients {
    pub threads: u32,
    /// Critical sections of each thread.
    pub rounds: u32,
    /// Whether a holder releases the lock.
    pub release: bool,
}

pub const TWO: Clients = Clients { threads: 2, rounds: 1, release: true };
pub const THREE: Clients = Clients { threads: 3, ..TWO };

/// The threads have critical sections.
fn exclude<const W: usize>(
    clients: Clients,
    first: &[(usize, u32)],
    lock: impl Fn(&Place<W, 1>, u32) -> bool + Copy + Send + 'static,
    unlock: impl Fn(&Place<W, 1>, u32) + Copy + Send + 'static,
) {
    let body = |me| -> Body<W, 1> {
        Box::new(move |place| {
            let mut held = 0;
            for _ in 0..clients.rounds {
                if lock(place, me) {
                    place.count();
                    held += 1;
                    if clients.release {
                        unlock(place, me);
                    }
                }
            }
            held
        })
    };
    let (held, place) = run(first, (0..clients.threads).map(body).collect());
    assert_eq!(place.read(0), held.iter().sum::<u32>(), "an increment is lost");
}

/// How a protocol keeps a load behind the store before it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Strong {
    /// All accesses are `SeqCst`.
    Accesses,
    /// There is a `SeqCst` fence behind each store.
    Fences,
    /// It does not: it has `Acquire` and `Release`.
    Not,
}

impl Strong {
    fn store(self, word: &AtomicU32, value: u32) {
        word.store(value, if self == Self::Accesses { SeqCst } else { Release });
        if self == Self::Fences {
            fence(SeqCst);
        }
    }

    fn load(self, word: &AtomicU32) -> u32 {
        word.load(if self == Self::Accesses { SeqCst } else { Acquire })
    }
}

fn wait(mut until: impl FnMut() -> bool) {
    while !until() {
        yield_now();
    }
}
