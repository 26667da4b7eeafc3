//! The semaphore.

use crate::closing::{
    a_close_publishes, a_grant_before_the_close_is_kept, all_leave, the_count_publishes,
    the_large_one_at_the_head_leaves_too, users_come_until_it_is_closed, who_asks_learns,
};
use crate::permits::{
    Binary, a_permit_that_nobody_waits_for_can_be_had, a_release_publishes, never_more_out_than_in,
    overflow_changes_nothing, producers_and_consumers, the_acquirer_frees, the_large_one_is_not_overtaken,
    timeout_against_release, who_gives_up_lets_others_pass,
};
use crate::way::{ByTasks, Way};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::time::{Duration, Instant};
use ulocks_core::Private;
use ulocks_core::meter::sealed::Sealed;
use ulocks_core::meter::{Counted, Event, Meter};
use ulocks_core::policy::InOneProcess;
use ulocks_core::spin::{Adaptive, NoSpin, Patience};
use ulocks_core::time::Deadline;
use ulocks_fair::{AcquireError, RawSemaphore, SemaphoreWith};
use ulocks_testkit::interrupt::struck;
use ulocks_testkit::limit::until;
use ulocks_testkit::stress::{self, Load, Random};
use ulocks_testkit::suite::Effort;
use ulocks_testkit::task;
use ulocks_testkit::thread::with;
use ulocks_testkit::watchdog;

/// Runs `check` with each way of waiting: they leave by different doors.
macro_rules! with_each_policy {
    ($check:ident) => {
        $check::<Private>();
        $check::<Private<NoSpin>>();
        $check::<Private<Patience<3_000>, Counted>>();
        $check::<ByTasks<Private<NoSpin>, false, 2>>();
    };
}

// One permit is a mutex.
ulocks_testkit::stress_tests! {
    Effort::FULL;
    Binary<Private>,
    Binary<Private<NoSpin>>,
    Binary<Private<Patience<3_000>, Counted>>,
}

ulocks_testkit::interrupt_tests! {
    Effort::FULL;
    Binary<Private>,
    Binary<Private<NoSpin>>,
}

/// Requests for one and for many, beside a patient one that goes on after signals.
#[test]
fn a_handler_ends_an_acquisition_and_the_next_is_served() {
    fn check<P: Way>() {
        let semaphore = SemaphoreWith::<P>::new(3);
        let kept = semaphore.acquire_many(2);
        let many = || semaphore.acquire_many_interruptible(2).map(drop);
        let one = || semaphore.acquire_interruptible().map(drop);
        let far = || Deadline::after(Duration::from_secs(3_600));
        assert_eq!(one(), Ok(()), "there is one");
        assert_eq!(struck(many), Err(AcquireError::Interrupted));
        let in_an_hour = || semaphore.acquire_many_interruptible_until(2, far()).map(drop);
        assert_eq!(struck(in_an_hour), Err(AcquireError::Interrupted));
        assert_eq!(one(), Ok(()), "the large request has left the queue");
        let late = || semaphore.acquire_many_interruptible_until(2, Instant::now()).map(drop);
        assert_eq!(late(), Err(AcquireError::TimedOut));

        let last = semaphore.acquire();
        std::thread::scope(|scope| {
            let patient = scope.spawn(|| semaphore.acquire_many(3).forget());
            until("the patient one waits", || semaphore.raw().waiters() > 0);
            assert_eq!(struck(one), Err(AcquireError::Interrupted));
            assert_eq!(struck(many), Err(AcquireError::Interrupted));
            drop((last, kept));
            patient.join().expect("the patient waiter panicked");
        });
        assert_eq!((semaphore.raw().waiters(), semaphore.available_permits()), (0, 0));
        semaphore.close();
        assert_eq!((one(), many()), (Err(AcquireError::Closed), Err(AcquireError::Closed)));
        assert_eq!(late(), Err(AcquireError::Closed));
    }
    with_each_policy!(check);
}

#[test]
fn survives_many_waiters_that_give_up() {
    fn check<P: Way>() {
        let many = Load { threads: 40, operations: 500, ..Load::default() };
        stress::timed::<Binary<P>>(many).check();
        stress::cancel::<Binary<P>>(many).check();
    }
    with_each_policy!(check);
}

#[test]
fn the_clients_of_the_models_pass_on_the_machine() {
    fn check<P: Way>() {
        for _ in 0..20 {
            never_more_out_than_in::<P>(6, 3);
            producers_and_consumers::<P>(2, 6, false);
            producers_and_consumers::<P>(1, 40, true);
            a_release_publishes::<P>();
            the_large_one_is_not_overtaken::<P>(4);
            timeout_against_release::<P>(4, 4);
            who_gives_up_lets_others_pass::<P>(3);
            the_acquirer_frees::<P>();
            overflow_changes_nothing::<P>(true);
            all_leave::<P>(4, 4, 6, 2);
            the_large_one_at_the_head_leaves_too::<P>(4);
            a_grant_before_the_close_is_kept::<P>();
            users_come_until_it_is_closed::<P>(6, 3, u32::MAX);
            a_close_publishes::<P>(4);
            who_asks_learns::<P>();
            the_count_publishes::<P>();
            a_permit_that_nobody_waits_for_can_be_had::<P>();
        }
    }
    with_each_policy!(check);
}

/// Numbers the threads that come to the line, or take permits past it, in the order of the steps by
/// which they do.
struct Arrivals(Mutex<u64>);

std::thread_local! {
    /// The number of the calling thread's last arrival.
    static ARRIVED: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: it counts under a mutex that no thread poisons for it.
unsafe impl Sealed for Arrivals {}

impl Meter for Arrivals {
    const INIT: Self = Self(Mutex::new(0));

    fn count(&self, _: Event) {}

    fn arrive<T, E>(&self, attempt: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let mut count = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let outcome = attempt();
        if outcome.is_ok() {
            *count += 1;
            ARRIVED.set(*count);
        }
        outcome
    }
}

/// With one permit, acquisitions come one after the other; each came to the line after the one
/// before it.
#[test]
fn the_order_of_grants_is_the_order_of_arrivals() {
    fn check<P: InOneProcess<Meter = Arrivals>>(threads: usize, operations: usize) {
        let semaphore = Arc::new(RawSemaphore::<P>::new(1));
        let (last, served) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicUsize::new(0)));
        let _watchdog = {
            let (semaphore, served) = (Arc::clone(&semaphore), Arc::clone(&served));
            watchdog::watch("order", move || format!("{semaphore:?}, served {}", served.load(Relaxed)))
        };
        let start = Arc::new(Barrier::new(threads));
        let checked = Arc::clone(&served);
        ulocks_testkit::thread::together(threads, move |me| {
            let mut random = Random::new(me);
            start.wait();
            for _ in 0..operations {
                let had = match random.below(4) {
                    0 => semaphore
                        .acquire_until(1, Deadline::after(Duration::from_nanos(random.below(50_000).into()))),
                    1 => semaphore.try_acquire(1),
                    _ => {
                        semaphore.acquire(1);
                        true
                    }
                };
                if had {
                    // Load and store: the one permit is held.
                    let mine = ARRIVED.get();
                    let before = last.load(Relaxed);
                    assert!(before < mine, "number {mine} was served after number {before}");
                    last.store(mine, Relaxed);
                    checked.fetch_add(1, Relaxed);
                    semaphore.release(1).expect("room");
                }
            }
        });
        assert!(served.load(Relaxed) > threads * operations / 4);
    }
    for (threads, operations) in [(2, 50_000), (8, 5_000), (64, 500)] {
        check::<Private<Adaptive, Arrivals>>(threads, operations);
        check::<Private<NoSpin, Arrivals>>(threads, operations / 5);
    }
}

/// Of many whose time passes at about the same moment each leaves.
#[test]
fn hundreds_may_give_up_behind_one_that_stays() {
    fn check<P: Way>() {
        let semaphore = Arc::new(RawSemaphore::<P>::new(0));
        let first = with(&semaphore, |semaphore| semaphore.acquire(1));
        ulocks_testkit::limit::until("a thread is queued", || semaphore.is_queued());
        let others = Arc::clone(&semaphore);
        let had = ulocks_testkit::thread::together(200, move |me| {
            others.acquire_until(1, Deadline::after(Duration::from_micros(100 + 10 * me as u64)))
        });
        assert!(!had.contains(&true), "permits came from nowhere");
        assert_eq!(semaphore.waiters(), 1);
        semaphore.release(2).expect("room");
        first.join().expect("the first panicked");
        assert!(semaphore.try_acquire(1));
        assert_eq!((semaphore.waiters(), semaphore.available()), (0, 0));
    }
    with_each_policy!(check);
}

/// A close at any moment among hundreds that come, wait, give up and release.
#[test]
fn all_leave_when_it_is_closed() {
    fn check<P: Way>() {
        for round in 0..20_u64 {
            let semaphore = Arc::new(RawSemaphore::<P>::new(3));
            let _watchdog = {
                let semaphore = Arc::clone(&semaphore);
                watchdog::watch("close", move || format!("{semaphore:?}"))
            };
            let users = Arc::clone(&semaphore);
            let out = ulocks_testkit::thread::together(200, move |me| {
                let mut random = Random::new(me);
                if me == 199 {
                    let begun = Instant::now();
                    while begun.elapsed() < Duration::from_micros(200) * round as u32 {
                        std::hint::spin_loop();
                    }
                    users.close();
                }
                // Some of them keep what they get.
                let mut kept = 0;
                loop {
                    let wanted = 1 + random.below(2);
                    let soon = Deadline::after(Duration::from_nanos(random.below(200_000).into()));
                    let had = if me % 3 == 0 {
                        users.acquire_until(wanted, soon)
                    } else {
                        users.acquire_unless_closed(wanted).is_ok()
                    };
                    match had {
                        true if me == 7 && kept == 0 && wanted == 1 => kept = 1,
                        true => users.release(wanted).expect("room"),
                        false if users.is_closed() => return kept,
                        false => {}
                    }
                }
            });
            assert_eq!((semaphore.waiters(), semaphore.available()), (0, 3 - out.iter().sum::<u32>()));
        }
    }
    with_each_policy!(check);
}

/// No thread is woken that does not sleep.
#[test]
fn counters_agree_with_one_another() {
    fn check<P: InOneProcess<Meter = Counted>>() {
        let semaphore = Arc::new(RawSemaphore::<P>::new(1));
        let users = Arc::clone(&semaphore);
        ulocks_testkit::thread::together(4, move |_| {
            for _ in 0..10_000 {
                users.acquire(1);
                users.release(1).expect("room");
            }
        });
        let counted = semaphore.meter().snapshot();
        assert_eq!(counted.acquired, 40_000);
        assert!(counted.contended <= counted.acquired, "{counted:?}");
        assert!(counted.woke <= counted.slept, "{counted:?}");
        assert_eq!(counted.spun + counted.woken, counted.contended, "{counted:?}");
    }
    check::<Private<NoSpin, Counted>>();
    check::<Private<Adaptive, Counted>>();
}

/// A handler that releases strikes a thread that acquires and releases the same semaphore.
///
/// ThreadSanitizer takes a signal down and calls the handler when its thread does something atomic
/// next, which a thread that sleeps for what the handler releases never does: the sleep is
/// restarted, as the handler was installed to ask for. So a signal that seems to be lost is
/// followed by another one that ends the sleep, and releases nothing.
#[test]
fn a_signal_handler_may_release() {
    static SEMAPHORE: SemaphoreWith<Private> = SemaphoreWith::new(0);
    static HANDLED: AtomicUsize = AtomicUsize::new(0);
    const SIGNALS: usize = 5_000;
    const LOST_AFTER: Duration = Duration::from_micros(200);

    extern "C" fn release(_: libc::c_int) {
        SEMAPHORE.release(1).expect("room");
        HANDLED.fetch_add(1, Relaxed);
    }
    extern "C" fn interrupt(_: libc::c_int) {}

    // SAFETY: the handlers call what may be called in handlers, which is what the test is about.
    unsafe {
        task::handle(libc::SIGUSR2, release, libc::SA_RESTART);
        task::handle(libc::SIGURG, interrupt, 0);
    }

    let _watchdog = watchdog::watch("signals", || format!("{SEMAPHORE:?}, {HANDLED:?} handled"));
    std::thread::scope(|scope| {
        let (thread, taker) = task::begun(scope, || {
            for _ in 0..SIGNALS {
                SEMAPHORE.acquire().forget();
                // Both ways, so that the handler strikes either.
                SEMAPHORE.release(1).expect("room");
                SEMAPHORE.acquire().forget();
            }
        });
        // The taker runs until it has as many permits as signals were handled, and these are sent
        // one by one.
        for sent in 1..=SIGNALS {
            task::signal(thread, libc::SIGUSR2);
            let mut since = Instant::now();
            while HANDLED.load(Relaxed) < sent {
                if since.elapsed() > LOST_AFTER {
                    task::signal(thread, libc::SIGURG);
                    since = Instant::now();
                }
                std::hint::spin_loop();
            }
        }
        taker.join().expect("the taker panicked");
    });
    assert_eq!(HANDLED.load(Relaxed), SIGNALS);
    assert_eq!(SEMAPHORE.available_permits(), 0);
}
