//! The first law of the family, for every public lock type: all-zero memory is an unlocked lock.
//!
//! Each lock is made of zeroed memory alone, is asked in each way first, and has a second thread
//! wait for it. [`no_public_lock_is_missing`] compares the names here with the sources.

#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use std::cell::Cell;
use std::fs;
use std::mem::MaybeUninit;
use std::path::Path;
use std::thread;
use std::time::Duration;
use ulocks::policy::{Counted, NoSpin, Private, Shared};
use ulocks_testkit::task::asleep;
use ulocks_testkit::watchdog::{Watchdog, watch};

const MOMENT: Duration = Duration::from_millis(1);

/// A `T` that no constructor has seen.
fn zeroed<T>() -> Box<T> {
    // SAFETY: that zeroes are a lock is what is tested. The data are numbers, for which they are 0.
    unsafe { Box::<MaybeUninit<T>>::new_zeroed().assume_init().assume_init() }
}

/// The limit of a test that waits for something of the lock `name`.
fn watched(name: &str, what: &'static str) -> Watchdog {
    watch(name, move || format!("in zeroed memory, waited for {what}"))
}

/// The ways to ask for an `L`, each of which gives it back.
type Waits<L> = &'static [fn(&L, &mut dyn FnMut())];
type Attempts<L> = &'static [fn(&L) -> bool];

/// The first of `waits` keeps out all others.
fn serves<L: Sync>(name: &str, waits: Waits<L>, attempts: Attempts<L>) {
    let _watchdog = watched(name, "the lock");
    drop(zeroed::<L>());
    for attempt in attempts {
        assert!(attempt(&zeroed::<L>()), "{name}: a new one is held");
    }
    for wait in waits {
        wait(&zeroed::<L>(), &mut || ());
    }
    let hold = waits[0];
    let lock = &*zeroed::<L>();
    let is_free = || attempts.iter().map(|attempt| attempt(lock)).collect::<Vec<_>>();
    thread::scope(|scope| {
        hold(lock, &mut || {
            let refused = scope.spawn(is_free).join().expect("an attempt");
            assert!(!refused.contains(&true), "{name}: held, and free to others: {refused:?}");
        });
        for wait in waits {
            let mut waiter = None;
            hold(lock, &mut || waiter = Some(asleep(scope, || wait(lock, &mut || ()))));
            waiter.expect("it was begun").join().expect("the waiter");
        }
        assert!(!is_free().contains(&false), "{name}: given back, and held");
    });
}

/// Mutexes whose methods return guards or, with `, unwrap`, results of them.
macro_rules! mutexes {
    ($($lock:ty $(, $unwrap:ident)?;)+) => { $({
        let waits: Waits<$lock> = &[|lock, inside| {
            let _guard = lock.lock() $(.$unwrap())?;
            inside();
        }];
        let attempts: Attempts<$lock> = &[
            |lock| lock.try_lock() $(.$unwrap())? .is_some(),
            |lock| lock.try_lock_for(MOMENT) $(.$unwrap())? .is_some(),
        ];
        serves(stringify!($lock), waits, attempts);
    })+ };
}

macro_rules! rwlocks {
    ($($lock:ty;)+) => { $({
        let waits: Waits<$lock> = &[
            |lock, inside| { let _guard = lock.write(); inside() },
            |lock, inside| { let _guard = lock.read(); inside() },
            |lock, inside| { let _guard = lock.upgradable_read(); inside() },
        ];
        let attempts: Attempts<$lock> = &[
            |lock| lock.try_write().is_some(),
            |lock| lock.try_write_for(MOMENT).is_some(),
            |lock| lock.try_read().is_some(),
            |lock| lock.try_read_for(MOMENT).is_some(),
            |lock| lock.try_upgradable_read().is_some(),
            |lock| lock.try_upgradable_read_for(MOMENT).is_some(),
        ];
        serves(stringify!($lock), waits, attempts);
    })+ };
}

/// A zeroed semaphore has no permits.
macro_rules! semaphores {
    ($($semaphore:ty;)+) => { $({
        let _watchdog = watched(stringify!($semaphore), "a permit");
        let semaphore = &*zeroed::<$semaphore>();
        assert!(semaphore.try_acquire().is_none() && semaphore.try_acquire_for(MOMENT).is_none());
        thread::scope(|scope| {
            let waiter = asleep(scope, || drop(semaphore.acquire()));
            semaphore.release(1).expect("there are none");
            waiter.join().expect("the waiter");
        });
        assert_eq!(semaphore.available_permits(), 1);
    })+ };
}

macro_rules! condvars {
    ($($condvar:ty, with $mutex:ty;)+) => { $({
        let _watchdog = watched(stringify!($condvar), "a notification");
        let (mutex, condvar) = (&*zeroed::<$mutex>(), &*zeroed::<$condvar>());
        condvar.notify_one();
        let _ = condvar.wait_for(&mut mutex.lock(), MOMENT);
        thread::scope(|scope| {
            let waiter = asleep(scope, || {
                let mut ready = mutex.lock();
                while *ready == 0 {
                    condvar.wait(&mut ready);
                }
            });
            *mutex.lock() = 1;
            condvar.notify_one();
            waiter.join().expect("the waiter");
        });
    })+ };
}

macro_rules! pi_condvars {
    ($($condvar:ty, with $mutex:ty;)+) => { $({
        let _watchdog = watched(stringify!($condvar), "a notification");
        let (mutex, condvar) = (&*zeroed::<$mutex>(), &*zeroed::<$condvar>());
        assert_eq!(condvar.notify_one(mutex).unwrap(), 0);
        drop(condvar.wait_for(mutex.lock().unwrap(), MOMENT).unwrap());
        thread::scope(|scope| {
            let wait = || drop(condvar.wait_while(mutex.lock().unwrap(), |ready| *ready == 0).unwrap());
            let waiter = asleep(scope, wait);
            *mutex.lock().unwrap() = 1;
            condvar.notify_one(mutex).unwrap();
            waiter.join().expect("the waiter");
        });
    })+ };
}

#[test]
fn unfair() {
    use ulocks::unfair::*;
    mutexes! {
        BargingMutex<u32>; BargingMutexWith<u32, Shared<NoSpin, Counted>>;
        ThroughputMutex<u32>; ThroughputMutexWith<u32, Private<NoSpin, Counted>>;
        AsymMutex<u32>; AsymMutexWith<u32, Shared<NoSpin, Counted>>;
        ByteMutex<u32>; ByteMutexWith<u32, Private<NoSpin, Counted>>;
    }
    condvars! {
        BargingCondvar, with BargingMutex<u32>;
        BargingCondvarWith<Shared>, with BargingMutexWith<u32, Shared>;
        ThroughputCondvar, with ThroughputMutex<u32>;
        ThroughputCondvarWith<Private>, with ThroughputMutexWith<u32, Private>;
        AsymCondvar, with AsymMutex<u32>; AsymCondvarWith<Shared>, with AsymMutexWith<u32, Shared>;
        ByteCondvar, with ByteMutex<u32>;
        ByteCondvarWith<Private<NoSpin>>, with ByteMutexWith<u32, Private<NoSpin>>;
    }
}

#[test]
fn fair() {
    use ulocks::fair::*;
    mutexes! { FairMutex<u32>; FairMutexWith<u32, Private<NoSpin, Counted>>; }
    condvars! { FairCondvar, with FairMutex<u32>; FairCondvarWith<Private<NoSpin>>, with FairMutexWith<u32, Private<NoSpin>>; }
    semaphores! { Semaphore; SemaphoreWith<Private<NoSpin, Counted>>; }
}

#[test]
fn pi() {
    use ulocks::pi::*;
    mutexes! {
        PiMutex<u32>, unwrap; PiMutexWith<u32, Shared<NoSpin, Counted>>, unwrap;
        PiMutexOf<RawPiMutex, u32>, unwrap;
    }
    pi_condvars! {
        PiCondvar, with PiMutex<u32>; PiCondvarWith<Shared>, with PiMutexWith<u32, Shared>;
        PiCondvarOf<RawPiMutex>, with PiMutex<u32>;
    }
}

#[test]
fn calock() {
    use ulocks::calock::*;
    mutexes! { Calock<u32>; CalockWith<u32, Private<NoSpin, Counted>>; }
    condvars! { CalockCondvar, with Calock<u32>; CalockCondvarWith<Private<NoSpin>>, with CalockWith<u32, Private<NoSpin>>; }
}

#[test]
fn psrwlock() {
    use ulocks::psrwlock::*;
    rwlocks! {
        PsRwLock<u32>;
        PsRwLockWith<u32, Sifted<{ BULK | URGENT | NESTED }, Shared>>;
        PsRwLockWith<u32, Sifted<{ BULK | HANDLER }, Private<NoSpin, Counted>>>;
    }
}

#[test]
fn ulocks() {
    use ulocks::*;
    mutexes! { Mutex<u32>; ReentrantMutex<Cell<u32>>; }
    condvars! { Condvar, with Mutex<u32>; }
    rwlocks! { RwLock<u32>; }
    semaphores! { Semaphore; }
}

macro_rules! debug {
    ($test:ident, $($module:ident)::+) => {
        #[test]
        fn $test() {
            use $($module)::+::*;
            mutexes! {
                Mutex<u32>; ThroughputMutex<u32>; BargingMutex<u32>; AsymMutex<u32>;
                FairMutex<u32>; Calock<u32>; ReentrantMutex<Cell<u32>>; PiMutex<u32>, unwrap;
            }
            rwlocks! { RwLock<u32>; PsRwLock<u32>; }
            condvars! {
                Condvar, with Mutex<u32>; ThroughputCondvar, with ThroughputMutex<u32>;
                BargingCondvar, with BargingMutex<u32>; AsymCondvar, with AsymMutex<u32>;
                FairCondvar, with FairMutex<u32>;
                CalockCondvar, with Calock<u32>;
            }
            pi_condvars! { PiCondvar, with PiMutex<u32>; }
            semaphores! { Semaphore; }
        }
    };
}

debug!(strictly_checked, ulocks::debug);
debug!(checked, ulocks::checked);

macro_rules! parking_lot {
    ($test:ident, $($module:ident)::+ $(, $recursive:ident)?) => {
        #[test]
        fn $test() {
            use $($module)::+::*;
            mutexes! { Mutex<u32>; FairMutex<u32>; ReentrantMutex<Cell<u32>>; }
            rwlocks! { RwLock<u32>; $($recursive<u32>;)? }
            condvars! { Condvar, with Mutex<u32>; }
            let _watchdog = watched("Once", "the first call");
            let (once, calls) = (&*zeroed::<Once>(), Cell::new(0));
            assert_eq!(once.state(), OnceState::New);
            thread::scope(|scope| {
                let mut waiter = None;
                once.call_once(|| {
                    calls.set(calls.get() + 1);
                    waiter = Some(asleep(scope, || once.call_once(|| panic!("the second call"))));
                });
                waiter.expect("it was begun").join().expect("the waiter");
            });
            assert_eq!((calls.get(), once.state()), (1, OnceState::Done));
        }
    };
}

parking_lot!(parking_lot_0_13, ulocks_parking_lot, RecursiveRwLock);
parking_lot!(parking_lot_0_12, ulocks_parking_lot::v0_12);
parking_lot!(parking_lot_0_13_checked, ulocks_parking_lot::checked, RecursiveRwLock);
parking_lot!(parking_lot_0_12_checked, ulocks_parking_lot::checked::v0_12);

/// The names of the public locks in a file: those of its types and of the locks of `faces!`.
fn locks_of(text: &str) -> Vec<&str> {
    let declared = ["pub type ", "pub struct "].map(|start| text.split(start).skip(1));
    let declared = declared.into_iter().flatten().filter_map(|rest| rest.split(|c: char| !is_name(c)).next());
    let in_faces = text.split("faces! { ").skip(1).filter(|rest| rest.starts_with(['m', 'r']));
    let in_faces =
        in_faces.flat_map(|rest| rest.split(" }").next().unwrap_or_default().split(|c| !is_name(c)));
    let is_lock = |name: &&str| {
        let name = name.trim_end_matches("With").trim_end_matches("Of");
        let ends = ["Mutex", "Lock", "lock", "Condvar", "Semaphore", "Once"];
        let is_inside = ["Raw", "Checked", "Held"].iter().any(|start| name.starts_with(start));
        name.starts_with(char::is_uppercase) && ends.iter().any(|end| name.ends_with(end)) && !is_inside
    };
    declared.chain(in_faces).filter(is_lock).collect()
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn files_below(path: &Path) -> Vec<String> {
    if path.is_file() {
        return vec![fs::read_to_string(path).unwrap()];
    }
    let entries = fs::read_dir(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    entries.flat_map(|entry| files_below(&entry.unwrap().path())).collect()
}

/// `SemArray` is made at run time and allocates. The robust locks of `ulocks-shm` are made by
/// zeroed regions, in all of their tests.
#[test]
fn no_public_lock_is_missing() {
    let here = include_str!("zeroed.rs");
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let sources = [
        ("fn unfair()", "locks/unfair/src", 16),
        ("fn fair()", "locks/fair/src", 6),
        ("fn pi()", "locks/pi/src", 6),
        ("fn calock()", "locks/calock/src", 4),
        ("fn psrwlock()", "locks/psrwlock/src", 2),
        ("fn ulocks()", "faces/ulocks/src", 1),
        ("macro_rules! debug", "debug/src/faces.rs", 20),
        ("macro_rules! parking_lot", "faces/parking-lot/src/traits.rs", 4),
        ("macro_rules! parking_lot", "faces/parking-lot/src/current.rs", 2),
        ("macro_rules! parking_lot", "faces/parking-lot/src/v0_12", 1),
        ("macro_rules! parking_lot", "faces/parking-lot/src/once.rs", 1),
    ];
    let mut missing = Vec::new();
    for (start, path, at_least) in sources {
        let section = here.split(&format!("\n{start}")).nth(1).unwrap().split("\n}\n").next().unwrap();
        // The name of the type that only one of the faces has is an argument.
        let tested: Vec<&str> = format!("{section} RecursiveRwLock").leak().split(|c| !is_name(c)).collect();
        let texts = files_below(&crates.join(path));
        let names: Vec<&str> = texts.iter().flat_map(|text| locks_of(text)).collect();
        assert!(names.len() >= at_least, "{path} has locks that are not found: {names:?}");
        missing
            .extend(names.iter().filter(|name| !tested.contains(name)).map(|name| format!("{path}: {name}")));
    }
    assert!(missing.is_empty(), "public locks that are not in {}: {missing:#?}", file!());
}
