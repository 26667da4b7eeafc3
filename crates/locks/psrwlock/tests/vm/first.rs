//! Readers that come first: they join those that are inside, whatever writers wait.

use crate::place::{Place, soon};
use crate::{Sleeps, sampled};
use core::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use ulocks_core::model::{Config, Strategy, explore};
use ulocks_core::raw::RawRwLock;
use ulocks_core::signal::Soft;
use ulocks_core::sync::spin_until;
use ulocks_core::{Private, sync};
use ulocks_psrwlock::{BULK, Bulk, Central, ReadersFirst, Sifted, Unchecked};
use ulocks_testkit::thread::{Arc, with};

type First<P = Sleeps> = Sifted<BULK, P, ReadersFirst, Central, Soft, Unchecked>;

/// A reader leaves when so many others have been inside with it. Others come at any moment, some
/// through the queue of the write phase before, and writers wait in all ways.
fn readers_wait_for_readers<P: ulocks_core::Policy>(others: usize, writers: usize) {
    let place = Place::<First<P>>::new();
    let met = Arc::new(sync::AtomicU32::new(0));
    let first = {
        let met = Arc::clone(&met);
        with(&place, move |place| {
            let token = place.read::<Bulk>();
            let seen = place.look();
            spin_until(|| met.load(sync::Ordering::Acquire) == others as u32);
            assert_eq!(place.look(), seen, "a writer came to readers");
            place.unlock_read(token);
            0
        })
    };
    let mut threads: Vec<_> = (0..writers)
        .map(|nth| with(&place, if nth % 2 == 0 { Place::writes } else { Place::writes_in_time }))
        .collect();
    threads.extend((0..others).map(|_| {
        let met = Arc::clone(&met);
        with(&place, move |place| {
            let token = place.read::<Bulk>();
            place.look();
            met.fetch_add(1, sync::Ordering::Release);
            place.unlock_read(token);
            0
        })
    }));
    threads.push(first);
    let counted = threads.into_iter().map(|thread| thread.join().expect("a client panicked")).sum();
    place.check_at_rest(counted);
}

#[test]
fn a_reader_comes_in_whatever_writers_wait() {
    for (others, writers) in [(1, 1), (1, 2), (2, 1), (3, 2), (5, 5)] {
        explore(sampled(1 + others + writers, 31), move || {
            readers_wait_for_readers::<Sleeps>(others, writers)
        });
        explore(sampled(1 + others + writers, 32), move || {
            readers_wait_for_readers::<Private>(others, writers)
        });
    }
    explore(Config::sampled(10_000), || readers_wait_for_readers::<Sleeps>(2, 1));
}

/// An attempt and a reader with a deadline do not fail either.
#[test]
fn who_does_not_wait_comes_in_beside_a_reader() {
    explore(sampled(3, 33), || {
        let place = Place::<First>::new();
        let token = place.lock.read();
        let writer = with(&place, Place::writes);
        let other = with(&place, |place| {
            let token = place.lock.try_read().expect("an attempt fails although only readers are inside");
            place.unlock_read(token);
            let token =
                place.lock.read_until(soon()).expect("a reader waits although only readers are inside");
            place.unlock_read(token);
        });
        other.join().expect("the reader panicked");
        place.unlock_read(token);
        let counted = writer.join().expect("the writer panicked");
        place.check_at_rest(counted);
    });
}

/// The last reader closes the class for the writer that waits, so no reader comes before it.
#[test]
fn the_last_reader_leaves_the_lock_to_the_writer() {
    explore(Config::sampled(2_000), || {
        let place = Place::<First>::new();
        // Of real atomics: nothing that is explored.
        let written = Arc::new(AtomicUsize::new(0));
        let token = place.lock.read();
        let second = place.lock.read();
        let writer = {
            let written = Arc::clone(&written);
            with(&place, move |place| {
                place.lock.write();
                written.store(1, SeqCst);
                place.count();
                place.unlock_write();
            })
        };
        spin_until(|| place.lock.state().level() == 1);
        place.unlock_read(token);
        let third = place.lock.try_read().expect("the second reader is inside");
        place.unlock_read(second);
        place.unlock_read(third);
        let readers = [(); 2].map(|()| {
            let written = Arc::clone(&written);
            with(&place, move |place| {
                let token = place.lock.read();
                assert_eq!(written.load(SeqCst), 1, "a reader came before the writer that waits");
                place.unlock_read(token);
            })
        });
        for reader in readers {
            reader.join().expect("a reader panicked");
        }
        writer.join().expect("the writer panicked");
        place.check_at_rest(1);
    });
}

/// What the readers did that were inside before the class was closed is over, and the writer sees
/// it, whoever closed the class.
#[test]
fn a_writer_comes_after_each_reader_that_was_inside() {
    explore(Config::sampled(20_000), || {
        let place = Place::<First>::new();
        let threads = [Place::reads_twice::<Bulk>, Place::reads::<Bulk>, Place::writes]
            .map(|client| with(&place, client));
        let counted = threads.into_iter().map(|thread| thread.join().expect("a client panicked")).sum();
        place.check_at_rest(counted);
    });
}

/// A reader joins another one that is about to leave, after the owner has seen none.
#[test]
fn no_owner_closes_on_readers_that_joined() {
    // By chance alone, and the newest values: the order takes four switches within few steps.
    let many = Config { strategy: Strategy::Random, timeouts: false, stale: 0, ..Config::sampled(60_000) };
    explore(many, || {
        let place = Place::<First>::new();
        let token = place.lock.read();
        let writer = with(&place, Place::writes);
        let readers = [(); 4].map(|()| with(&place, Place::reads::<Bulk>));
        place.unlock_read(token);
        for reader in readers {
            reader.join().expect("a reader panicked");
        }
        place.check_at_rest(writer.join().expect("the writer panicked"));
    });
}
