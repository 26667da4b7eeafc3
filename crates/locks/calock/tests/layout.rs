//! What the types promise of their memory: size, alignment, all-zero, constness.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use ulocks_calock::{Calock, CalockCondvar, CalockWith, Every, RawCalock};
use ulocks_core::Private;
use ulocks_core::meter::Counted;
use ulocks_core::policy::InOneProcess;
use ulocks_core::queue::Rule;
use ulocks_core::raw::RawMutex as _;
use ulocks_core::spin::{Adaptive, NoSpin, Patience};

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
    fn check<P: InOneProcess, I: Rule>(size: usize) {
        let new = RawCalock::<P, I>::new();
        // SAFETY: the bytes of an initialised value without padding: a word of eight bytes,
        // and counters of a multiple of their size.
        let bytes = unsafe { std::slice::from_raw_parts((&raw const new).cast::<u8>(), size_of_val(&new)) };
        assert_eq!(bytes, vec![0; size]);
    }
    check::<Private, Every>(8);
    check::<Private, Every<1_000>>(8);
    check::<Private<NoSpin, Counted>, Every>(8 + size_of::<Counted>());
}
