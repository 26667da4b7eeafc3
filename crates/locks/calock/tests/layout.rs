//! What the types promise of their memory: size, alignment, all-zero, constness.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use ulocks_calock::{Calock, CalockCondvar, CalockWith, Every, Interval, RawCalock};
use ulocks_core::Private;
use ulocks_core::meter::Counted;
use ulocks_core::policy::InOneProcess;
use ulocks_core::raw::RawMutex as _;
use ulocks_core::spin::{Adaptive, NoSpin, Patience};

ulocks_testkit::layout_tests! {
    Calock;
    RawCalock<Private<Adaptive, Counted>>;
    RawCalock<Private>, RawCalock<Private, Every<1_000>>, RawCalock<Private<NoSpin, Counted>>,
}

static PROMPT: CalockWith<u32, Private, Every<1_000_000>> = CalockWith::new(1);
static CONDVAR: CalockCondvar = CalockCondvar::new();
const _: () = assert!(size_of::<RawCalock>() == 52 && align_of::<RawCalock>() == 4);
const _: () = assert!(size_of::<RawCalock<Private, Every<50_000>>>() == 52);
const _: () = assert!(size_of::<RawCalock<Private<Patience<3_000>>>>() == 52);
const _: () = assert!(size_of::<Calock<()>>() == 52 && size_of::<Calock<u64>>() == 64);
const _: () = assert!(size_of::<CalockCondvar>() == 16);

#[test]
fn it_says_what_it_is() {
    let mutex = RawCalock::<Private<NoSpin, Counted>>::new();
    mutex.lock();
    assert!(format!("{mutex:?}").starts_with("RawCalock { state: LOCKED, meter: Snapshot { acquired: 1, "));
    assert_eq!(format!("{:?}", Calock::new(7)), "Mutex { data: 7 }");
}

#[test]
fn others_live_in_statics() {
    assert_eq!(*PROMPT.lock(), 1);
    assert_eq!(CONDVAR.notify_all(), 0);
}

#[test]
fn new_is_all_zero() {
    /// The words of the lock, up to the counters.
    const WORDS: usize = 52;

    fn check<P: InOneProcess, I: Interval>() {
        let new = RawCalock::<P, I>::new();
        let (start, counters) = ((&raw const new).cast::<u8>(), size_of::<P::Meter>());
        assert_eq!(size_of_val(&new), WORDS.next_multiple_of(align_of_val(&new)) + counters);
        // SAFETY: the first `WORDS` bytes of an initialised value, without padding: words of 4
        // bytes, and in the plan a 2, 1 and 1.
        assert_eq!(unsafe { std::slice::from_raw_parts(start, WORDS) }, [0; WORDS]);
        // SAFETY: the last bytes of it, its counters, which are of 8 bytes each.
        let counters =
            unsafe { std::slice::from_raw_parts(start.add(size_of_val(&new) - counters), counters) };
        assert_eq!(counters, vec![0; counters.len()]);
    }
    check::<Private, Every>();
    check::<Private, Every<1_000>>();
    check::<Private<NoSpin, Counted>, Every>();
}
