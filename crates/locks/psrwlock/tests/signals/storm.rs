//! Storms: every thread has a timer of its own and is struck by another thread besides, while all
//! operations of the lock go on at once, and a reader forks.

use crate::mixed::{Classes, check_is_free, classes, operate};
use crate::strikes::{Struck, Timer, strike};
use crate::{ALL, ByAll, mixed};
use std::cell::Cell;
use std::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use ulocks_core::Private;
use ulocks_core::spin::NoSpin;
use ulocks_psrwlock::signal::Hard;
use ulocks_psrwlock::{ByClass, Configuration, Eager, PhaseFair, Sifted};
use ulocks_testkit::shared::forked;
use ulocks_testkit::stress::Random;
use ulocks_testkit::task;
use ulocks_testkit::watchdog::watch;

const THREADS: usize = 4;
/// So many operations each, at least, and so many signals in all.
const OPERATIONS: usize = 1_500;
const SIGNALS: usize = 1_000;
const EVERY: Duration = Duration::from_micros(150);

/// What the storm strikes with: from outside, and by the timers.
#[derive(Clone, Copy)]
pub struct Signals {
    pub sent: i32,
    pub timed: i32,
}

/// Blows until there were enough operations and signals.
pub fn blow<D: Configuration>(struck: Struck<D>, signals: Signals, classes: &Classes<D>) {
    let Struck { lock, seen } = struck;
    let (writes, at_work) = (AtomicU64::new(0), AtomicUsize::new(THREADS));
    let _watchdog = watch("storm", move || format!("{:?}, {seen:?}", lock.state()));
    let ids: [AtomicI32; THREADS] = Default::default();
    std::thread::scope(|scope| {
        let (writes, at_work) = (&writes, &at_work);
        let workers = ids.iter().enumerate().map(|(me, id)| {
            scope.spawn(move || {
                id.store(task::id(), Relaxed);
                let timer = Timer::strikes_me(signals.timed, EVERY);
                let mut random = Random::new(me);
                let mut done = 0;
                while done < OPERATIONS || seen.handled.load(Relaxed) < SIGNALS {
                    writes.fetch_add(operate(lock, classes, &mut random, 200), Relaxed);
                    done += 1;
                }
                drop(timer);
                at_work.fetch_sub(1, Relaxed);
            })
        });
        let workers: Vec<_> = workers.collect();
        scope.spawn(|| {
            while at_work.load(Relaxed) > 0 {
                for id in &ids {
                    match id.load(Relaxed) {
                        0 => {}
                        id => strike(id, signals.sent),
                    }
                }
                std::thread::sleep(EVERY);
            }
        });
        scope.spawn(|| {
            let mut forks = 0;
            while at_work.load(Relaxed) > 0 || forks == 0 {
                // What the forking thread holds, the child can release.
                let held = Cell::new(Some(lock.read()));
                forked(1, |_| {
                    let held = held.take().expect("held at the fork");
                    let seen = held.look();
                    assert_eq!(held.look(), seen, "somebody wrote beside a reader");
                });
                drop(held);
                forks += 1;
                std::thread::sleep(10 * EVERY);
            }
        });
        // A signal that comes to a thread's last steps is handled: nobody uninstalls the handler
        // before. The end of the scope does not wait for those steps.
        workers.into_iter().for_each(|worker| worker.join().expect("a worker panicked"));
    });
    assert_eq!(lock.read().look(), writes.into_inner(), "writes were lost");
    check_is_free(lock);
    seen.check();
    let [handled, read, _] = seen.counts();
    assert!(handled >= SIGNALS && read > 0, "the storm was none: {seen:?}");
}

/// With handlers of the lock's own wrapper.
fn soft<D: Configuration>(classes: Classes<D>) {
    let signals = Signals { sent: libc::SIGUSR1, timed: libc::SIGALRM };
    let struck = Struck::new();
    let installed = struck.install(&[signals.sent, signals.timed]);
    blow(struck, signals, &classes);
    installed.uninstall();
}

#[test]
fn masked_by_a_count() {
    soft(classes!(ByAll: Bulk, Urgent, Nested));
    type NoSpinning = Sifted<ALL, Private<NoSpin>>;
    soft(classes!(NoSpinning: Bulk, Urgent, Nested));
    type AtSlots = Sifted<ALL, Private, PhaseFair, Eager>;
    soft(classes!(AtSlots: Bulk, Urgent, Nested));
}

#[test]
fn masked_by_the_kernel() {
    type D = ByAll<Hard>;
    let signals = Signals { sent: libc::SIGUSR2, timed: libc::SIGVTALRM };
    blow(
        crate::hard::struck_plainly(&[signals.sent, signals.timed]),
        signals,
        &classes!(D: Bulk, Urgent, Nested),
    );
}
