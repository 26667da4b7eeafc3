//! A program switches from the plain locks to the checked ones by one `use`.

#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use std::collections::BTreeSet;
use ulocks_testkit as _;

/// The names of the locks at the top of `ulocks`.
const NAMES: &str = "Condvar MappedMutexGuard MappedReentrantMutexGuard MappedRwLockReadGuard \
                     MappedRwLockWriteGuard Mutex MutexGuard Permit ReentrantMutex ReentrantMutexGuard RwLock \
                     RwLockReadGuard RwLockUpgradableReadGuard RwLockWriteGuard Semaphore WaitTimeoutResult";
const WITH_ARC: &str = "ArcMutexGuard ArcReentrantMutexGuard ArcRwLockReadGuard \
                        ArcRwLockUpgradableReadGuard ArcRwLockWriteGuard OwnedPermit";

/// One program, with the locks of one module.
macro_rules! program {
    ($name:ident $locks:path) => {
        mod $name {
            use locks::{
                Condvar, MappedMutexGuard, MappedReentrantMutexGuard, MappedRwLockReadGuard,
                MappedRwLockWriteGuard, Mutex, MutexGuard, Permit, ReentrantMutex, ReentrantMutexGuard,
                RwLock, RwLockReadGuard, RwLockUpgradableReadGuard, RwLockWriteGuard, Semaphore,
                WaitTimeoutResult,
            };
            use std::cell::Cell;
            use std::time::Duration;
            use $locks as locks;

            static READY: Mutex<[u32; 2]> = Mutex::new([0; 2]);
            static CHANGED: Condvar = Condvar::new();
            static TABLE: RwLock<[u32; 2]> = RwLock::new([0; 2]);
            static SLOTS: Semaphore = Semaphore::new(1);
            static DEPTH: ReentrantMutex<Cell<u32>> = ReentrantMutex::new(Cell::new(0));

            fn wait(ready: &mut MutexGuard<'_, [u32; 2]>) -> WaitTimeoutResult {
                CHANGED.wait_for(ready, Duration::from_millis(1))
            }

            pub fn run() {
                let maker = std::thread::spawn(|| {
                    let slot: Permit<'_> = SLOTS.acquire();
                    let mut second: MappedMutexGuard<'_, u32> =
                        MutexGuard::map(READY.lock(), |ready| &mut ready[1]);
                    *second += 1;
                    drop(second);
                    drop(slot);
                    CHANGED.notify_one();
                });
                let mut ready = READY.lock();
                while ready[1] == 0 {
                    wait(&mut ready);
                }
                drop(ready);
                maker.join().unwrap();

                let mut second: MappedRwLockWriteGuard<'_, u32> =
                    RwLockWriteGuard::map(TABLE.write(), |table| &mut table[1]);
                *second += 1;
                drop(second);
                let upgradable: RwLockUpgradableReadGuard<'_, [u32; 2]> = TABLE.upgradable_read();
                let mut written: RwLockWriteGuard<'_, [u32; 2]> =
                    RwLockUpgradableReadGuard::upgrade(upgradable);
                written[1] += 1;
                let read: RwLockReadGuard<'_, [u32; 2]> = RwLockWriteGuard::downgrade(written);
                drop(read);
                let second: MappedRwLockReadGuard<'_, u32> =
                    RwLockReadGuard::map(TABLE.read(), |table| &table[1]);
                assert_eq!(*second, 2);
                drop(second);

                let outer: ReentrantMutexGuard<'_, Cell<u32>> = DEPTH.lock();
                DEPTH.lock().set(1);
                let inner: MappedReentrantMutexGuard<'_, Cell<u32>> =
                    ReentrantMutexGuard::map(DEPTH.lock(), |depth| depth);
                assert_eq!((outer.get(), inner.get()), (1, 1));

                #[cfg(feature = "arc_lock")]
                {
                    use locks::{
                        ArcMutexGuard, ArcReentrantMutexGuard, ArcRwLockReadGuard,
                        ArcRwLockUpgradableReadGuard, ArcRwLockWriteGuard, OwnedPermit,
                    };
                    use std::sync::Arc;
                    let (mutex, lock) = (Arc::new(Mutex::new(1)), Arc::new(RwLock::new(1)));
                    let guard: ArcMutexGuard<u32> = mutex.lock_arc();
                    let read: ArcRwLockReadGuard<u32> = lock.read_arc();
                    assert_eq!(*guard, *read);
                    drop(read);
                    let write: ArcRwLockWriteGuard<u32> = lock.write_arc();
                    drop(write);
                    let upgradable: ArcRwLockUpgradableReadGuard<u32> = lock.upgradable_read_arc();
                    drop(upgradable);
                    let depth = Arc::new(ReentrantMutex::new(Cell::new(1)));
                    let outer: ArcReentrantMutexGuard<Cell<u32>> = depth.lock_arc();
                    depth.lock_arc().set(2);
                    assert_eq!(outer.get(), 2);
                    drop(outer);
                    let slots = Arc::new(Semaphore::new(3));
                    let mut all: OwnedPermit = slots.clone().acquire_many_owned(2);
                    all.merge(slots.clone().acquire_owned_unless_closed().expect("it is open"));
                    all.split(1).expect("there are three").forget();
                    assert!(slots.clone().try_acquire_owned_for(Duration::ZERO).is_none());
                    std::thread::spawn(move || drop(all)).join().unwrap();
                    assert_eq!(slots.available_permits(), 2);
                }
            }
        }
    };
}

program! { plain ulocks }
program! { strict ulocks::debug }
program! { checked ulocks::checked }

#[test]
fn one_program_runs_with_plain_and_with_checked_locks() {
    plain::run();
    strict::run();
    checked::run();
    assert!(ulocks::debug::held().locks().is_empty());
}

/// The program uses all of them.
#[test]
fn the_program_uses_all_names_of_locks() {
    let source = concat!(
        include_str!("../src/defaults/mod.rs"),
        include_str!("../src/defaults/names.rs"),
        include_str!("../src/defaults/reentrant.rs")
    );
    let name_of = |text: &'static str| text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or("");
    let aliases = source.split("pub type ").skip(1).map(name_of);
    // The last word of each part of a list: `Mutex` in `unfair::ThroughputMutex as Mutex`.
    let lists = source.split("pub use ").skip(1).filter_map(|rest| Some(rest.split_once(';')?.0));
    let parts = lists.flat_map(|list| list.split([',', '{', '}']));
    let used = parts.filter_map(|part| part.rsplit([' ', ':']).find(|word| !word.trim().is_empty()));
    let mut names: BTreeSet<&str> = aliases.chain(used.map(str::trim)).collect();
    names.retain(|name| name.starts_with(char::is_uppercase));
    let used: BTreeSet<&str> = NAMES.split(' ').chain(WITH_ARC.split(' ')).collect();
    assert_eq!(names, used);
    let program = include_str!("checked.rs");
    used.iter().for_each(|name| assert!(program.matches(name).count() > 1, "{name}"));
}
