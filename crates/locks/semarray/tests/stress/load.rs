//! Loads with a meaning of their own: philosophers, readers and writers, posters in bulk.

use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use ulocks_core::Private;
use ulocks_core::meter::Counted;
use ulocks_core::spin::{Adaptive, NoSpin, Patience};
use ulocks_semarray::{Builder, Error, Fairness, InOneProcess, Op, SemArrayWith, Set};
use ulocks_testkit::storm::Storm;
use ulocks_testkit::stress::Random;
use ulocks_testkit::watchdog::watch;

const FAIRNESSES: [Fairness; 3] = [
    Fairness::Barging,
    Fairness::Strict { after: Duration::ZERO },
    Fairness::Strict { after: Duration::from_micros(100) },
];

/// Runs `check` with each way of waiting and each order.
macro_rules! with_each {
    ($check:ident) => {
        for fairness in FAIRNESSES {
            $check::<Private<NoSpin>>(fairness);
            $check::<Private<Patience<20_000>>>(fairness);
            $check::<Private<Adaptive, Counted>>(fairness);
        }
    };
}

/// Runs `body(0)` to `body(threads - 1)` at once on an array, with an end if it hangs. What the
/// values are then.
fn run<P: InOneProcess>(
    name: &str,
    values: &[u32],
    fairness: Fairness,
    threads: usize,
    body: impl Fn(usize, &SemArrayWith<P>) + Sync,
) -> Vec<u32> {
    let array: Arc<SemArrayWith<P>> =
        Arc::new(Builder::with_values(values).fairness(fairness).build().unwrap());
    let _watchdog = {
        let array = Arc::clone(&array);
        watch(name, move || {
            let waiters: Vec<_> = (0..array.len()).map(|index| array.waiters(index).unwrap()).collect();
            format!("{fairness:?}, values {:?}, {waiters:?}", array.values())
        })
    };
    std::thread::scope(|scope| {
        for id in 0..threads {
            let (array, body) = (&array, &body);
            scope.spawn(move || body(id, array));
        }
    });
    for index in 0..array.len() {
        assert_eq!(array.waiters(index), Ok(Default::default()), "all have left");
    }
    array.values()
}

/// Only one thread at a time may touch it.
#[derive(Default)]
struct Fork(UnsafeCell<usize>);
// SAFETY: the thread that has its semaphore uses it. That no other thread has it is what is tested.
unsafe impl Sync for Fork {}

impl Fork {
    /// Counts a use.
    ///
    /// # Safety
    /// The caller has the semaphore.
    unsafe fn count(&self) {
        // SAFETY: as the caller says.
        unsafe { *self.0.get() += 1 };
    }
}

#[test]
fn philosophers_eat() {
    fn check<P: InOneProcess>(fairness: Fairness) {
        const MEALS: usize = 1_000;
        let forks: [Fork; 5] = Default::default();
        let values = run::<P>("philosophers", &[1; 5], fairness, 5, |id, array| {
            let (left, right) = (id, (id + 1) % 5);
            for _ in 0..MEALS {
                let _forks = array.acquire([Op::sub(left, 1), Op::sub(right, 1)]).unwrap();
                // SAFETY: this thread has both forks.
                unsafe {
                    forks[left].count();
                    forks[right].count();
                }
            }
        });
        assert_eq!(values, [1; 5]);
        assert!(forks.into_iter().all(|fork| fork.0.into_inner() == 2 * MEALS), "two had a fork at once");
    }
    with_each!(check);
}

/// The reader-writer lock that Perl's documentation makes of three operations: the sets that sleep
/// most in the wild.
#[test]
fn readers_and_writers_exclude_each_other() {
    fn check<P: InOneProcess>(fairness: Fairness) {
        let (written, writes) = (Fork::default(), AtomicUsize::new(0));
        let values = run::<P>("readers and writers", &[0, 0], fairness, 6, |id, array| {
            let mut random = Random::new(id);
            for _ in 0..600 {
                if random.below(4) == 0 {
                    let write = Set::new().wait_zero(0).wait_zero(1).add(1, 1);
                    let _writing = array.acquire(write).unwrap();
                    // SAFETY: no other thread reads or writes.
                    unsafe { written.count() };
                    writes.fetch_add(1, Relaxed);
                } else {
                    let read = Set::new().wait_zero(1).add(0, 1);
                    let reading =
                        match array.acquire_for(read, Duration::from_micros(random.below(200).into())) {
                            Ok(permit) => permit,
                            Err(error) => {
                                assert_eq!(error, Error::TimedOut);
                                continue;
                            }
                        };
                    // SAFETY: no thread writes.
                    let seen = || unsafe { written.0.get().read_volatile() };
                    let first = seen();
                    std::hint::spin_loop();
                    assert_eq!(seen(), first, "a thread wrote beside a reader");
                    drop(reading);
                }
            }
        });
        assert_eq!(values, [0, 0]);
        assert_eq!(written.0.into_inner(), writes.into_inner(), "writes were lost");
    }
    with_each!(check);
}

/// Like `sembench`: each worker waits for a semaphore of its own, and posters wake many of them
/// with one call.
#[test]
fn posters_in_bulk_wake_all_sleepers() {
    fn check<P: InOneProcess>(fairness: Fairness) {
        const WORKERS: usize = 48;
        const ROUNDS: usize = 60;
        let woken: [AtomicUsize; WORKERS] = std::array::from_fn(|_| AtomicUsize::new(0));
        let values = run::<P>("posters", &[0; WORKERS], fairness, WORKERS + 2, |id, array| {
            match id.checked_sub(WORKERS) {
                None => {
                    for _ in 0..2 * ROUNDS {
                        array.apply(&[Op::sub(id, 1)]).unwrap();
                        woken[id].fetch_add(1, Relaxed);
                    }
                }
                Some(poster) => {
                    // Each poster in its own order, and one of them in two halves.
                    let mut all: Vec<_> = (0..WORKERS).map(|index| Op::add(index, 1).no_wait()).collect();
                    for round in 0..ROUNDS {
                        match poster {
                            0 => all.rotate_left(7),
                            _ => all.reverse(),
                        }
                        let (first, second) =
                            all.split_at(if round % 2 == 0 { WORKERS } else { WORKERS / 3 });
                        array.apply(first).unwrap();
                        array.apply(second).unwrap();
                    }
                }
            }
        });
        assert_eq!(values, [0; WORKERS]);
        assert!(woken.into_iter().all(|woken| woken.into_inner() == 2 * ROUNDS));
    }
    with_each!(check);
}

/// Few threads, which sleep as soon as they can. If one were forgotten, no other would wake it.
#[test]
fn no_sleeper_is_left() {
    /// One thread performs the first sets, one after the other, and another thread the second.
    fn check(these: &[&[Op]], those: &[&[Op]], values: &[u32]) {
        for fairness in FAIRNESSES {
            run::<Private<NoSpin>>("no sleeper is left", values, fairness, 2, |id, array| {
                for _ in 0..3_000 {
                    for set in if id == 0 { these } else { those } {
                        array.apply(set).unwrap();
                    }
                }
            });
        }
    }
    check(&[&[Op::sub(0, 1)], &[Op::add(1, 1)]], &[&[Op::sub(1, 1)], &[Op::add(0, 1)]], &[1, 0]);
    check(&[&[Op::wait_zero(0)], &[Op::add(0, 1)]], &[&[Op::sub(0, 1)]], &[0]);
    check(&[&[Op::sub(0, 1), Op::add(1, 1)]], &[&[Op::sub(1, 1), Op::add(0, 1)]], &[1, 0]);
    check(
        &[&[Op::sub(1, 1), Op::sub(0, 1), Op::add(2, 2)]],
        &[&[Op::sub(2, 2)], &[Op::add(1, 1)], &[Op::add(0, 1)]],
        &[1, 1, 0],
    );
    check(&[&[Op::wait_zero(0), Op::add(0, 1)]], &[&[Op::sub(0, 1)]], &[0]);
    check(
        &[&[Op::wait_zero(0), Op::wait_zero(1), Op::add(0, 3)]],
        &[&[Op::sub(0, 2)], &[Op::sub(0, 1)]],
        &[0, 0],
    );
}

/// Signals all the time, to threads in interruptible calls and to others.
#[test]
fn sets_survive_a_storm_of_signals() {
    let (storm, interrupted) = (Storm::begin(libc::SA_RESTART), AtomicUsize::new(0));
    let values = run::<Private<NoSpin>>("a storm", &[1, 1], Fairness::Barging, 4, |id, array| {
        let _target = storm.target().join();
        let set = [Op::sub(id % 2, 1), Op::sub(1 - id % 2, 1)];
        let back = set.map(|op| Op::add(op.index(), 1));
        let set = &set[..1 + id / 2];
        for round in 0.. {
            if round >= 300 && interrupted.load(Relaxed) > 0 {
                break;
            }
            if round % 3 == 0 {
                drop(array.acquire(set).unwrap());
                continue;
            }
            match array.apply_interruptible(set, None) {
                // Sleeps a little with what others wait for.
                Ok(()) => {
                    std::thread::sleep(Duration::from_micros(20));
                    array.apply(&back[..set.len()]).unwrap();
                }
                Err(error) => {
                    assert_eq!(error, Error::Interrupted);
                    interrupted.fetch_add(1, Relaxed);
                }
            }
        }
    });
    assert_eq!(values, [1, 1]);
    assert!(storm.end() > 0 && interrupted.into_inner() > 0);
}
