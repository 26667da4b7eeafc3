//! Children use all robust locks, and are killed at random.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;
use ulocks_semarray::Set;
use ulocks_shm::robust::RawRobust;
use ulocks_shm::slots::Slot;
use ulocks_shm::{
    Condvar, FairMutex, LockError, LockResult, Member, Mutex, MutexGuard, OrRepairBy, RwLock, SemArray,
};
use ulocks_testkit::Child;
use ulocks_testkit::shared::Mapping;
use ulocks_testkit::watchdog::watch;

const SLOTS: usize = 16;

/// What the children share. All zero at first.
#[repr(C)]
struct Locks {
    slots: [Slot; SLOTS],
    barging: Mutex<[u32; 2]>,
    fair: FairMutex<[u32; 2]>,
    rwlock: RwLock<[u32; 2], SLOTS>,
    permits: SemArray<2, SLOTS, 2>,
    /// The child that has a permit of each semaphore.
    inside: [AtomicU32; 2],
    items: Mutex<u32>,
    arrived: Condvar,
    /// How often a lock was used, and how often a death was told.
    used: AtomicU32,
    told: AtomicU32,
    /// How often something was not as the locks promise.
    violations: AtomicU32,
}

impl Locks {
    fn join(&self) -> Member<'_> {
        let start = std::ptr::from_ref(self).addr();
        // SAFETY: the mapping outlives the members: a child ends without unmapping it.
        unsafe { Member::join(&self.slots, start..start + size_of::<Self>()) }.unwrap()
    }

    fn demand(&self, holds: bool) {
        if !holds {
            self.violations.fetch_add(1, Relaxed);
        }
    }

    /// The guard, also after a death, with whether there was one.
    fn held<'a, T, L: RawRobust>(&self, how: LockResult<'a, T, L>) -> (MutexGuard<'a, T, L>, bool) {
        match how {
            Ok(guard) => (guard, false),
            Err(LockError::OwnerDied(mut guard)) => {
                self.told.fetch_add(1, Relaxed);
                guard.mark_consistent();
                (guard, true)
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// Two words that a holder keeps equal.
    fn changes(&self, pair: &mut [u32; 2], told: bool) {
        self.demand(told || pair[0] == pair[1]);
        pair[0] = pair[0].wrapping_add(1);
        std::hint::black_box(&mut *pair);
        pair[1] = pair[0];
    }

    fn reads_or_writes(&self, me: &Member<'_>, round: u32) {
        if round.is_multiple_of(4) {
            let (mut guard, told) = match self.rwlock.write(me) {
                Ok(guard) => (guard, false),
                Err(LockError::OwnerDied(mut guard)) => {
                    self.told.fetch_add(1, Relaxed);
                    guard.mark_consistent();
                    (guard, true)
                }
                Err(error) => panic!("{error}"),
            };
            self.changes(&mut guard, told);
            if round.is_multiple_of(8) {
                drop(guard.downgrade());
            }
        } else {
            let guard = if round % 4 == 1 { self.rwlock.read_urgent(me) } else { self.rwlock.read(me) };
            match guard {
                Ok(guard) => self.demand(guard[0] == guard[1]),
                Err(LockError::OwnerDied(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn takes_permits(&self, me: &Member<'_>, round: u32) {
        let indices: &[usize] = [&[0_usize][..], &[1], &[0, 1]][round as usize % 3];
        let set = indices.iter().fold(Set::new(), |set, &index| set.sub(index, 1));
        let permit = self.permits.acquire(me, set).unwrap();
        let name = me.slot() as u32 + 1;
        indices.iter().for_each(|&index| self.inside[index].store(name, Relaxed));
        self.demand(indices.iter().all(|&index| self.inside[index].load(Relaxed) == name));
        drop(permit);
    }

    /// Brings an item, or takes one, for which it waits up to 2 ms.
    fn passes_an_item(&self, me: &Member<'_>, round: u32) {
        let (mut items, _) = self.held(self.items.lock(me));
        if round.is_multiple_of(2) {
            *items += 1;
            drop(items);
            self.arrived.notify_one(me);
        } else if *items == 0 {
            let repair = |_: &mut u32| _ = self.told.fetch_add(1, Relaxed);
            let waited = self.arrived.wait_for(&mut items, Duration::from_millis(2));
            waited.or_repair_by(&mut items, repair).unwrap();
            *items = items.saturating_sub(1);
        }
    }

    fn uses(&self, me: &Member<'_>, round: u32) {
        match round % 5 {
            0 => {
                let (mut guard, told) = self.held(self.barging.lock(me));
                self.changes(&mut guard, told);
            }
            1 => {
                let (mut guard, told) = self.held(self.fair.lock(me));
                self.changes(&mut guard, told);
            }
            2 => self.reads_or_writes(me, round / 5),
            3 => self.takes_permits(me, round / 5),
            _ => self.passes_an_item(me, round / 5),
        }
        self.used.fetch_add(1, Relaxed);
    }
}

/// 200 children are killed, or as many as `ULOCKS_KILLS` says.
#[test]
fn kills_at_random_break_no_robust_lock() {
    let kills =
        std::env::var("ULOCKS_KILLS").map_or(200, |text| text.parse().expect("ULOCKS_KILLS: a number"));
    let mapping = Mapping::shared();
    // SAFETY: the mapping is zeroed, outlives its use, and is accessed as nothing else.
    let locks: &Locks = unsafe { &*mapping.place::<Locks>() };
    {
        let me = locks.join();
        locks.permits.set(&me, 0, 1).unwrap();
        locks.permits.set(&me, 1, 1).unwrap();
    }
    let _watch = watch("kills at random", || "a child sleeps for ever".into());
    let spawn = |seed: u32| {
        Child::runs(|| {
            let me = locks.join();
            let mut round = seed.wrapping_mul(0x9e37_79b9) | 1;
            loop {
                round ^= round << 13;
                round ^= round >> 17;
                round ^= round << 5;
                locks.uses(&me, round >> 4);
            }
        })
    };
    let mut children: Vec<_> = (0..6).map(spawn).collect();
    for kill in 0..kills {
        let used = locks.used.load(Relaxed);
        std::thread::sleep(Duration::from_micros(u64::from(kill * 7919 % 1_500)));
        children.remove(kill as usize % children.len()).killed();
        children.push(spawn(kill + 7));
        // From time to time, until the others have gone on: nothing is stuck.
        while kill % 16 == 0 && locks.used.load(Relaxed) == used {
            std::thread::sleep(Duration::from_micros(200));
        }
    }
    children.into_iter().for_each(Child::killed);
    let me = locks.join();
    (0..200).for_each(|round| locks.uses(&me, round));
    locks.permits.reclaim(&me).unwrap();
    assert_eq!(locks.permits.values(), [1, 1], "a permit is lost, or came back twice");
    assert_eq!(locks.violations.load(Relaxed), 0);
    println!("{kills} kills, {} uses, {} deaths told", locks.used.load(Relaxed), locks.told.load(Relaxed));
}
