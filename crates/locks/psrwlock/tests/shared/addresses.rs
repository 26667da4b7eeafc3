//! One lock at two addresses.

use crate::mixed::{self, Classes, Lock, check_is_free, classes, operate};
use crate::threads::asleep;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use ulocks_core::Shared;
use ulocks_core::spin::{NoSpin, Patience};
use ulocks_psrwlock::{
    BULK, ByClass, Configuration, Distributed, NESTED, PhaseFair, PsRwLockWith, RawPsRwLock, Sifted, URGENT,
    WriterBatch,
};
use ulocks_testkit::rw;
use ulocks_testkit::shared::forked;
use ulocks_testkit::stress::{Load, Random};
use ulocks_testkit::watchdog::watch;

const PAGE: usize = 4096;
const THREE: u8 = BULK | URGENT | NESTED;

/// One zeroed page, shared with children, at two addresses.
struct Views([*mut libc::c_void; 2]);

impl Views {
    fn new() -> Self {
        let (protection, none) = (libc::PROT_READ | libc::PROT_WRITE, std::ptr::null_mut());
        // SAFETY: a new file without a name, and new mappings of it at addresses of the kernel's
        // choice disturb nothing.
        let views = unsafe {
            let file = libc::memfd_create(c"lock".as_ptr(), 0);
            assert!(file >= 0, "memfd_create: {}", io::Error::last_os_error());
            assert_eq!(libc::ftruncate(file, PAGE as libc::off_t), 0);
            let views = [(); 2].map(|()| libc::mmap(none, PAGE, protection, libc::MAP_SHARED, file, 0));
            libc::close(file);
            views
        };
        assert!(views.iter().all(|&view| view != libc::MAP_FAILED), "mmap: {}", io::Error::last_os_error());
        assert_ne!(views[0], views[1]);
        Self(views)
    }

    /// What is there: a `T` for which zeroes will do.
    fn get<T>(&self) -> [&T; 2] {
        assert!(size_of::<T>() <= PAGE);
        // SAFETY: the pages are large enough, aligned, and zeroed at first; the caller's type is
        // made for that.
        self.0.map(|view| unsafe { &*view.cast::<T>() })
    }
}

impl Drop for Views {
    fn drop(&mut self) {
        for view in self.0 {
            // SAFETY: no thread refers to it any more.
            assert_eq!(unsafe { libc::munmap(view, PAGE) }, 0);
        }
    }
}

/// Zeroes are a lock that is unlocked, around variables that are equal, and no writes.
struct Region<D: Configuration> {
    lock: Lock<D>,
    writes: AtomicU64,
}

/// Every operation at once, by four processes, two at each address.
fn check<D: Configuration>(classes: Classes<D>) {
    let views = Views::new();
    let [one, other] = views.get::<Region<D>>();
    let address = std::ptr::from_ref(one).expose_provenance();
    let _watchdog = watch("processes at two addresses", move || {
        // SAFETY: the mapping outlives the watchdog.
        let region = unsafe { &*std::ptr::with_exposed_provenance::<Region<D>>(address) };
        format!("{:?}", region.lock.state())
    });
    forked(4, |me| {
        let region = if me % 2 == 0 { one } else { other };
        let mut random = Random::new(me);
        for _ in 0..1_500 {
            region.writes.fetch_add(operate(&region.lock, &classes, &mut random, 200), Relaxed);
        }
    });
    assert_eq!(other.lock.read().look(), one.writes.load(Relaxed), "writes were lost");
    check_is_free(&one.lock);
}

#[test]
fn processes_do_everything_at_two_addresses() {
    type D = Sifted<THREE, Shared>;
    check(classes!(D: Bulk, Urgent, Nested));
    type NoSpinning = Sifted<THREE, Shared<NoSpin>, WriterBatch<3>>;
    check(classes!(NoSpinning: Bulk, Urgent, Nested));
    type AtSlots = Sifted<THREE, Shared<NoSpin>, PhaseFair, Distributed<2>>;
    check(classes!(AtSlots: Bulk, Urgent, Nested));
    type One = Sifted<BULK, Shared>;
    check(classes!(One: Bulk));
}

#[test]
fn processes_are_clients_like_threads() {
    fn check<D: Configuration>(load: Load) {
        rw::shared::mixed::<RawPsRwLock<D>>(load).check();
    }
    let (some, many) = (
        Load { operations: 3_000, ..Load::default() },
        Load { threads: 32, operations: 200, ..Load::default() },
    );
    check::<Sifted<THREE, Shared>>(some);
    check::<Sifted<THREE, Shared<NoSpin>>>(some);
    check::<Sifted<THREE, Shared<NoSpin>>>(many);
    check::<Sifted<BULK, Shared<Patience<3_000>>, WriterBatch<2>, Distributed<8>>>(some);
}

/// A sleeper at one address is woken at the other.
#[test]
fn a_release_at_one_address_wakes_those_at_the_other() {
    type Plain = PsRwLockWith<u32, Sifted<THREE, Shared<NoSpin>>>;
    let views = Views::new();
    let [one, other] = views.get::<Plain>();
    let _watchdog = watch("two addresses", || "a thread at the other address sleeps on".into());
    for round in 0..20 {
        let mut held = one.write();
        *held = round;
        std::thread::scope(|scope| {
            let waiter = asleep(scope, || if round % 2 == 0 { *other.read() } else { *other.write() });
            drop(held);
            assert_eq!(waiter.join().unwrap(), round);
        });
    }
}
