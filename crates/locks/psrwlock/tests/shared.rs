//! The lock between processes: at two addresses, and what a process leaves behind that is killed
//! while it holds the lock or waits for it. The lock is not robust: the others have to bound their
//! waits, and these tests say which of them come to nothing.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

#[path = "common/mixed.rs"]
mod mixed;
#[allow(dead_code, reason = "each test crate uses its part of it")]
#[path = "common/variables.rs"]
mod variables;

use mixed::{Classes, Lock, check_is_free, classes, operate};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use ulocks_core::Shared;
use ulocks_core::spin::NoSpin;
use ulocks_psrwlock::{BULK, ByClass, Configuration, NESTED, PsRwLockWith, Sifted, State, URGENT, Urgent};
use ulocks_testkit::Child;
use ulocks_testkit::shared::{Mapping, forked};
use ulocks_testkit::stress::Random;
use ulocks_testkit::watchdog::watch;

const PAGE: usize = 4096;
const THREE: u8 = BULK | URGENT | NESTED;
const SHORT: Duration = Duration::from_millis(20);
/// How long a writer waits that another process looks at meanwhile, also on a slow machine.
const LONG: Duration = Duration::from_millis(500);

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
    check(classes!(Shared: Bulk, Urgent, Nested));
    type NoSpinning = Sifted<THREE, Shared<NoSpin>>;
    check(classes!(NoSpinning: Bulk, Urgent, Nested));
    type One = Sifted<BULK, Shared>;
    check(classes!(One: Bulk));
}

type Plain = PsRwLockWith<u32, Sifted<{ BULK | URGENT }, Shared<NoSpin>>>;

/// Runs `test` on a lock that children share, with an end if it hangs.
fn with_a_lock(name: &str, test: impl FnOnce(&Plain)) {
    let mapping = Mapping::shared();
    let place = mapping.place::<Plain>();
    // SAFETY: a fresh page that is large enough, zeroed, which is an unlocked lock around zero; it
    // outlives the watchdog.
    let lock: &'static Plain = unsafe { &*place };
    let _watchdog = watch(name, move || format!("{:?}", lock.state()));
    test(lock);
}

/// A child that keeps what it acquires, for ever.
fn keeps<G>(acquire: impl FnOnce() -> G) -> Child {
    Child::runs(|| {
        let _held = acquire();
        loop {
            // SAFETY: waits for a signal.
            unsafe { libc::pause() };
        }
    })
}

#[test]
fn readers_go_on_beside_a_reader_that_died() {
    with_a_lock("reader killed", |lock| {
        keeps(|| lock.read()).sleeps(|| !lock.state().has_no_readers()).killed();
        for _ in 0..3 {
            assert!(lock.try_read().is_some() && lock.try_read_in::<Urgent>().is_some());
            assert!(lock.try_write().is_none() && lock.try_write_for(SHORT).is_none());
            // Readers that came while it waited, and slept, get in when it has given up.
            let writer = Child::runs(|| assert!(lock.try_write_for(LONG).is_none()))
                .sleeps(|| lock.state().level() == 1);
            let reader = Child::runs(|| _ = *lock.read());
            Child::runs(|| _ = *lock.read_in::<Urgent>()).ends();
            writer.ends();
            reader.ends();
            assert_eq!(lock.state().level(), 0);
        }
        assert_eq!(*lock.upgradable_read(), 0, "what needs no exclusion goes on, too");
    });
}

#[test]
fn all_waits_time_out_behind_a_writer_that_died() {
    with_a_lock("writer killed", |lock| {
        keeps(|| lock.write()).sleeps(|| lock.state().level() == 2).killed();
        for _ in 0..2 {
            assert!(lock.try_read().is_none() && lock.try_read_for(SHORT).is_none());
            assert!(
                lock.try_read_in_for::<Urgent>(SHORT).is_none()
                    && lock.try_upgradable_read_for(SHORT).is_none()
            );
            assert!(lock.try_write().is_none() && lock.try_write_for(SHORT).is_none());
        }
        assert!(lock.state().is_owned());
    });
}

#[test]
fn higher_classes_go_on_behind_a_writer_that_died_as_it_waited_for_lower_ones() {
    with_a_lock("waiting writer killed", |lock| {
        let reader = lock.read();
        Child::runs(|| *lock.write() += 1).sleeps(|| lock.state().level() == 1).killed();
        drop(reader);
        assert!(lock.try_read().is_none() && lock.try_read_for(SHORT).is_none());
        assert_eq!(*lock.read_in::<Urgent>(), 0);
        assert!(lock.try_write_for(SHORT).is_none() && lock.try_upgradable_read_for(SHORT).is_none());
    });
}

#[test]
fn a_writer_that_died_behind_another_is_missed_by_nobody() {
    with_a_lock("queued writer killed", |lock| {
        let held = lock.write();
        let waits = || lock.state().0 & State::WRITERS != 0;
        let dead = Child::runs(|| *lock.write() += 1).sleeps(waits);
        let alive: Vec<_> = (0..3).map(|_| Child::runs(|| *lock.write() += 1).sleeps(waits)).collect();
        dead.killed();
        drop(held);
        alive.into_iter().for_each(Child::ends);
        assert_eq!(*lock.read(), 3);
        drop(lock.write());
        assert_eq!(lock.state(), State::UNLOCKED);
    });
}
