//! A table of jobs and a counter in a file. Workers are killed at random and replaced, until all
//! jobs are done. A program that joins later reads the result.
//!
//! A worker holds the mutex of its job while it works. If it is killed, the next worker that tries
//! this mutex is told, and begins the job again. No job is lost, and none is counted twice.
//!
//! # Which lock, and why
//! [`Mutex`]: the kernel marks the mutexes of a thread that dies, so the next holder gets the
//! guard with the news. The data may be half changed, and the holder repairs it before it calls
//! `mark_consistent`. A guard that is dropped without that makes the mutex not recoverable.
//!
//! # What would go wrong with another
//! A mutex with the policy `Shared` works between processes too, and costs less. But the mutex of a
//! killed worker stays locked, and all others wait for ever. A file lock (`flock`) is released at a
//! death. But the next holder does not learn of it, and each acquisition is a system call.
//!
//! `job_table FILE` keeps the file. `job_table report FILE` prints what is in it, at any time.

use std::error::Error;
use std::process::{Child, Command};
use std::time::Duration;
use std::{env, fs, io, thread};
use ulocks_shm::{Attached, LockError, Member, Mutex, MutexGuard, Refused, Region, SharedSafe};

const JOBS: usize = 256;
const WORKERS: usize = 4;

/// What is in the file. All zero at first.
#[derive(SharedSafe)]
#[repr(C)]
struct Office {
    jobs: [Mutex<Job>; JOBS],
    done: Mutex<Done>,
}

#[derive(SharedSafe, Clone, Copy)]
#[repr(C)]
struct Job {
    /// How often it was begun.
    begun: u64,
    /// Not zero if it is done.
    result: u64,
}

/// Which jobs are done, a bit for each, and how many that are.
#[derive(SharedSafe)]
#[repr(C)]
struct Done {
    bits: [u64; JOBS / 64],
    count: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let scratch = env::temp_dir().join(format!("ulocks-job-table-{}", std::process::id()));
    match env::args().collect::<Vec<_>>().as_slice() {
        [_] => {
            let path = scratch.to_str().ok_or("the temporary directory has no plain name")?;
            let result = office(path);
            fs::remove_file(path)?;
            result
        }
        [_, path] => office(path),
        [_, role, path] if role == "work" => work(path),
        [_, role, path] if role == "report" => report(path),
        _ => Err("usage: job_table [FILE], or job_table report FILE".into()),
    }
}

/// Starts the workers, and kills one after the other.
fn office(path: &str) -> Result<(), Box<dyn Error>> {
    let office = Region::<Office>::options().create_or_open(path, 0o600)?;
    let killed = office.with_member(|me| kills(&office, me, path))??;
    println!("{killed} workers were killed.");
    report(path)
}

/// The same until all jobs are done. How many were killed.
fn kills(office: &Office, me: &Member<'_>, path: &str) -> Result<usize, Box<dyn Error>> {
    let start = || Command::new(env::current_exe()?).args(["work", path]).spawn();
    let mut workers: Vec<Child> = (0..WORKERS).map(|_| start()).collect::<io::Result<_>>()?;
    let mut killed = 0;
    while done(office, me)?.count < JOBS as u64 {
        thread::sleep(Duration::from_millis(7));
        let victim = &mut workers[killed % WORKERS];
        victim.kill()?;
        victim.wait()?;
        *victim = start()?;
        killed += 1;
    }
    for mut worker in workers {
        assert!(worker.wait()?.success(), "a worker failed");
    }
    Ok(killed)
}

/// A worker's process.
fn work(path: &str) -> Result<(), Box<dyn Error>> {
    let office = Region::<Office>::options().open(path)?;
    office.with_member(|me| does_jobs(&office, me))?
}

/// Does jobs until all are done.
fn does_jobs(office: &Office, me: &Member<'_>) -> Result<(), Box<dyn Error>> {
    // Each worker begins elsewhere, so that they seldom meet.
    let first = me.slot() * JOBS / WORKERS;
    while done(office, me)?.count < JOBS as u64 {
        for number in (first..first + JOBS).map(|number| number % JOBS) {
            let mut job = match office.jobs[number].try_lock(me) {
                Ok(job) => job,
                // Its worker was killed. What it had begun is begun again.
                Err(LockError::OwnerDied(mut job)) => {
                    job.mark_consistent();
                    job
                }
                Err(LockError::Refused(Refused::TimedOut)) => continue,
                Err(error) => return Err(error.to_string().into()),
            };
            if job.result == 0 {
                job.begun += 1;
                thread::sleep(Duration::from_micros(500)); // The work.
                job.result = result_of(number);
            }
            // Also if the job was done before: its worker may have been killed before this.
            let mut done = done(office, me)?;
            done.bits[number / 64] |= 1 << (number % 64);
            done.count = counted(&done.bits);
        }
    }
    Ok(())
}

fn result_of(number: usize) -> u64 {
    number as u64 * 3 + 1
}

fn counted(bits: &[u64]) -> u64 {
    bits.iter().map(|word| u64::from(word.count_ones())).sum()
}

/// The counter. If its holder was killed between the two stores, the bits are right.
fn done<'a>(office: &'a Office, me: &'a Member<'_>) -> Result<MutexGuard<'a, Done>, String> {
    match office.done.lock(me) {
        Ok(done) => Ok(done),
        Err(LockError::OwnerDied(mut done)) => {
            done.count = counted(&done.bits);
            done.mark_consistent();
            Ok(done)
        }
        Err(error) => Err(error.to_string()),
    }
}

/// A program that joins later.
fn report(path: &str) -> Result<(), Box<dyn Error>> {
    let office = Region::<Office>::options().open(path)?;
    office.with_member(|me| tells(&office, me))?
}

/// What is in the file.
fn tells(office: &Region<Office>, me: &Member<'_>) -> Result<(), Box<dyn Error>> {
    let alone = if office.attached() == Attached::Reset { "no other process" } else { "others" };
    let count = done(office, me)?.count;
    let (mut begun, mut wrong) = (0, 0);
    for (number, job) in office.jobs.iter().enumerate() {
        let job = match job.lock(me) {
            Ok(job) => *job,
            Err(LockError::OwnerDied(mut job)) => {
                job.mark_consistent();
                *job
            }
            Err(error) => return Err(error.to_string().into()),
        };
        begun += job.begun;
        wrong += u32::from(job.result != 0 && job.result != result_of(number));
    }
    println!("{count} of {JOBS} jobs are done, begun {begun} times; {alone} had the file open.");
    assert_eq!(wrong, 0, "a result is wrong");
    Ok(())
}
