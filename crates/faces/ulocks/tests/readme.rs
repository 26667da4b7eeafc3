//! What the tables of the README and of the guide `which` say of sizes.

#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use std::mem::size_of;
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
        let allocated = during(|| array = Some(ulocks::semarray::SemArray::new(len)));
        let live = allocated.bytes - allocated.freed;
        assert_eq!(during(|| drop(array)).freed, live, "all is given back");
        live
    };
    let each = (bytes(1_001) - bytes(1)) / 1_000;
    assert_eq!(size("`ulocks::semarray::SemArray`"), format!("{each} B a semaphore"));
    assert_eq!(bytes(1_000), 1_000 * each, "the semaphores are all that is allocated");
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
