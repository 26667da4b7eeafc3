//! What the README's table says of sizes.

use std::mem::size_of;

#[test]
fn sizes_are_those_of_the_table() {
    let table = include_str!("../README.md");
    let size = |of: &str| {
        let row = table.lines().find(|line| line.starts_with('|') && line.contains(of));
        let cell = row.and_then(|row| row.trim_end_matches([' ', '|']).rsplit('|').next());
        cell.unwrap_or_else(|| panic!("the table has no row for {of}")).trim().to_owned()
    };
    macro_rules! check {
        ($($name:literal: $lock:ty;)*) => {
            $(assert_eq!(size(concat!("`", $name, "`")), format!("{} B", size_of::<$lock>()), $name);)*
        };
    }
    check! {
        "std::sync::Mutex": std::sync::Mutex<()>;
        "ulocks::unfair::Mutex": ulocks::unfair::Mutex<()>;
        "ulocks::unfair::ThroughputMutex": ulocks::unfair::ThroughputMutex<()>;
        "ulocks::calock::Calock": ulocks::calock::Calock<()>;
        "ulocks::unfair::AsymMutex": ulocks::unfair::AsymMutex<()>;
        "ulocks::psrwlock::PsRwLock": ulocks::psrwlock::PsRwLock<()>;
        "ulocks::unfair::Condvar": ulocks::unfair::Condvar;
        "ulocks::fair::FairMutex": ulocks::fair::FairMutex<()>;
        "ulocks::fair::Semaphore": ulocks::fair::Semaphore;
        "ulocks::pi::PiMutex": ulocks::pi::PiMutex<()>;
        "ulocks::pi::PiCondvar": ulocks::pi::PiCondvar;
    }
    #[cfg(feature = "parking-lot")]
    check! { "ulocks::unfair::ByteMutex": ulocks::unfair::ByteMutex<()>; }
}
