//! What single operations take on the machine at hand, in nanoseconds. Each is the median of
//! several attempts, since a disturbance lengthens an attempt and nothing shortens it much.

use crate::futex::{Line, futex, futex_wait, futex_wake};
use crate::topology::{never_preempt, pin};
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::*, fence};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

const ATTEMPTS: usize = 15;

pub fn median(mut values: Vec<f64>) -> f64 {
    assert!(!values.is_empty(), "a median of nothing");
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn attempts(attempt: impl FnMut() -> f64) -> f64 {
    median(std::iter::repeat_with(attempt).take(ATTEMPTS).collect())
}

/// The time of one execution of `body`, in a loop.
fn each(count: u32, mut body: impl FnMut()) -> f64 {
    attempts(|| {
        let start = Instant::now();
        (0..count).for_each(|_| body());
        start.elapsed().as_nanos() as f64 / f64::from(count)
    })
}

/// Within one CPU.
#[derive(Debug)]
pub struct Alone {
    pub rmw: f64,
    pub hit: f64,
    pub fence: f64,
    pub pause: f64,
    pub clock_read: f64,
    /// A futex call that wakes no thread.
    pub wake_nobody: f64,
    pub spawn: f64,
    pub memory: Option<f64>,
}

pub fn alone(cpu: usize) -> Alone {
    pin(cpu);
    const COUNT: u32 = 100_000;
    let word = Line(AtomicU32::new(0));
    let rmw = each(COUNT, || _ = black_box(&word.0).swap(1, AcqRel));
    // What four accesses add beside a read-modify-write, as in a lock.
    let rest = Line([const { AtomicU32::new(0) }; 4]);
    let with_hits = each(COUNT, || {
        let [a, b, c, d] = black_box(&rest.0);
        black_box(&word.0).swap(1, AcqRel);
        a.store(1, Relaxed);
        black_box(b.load(Acquire));
        black_box(c.load(Acquire));
        d.store(1, Release);
    });
    let hit = ((with_hits - rmw) / 4.0).max(0.05);
    let fenced = each(COUNT, || {
        black_box(&word.0).store(1, Relaxed);
        fence(SeqCst);
    });
    Alone {
        rmw: rmw - hit,
        hit,
        fence: fenced - hit,
        pause: each(COUNT / 10, spin_loop),
        clock_read: each(COUNT / 10, || _ = black_box(Instant::now())),
        wake_nobody: each(COUNT / 10, || _ = futex_wake(&word.0, 1)),
        spawn: attempts(|| {
            let start = Instant::now();
            let thread = std::thread::spawn(|| ());
            let spawned = start.elapsed().as_nanos() as f64;
            thread.join().expect("an empty thread");
            spawned
        }),
        memory: memory(),
    }
}

/// A load of a line that was flushed from all caches.
#[cfg(target_arch = "x86_64")]
fn memory() -> Option<f64> {
    use std::arch::x86_64::{_mm_clflush, _mm_mfence};
    const LINES: usize = 4096;
    // A chain that no prefetcher follows: each line says which is next.
    let mut lines: Vec<Line<usize>> = (0..LINES).map(|line| Line((line * 1_597 + 51) % LINES)).collect();
    Some(attempts(|| {
        for line in &mut lines {
            // SAFETY: `clflush` is part of every x86-64, and the line is ours.
            unsafe { _mm_clflush((&raw const *line).cast()) };
        }
        // SAFETY: as above.
        unsafe { _mm_mfence() };
        let start = Instant::now();
        let mut line = 0;
        for _ in 0..LINES / 4 {
            line = black_box(&lines)[line].0;
        }
        black_box(line);
        start.elapsed().as_nanos() as f64 / (LINES / 4) as f64
    }))
}

#[cfg(not(target_arch = "x86_64"))]
fn memory() -> Option<f64> {
    None
}

/// There and back again of a line that two CPUs hand over by a store, without pauses.
pub fn ping_pong((one, other): (usize, usize)) -> f64 {
    const TURNS: u32 = 20_000;
    let word = Line(AtomicU32::new(0));
    attempts(|| {
        word.0.store(0, SeqCst);
        let play = |cpu, first: u32| {
            pin(cpu);
            let start = Instant::now();
            for turn in 0..TURNS {
                while word.0.load(Acquire) != 2 * turn + first {}
                word.0.store(2 * turn + first + 1, Release);
            }
            start.elapsed().as_nanos() as f64 / f64::from(TURNS)
        };
        scope(|threads| {
            let partner = threads.spawn(|| play(other, 1));
            play(one, 0);
            partner.join().expect("the partner")
        })
    })
}

/// What misses of one CPU cost, with the line in another's cache.
#[derive(Clone, Copy, Debug)]
pub struct Misses {
    /// A load of a line that the other has written.
    pub read: f64,
    /// A read-modify-write of such a line.
    pub update: f64,
    /// A read-modify-write of such a line after a load.
    pub upgrade: f64,
}

/// Lines in a random order, of which each says which is next, so that one miss is over before the
/// next begins.
pub fn misses((one, other): (usize, usize)) -> Misses {
    const LINES: usize = 256;
    const ROUNDS: u32 = 300;
    let lines: Vec<_> = (0..LINES).map(|line| Line(AtomicUsize::new((line * 97 + 51) % LINES))).collect();
    let turn = Line(AtomicU32::new(0));
    let wait_for = |mine: u32| while turn.0.load(Acquire) != mine {};
    let walk = |step: &dyn Fn(&AtomicUsize) -> usize| {
        let start = Instant::now();
        let mut line = 0;
        for _ in 0..LINES {
            line = step(&lines[line].0) % LINES;
        }
        black_box(line);
        start.elapsed().as_nanos() as f64 / LINES as f64
    };
    let (mut reads, mut updates, mut upgrades) = (Vec::new(), Vec::new(), Vec::new());
    scope(|threads| {
        threads.spawn(|| {
            pin(other);
            for round in 0..2 * ROUNDS {
                wait_for(2 * round);
                for line in &lines {
                    line.0.fetch_add(LINES, AcqRel); // a number that the way does not depend on
                }
                turn.0.store(2 * round + 1, Release);
            }
        });
        pin(one);
        for round in 0..2 * ROUNDS {
            wait_for(2 * round + 1);
            if round % 2 == 0 {
                reads.push(walk(&|line| line.load(Acquire)));
                upgrades.push(walk(&|line| line.fetch_add(LINES, AcqRel)));
            } else {
                updates.push(walk(&|line| line.fetch_add(LINES, AcqRel)));
            }
            turn.0.store(2 * round + 2, Release);
        }
    });
    Misses { read: median(reads), update: median(updates), upgrade: median(upgrades) }
}

/// Additions per microsecond of two CPUs on one line.
pub fn contended_add((one, other): (usize, usize)) -> f64 {
    let word = Line(AtomicU64::new(0));
    let (ready, stop) = (Line(AtomicU32::new(0)), Line(AtomicBool::new(false)));
    attempts(|| {
        ready.0.store(0, SeqCst);
        stop.0.store(false, SeqCst);
        let add = |cpu| {
            pin(cpu);
            ready.0.fetch_add(1, AcqRel);
            while ready.0.load(Acquire) != 2 {}
            while !stop.0.load(Relaxed) {
                word.0.fetch_add(1, Relaxed);
            }
        };
        scope(|threads| {
            threads.spawn(|| add(one));
            threads.spawn(|| add(other));
            while ready.0.load(Acquire) != 2 {
                sleep(Duration::from_micros(100));
            }
            let (start, before) = (Instant::now(), word.0.load(Relaxed));
            sleep(Duration::from_millis(10));
            let done = (word.0.load(Relaxed) - before) as f64 * 1e3 / start.elapsed().as_nanos() as f64;
            stop.0.store(true, Relaxed);
            done
        })
    })
}

/// A wake-up of a thread that sleeps on another CPU.
#[derive(Debug)]
pub struct WakeUp {
    /// What the call updates.
    pub call: f64,
    /// From the call until the thread runs.
    pub latency: f64,
}

/// Wakes a thread that has been asleep for about `idle`: a CPU sleeps deeper the longer it does.
pub fn wake_up((waker, sleeper): (usize, usize), idle: Duration) -> WakeUp {
    const ROUNDS: u32 = 300;
    let zero = Instant::now();
    let stamp = || zero.elapsed().as_nanos() as u64;
    let (word, woken_at, asleep) =
        (Line(AtomicU32::new(0)), Line(AtomicU64::new(0)), Line(AtomicU32::new(0)));
    let (mut calls, mut latencies) = (Vec::new(), Vec::new());
    scope(|threads| {
        threads.spawn(|| {
            pin(sleeper);
            for round in 0..ROUNDS {
                asleep.0.store(round + 1, Release);
                while word.0.load(Acquire) == round {
                    futex_wait(&word.0, round);
                }
                woken_at.0.store(stamp(), Release);
            }
        });
        pin(waker);
        for round in 0..ROUNDS {
            while asleep.0.load(Acquire) != round + 1 {}
            let start = Instant::now();
            while start.elapsed() < idle {}
            woken_at.0.store(0, Release);
            word.0.store(round + 1, Release);
            let before = stamp();
            let woken = futex_wake(&word.0, 1);
            let after = stamp();
            while woken_at.0.load(Acquire) == 0 {}
            if woken == 1 {
                calls.push((after - before) as f64);
                latencies.push((woken_at.0.load(Acquire) - before) as f64);
            }
        }
    });
    WakeUp { call: median(calls), latency: median(latencies) }
}

/// What a wake-up pays for each sleeper whose mask does not match.
pub fn walk(cpu: usize, nobody: f64) -> f64 {
    const SLEEPERS: u32 = 32;
    let (word, done) = (Line(AtomicU32::new(0)), AtomicBool::new(false));
    scope(|threads| {
        for _ in 0..SLEEPERS {
            threads.spawn(|| {
                while !done.load(Acquire) {
                    futex(&word.0, libc::FUTEX_WAIT_BITSET, 0, 1);
                }
            });
        }
        sleep(Duration::from_millis(20));
        pin(cpu);
        let passed = each(1_000, || _ = futex(&word.0, libc::FUTEX_WAKE_BITSET, 1, 2));
        done.store(true, Release);
        word.0.store(1, Release);
        futex_wake(&word.0, u32::MAX >> 1);
        ((passed - nobody) / f64::from(SLEEPERS)).max(0.0)
    })
}

/// Two threads on one CPU.
#[derive(Debug)]
pub struct Sharing {
    /// From a thread that yields to the other, the system call included.
    pub yielding: f64,
    /// From one to the other by futexes: a wake-up, a sleep, a switch.
    pub futexes: f64,
    /// The wake-up's part of that.
    pub wake_up: f64,
    /// The same if the woken thread may take the waker's place.
    pub wake_up_and_yield: f64,
    /// How long one computes while the other waits for the CPU.
    pub slice: Option<f64>,
}

pub fn sharing(cpu: usize) -> Sharing {
    let [futexes, wake_up, wake_up_and_yield] = futexes(cpu);
    Sharing { yielding: yielding(cpu), futexes, wake_up, wake_up_and_yield, slice: slice(cpu) }
}

fn yielding(cpu: usize) -> f64 {
    const YIELDS: u32 = 5_000;
    attempts(|| {
        let barrier = std::sync::Barrier::new(2);
        let play = || {
            pin(cpu);
            barrier.wait();
            let start = Instant::now();
            (0..YIELDS).for_each(|_| std::thread::yield_now());
            // Both yield as often, in turn.
            start.elapsed().as_nanos() as f64 / f64::from(2 * YIELDS)
        };
        scope(|threads| {
            let other = threads.spawn(play);
            play().max(other.join().expect("the other"))
        })
    })
}

fn futexes(cpu: usize) -> [f64; 3] {
    const TURNS: u32 = 2_000;
    let word = Line(AtomicU32::new(0));
    let play = &|first: u32, preempt: bool, time_wakes: bool| {
        pin(cpu);
        if !preempt {
            never_preempt();
        }
        let (start, mut waking) = (Instant::now(), Duration::ZERO);
        for turn in 0..TURNS {
            loop {
                let seen = word.0.load(Acquire);
                if seen == 2 * turn + first {
                    break;
                }
                futex_wait(&word.0, seen);
            }
            word.0.store(2 * turn + first + 1, Release);
            if time_wakes {
                let before = Instant::now();
                futex_wake(&word.0, 1);
                waking += before.elapsed();
            } else {
                futex_wake(&word.0, 1);
            }
        }
        let all = if time_wakes { waking } else { start.elapsed() / 2 };
        all.as_nanos() as f64 / f64::from(TURNS)
    };
    let both = |preempt, time_wakes| {
        attempts(|| {
            word.0.store(0, SeqCst);
            scope(|threads| {
                let players = [0, 1].map(|first| threads.spawn(move || play(first, preempt, time_wakes)));
                let [one, other] = players.map(|player| player.join().expect("a player"));
                one.max(other)
            })
        })
    };
    [both(false, false), both(false, true), both(true, true)]
}

/// Each of two threads looks at the clock without end; where time jumps, the other ran.
fn slice(cpu: usize) -> Option<f64> {
    const JUMP: Duration = Duration::from_micros(200);
    let end = Instant::now() + Duration::from_millis(400);
    let watch = || {
        pin(cpu);
        let (mut slices, mut began, mut last) = (Vec::new(), None::<Instant>, Instant::now());
        while last < end {
            let now = Instant::now();
            if now - last > JUMP {
                slices.extend(began.map(|began| (last - began).as_nanos() as f64));
                began = Some(now);
            }
            last = now;
        }
        slices
    };
    let slices = scope(|threads| {
        let other = threads.spawn(watch);
        let mut slices = watch();
        slices.extend(other.join().expect("the other"));
        slices
    });
    (slices.len() >= 10).then(|| median(slices))
}

/// How much later than asked for a sleep of a millisecond ends, the wake-up included.
pub fn lateness(cpu: usize) -> f64 {
    pin(cpu);
    const ASKED: Duration = Duration::from_millis(1);
    attempts(|| {
        let start = Instant::now();
        sleep(ASKED);
        start.elapsed().saturating_sub(ASKED).as_nanos() as f64
    })
}
