//! The robust reader-writer lock. No waiter looks again after a time.

use crate::place::{Scene, at_each_step, behind, join, play, sampled, slots, soon};
use std::sync::Arc;
use std::time::Duration;
use ulocks_core::Shared;
use ulocks_core::model::{Config, Deaths, Kernel, explore, thread};
use ulocks_core::spin::NoSpin;
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_core::sync::{AtomicU32, spin_until};
use ulocks_core::time::Deadline;
use ulocks_shm::slots::Slot;
use ulocks_shm::{LockError, Member, Refused, RwLock, RwLockReadGuard, RwLockWriteGuard};
use ulocks_testkit::thread::with;

/// The slots of a model's table.
const SLOTS: usize = 8;
type Policy = Shared<NoSpin>;
type Lock = RwLock<Pair, SLOTS, Policy>;
type ReadGuard<'a> = RwLockReadGuard<'a, Pair, SLOTS, Policy>;
type WriteGuard<'a> = RwLockWriteGuard<'a, Pair, SLOTS, Policy>;

/// Two words that a writer keeps equal.
struct Pair([AtomicU32; 2]);

/// A lock, and its table.
struct Place {
    slots: [Slot; SLOTS],
    lock: Lock,
    /// How often a thread was told of a death.
    told: AtomicU32,
    /// The names of the threads that came in, the last one first, in decimal digits.
    order: AtomicU32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Reads,
    ReadsUrgently,
    Writes,
    Downgrades,
    /// Writes until a deadline.
    WritesSoon,
    /// Reads until a deadline.
    ReadsSoon,
}
use Role::{Downgrades, Reads, ReadsSoon, ReadsUrgently, Writes, WritesSoon};

impl Place {
    fn note(&self, name: u32) {
        self.order.store(self.order.load(Relaxed) * 10 + name, Relaxed);
    }

    fn looks(&self, guard: &ReadGuard<'_>, is_dirty: bool) {
        let [one, two] = guard.0.each_ref().map(|word| word.load(Relaxed));
        assert!(one == two || is_dirty, "a reader sees half of a write: {one} and {two}");
        assert_eq!(guard.0[0].load(Relaxed), one, "a writer came in");
    }

    fn changes(&self, guard: &mut WriteGuard<'_>, name: u32) {
        let [one, two] = guard.0.each_ref().map(|word| word.load(Relaxed));
        assert!(one == two || guard.is_dirty(), "a writer finds half of a write: {one} and {two}");
        guard.0[0].store(name, Relaxed);
        guard.0[1].store(name, Relaxed);
        assert_eq!(guard.0[0].load(Relaxed), name, "another writer came in");
        guard.mark_consistent();
    }

    fn read<'a>(&'a self, how: Result<ReadGuard<'a>, LockError<ReadGuard<'a>>>, name: u32) {
        match how {
            Ok(guard) => {
                self.note(name);
                self.looks(&guard, false);
            }
            Err(LockError::OwnerDied(guard)) => {
                self.told.fetch_add(1, Relaxed);
                self.looks(&guard, true);
            }
            Err(LockError::Refused(Refused::TimedOut)) => {}
            Err(error) => panic!("{error}"),
        }
    }

    fn wrote<'a>(&'a self, how: Result<WriteGuard<'a>, LockError<WriteGuard<'a>>>) -> Option<WriteGuard<'a>> {
        match how {
            Ok(guard) => Some(guard),
            Err(LockError::OwnerDied(guard)) => {
                self.told.fetch_add(1, Relaxed);
                Some(guard)
            }
            Err(LockError::Refused(Refused::TimedOut)) => None,
            Err(error) => panic!("{error}"),
        }
    }
}

impl Scene for Place {
    type Role = Role;

    fn new() -> Arc<Self> {
        Arc::new(Self {
            slots: slots(),
            lock: Lock::new(Pair([AtomicU32::new(0), AtomicU32::new(0)])),
            told: AtomicU32::new(0),
            order: AtomicU32::new(0),
        })
    }

    fn join(&self) -> Member<'_> {
        join(self, &self.slots)
    }

    fn plays(&self, me: &Member<'_>, role: Role, name: u32) {
        match role {
            Reads => self.read(self.lock.read(me), name),
            ReadsUrgently => self.read(self.lock.read_urgent(me), name),
            ReadsSoon => self.read(self.lock.read_until(me, soon()), name),
            Writes | WritesSoon | Downgrades => {
                let deadline = if role == WritesSoon { soon() } else { Deadline::after(Duration::MAX) };
                let Some(mut guard) = self.wrote(self.lock.write_until(me, deadline)) else { return };
                self.note(name);
                self.changes(&mut guard, name);
                if role == Downgrades {
                    self.looks(&guard.downgrade(), false);
                }
            }
        }
    }

    fn holds(&self, me: &Member<'_>, role: Role, held: impl FnOnce()) {
        if role == Writes {
            let _writes = self.lock.write(me).unwrap();
            held();
        } else {
            let _reads = self.lock.read(me).unwrap();
            held();
        }
    }

    fn ends(&self, threads: Vec<thread::JoinHandle<()>>) {
        let died = threads.into_iter().filter_map(|thread| thread.join().err()).count();
        assert!(died > 0 || self.told.load(Relaxed) == 0, "a thread was told of a death that was none");
        let me = self.join();
        // It may have the slot of a dead reader.
        self.plays(&me, Reads, 9);
        self.plays(&me, Writes, 9);
    }
}

#[test]
fn a_writer_is_alone_and_no_thread_sleeps_for_ever() {
    for kernel in Kernel::ALL {
        explore(sampled(2, kernel), play::<Place, _>([Writes, Reads]));
        explore(sampled(3, kernel), play::<Place, _>([Writes, Writes, Reads]));
        explore(sampled(4, kernel), play::<Place, _>([Writes, Reads, ReadsUrgently, Downgrades]));
        explore(sampled(4, kernel), behind::<Place, _>(Writes, [Reads, Reads, Writes, ReadsUrgently]));
        explore(sampled(4, kernel), behind::<Place, _>(Reads, [Writes, Reads, Writes]));
    }
}

#[test]
fn a_deadline_of_a_reader_or_writer_strands_no_thread() {
    for kernel in Kernel::ALL {
        let config = Config { timeouts: true, ..sampled(3, kernel) };
        explore(config.clone(), play::<Place, _>([Writes, WritesSoon, Reads]));
        explore(config.clone(), behind::<Place, _>(Reads, [WritesSoon, Reads, ReadsSoon]));
        explore(config, behind::<Place, _>(Writes, [ReadsSoon, WritesSoon, Reads, Writes]));
    }
}

#[test]
fn a_death_of_a_reader_or_writer_strands_no_thread() {
    for kernel in Kernel::ALL {
        for roles in [[Writes, Reads, Writes], [Reads, Writes, Reads], [Downgrades, Reads, Writes]] {
            at_each_step(1, kernel, false, 12, play::<Place, _>(roles));
            at_each_step(1, kernel, false, 12, behind::<Place, _>(Writes, roles));
            at_each_step(1, kernel, false, 12, behind::<Place, _>(Reads, roles));
        }
        let config = |threads| Config { deaths: Deaths::Threads(1), ..sampled(threads, kernel) };
        explore(config(3), behind::<Place, _>(Writes, [Reads, Reads, Writes, Reads]));
        explore(config(3), behind::<Place, _>(Reads, [Writes, ReadsUrgently, Reads, Writes]));
        explore(config(3), play::<Place, _>([Writes, Reads, Writes, ReadsUrgently]));
        let timed = Config { timeouts: true, ..config(3) };
        explore(timed, behind::<Place, _>(Reads, [WritesSoon, Reads, Writes]));
    }
}

/// While a reader has the lock, a writer, a reader and an urgent reader come one after the other.
fn sifted() {
    let place = Place::new();
    let me = place.join();
    let guard = place.lock.read(&me).unwrap();
    let come = |(name, role)| {
        let thread = place.resident(role, name);
        if role != ReadsUrgently {
            spin_until(|| place.lock.raw().waiters(&me) == name as usize);
        }
        thread
    };
    let mut threads: Vec<_> = [(1, Writes), (2, Reads), (3, ReadsUrgently)].map(come).into();
    // The urgent reader gets in while the other two wait.
    threads.pop().unwrap().join().unwrap();
    assert_eq!(place.lock.raw().waiters(&me), 2);
    drop(guard);
    std::mem::forget(me);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(place.order.load(Relaxed), 312);
}

#[test]
fn classes_of_readers_are_sifted() {
    for kernel in Kernel::ALL {
        explore(sampled(4, kernel), sifted);
    }
}

/// A writer that has the lock until two readers wait, and dies at any step. Each reader stays until
/// the other one is in: the death must not leave one of them to the release of the other.
fn readers_meet() {
    let place = Place::new();
    let [begun, inside] = [(); 2].map(|()| Arc::new(AtomicU32::new(0)));
    let (shared, writes) = (Arc::clone(&place), Arc::clone(&begun));
    let writer = thread::spawn(move || {
        let me = shared.join();
        let mut guard = shared.wrote(shared.lock.write(&me)).unwrap();
        shared.changes(&mut guard, 1);
        writes.store(1, Relaxed);
        spin_until(|| shared.lock.raw().waiters(&me) == 2);
        drop(guard);
        std::mem::forget(me);
    });
    let reader = |_| {
        let (place, begun, inside) = (Arc::clone(&place), Arc::clone(&begun), Arc::clone(&inside));
        thread::spawn(move || {
            spin_until(|| begun.load(Relaxed) == 1);
            let me = place.join();
            let _guard = match place.lock.read(&me) {
                Ok(guard) | Err(LockError::OwnerDied(guard)) => guard,
                Err(error) => panic!("{error}"),
            };
            inside.fetch_add(1, Relaxed);
            spin_until(|| inside.load(Relaxed) == 2);
        })
    };
    let readers: Vec<_> = (0..2).map(reader).collect();
    let _ = writer.join();
    begun.store(1, Relaxed);
    readers.into_iter().for_each(|reader| reader.join().unwrap());
}

#[test]
fn a_death_between_two_grants_leaves_no_reader_behind() {
    for kernel in Kernel::ALL {
        at_each_step(1, kernel, false, 60, readers_meet);
    }
}

/// While a reader stays, a writer, a writer and a reader wait in this order. The second one gives
/// up, and the first one dies or gives up. Then the reader that waits is let in.
fn the_middle_leaves() {
    let place = Place::new();
    let me = place.join();
    let guard = place.lock.read(&me).unwrap();
    // 1: thread 1 is gone.
    let [gone, done] = [(); 2].map(|()| Arc::new(AtomicU32::new(0)));
    let waits = |role, before| {
        let (place, gone, done) = (Arc::clone(&place), Arc::clone(&gone), Arc::clone(&done));
        thread::spawn(move || {
            let me = place.join();
            spin_until(|| gone.load(Relaxed) == 1 || place.lock.raw().waiters(&me) >= before);
            place.plays(&me, role, before as u32 + 1);
            if role == Reads {
                done.store(1, Relaxed);
            }
            std::mem::forget(me);
        })
    };
    let head = waits(WritesSoon, 0);
    let others = [waits(WritesSoon, 1), waits(Reads, 2)];
    let joins = with(&gone, move |gone| {
        let _ = head.join();
        gone.store(1, Relaxed);
    });
    spin_until(|| done.load(Relaxed) == 1);
    drop(guard);
    std::mem::forget(me);
    joins.join().unwrap();
    others.into_iter().for_each(|other| other.join().unwrap());
}

#[test]
fn a_death_before_one_that_gave_up_strands_no_reader() {
    for kernel in Kernel::ALL {
        at_each_step(1, kernel, true, 250, the_middle_leaves);
    }
}
