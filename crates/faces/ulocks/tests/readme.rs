//! What the tables of the README and of the guide `which` say of sizes, and what allocates.

#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use std::mem::size_of;
use std::pin::pin;
use std::task::{Context, Waker};
use ulocks::semarray::{Op, SemArray};
use ulocks::task::{AsyncCondvar as _, AsyncMutex as _, AsyncRwLock as _};
use ulocks_testkit::allocations::{Counting, during};

#[global_allocator]
static COUNTING: Counting = Counting;

/// What the tables say of the size of a lock. They say the same.
fn size(of: &str) -> String {
    let [guide, short] =
        [include_str!("../src/which.rs"), include_str!("../README.md")].map(|text| in_table(text, of));
    assert!(short.is_none() || short == guide, "{of}: {short:?} in README.md, {guide:?} in the guide");
    guide.unwrap_or_else(|| panic!("the table has no row for {of}"))
}

fn in_table(text: &str, of: &str) -> Option<String> {
    let row =
        text.lines().find(|line| line.trim_start_matches("//! ").starts_with('|') && line.contains(of))?;
    let cell = row.trim_end_matches([' ', '|']).rsplit('|').next();
    Some(cell?.trim().to_owned())
}

#[test]
fn an_array_has_the_size_of_its_semaphores() {
    let bytes = |len: usize| {
        let mut array = None;
        let allocated = during(|| array = Some(SemArray::new(len)));
        let live = allocated.bytes - allocated.freed;
        assert_eq!(during(|| drop(array)).freed, live, "all is given back");
        live
    };
    let each = (bytes(1_001) - bytes(1)) / 1_000;
    assert_eq!(size("`ulocks::semarray::SemArray`"), format!("{each} B a semaphore"));
    assert_eq!(bytes(1_000), 1_000 * each, "the semaphores are all that is allocated");
}

/// Of two tasks that wait, one is dropped, and the other is ready after `tell`.
fn waits_without_memory<W: Future>(wait: impl Fn() -> W, tell: impl FnOnce()) {
    let mut context = Context::from_waker(Waker::noop());
    let allocated = during(|| {
        let mut told = pin!(wait());
        assert!(told.as_mut().poll(&mut context).is_pending());
        assert!(pin!(wait()).poll(&mut context).is_pending());
        tell();
        assert!(told.poll(&mut context).is_ready());
    });
    assert_eq!((allocated.times, allocated.freed), (0, 0));
}

#[test]
fn a_task_that_waits_allocates_nothing() {
    macro_rules! mutexes {
        ($($Mutex:ty, $Condvar:ty;)*) => {$(
            let (mutex, changed) = (<$Mutex>::new(()), <$Condvar>::new());
            let held = mutex.lock();
            waits_without_memory(|| mutex.lock_async(), || drop(held));
            let wait = || async { drop(changed.wait_async(mutex.lock_async().await).await) };
            waits_without_memory(wait, || _ = changed.notify_all());
        )*};
    }
    mutexes! {
        ulocks::Mutex<()>, ulocks::Condvar;
        ulocks::calock::Calock<()>, ulocks::calock::CalockCondvar;
        ulocks::fair::FairMutex<()>, ulocks::fair::FairCondvar;
    }
    let lock = ulocks::RwLock::new(());
    let held = lock.write();
    waits_without_memory(|| lock.read_async(), || drop(held));
    let held = lock.read();
    waits_without_memory(|| lock.write_async(), || drop(held));
    let held = lock.write();
    waits_without_memory(|| lock.upgradable_async(), || drop(held));
    let semaphore = ulocks::Semaphore::new(0);
    waits_without_memory(|| semaphore.acquire_async(), || semaphore.release(1).expect("there are few"));
    let array = SemArray::new(2);
    let both = || array.acquire_async([Op::sub(0, 1), Op::sub(1, 1)]);
    waits_without_memory(both, || array.apply(&[Op::add(0, 1), Op::add(1, 1)]).expect("there are few"));
}

/// The table speaks of 64-bit processors.
#[cfg(target_pointer_width = "64")]
#[test]
fn sizes_are_those_of_the_table() {
    macro_rules! check {
        ($($name:literal: $lock:ty;)*) => {
            $(assert_eq!(size(concat!("`", $name, "`")), format!("{} B", size_of::<$lock>()), $name);)*
        };
    }
    check! {
        "ulocks::Mutex": ulocks::Mutex<()>;
        "ulocks::RwLock": ulocks::RwLock<()>;
        "ulocks::Condvar": ulocks::Condvar;
        "ulocks::Semaphore": ulocks::Semaphore;
        "ulocks::unfair::BargingMutex": ulocks::unfair::BargingMutex<()>;
        "ulocks::unfair::ThroughputMutex": ulocks::unfair::ThroughputMutex<()>;
        "ulocks::calock::Calock": ulocks::calock::Calock<()>;
        "ulocks::unfair::AsymMutex": ulocks::unfair::AsymMutex<()>;
        "ulocks::psrwlock::PsRwLock": ulocks::psrwlock::PsRwLock<()>;
        "ulocks::fair::FairMutex": ulocks::fair::FairMutex<()>;
        "ulocks::fair::Semaphore": ulocks::fair::Semaphore;
        "ulocks::pi::PiMutex": ulocks::pi::PiMutex<()>;
        "ulocks::pi::PiCondvar": ulocks::pi::PiCondvar;
    }
    #[cfg(feature = "parking_lot")]
    check! { "ulocks::unfair::ByteMutex": ulocks::unfair::ByteMutex<()>; }
}
