//! Operations of every kind at once, for each discipline.

use crate::mixed::{self, Classes, Lock, check_is_free, classes, operate};
use crate::variables::Variables;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Barrier};
use std::time::Duration;
use ulocks_core::Private;
use ulocks_core::interrupt::{Interrupted, WaitError};
use ulocks_core::meter::Counted;
use ulocks_core::spin::{NoSpin, Patience};
use ulocks_core::time::Deadline;
use ulocks_psrwlock::{
    BULK, Bulk, ByClass as _, Configuration, Eager, HANDLER, NESTED, Nested, PhaseFair, RawPsRwLock, Sifted,
    ThreadClass, URGENT, Urgent,
};
use ulocks_testkit::interrupt;
use ulocks_testkit::stress::Random;
use ulocks_testkit::thread::together;
use ulocks_testkit::watchdog::watch;

const THREE: u8 = BULK | URGENT | NESTED;
const ALL: u8 = THREE | HANDLER;

#[test]
fn a_handler_ends_a_wait_and_strands_nobody() {
    interrupt::rwlock::<RawPsRwLock>();
    interrupt::rwlock::<RawPsRwLock<Sifted<BULK, Private<NoSpin>>>>();
    interrupt::rwlock::<RawPsRwLock<Sifted<ALL>>>();
    interrupt::rwlock::<RawPsRwLock<Sifted<THREE, Private, PhaseFair, Eager>>>();
}

#[test]
fn a_handler_ends_the_wait_of_each_class() {
    fn check<C: ThreadClass>() {
        let lock = Lock::<Sifted<THREE>>::new(Variables::new());
        let read = || lock.read_in_interruptible::<C>().map(drop);
        let read_until = |deadline: Deadline| lock.read_in_interruptible_until::<C>(deadline).map(drop);
        let held = lock.write();
        assert_eq!(interrupt::struck(read), Err(Interrupted));
        assert_eq!(interrupt::struck(|| read_until(Deadline::NEVER)), Err(WaitError::Interrupted));
        assert_eq!(read_until(Deadline::after(Duration::ZERO)), Err(WaitError::TimedOut));
        drop(held);
        assert_eq!((read(), read_until(Deadline::NEVER)), (Ok(()), Ok(())));
        check_is_free(&lock);
    }
    check::<Bulk>();
    check::<Urgent>();
    check::<Nested>();
}

/// Some threads, so many operations each; then the variables say how many writes there were, and
/// the lock is as new.
fn check<D: Configuration>(classes: Classes<D>, threads: usize, operations: usize, hold: u32) {
    let lock = Arc::new(Lock::<D>::new(Variables::new()));
    let progress: Arc<[AtomicUsize]> = (0..threads).map(|_| AtomicUsize::new(0)).collect();
    let _watchdog = {
        let (lock, progress) = (Arc::clone(&lock), Arc::clone(&progress));
        watch("mixed", move || format!("{:?}, operations done {progress:?}", lock.state()))
    };
    let start = Barrier::new(threads);
    let users = Arc::clone(&lock);
    let writes: u64 = together(threads, move |me| {
        let mut random = Random::new(me);
        start.wait();
        let operations = (0..operations).map(|nth| {
            progress[me].store(nth, Relaxed);
            operate(&users, &classes, &mut random, hold)
        });
        operations.sum::<u64>()
    })
    .into_iter()
    .sum();
    assert_eq!(lock.read().look(), writes, "writes were lost");
    assert!(writes > 0, "nobody wrote");
    check_is_free(&lock);
}

#[test]
fn all_operations_at_once() {
    macro_rules! each {
        ($($configuration:ty: $($class:ident),+;)+) => {$({
            type D = $configuration;
            check(classes!(D: $($class),+), 4, 4_000, 50);
            // More threads than processors, and holds that outlast every patience.
            check(classes!(D: $($class),+), 12, 150, 5_000);
        })+};
    }
    each! {
        Sifted: Bulk, Urgent, Nested;
        Sifted<THREE, Private<NoSpin>>: Bulk, Urgent, Nested;
        Sifted<THREE, Private<Patience<20_000>, Counted>>: Bulk, Urgent, Nested;
        Sifted<THREE, Private<NoSpin>, PhaseFair, Eager>: Bulk, Urgent, Nested;
        Sifted<BULK>: Bulk;
        Sifted<{ BULK | NESTED }, Private<NoSpin>>: Bulk, Nested;
        Sifted<ALL, Private, PhaseFair, Eager>: Bulk, Urgent, Nested;
    }
}
