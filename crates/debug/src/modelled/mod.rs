//! Clients of the checker's protocols, for the virtual machine: `tests/vm.rs` explores them.
//!
//! What other threads see of a thread is modelled: its list of held locks, its wait, the walk over
//! both, the table of classes, and what signal handlers leave (`handlers.rs`). So are the two words
//! of a lock, and the keys that all threads know (`identities.rs`). Otherwise the locks here are
//! numbers, since the checker asks a lock for nothing more. What a thread keeps for itself and what
//! is guarded by a mutex is not modelled: the validated sets, and the graph of the order.

mod handlers;
mod identities;

pub use handlers::*;
pub use identities::*;

use crate::seen::access::Access;
use crate::seen::class::{Node, Origin, resolve};
use crate::seen::report::Place;
use crate::seen::thread::{Held, Record, Wait};
use crate::seen::wait::deadlock;
use core::panic::Location;
use core::ptr;
use std::sync::Arc;
use ulocks_core::model::thread::{JoinHandle, spawn};
use ulocks_core::sync::{
    AtomicBool,
    Ordering::{Acquire, Release},
    spin_until,
};

#[track_caller]
const fn here() -> Place {
    Location::caller()
}

/// A place for each number below three.
fn place(number: usize) -> Place {
    const PLACES: [Place; 3] = [
        here(), //
        here(),
        here(),
    ];
    PLACES[number]
}

fn class(number: usize) -> &'static Node {
    resolve(Origin::made::<u8>(place(number)), place(number), "lock")
}

/// In what way each lock is held and asked for.
const ACCESSES: [Access; 3] = [Access::Exclusive, Access::Write, Access::Upgradable];

/// An entry of a lock. Each field tells which.
fn entry(lock: usize) -> Held {
    let number = lock as u64;
    Held {
        lock: lock + 1,
        class: class(lock),
        subclass: lock as u8,
        access: ACCESSES[lock],
        instance: number,
        place: place(lock),
        since: number,
    }
}

/// The lock of which all fields of an entry are.
fn lock_of(held: &Held) -> usize {
    let lock = held.lock - 1;
    let is_whole = ptr::eq(held.class, class(lock))
        && (usize::from(held.subclass), held.access) == (lock, ACCESSES[lock])
        && (held.instance, held.since) == (lock as u64, lock as u64)
        && held.place == place(lock);
    assert!(is_whole, "an entry is made of two");
    lock
}

fn joined<T>(thread: JoinHandle<T>) -> T {
    thread.join().unwrap_or_else(|_| panic!("a thread has panicked"))
}

/// A thread holds one lock all the time, and others in turn. Another one reads its list.
pub fn entries_are_whole(turns: usize) {
    let record = Record::leak();
    let locks = [entry(0), entry(1), entry(2)];
    assert!(record.push(&locks[0]));
    let writer = spawn(move || {
        for turn in 0..turns {
            let lock = &locks[1 + turn % 2];
            assert!(record.push(lock));
            assert!(record.pop_as(lock.lock, |_| true));
        }
    });
    let seen: Vec<usize> = record.held().map(|held| lock_of(&held)).collect();
    assert!(seen.contains(&0), "a held lock is not found");
    joined(writer);
    assert!(record.held().map(|held| lock_of(&held)).eq([0]), "the list is that of the thread");
}

/// A thread acquires one lock more than its record has slots for, and releases the other one.
/// Another thread reads its list.
pub fn far_entries_have_slots() {
    let record = Record::leak();
    let locks = [entry(0), entry(1)];
    assert!(record.push(&locks[0]));
    let writer = spawn(move || {
        assert!(record.push(&locks[1]));
        assert!(record.pop_as(locks[0].lock, |_| true));
    });
    record.held().for_each(|held| _ = lock_of(&held));
    joined(writer);
    assert!(record.held().map(|held| lock_of(&held)).eq([1]), "the list is that of the thread");
}

/// A thread releases a lock, and acquires one of a class that is new. Another thread reads its list
/// meanwhile.
pub fn classes_of_entries_are_known() {
    let record = Record::leak();
    assert!(record.push(&entry(0)));
    let writer = spawn(move || {
        assert!(record.pop_as(entry(0).lock, |_| true));
        assert!(record.push(&entry(1)));
    });
    assert!(record.held().count() <= 1);
    joined(writer);
    assert!(record.held().map(|held| lock_of(&held)).eq([1]), "the list is that of the thread");
}

/// A record passes from a thread that ends to the next one, while it is read.
pub fn a_later_thread_writes_whole_entries() {
    let record = Record::leak();
    let writer = spawn(move || {
        assert!(record.push(&entry(1)));
        assert!(record.pop_as(entry(1).lock, |_| true));
        record.give_back();
    });
    let next = spawn(move || {
        if record.take() {
            assert!(record.push(&entry(2)));
        }
    });
    record.held().for_each(|held| _ = lock_of(&held));
    joined(writer);
    joined(next);
}

/// A lock is dropped by another thread than its holder, which goes on to use the slot.
pub fn a_dropped_lock_is_forgotten() {
    let record = Record::leak();
    assert!(record.push(&entry(1)));
    let dropper = spawn(move || record.forget(entry(1).lock));
    assert!(record.push(&entry(2)));
    record.sweep();
    joined(dropper);
    assert!(record.held().map(|held| lock_of(&held)).eq([2]), "only the other one is held");
    record.sweep();
    assert!(record.push(&entry(0)), "a slot is free");
    assert!(record.pop_as(entry(0).lock, |_| true) && record.pop_as(entry(2).lock, |_| true));
    assert!(!record.holds_any());
}

/// Threads ask for the same class and others of the same list at once.
pub fn a_place_has_one_class(threads: usize) {
    let others: Vec<_> =
        (1..threads).map(|thread| spawn(move || (class(0), class(1 + thread % 2)).0.vertex(0, 0))).collect();
    let (mine, other) = (class(0), class(1));
    assert!(!ptr::eq(mine, other), "two places are two classes");
    assert!(ptr::eq(mine, class(0)) && ptr::eq(other, class(1)), "a class is lost");
    for thread in others {
        assert_eq!(joined(thread), mine.vertex(0, 0), "a place has two classes");
    }
    let all = [0, 1, 2].map(|number| class(number).vertex(0, 0));
    assert!(all[0] != all[1] && all[1] != all[2] && all[0] != all[2], "two classes have one number");
}

/// A wait for a lock. Each field tells which.
fn wait(lock: usize) -> Wait {
    let Held { lock, class, subclass, access, instance, place, since } = entry(lock);
    Wait { lock, class, subclass, access, instance, place, timed: false, since, before: (0, 0) }
}

/// A thread waits for one lock after the other. Another one reads its wait.
pub fn waits_are_whole(turns: usize) {
    let record = Record::leak();
    let waits = [wait(0), wait(1), wait(2)];
    let writer = spawn(move || {
        for turn in 0..turns {
            record.begin_wait(&waits[turn % 3]);
            record.end_wait();
        }
    });
    if let Some((wait, number)) = record.waiting() {
        let Wait { lock, class, subclass, access, instance, place, since, .. } = wait;
        let lock = lock_of(&Held { lock, class, subclass, access, instance, place, since });
        assert_eq!(number as usize, 2 * lock + 1, "a wait is not that of its number");
    }
    joined(writer);
}

/// `me` waits for `lock` from now on. Returns whether it finds a deadlock.
fn waits(me: &'static Record, lock: usize) -> bool {
    me.begin_wait(&wait(lock));
    deadlock(me).is_some()
}

/// Each thread holds a lock and waits for that of the next one. At least one finds it, and names
/// all of them.
pub fn a_deadlock_is_found(threads: usize) {
    let records: Vec<&'static Record> = (0..threads).map(|_| Record::leak()).collect();
    let waits_in_circle = move |me: &'static Record, index: usize| {
        assert!(me.push(&entry(index)));
        waits(me, (index + 1) % threads)
    };
    let others: Vec<_> = (1..threads)
        .map(|index| {
            let me = records[index];
            spawn(move || waits_in_circle(me, index))
        })
        .collect();
    let mut found = waits_in_circle(records[0], 0);
    for thread in others {
        found |= joined(thread);
    }
    assert!(found, "no thread finds the deadlock");
    let report = deadlock(records[0]).expect("the deadlock stays");
    assert_eq!(report.steps.len(), threads, "the circle has all threads");
}

/// Three threads wait, each for the next one, but not at the same time: the third releases its lock
/// before it waits. So there is no deadlock, and none is reported.
pub fn waits_of_different_times_are_no_deadlock() {
    let records = [(); 3].map(|()| Record::leak());
    let free: Arc<[AtomicBool; 3]> = Arc::new([(); 3].map(|()| AtomicBool::new(false)));
    for (index, record) in records.iter().enumerate() {
        assert!(record.push(&entry(index)));
    }
    let release = |me: &'static Record, free: &[AtomicBool; 3], index: usize| {
        assert!(me.pop_as(entry(index).lock, |_| true));
        free[index].store(true, Release);
    };
    let asks = |me: &'static Record, free: &[AtomicBool; 3], index: usize| {
        assert!(!waits(me, index), "a deadlock that there is not");
        spin_until(|| free[index].load(Acquire));
        me.end_wait();
    };
    let [first, second, third] = records;
    let shared = Arc::clone(&free);
    let second = spawn(move || {
        asks(second, &shared, 2);
        release(second, &shared, 1);
    });
    let shared = Arc::clone(&free);
    let third = spawn(move || {
        release(third, &shared, 2);
        asks(third, &shared, 0);
    });
    asks(first, &free, 1);
    release(first, &free, 0);
    joined(second);
    joined(third);
    assert!(records.iter().all(|record| !record.holds_any()));
}
