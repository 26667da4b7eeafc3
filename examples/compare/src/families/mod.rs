//! Families of lock-free algorithms and locks, each right, and with the bugs that one plants first:
//! an ordering too weak, a fence that is missing, a step in the wrong place.
//!
//! An algorithm has words and plain data, of as many as it needs, and every word begins as zero.
//! Nodes of lists and queues are numbers of words, so that no program allocates.

mod idioms;
mod locks;
mod queues;
mod reclaim;

use super::programs::Program;
use super::world::{Arc, AtomicU32, UnsafeCell, spawn, yield_now};
use std::sync::atomic::Ordering::Relaxed;

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

/// So many threads have a critical section each.
fn exclude<const W: usize>(
    threads: u32,
    first: &[(usize, u32)],
    lock: impl Fn(&Place<W, 1>, u32) -> bool + Copy + Send + 'static,
    unlock: impl Fn(&Place<W, 1>, u32) + Copy + Send + 'static,
) {
    let body = |me| -> Body<W, 1> {
        Box::new(move |place| {
            let is_held = lock(place, me);
            if is_held {
                place.count();
                unlock(place, me);
            }
            u32::from(is_held)
        })
    };
    let (held, place) = run(first, (0..threads).map(body).collect());
    assert_eq!(place.read(0), held.iter().sum::<u32>(), "an increment is lost");
}

fn wait(mut until: impl FnMut() -> bool) {
    while !until() {
        yield_now();
    }
}
