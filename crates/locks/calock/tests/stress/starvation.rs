//! No thread starves: the bound that the lock publishes, in the lock's own time.
//!
//! Waiters stand in a queue, and the oldest is promoted when it has waited for an interval
//! (`core/src/lock/queue/wait.rs`, "How long a waiter waits"). An interval that passes on a busy
//! lock ends in a promotion, so promotions are the clock: while a thread waits behind `k` others,
//! the lock promotes at most `k + 1` waiters, that thread included. As many may be promoted before
//! it stands in the queue, if it loses its CPU on the way. How long an interval takes on a loaded
//! machine, and how long a woken thread takes to run, does not matter to a clock that waits for
//! them.
//!
//! A clock that stands still measures nothing. So a run lasts until it has shown several times the
//! bound, and fails if that takes too long.

use std::fmt;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use ulocks_calock::{Every, RawCalock};
use ulocks_core::Private;
use ulocks_core::meter::{Counted, Snapshot};
use ulocks_core::raw::{Metered, RawMutex};
use ulocks_core::spin::{Adaptive, NoSpin};
use ulocks_testkit::new_lock;
use ulocks_testkit::watchdog::watch;

/// Far beyond what it takes to promote enough.
const PATIENCE: Duration = Duration::from_secs(100);

/// What each thread does again and again.
#[derive(Clone, Copy, Debug)]
struct Loop {
    hold: Duration,
    outside: Duration,
}

/// The lock is always wanted.
const SATURATED: Loop = Loop { hold: Duration::from_micros(10), outside: Duration::ZERO };
/// The lock is held for a tenth of a loop, so that all the CPUs can be used, and a few threads are
/// enough for it.
const ONE_NINE: Loop = Loop { hold: Duration::from_micros(1), outside: Duration::from_micros(9) };

struct Seen {
    threads: usize,
    /// Promotions that were asked for.
    wanted: u64,
    /// The most promotions while one thread waited.
    longest: u64,
    /// The most acquisitions while one thread waited.
    overtaken: u64,
    /// Acquisitions of the thread that had fewest, the last one of each left out.
    fewest: u64,
    counted: Snapshot,
}

impl Seen {
    /// `2 (k + 1)`, where `k` are the others.
    fn bound(&self) -> u64 {
        2 * self.threads as u64
    }

    /// What breaks the promise, or what is missing to tell.
    fn fault(&self) -> Option<String> {
        let bound = self.bound();
        if self.counted.promoted < self.wanted {
            Some(format!("{} promotions are needed to tell: {self}", self.wanted))
        } else if self.longest > bound {
            Some(format!("{bound} promotions are allowed while one thread waits: {self}"))
        } else if self.fewest == 0 {
            Some(format!("somebody never acquired: {self}"))
        } else {
            None
        }
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { threads, longest, overtaken, fewest, counted, .. } = self;
        write!(
            f,
            "{threads} threads; while one waited, at most {longest} promotions and {overtaken} acquisitions; "
        )?;
        write!(f, "each acquired {fewest} times or more; {counted:?}")
    }
}

fn busy(time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {
        spin_loop();
    }
}

/// `threads` threads run `each`, until there are so many promotions or patience is over.
fn run<L>(threads: usize, each: Loop, promotions: u64) -> Seen
where
    L: RawMutex + Metered<Meter = Counted> + Send + Sync + 'static,
{
    let _watchdog = watch("starvation", move || format!("{each:?} until {promotions} promotions"));
    let (lock, over) = (new_lock::<L>(), AtomicBool::new(false));
    let clocks = || {
        let counted = lock.meter().snapshot();
        (counted.promoted, counted.acquired)
    };
    let thread = || {
        let (mut longest, mut overtaken, mut acquired) = (0, 0, 0);
        while !over.load(Relaxed) {
            busy(each.outside);
            let before = clocks();
            let token = lock.lock();
            let after = clocks();
            longest = longest.max(after.0 - before.0);
            overtaken = overtaken.max(after.1 - before.1);
            acquired += u64::from(!over.load(Relaxed));
            busy(each.hold);
            // SAFETY: the token is from the acquisition above.
            unsafe { lock.unlock(token) };
        }
        (longest, overtaken, acquired)
    };
    let seen: Vec<(u64, u64, u64)> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(thread)).collect();
        let begin = Instant::now();
        while clocks().0 < promotions && begin.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(1));
        }
        over.store(true, Relaxed);
        threads.into_iter().map(|thread| thread.join().expect("no thread panics")).collect()
    });
    Seen {
        threads,
        wanted: promotions,
        longest: seen.iter().map(|it| it.0).max().unwrap_or(0),
        overtaken: seen.iter().map(|it| it.1).max().unwrap_or(0),
        fewest: seen.iter().map(|it| it.2).min().unwrap_or(0),
        counted: lock.meter().snapshot(),
    }
}

/// As [`run`], with 32 threads, until there are several times as many promotions as the bound.
fn nobody_starves<L>(each: Loop)
where
    L: RawMutex + Metered<Meter = Counted> + Send + Sync + 'static,
{
    let seen = run::<L>(32, each, 3 * 2 * 32);
    println!("{each:?}: {seen}");
    assert_eq!(seen.fault(), None);
}

type Lock<S, I> = RawCalock<Private<S, Counted>, I>;

#[test]
fn nobody_starves_on_a_saturated_lock() {
    nobody_starves::<Lock<Adaptive, Every<1_000_000>>>(SATURATED);
}

#[test]
fn nobody_starves_without_patience() {
    nobody_starves::<Lock<NoSpin, Every<1_000_000>>>(SATURATED);
}

#[test]
fn nobody_starves_on_a_busy_lock() {
    nobody_starves::<Lock<Adaptive, Every<300_000>>>(ONE_NINE);
}
