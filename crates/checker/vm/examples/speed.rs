//! How fast the explorer is here: executions and steps a second, and the size of exhaustive
//! explorations.
//!
//! `cargo run --release -p ulocks-vm --example speed`. One row a line; nothing is judged. The locks
//! are those of the tests.

use std::iter::successors;
use std::num::NonZero;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};
use ulocks_vm::explore::{Config, Report, Strategy, cover, run, run_on};
use ulocks_vm::sync::AtomicUsize;
use ulocks_vm::sync::Ordering::{self, Acquire, Relaxed, Release};
use ulocks_vm::thread;

/// Locks that are explored.
#[path = "../tests/locks/mod.rs"]
#[allow(dead_code, reason = "for the tests")]
mod small;

/// How long a sampling row takes, at least.
const SAMPLING: Duration = Duration::from_millis(400);

/// Executions between two looks at the clock.
const BATCH: u64 = 200;

/// Executions after which an exhaustive row is cut.
const MOST_EXECUTIONS: u64 = if cfg!(debug_assertions) { 20_000 } else { 4_000_000 };

fn main() {
    if cfg!(debug_assertions) {
        println!("built without --release: the figures say nothing");
    }
    println!("explorer, sampling             executions/s   M steps/s");
    for strategy in [Strategy::Random, Strategy::Pct { depth: 3 }] {
        for threads in [2, 3, 8, 16] {
            sample(&strategy, threads);
        }
    }
    watch();
    println!("explorer, exhaustive             executions   redundant     seconds   M steps/s");
    for (threads, rounds) in [(2, 2), (3, 1), (2, 3)] {
        exhaust(threads, rounds, "", explore);
    }
    for (threads, rounds) in [(2, 1), (2, 2), (3, 1)] {
        exhaust(threads, rounds, ", stack", explore_stack);
    }
    share();
}

/// `rounds` critical sections in each of `threads` threads, under the mutex of three states.
fn explore(config: &Config, threads: usize, rounds: u32) -> Report {
    let model = small::counting(threads, rounds, || small::three_state::ThreeState::new(None));
    run(config, model).unwrap_or_else(|failure| panic!("a sound lock: {failure}"))
}

/// Treiber's stack, of as many nodes as there are operations. Each thread pushes one and pops one,
/// `rounds` times.
fn explore_stack(config: &Config, threads: usize, rounds: u32) -> Report {
    let model = move || {
        let stack = Arc::new(Stack {
            head: AtomicUsize::new(0),
            next: (0..threads * rounds as usize).map(|_| AtomicUsize::new(0)).collect(),
        });
        let body = move |me: usize, stack: &Stack| -> Vec<usize> {
            let pushes_and_pops = |round| {
                stack.push(1 + me * rounds as usize + round);
                stack.pop()
            };
            (0..rounds as usize).map(pushes_and_pops).collect()
        };
        let others: Vec<_> = (1..threads)
            .map(|me| {
                let stack = Arc::clone(&stack);
                thread::spawn(move || body(me, &stack))
            })
            .collect();
        let mut popped = body(0, &stack);
        others.into_iter().for_each(|other| popped.extend(other.join().expect("it ends")));
        popped.sort_unstable();
        assert!(popped.into_iter().eq(1..=threads * rounds as usize), "a node is lost, or taken twice");
    };
    run(config, model).unwrap_or_else(|failure| panic!("a sound stack: {failure}"))
}

/// A head has the number of its changes above that of its node: no node takes the place of itself.
struct Stack {
    head: AtomicUsize,
    next: Box<[AtomicUsize]>,
}

impl Stack {
    const CHANGE: usize = 1 << 8;

    fn exchange(&self, head: usize, node: usize, success: Ordering) -> Result<usize, usize> {
        let new = head - head % Self::CHANGE + Self::CHANGE + node;
        self.head.compare_exchange(head, new, success, Acquire)
    }

    fn push(&self, node: usize) {
        let mut head = self.head.load(Relaxed);
        loop {
            self.next[node - 1].store(head % Self::CHANGE, Relaxed);
            match self.exchange(head, node, Release) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    fn pop(&self) -> usize {
        let mut head = self.head.load(Acquire);
        loop {
            let node = head % Self::CHANGE;
            if node == 0 {
                return 0;
            }
            match self.exchange(head, self.next[node - 1].load(Relaxed), Acquire) {
                Ok(_) => return node,
                Err(now) => head = now,
            }
        }
    }
}

fn million_a_second(steps: u64, time: Duration) -> f64 {
    steps as f64 / time.as_secs_f64() / 1e6
}

fn sample(strategy: &Strategy, threads: usize) {
    let (start, mut executions, mut steps) = (Instant::now(), 0, 0);
    for seed in 1.. {
        let config = Config { strategy: strategy.clone(), executions: BATCH, seed, ..Config::default() };
        let report = explore(&config, threads, 2);
        executions += report.executions;
        steps += report.steps;
        if start.elapsed() >= SAMPLING {
            break;
        }
    }
    let time = start.elapsed();
    let name =
        format!("{}, {threads} threads x 2", if *strategy == Strategy::Random { "random" } else { "PCT" });
    let per_second = executions as f64 / time.as_secs_f64();
    println!("  {name:<28} {per_second:>12.0} {:>11.2}", million_a_second(steps, time));
}

/// What it takes to keep the coverage: the same executions without and with it, in turns.
fn watch() {
    let model = || small::counting(3, 2, || small::three_state::ThreeState::new(None));
    let [mut without, mut with] = [Duration::ZERO; 2];
    for seed in 1..=10 {
        let config = Config { seed, ..Config::sampled(1_000) };
        let start = Instant::now();
        let report = run(&config, model()).expect("a sound lock");
        without += start.elapsed();
        let start = Instant::now();
        let (watched, _) = cover(&config, model()).expect("a sound lock");
        with += start.elapsed();
        assert_eq!(report, watched);
    }
    let ratio = with.as_secs_f64() / without.as_secs_f64();
    println!("  with coverage, 3 threads x 2: {ratio:.2} times as long");
}

fn exhaust(threads: usize, rounds: u32, what: &str, explore: fn(&Config, usize, u32) -> Report) {
    let config = Config { executions: MOST_EXECUTIONS, ..Config::exhaustive() };
    let start = Instant::now();
    let report = explore(&config, threads, rounds);
    let time = start.elapsed();
    let cut = if report.finished { "" } else { "  (cut)" };
    println!(
        "  {:<28} {:>12} {:>11} {:>11.2} {:>11.2}{cut}",
        format!("{threads} threads x {rounds}{what}"),
        report.executions,
        report.redundant,
        time.as_secs_f64(),
        million_a_second(report.steps, time),
    );
}

/// The same exploration by one worker and by more, in turns. The ratio is that of the medians.
fn share() {
    let cpus = available_parallelism().map_or(1, NonZero::get);
    let config = Config { executions: MOST_EXECUTIONS, ..Config::exhaustive() };
    let time = |workers| {
        let model = small::counting(2, 3, || small::three_state::ThreeState::new(None));
        let start = Instant::now();
        let report = run_on(workers, &config, model).expect("a sound lock");
        // What a limit cuts depends on which worker comes to it first.
        (start.elapsed(), report.finished.then_some(report.executions))
    };
    let counts: Vec<usize> =
        successors(Some(1), |count| Some(count * 2)).take_while(|&count| count <= cpus).collect();
    let mut times = vec![Vec::new(); counts.len()];
    let mut executions = Vec::new();
    for _ in 0..3 {
        for (times, &workers) in times.iter_mut().zip(&counts) {
            let (time, count) = time(workers);
            times.push(time);
            executions.push(count);
        }
    }
    assert!(executions.iter().all(|&count| count == executions[0]), "{executions:?}");
    println!("explorer, exhaustive, 2 threads x 3, by workers      seconds    one worker's time by it");
    times.iter_mut().for_each(|times| times.sort());
    for (&workers, each) in counts.iter().zip(&times) {
        let ratio = times[0][1].as_secs_f64() / each[1].as_secs_f64();
        println!("  {workers:<50} {:>9.2} {ratio:>13.2}", each[1].as_secs_f64());
    }
}
