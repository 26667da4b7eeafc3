//! A build farm: jobs that need CPUs, memory and a licence together, a job that needs all CPUs, and
//! a pause.
//!
//! # Which lock, and why
//! [`SemArray`](ulocks::semarray::SemArray), inside of [`JobPool`] (`src/job_pool.rs`, to take
//! home): a job takes all that it needs in one step, or nothing. `Fairness::Strict` bounds the wait
//! of the job that needs all CPUs. The pool is model-checked as it stands, with three bugs that
//! programmers make in such code (`mutants/pool.toml`).
//!
//! # What would go wrong with another
//! With a semaphore for each kind of thing, two jobs that take them in different orders deadlock:
//! one has the licence and waits for memory, the other has the memory and waits for the licence. To
//! take them in one order everywhere prevents that. But then a job keeps CPUs idle while it waits
//! for the licence. `semop` of System V does what `SemArray` does, with a system call each time.

use std::thread;
use std::time::Duration;
use ulocks::semarray::Fairness;
use ulocks_examples::JobPool;

const CPUS: usize = 0;
const GIGABYTES: usize = 1;
const LICENCES: usize = 2;
const FARM: [u32; 3] = [4, 16, 1];

/// These jobs name the same things in different orders. They cannot deadlock, since a job takes all
/// of them at once.
const COMPILE: &[(usize, u32)] = &[(CPUS, 1), (GIGABYTES, 2)];
const LINK: &[(usize, u32)] = &[(LICENCES, 1), (GIGABYTES, 8), (CPUS, 1)];
const BENCHMARK: &[(usize, u32)] = &[(CPUS, 4)];

fn main() {
    // Without a bound the benchmark would wait until no job compiles.
    let farm = JobPool::with_fairness(&FARM, Fairness::Strict { after: Duration::from_millis(1) });

    let run = |needs: &[(usize, u32)], times: usize| {
        for _ in 0..times {
            let _job = farm.take(needs).expect("the farm has that much");
            thread::sleep(Duration::from_micros(200));
        }
    };
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| run(COMPILE, 20));
        }
        for _ in 0..2 {
            scope.spawn(|| run(LINK, 10));
        }
        scope.spawn(|| run(BENCHMARK, 3));

        let pause = farm.pause();
        assert_eq!(farm.free(), FARM);
        println!("a pause: no job runs, nothing is taken");
        drop(pause);
    });

    assert_eq!(farm.free(), FARM);
    println!("{} jobs done", 6 * 20 + 2 * 10 + 3);
    println!("{}", farm.take(&[(LICENCES, 2)]).expect_err("there is one licence"));
}
