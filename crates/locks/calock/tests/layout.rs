//! What the types promise of their memory: size, alignment, all-zero, constness.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use ulocks_calock::{Calock, CalockCondvar, CalockWith, Every, RawCalock};
use ulocks_core::Private;
use ulocks_core::meter::Counted;
use ulocks_core::raw::RawMutex as _;
use ulocks_core::spin::{Adaptive, NoSpin, Patience};
use ulocks_testkit::suite;

ulocks_testkit::layout_tests! {
    Calock;
    RawCalock<Private<Adaptive, Counted>>;
    RawCalock<Private>, RawCalock<Private, Every<1_000>>, RawCalock<Private<NoSpin, Counted>>,
}

static PROMPT: CalockWith<u32, Private, Every<1_000_000>> = CalockWith::new(1);
static CONDVAR: CalockCondvar = CalockCondvar::new();
const _: () = assert!(size_of::<RawCalock>() == 8 && align_of::<RawCalock>() == 8);
const _: () = assert!(size_of::<RawCalock<Private, Every<50_000>>>() == 8);
const _: () = assert!(size_of::<RawCalock<Private<Patience<3_000>>>>() == 8);
const _: () = assert!(size_of::<Calock<()>>() == 8 && size_of::<Calock<u64>>() == 16);
const _: () = assert!(size_of::<CalockCondvar>() == 16);

#[test]
fn it_says_what_it_is() {
    let mutex = RawCalock::<Private>::new();
    mutex.lock();
    assert_eq!(format!("{mutex:?}"), "QueueMutex(LOCKED)");
    assert_eq!(format!("{:?}", Calock::new(7)), "Mutex { data: 7 }");
}

#[test]
fn others_live_in_statics() {
    assert_eq!(*PROMPT.lock(), 1);
    assert_eq!(CONDVAR.notify_all(), 0);
}

#[test]
fn new_is_all_zero() {
    // SAFETY: a word of eight bytes, and counters of a multiple of their size.
    unsafe {
        suite::new_is_all_zero::<RawCalock<Private>>(8);
        suite::new_is_all_zero::<RawCalock<Private, Every<1_000>>>(8);
        suite::new_is_all_zero::<RawCalock<Private<NoSpin, Counted>>>(8 + size_of::<Counted>());
    }
}
