//! A pool of connections that tasks share with a thread: the tasks of a server, and a thread that
//! makes reports.
//!
//! # Which lock, and why
//! A [`Semaphore`] counts the free connections. Tasks wait by `acquire_async`, and the thread by
//! `acquire`, in one queue: who came first is served first. The connections themselves are in a
//! [`Mutex`], which is held for two lines, so a task locks it like a thread.
//!
//! # What would go wrong with another
//! tokio's semaphore is for tasks. A thread that waits for it needs the runtime's help, and a
//! program that has none cannot use the pool. A semaphore that blocks holds up a worker of the
//! runtime with all of its tasks. If the connection were returned to a channel instead, a task that
//! is cancelled while it is on its way to the task would lose it.

use std::sync::Arc;
use std::thread;
use std::time::Duration;
use ulocks::{Mutex, Semaphore};

struct Pool {
    free: Semaphore,
    connections: Mutex<Vec<Connection>>,
}

struct Connection {
    queries: u32,
}

/// A connection of the pool, which goes back when this is dropped.
struct Lent<'a> {
    pool: &'a Pool,
    connection: Option<Connection>,
    _permit: ulocks::Permit<'a>,
}

impl Pool {
    fn new(connections: u32) -> Self {
        let all = (0..connections).map(|_| Connection { queries: 0 }).collect();
        Self { free: Semaphore::new(connections), connections: Mutex::new(all) }
    }

    /// For a task. It may be cancelled at any moment.
    async fn lend(&self) -> Lent<'_> {
        self.lent(self.free.acquire_async().await.expect("nobody closes it"))
    }

    /// For a thread.
    fn lend_blocking(&self) -> Lent<'_> {
        self.lent(self.free.acquire())
    }

    fn lent<'a>(&'a self, permit: ulocks::Permit<'a>) -> Lent<'a> {
        let connection = self.connections.lock().pop();
        assert!(connection.is_some(), "there are as many connections as permits");
        Lent { pool: self, connection, _permit: permit }
    }
}

impl Lent<'_> {
    fn query(&mut self) {
        self.connection.as_mut().expect("it is lent").queries += 1;
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        // The permit goes back after that.
        self.pool.connections.lock().extend(self.connection.take());
    }
}

fn main() {
    const TASKS: u32 = 100;
    const REPORTS: u32 = 20;
    let pool = Arc::new(Pool::new(3));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build().expect("a runtime");

    let reports = {
        let pool = Arc::clone(&pool);
        thread::spawn(move || {
            for _ in 0..REPORTS {
                let mut connection = pool.lend_blocking();
                connection.query();
                thread::sleep(Duration::from_micros(300));
            }
        })
    };
    let tasks: Vec<_> = (0..TASKS)
        .map(|number| {
            let pool = Arc::clone(&pool);
            runtime.spawn(async move {
                // Each fifth is in a hurry, and gives up if it has to wait for long.
                let limit = Duration::from_micros(if number % 5 == 0 { 200 } else { 60_000_000 });
                let Ok(mut connection) = tokio::time::timeout(limit, pool.lend()).await else { return 0 };
                connection.query();
                tokio::time::sleep(Duration::from_micros(500)).await; // held across an await
                1
            })
        })
        .collect();
    let served: u32 = runtime.block_on(async {
        let mut served = 0;
        for task in tasks {
            served += task.await.expect("no task panics");
        }
        served
    });
    reports.join().expect("the thread does not panic");

    let queries: u32 = pool.connections.lock().iter().map(|connection| connection.queries).sum();
    assert_eq!((pool.connections.lock().len(), pool.free.available_permits()), (3, 3));
    assert_eq!(queries, served + REPORTS);
    println!("{served} of {TASKS} tasks and {REPORTS} reports had a connection; all 3 are back");
}
