//! The typed reader-writer lock on the machine.
#![cfg(world = "machine")]

mod rwlock_clients;

use rwlock_clients::{self as clients, RwLock, RwLockReadGuard, RwLockUpgradableReadGuard, RwLockWriteGuard};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::thread;
use std::time::{Duration, Instant};
use ulocks_core::api;
use ulocks_core::futex::Local;
use ulocks_core::raw::{RawRwLock, RawRwLockDowngrade, RawRwLockFair, RawRwLockUpgrade};
use ulocks_core::time::Deadline;
use ulocks_testkit::plain::rw::PlainRw;

const SHORT: Duration = Duration::from_millis(5);

static TABLE: RwLock<[u64; 2]> = RwLock::new([0; 2]);

#[test]
fn a_static_lock_is_read_whole() {
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..1_000 {
                    TABLE.write().iter_mut().for_each(|half| *half += 1);
                }
            });
            scope.spawn(|| {
                for _ in 0..1_000 {
                    let [first, second] = *TABLE.read();
                    assert_eq!(first, second);
                }
            });
        }
    });
    assert_eq!(*TABLE.read(), [2_000; 2]);
}

#[test]
fn the_clients_of_the_models_run_here() {
    clients::readers_and_a_writer(4);
    clients::upgrades();
    clients::downgrades();
    clients::every_way_of_release_releases();
    clients::timed();
    clients::interruptible();
    clients::forgotten_guards();
    clients::by_hand();
    #[cfg(feature = "arc_lock")]
    clients::shares();
}

#[test]
fn the_adapter_adds_nothing() {
    assert_eq!(size_of::<RwLock<()>>(), size_of::<PlainRw>());
    assert_eq!(size_of::<RwLockReadGuard<'_, u8>>(), size_of::<&RwLock<u8>>());
    assert_eq!(size_of::<RwLockWriteGuard<'_, u8>>(), size_of::<&RwLock<u8>>());
}

#[test]
fn what_is_timed_gives_up_after_its_time_and_not_before() {
    let lock = RwLock::new(());
    let outlasts = |attempt: &dyn Fn() -> bool| {
        let start = Instant::now();
        assert!(!attempt());
        assert!(start.elapsed() >= SHORT);
    };
    let held = lock.write();
    outlasts(&|| lock.try_read_for(SHORT).is_some());
    outlasts(&|| lock.try_read_until(Instant::now() + SHORT).is_some());
    outlasts(&|| lock.try_upgradable_read_for(SHORT).is_some());
    outlasts(&|| lock.try_upgradable_read_until(Instant::now() + SHORT).is_some());
    let held = RwLockWriteGuard::downgrade(held);
    outlasts(&|| lock.try_write_for(SHORT).is_some());
    outlasts(&|| lock.try_write_until(Instant::now() + SHORT).is_some());
    outlasts(&|| RwLockUpgradableReadGuard::try_upgrade_for(lock.upgradable_read(), SHORT).is_ok());
    outlasts(&|| {
        RwLockUpgradableReadGuard::try_upgrade_until(lock.upgradable_read(), Instant::now() + SHORT).is_ok()
    });
    drop(held);
    assert!(lock.try_read_for(Duration::ZERO).is_some());
    assert!(lock.try_write_for(Duration::ZERO).is_some());
}

#[test]
fn a_panic_releases_the_guards_it_passes() {
    let lock = RwLock::new(0);
    let caught = catch_unwind(AssertUnwindSafe(|| {
        let mut guard = lock.upgradable_read();
        guard.with_upgraded(|count| {
            *count += 1;
            panic!("while upgraded");
        });
    }));
    assert!(caught.is_err());
    assert!(!lock.is_locked());
    assert_eq!(*lock.write(), 1);
}

thread_local! {
    /// The line that the lock below was last told of.
    static LINE: Cell<u32> = const { Cell::new(0) };
}

/// Notes its caller.
struct Told(PlainRw);

#[track_caller]
fn note() {
    let caller = Location::caller();
    LINE.set(if caller.file() == file!() { caller.line() } else { 0 });
}

ulocks_core::initial!([] Told = Self(PlainRw::new()));

/// Methods that pass on, with and without a note of their caller.
macro_rules! passes_on {
    (notes: $(fn $name:ident($($arg:ident: $type:ty)?) $(-> $result:ty)?;)*) => {$(
        fn $name(&self $(, $arg: $type)?) $(-> $result)? {
            note();
            self.0.$name($($arg)?)
        }
    )*};
    (notes: $(unsafe fn $name:ident($($arg:ident: $type:ty),*) $(-> $result:ty)?;)*) => {$(
        unsafe fn $name(&self, (): () $(, $arg: $type)*) $(-> $result)? {
            note();
            // SAFETY: the caller's promise.
            unsafe { self.0.$name(() $(, $arg)*) }
        }
    )*};
    ($(unsafe fn $name:ident();)*) => {$(
        unsafe fn $name(&self, (): ()) {
            // SAFETY: the caller's promise.
            unsafe { self.0.$name(()) }
        }
    )*};
}

// SAFETY: all is passed on to a sound lock.
unsafe impl RawRwLock for Told {
    type Scope = Local;
    type ReadToken = ();
    type WriteToken = ();
    passes_on! { notes:
        fn read();
        fn try_read() -> Option<()>;
        fn read_until(deadline: Deadline) -> Option<()>;
        fn write();
        fn try_write() -> Option<()>;
        fn write_until(deadline: Deadline) -> Option<()>;
        fn is_locked() -> bool;
        fn is_write_locked() -> bool;
    }
    passes_on! { unsafe fn unlock_read(); unsafe fn unlock_write(); }
}

// SAFETY: as above.
unsafe impl RawRwLockDowngrade for Told {
    passes_on! { unsafe fn downgrade(); }
}

// SAFETY: as above.
unsafe impl RawRwLockFair for Told {
    passes_on! { unsafe fn unlock_read_fair(); unsafe fn unlock_write_fair(); }
}

// SAFETY: as above.
unsafe impl RawRwLockUpgrade for Told {
    type UpgradableToken = ();
    passes_on! { notes:
        fn upgradable();
        fn try_upgradable() -> Option<()>;
        fn upgradable_until(deadline: Deadline) -> Option<()>;
    }
    passes_on! { notes:
        unsafe fn upgrade();
        unsafe fn try_upgrade() -> Result<(), ()>;
        unsafe fn upgrade_until(deadline: Deadline) -> Result<(), ()>;
    }
    passes_on! {
        unsafe fn unlock_upgradable();
        unsafe fn downgrade_upgradable();
        unsafe fn downgrade_to_upgradable();
    }
}

/// Runs an acquisition, and checks that the lock was told of the line it stands in.
macro_rules! tells {
    ($acquire:expr) => {
        LINE.set(0);
        drop($acquire);
        assert_eq!(LINE.get(), line!(), "{}", stringify!($acquire));
    };
}

/// `Location::caller()` in a raw lock names the user's line, through the adapter and through
/// lock_api, for everything that acquires by itself, and for the bump of a reader. Whatever else
/// acquires again (`unlocked`, `bump`, `with_upgraded`) goes through closures of lock_api and is
/// not covered.
#[test]
fn a_raw_lock_learns_who_acquires_it() {
    let lock = api::RwLock::<Told, u8>::new(0);
    type Upgradable<'a> = api::RwLockUpgradableReadGuard<'a, Told, u8>;
    tells!(lock.read());
    tells!(lock.try_read());
    tells!(lock.try_read_for(SHORT));
    tells!(lock.try_read_until(Instant::now()));
    tells!(lock.write());
    tells!(lock.try_write());
    tells!(lock.try_write_for(SHORT));
    tells!(lock.try_write_until(Instant::now()));
    tells!(lock.upgradable_read());
    tells!(lock.try_upgradable_read());
    tells!(lock.try_upgradable_read_for(SHORT));
    tells!(lock.try_upgradable_read_until(Instant::now()));
    let upgradable = lock.upgradable_read();
    tells!(Upgradable::upgrade(upgradable));
    let upgradable = lock.upgradable_read();
    tells!(Upgradable::try_upgrade(upgradable));
    let mut read = lock.read();
    LINE.set(0);
    api::RwLockReadGuard::bump(&mut read);
    assert_eq!(LINE.get(), line!() - 1, "a bump");
    drop(read);
    // Those that have to wait.
    let held = lock.read();
    tells!(lock.try_write_for(Duration::ZERO));
    tells!(lock.try_write_until(Instant::now()));
    let upgradable = lock.upgradable_read();
    tells!(Upgradable::try_upgrade_for(upgradable, Duration::ZERO));
    let upgradable = lock.upgradable_read();
    tells!(Upgradable::try_upgrade_until(upgradable, Instant::now()));
    drop(held);
}
