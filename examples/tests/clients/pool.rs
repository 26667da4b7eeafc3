//! What threads do with the pool in a model.

use super::spawn;
use std::sync::Arc;
use std::time::Duration;
use ulocks_core::sync::AtomicU32;
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_examples::{JobPool, PoolError};

const LATER: Duration = Duration::from_secs(1);

/// Two jobs that need the same two things, and name them in opposite order.
pub fn crosswise() {
    let pool = Arc::new(JobPool::new(&[1, 1]));
    let other = spawn(&pool, |pool| drop(pool.take(&[(1, 1), (0, 1)]).unwrap()));
    drop(pool.take(&[(0, 1), (1, 1)]).unwrap());
    other.join().unwrap();
    assert_eq!(pool.free(), [1, 1]);
}

/// A job, and a pause in which no job may run.
pub fn job_and_pause() {
    let shared = Arc::new((JobPool::new(&[1]), AtomicU32::new(0)));
    let worker = spawn(&shared, |(pool, running)| {
        let job = pool.take(&[(0, 1)]).unwrap();
        running.store(1, Relaxed);
        running.store(0, Relaxed);
        drop(job);
    });
    let (pool, running) = &*shared;
    let pause = pool.pause();
    assert_eq!(running.load(Relaxed), 0, "a job runs in a pause");
    assert_eq!(pool.free(), [1], "a job has something in a pause");
    drop(pause);
    worker.join().unwrap();
}

/// A job that gives up has taken nothing.
pub fn timed() {
    let pool = Arc::new(JobPool::new(&[1, 1]));
    let other = spawn(&pool, |pool| drop(pool.take(&[(1, 1)]).unwrap()));
    match pool.take_timeout(&[(0, 1), (1, 1)], LATER) {
        Ok(job) => drop(job),
        Err(error) => assert_eq!(error, PoolError::Busy),
    }
    other.join().unwrap();
    assert_eq!(pool.free(), [1, 1]);
}
