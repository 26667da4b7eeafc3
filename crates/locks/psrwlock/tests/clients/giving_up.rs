//! Writers that give up at each of their stages.

use super::place::{Place, soon, with};
use core::panic::Location;
use ulocks_core::raw::{RawRwLock, RawRwLockUpgrade};
use ulocks_psrwlock::{Configuration, ThreadClass};

/// A reader of `Held` stays until a writer has given up, and all that the writer has kept out have
/// come in: readers of `Kept`, and another writer's place among the waiters. For a model in
/// which all deadlines pass in the end.
pub fn writer_gives_up<D: Configuration, Held: ThreadClass, Kept: ThreadClass>(readers: usize) {
    let place = Place::<D>::new();
    let held = place.read::<Held>();
    let writer = with(&place, |place| place.lock.write_until(soon()).is_some());
    let readers: Vec<_> = (0..readers).map(|_| with(&place, Place::reads::<Kept>)).collect();
    readers.into_iter().for_each(|reader| _ = reader.join().expect("a reader panicked"));
    assert!(!writer.join().expect("the writer panicked"), "a writer is not alone");
    let beside = place.lock.try_read_in::<Kept>(Location::caller());
    place.unlock_read(beside.expect("a writer that gave up keeps readers out"));
    place.unlock_read(held);
    place.check_at_rest(0);
}

/// The same of an upgrade, which leaves an upgradable reader.
pub fn upgrade_gives_up<D: Configuration, Held: ThreadClass, Kept: ThreadClass>(readers: usize) {
    let place = Place::<D>::new();
    let held = place.read::<Held>();
    let writer = with(&place, |place| {
        place.lock.upgradable();
        // SAFETY: acquired above.
        let upgraded = unsafe { place.lock.upgrade_until((), soon()) };
        assert!(upgraded.is_err(), "a writer is not alone");
        assert!(place.lock.try_upgradable().is_none(), "an upgrade that gave up has lost the write side");
        place.look();
        // SAFETY: the upgrade that failed left it.
        unsafe { place.lock.unlock_upgradable(()) };
    });
    let readers: Vec<_> = (0..readers).map(|_| with(&place, Place::reads::<Kept>)).collect();
    readers.into_iter().for_each(|reader| _ = reader.join().expect("a reader panicked"));
    writer.join().expect("the writer panicked");
    place.unlock_read(held);
    place.check_at_rest(0);
}

/// A writer waits for a reader that stays until the other writer, which has given up, is gone: it
/// is not forgotten.
pub fn the_other_writer_gets_in<D: Configuration>() {
    let place = Place::<D>::new();
    place.lock.upgradable();
    let patient = with(&place, Place::writes);
    let other = with(&place, Place::writes_in_time);
    // SAFETY: acquired above.
    unsafe { place.lock.unlock_upgradable(()) };
    let counted = patient.join().expect("a writer panicked") + other.join().expect("a writer panicked");
    place.check_at_rest(counted);
}
