//! A connection pool. Queries take one connection each; a backup takes all connections at once.
//!
//! # Which lock, and why
//! [`ulocks::Semaphore`] counts the free connections. It serves strictly in order of arrival, so
//! the queries that come after the backup wait behind it. An ordinary mutex guards the list of
//! connections, since a thread holds it for a few instructions only.
//!
//! # What would go wrong with another
//! Most semaphores serve any request for which there are permits: those of a mutex and a condition
//! variable, and POSIX's. Then the queries overtake the backup for as long as there are queries.
//! The second part of this program shows that.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::Duration;
use ulocks::{Condvar, Mutex, Permit, Semaphore};

struct Connection(u32);

struct Pool {
    free: Semaphore,
    idle: Mutex<Vec<Connection>>,
}

/// Connections that are taken together. Its drop gives them back.
struct Taken<'a> {
    pool: &'a Pool,
    connections: Vec<Connection>,
    // The drop of a struct comes before the drops of its fields. So the connections are back in the
    // list before their permits are.
    _permit: Permit<'a>,
}

impl Pool {
    fn new(size: u32) -> Self {
        Self { free: Semaphore::new(size), idle: Mutex::new((0..size).map(Connection).collect()) }
    }

    /// Takes `count` connections together. Waits in the order of arrival.
    fn take(&self, count: u32) -> Taken<'_> {
        self.taken(self.free.acquire_many(count), count)
    }

    /// Takes `count` connections if that needs no waiting and overtakes no waiter.
    fn try_take(&self, count: u32) -> Option<Taken<'_>> {
        Some(self.taken(self.free.try_acquire_many(count)?, count))
    }

    fn taken<'a>(&'a self, permit: Permit<'a>, count: u32) -> Taken<'a> {
        let mut idle = self.idle.lock();
        let rest = idle.len() - count as usize;
        Taken { pool: self, connections: idle.split_off(rest), _permit: permit }
    }
}

impl Deref for Taken<'_> {
    type Target = [Connection];

    fn deref(&self) -> &[Connection] {
        &self.connections
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.pool.idle.lock().append(&mut self.connections);
    }
}

const CONNECTIONS: u32 = 4;
const CLIENTS: u32 = 8;
/// The load ends after so many queries.
const QUERIES: u32 = 2_000;

fn main() {
    in_order();
    let overtaking = Overtaking { free: Mutex::new(CONNECTIONS), changed: Condvar::new() };
    println!("Queries that were served while the backup waited:");
    let by_semaphore = {
        let pool = Pool::new(CONNECTIONS);
        under_load(&|| query(pool.take(1)), &|| drop(pool.take(CONNECTIONS)))
    };
    println!("  ulocks::Semaphore            {by_semaphore}");
    let by_condvar =
        under_load(&|| overtaking.with(1, || query(())), &|| overtaking.with(CONNECTIONS, || ()));
    println!("  a mutex and a condvar        {by_condvar}");
}

/// A backup waits, one connection is free, and no query gets it.
fn in_order() {
    let pool = Pool::new(CONNECTIONS);
    let served = Mutex::new(Vec::new());
    thread::scope(|scope| {
        let query = pool.take(CONNECTIONS - 1);
        scope.spawn(|| {
            let backup = pool.take(CONNECTIONS);
            served.lock().push("backup");
            assert_eq!(backup.iter().map(|connection| connection.0).sum::<u32>(), 1 + 2 + 3);
        });
        // While a thread waits, an attempt fails whatever the count says.
        while pool.try_take(1).is_some() {
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(pool.free.available_permits(), 1);
        scope.spawn(|| {
            let _late = pool.take(1);
            served.lock().push("late query");
        });
        thread::sleep(Duration::from_millis(20)); // The late query has time to overtake, and cannot.
        assert!(served.lock().is_empty());
        drop(query);
    });
    assert_eq!(served.into_inner(), ["backup", "late query"]);
    assert_eq!(pool.free.available_permits(), CONNECTIONS);
    println!("A late query waits behind the backup although a connection is free.");
}

/// Clients query all the time. Says how many queries are served while one backup waits.
fn under_load(query: &(dyn Fn() + Sync), backup: &(dyn Fn() + Sync)) -> String {
    let (queries, done) = (AtomicU32::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                while !done.load(Relaxed) && queries.load(Relaxed) < QUERIES {
                    query();
                    queries.fetch_add(1, Relaxed);
                }
            });
        }
        while queries.load(Relaxed) < CLIENTS {
            thread::sleep(Duration::from_millis(1));
        }
        let before = queries.load(Relaxed);
        backup();
        let after = queries.load(Relaxed);
        done.store(true, Relaxed);
        let never = if after >= QUERIES { ": all that came" } else { "" };
        format!("{}{never}", after - before)
    })
}

/// Uses a connection for some time, and gives it back.
fn query<T>(_connection: T) {
    thread::sleep(Duration::from_micros(100));
}

/// The semaphore of many programs: a request is served when there are enough permits.
struct Overtaking {
    free: Mutex<u32>,
    changed: Condvar,
}

impl Overtaking {
    fn with(&self, count: u32, work: impl FnOnce()) {
        let mut free = self.free.lock();
        self.changed.wait_while(&mut free, |free| *free < count);
        *free -= count;
        drop(free);
        work();
        *self.free.lock() += count;
        self.changed.notify_all();
    }
}
