//! What classes are for.

use super::place::{Place, with};
use ulocks_core::sync::spin_until;
use ulocks_psrwlock::{Bulk, Configuration, ThreadClass};

/// A thread that reads in one class takes another read lock, while a writer comes: with the inner
/// class higher than the outer one both get in.
pub fn nesting<D: Configuration, Outer: ThreadClass, Inner: ThreadClass>() {
    let place = Place::<D>::new();
    let writer = with(&place, Place::writes);
    let outer = place.read::<Outer>();
    let before = place.look();
    let inner = place.read::<Inner>();
    assert_eq!(place.look(), before, "somebody wrote between two read locks of one thread");
    place.unlock_read(inner);
    place.unlock_read(outer);
    writer.join().expect("the writer panicked");
    place.check_at_rest(1);
}

/// While a writer waits for a reader of [`Bulk`], or has not even come, readers of a higher class
/// go in and out: that reader waits for them.
pub fn sifting<D: Configuration, Higher: ThreadClass, const N: usize>(writers: usize, higher: [(); N]) {
    let place = Place::<D>::new();
    let bulk = place.read::<Bulk>();
    let writers: Vec<_> = (0..writers).map(|_| with(&place, Place::writes)).collect();
    let expected = writers.len();
    let higher: Vec<_> = higher.into_iter().map(|()| with(&place, Place::reads::<Higher>)).collect();
    higher.into_iter().for_each(|reader| _ = reader.join().expect("a reader panicked"));
    place.unlock_read(bulk);
    writers.into_iter().for_each(|writer| _ = writer.join().expect("a writer panicked"));
    place.check_at_rest(expected);
}

/// A writer that finds no reader of [`Bulk`] goes on to the next class, although there is a reader
/// of that one: which waits until it has.
pub fn one_at_a_time<D: Configuration, Higher: ThreadClass>() {
    let place = Place::<D>::new();
    let higher = place.read::<Higher>();
    let writer = with(&place, Place::writes);
    spin_until(|| place.lock.state().level() == 2);
    place.unlock_read(higher);
    writer.join().expect("the writer panicked");
    place.check_at_rest(1);
}
