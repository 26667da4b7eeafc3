//! Processes that share a lock, and threads that die while they use it.
//!
//! The lock is not robust: no thread notices a death. What holds all the same, and is shown here:
//! - A death lets no thread in that would have been kept out: the data are never written beside
//!   any thread.
//! - A reader that dies inside keeps its count. A writer that comes then waits for ever with that
//!   reader's class shut, and with it wait all readers of that class and of those below. Readers of
//!   higher classes go on for ever, and so does every thread as long as writers only try, or have
//!   deadlines.
//! - A reader that dies asleep in line stays in line. Writers wait for it for ever, before they
//!   shut any thread out: readers all go on.
//! - A writer, or an upgradable reader, that dies as the owner keeps the write side: no writer gets
//!   it any more. What it has shut stays shut, what it has not yet
//!   shut stays open.
//! - A writer that dies asleep is forgotten. One that dies between being woken and taking the write
//!   side takes the wake-up with it: writers that sleep may sleep until another writer has waited
//!   and released.
//! - A thread that has a deadline gets away in each of these cases, but for one: a fair release
//!   that dies between telling its heir and opening the gate, which the heir waits for.

use crate::place::{Client, Of, Place, Role, soon};
use crate::{Lock, SleepsShared, THREE, TWO, sampled};
use core::panic::Location;
use ulocks_core::model::crash::sweep;
use ulocks_core::model::process::{self, Region};
use ulocks_core::model::{Config, Deaths, Strategy, explore};
use ulocks_core::raw::{RawRwLock, RawRwLockDowngrade, RawRwLockUpgrade};
use ulocks_core::signal::Soft;
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_core::sync::{AtomicU32, interruption_point};
use ulocks_psrwlock::{Bulk, Central, Eager, PhaseFair, Sifted, Unchecked, Urgent};
use ulocks_testkit::thread::{Arc, spawn, with};

type D = Sifted<THREE, SleepsShared, PhaseFair, Central, Soft, Unchecked>;
type Slots = Sifted<THREE, SleepsShared, PhaseFair, Eager, Soft, Unchecked>;

/// Two words that writers change one after the other, and a lock, in memory that is all zero at
/// first.
#[repr(C)]
struct Page<const N: usize> {
    lock: Lock<TWO, SleepsShared>,
    slots: Lock<TWO, SleepsShared, PhaseFair, Eager>,
    words: [AtomicU32; N],
}

impl<const N: usize> Page<N> {
    /// The caller holds the lock in whatever way.
    fn look(&self) -> u32 {
        let seen = self.words.each_ref().map(|word| {
            interruption_point();
            word.load(Relaxed)
        });
        assert!(seen.iter().all(|&word| word == seen[0]), "somebody writes beside a reader: {seen:?}");
        seen[0]
    }

    fn write(&self) {
        let seen = self.look();
        for word in &self.words {
            interruption_point();
            word.store(seen + 1, Relaxed);
        }
    }
}

/// One thread's part on the page, by lock. With deadlines only, if it is to be `in_time`.
fn use_it<L: RawRwLockUpgrade + RawRwLockDowngrade>(page: &Page<2>, lock: &L, me: usize, in_time: bool) {
    for turn in 0..2 {
        // SAFETY: each is acquired before.
        unsafe {
            match (me + turn) % 5 {
                0 => {
                    if let Some(token) = if in_time { lock.write_until(soon()) } else { Some(lock.write()) } {
                        page.write();
                        lock.unlock_write(token);
                    }
                }
                1 => {
                    if let Some(token) = lock.write_until(soon()) {
                        page.write();
                        let token = lock.downgrade(token);
                        page.look();
                        lock.unlock_read(token);
                    }
                }
                2 => {
                    let Some(token) = lock.upgradable_until(soon()) else { continue };
                    let seen = page.look();
                    match if in_time { lock.upgrade_until(token, soon()) } else { Ok(lock.upgrade(token)) } {
                        Ok(token) => {
                            assert_eq!(page.look(), seen, "somebody wrote before an upgrade");
                            page.write();
                            lock.unlock_write(token);
                        }
                        Err(token) => lock.unlock_upgradable(token),
                    }
                }
                _ => {
                    if let Some(token) = if in_time { lock.read_until(soon()) } else { Some(lock.read()) } {
                        page.look();
                        lock.unlock_read(token);
                    }
                }
            }
        }
    }
}

/// Processes that have the page at different addresses.
fn at_their_addresses(processes: usize, with_slots: bool, in_time: bool) {
    let region = Region::new(size_of::<Page<2>>());
    let others: Vec<_> = (0..processes)
        .map(|me| {
            let mapping = region.map();
            process::spawn(move || {
                // SAFETY: all zero is an unlocked lock, and nothing else is there.
                let page = unsafe { mapping.at::<Page<2>>(0) };
                if with_slots {
                    use_it(page, &page.slots, me, in_time);
                } else {
                    use_it(page, &page.lock, me, in_time);
                }
            })
        })
        .collect();
    others.into_iter().for_each(|other| _ = other.join());
}

#[test]
fn processes_share_a_lock_at_different_addresses() {
    for processes in [2, 4, 8] {
        for with_slots in [false, true] {
            explore(sampled(processes, 1), move || at_their_addresses(processes, with_slots, false));
        }
    }
}

/// Up to two die, somewhere, with all that they hold. Every thread has a deadline, and so comes to
/// an end.
#[test]
fn a_death_lets_nobody_in() {
    for processes in [3, 5, 8] {
        for with_slots in [false, true] {
            let config = Config { deaths: Deaths::Processes(2), ..sampled(processes, 1) };
            explore(config, move || at_their_addresses(processes, with_slots, true));
        }
    }
}

/// Thread 1 plays `dying` and dies in place of each of its steps in turn; the others, in `roles`,
/// have to come to their end.
fn survive<S: ulocks_psrwlock::Configuration>(dying: Client<S>, roles: &'static [Role]) {
    for step in 0.. {
        let config = Config { deaths: Deaths::At { thread: 1, step }, ..sampled(4, 1 + u64::from(step)) };
        let deaths = explore(Config { executions: 200, ..config }, move || {
            let place = Place::<S>::new();
            let mut others = Vec::new();
            let shared = Arc::clone(&place);
            others.push(spawn(move || dying(&shared)));
            for &role in roles {
                let shared = Arc::clone(&place);
                others.push(spawn(move || shared.play(role)));
            }
            others.into_iter().for_each(|other| _ = other.join());
        })
        .deaths;
        if deaths == 0 {
            break;
        }
    }
}

/// A thread that has a deadline, or only tries, gets away from any death.
#[test]
fn who_has_a_deadline_gets_away() {
    const IN_TIME: &[Role] = &[
        Role::TimedWrite,
        Role::TimedRead(Of::Bulk),
        Role::TryWrite,
        Role::TimedRead(Of::Nested),
        Role::TryRead(Of::Bulk),
    ];
    survive::<D>(Place::writes, IN_TIME);
    survive::<D>(Place::upgrades, IN_TIME);
    survive::<D>(Place::reads::<Bulk>, IN_TIME);
    survive::<Slots>(Place::reads::<Bulk>, IN_TIME);
    survive::<Slots>(Place::writes, IN_TIME);
}

/// A dead reader holds up no reader of a higher class, whatever writers wait for it; and no reader
/// at all while writers have deadlines.
#[test]
fn a_dead_reader_holds_up_no_reader_of_a_higher_class() {
    const ABOVE: &[Role] = &[Role::TimedWrite, Role::Read(Of::Urgent), Role::Read(Of::Nested)];
    const ALL: &[Role] = &[Role::TimedWrite, Role::Read(Of::Bulk), Role::Read(Of::Nested), Role::TimedWrite];
    survive::<D>(Place::reads::<Bulk>, ABOVE);
    survive::<D>(Place::reads::<Bulk>, ALL);
    survive::<D>(Place::reads::<Urgent>, ALL);
    survive::<Slots>(Place::reads::<Bulk>, ALL);
    // A writer without a deadline, which never gets the lock: the readers above come and go beside
    // it.
    explore(sampled(4, 1), || {
        let place = Place::<D>::new();
        // As if its thread were dead: it never leaves.
        let _dead = place.read_of(Of::Bulk);
        place.lock.upgradable();
        // SAFETY: acquired the line before.
        let upgraded = unsafe { place.lock.upgrade_until((), soon()) };
        assert!(upgraded.is_err(), "a writer beside a dead reader");
        for class in [Of::Bulk, Of::Urgent, Of::Nested] {
            let token = place.try_read_of(class).expect("a reader is held up by a dead one");
            place.leave(token);
        }
    });
}

/// Which of a reader's deaths hold up a writer without a deadline: those inside, and no others, if
/// no thread shuts it out.
#[test]
fn only_a_reader_that_dies_inside_holds_up_a_writer() {
    let config =
        Config { executions: 300, timeouts: false, strategy: Strategy::Random, spurious: 0, ..sampled(1, 1) };
    let swept = sweep(&config, 1, || {
        let place = Place::<D>::new();
        let reader = with(&place, |place| {
            interruption_point();
            let token = place.lock.read_in::<Bulk>(Location::caller());
            place.look();
            interruption_point();
            place.unlock_read(token);
            interruption_point();
        });
        let died = reader.join().is_err();
        let alone = place.lock.try_write().is_some();
        assert!(died || alone, "a reader that has left is inside");
        if !alone {
            // For ever.
            place.lock.write();
        }
    })
    .unwrap();
    let fatal: Vec<_> = swept.fatal().map(|point| point.step).collect();
    println!("{swept}");
    let first = fatal[0];
    assert!(first > 0, "a reader that never came holds up a writer");
    assert!(
        fatal.iter().enumerate().all(|(n, &step)| step == first + n as u32),
        "not one stretch: {fatal:?}"
    );
    assert!(
        *fatal.last().unwrap() + 1 < swept.points.len() as u32,
        "a reader that has left holds up a writer"
    );
}
