//! The locks that are held, with their holders: as a value, by a signal, and on a panic.

pub use crate::rules::dump::{on_panic, on_signal, on_signal_to};

use crate::rules::clock::coarse_now;
use crate::rules::faults;
use crate::seen::report::{LockName, Place, ThreadName, place};
use crate::seen::thread::records;
use core::fmt;
use core::time::Duration;
use serde::Serialize;

/// A lock that a thread holds.
#[derive(Clone, Debug, Serialize)]
pub struct HeldLock {
    /// The lock.
    pub lock: LockName,
    /// Its holder.
    pub thread: ThreadName,
    /// Where that acquired it.
    #[serde(serialize_with = "place")]
    pub at: Place,
    /// For how long it has been held. The clock steps every few milliseconds.
    #[serde(serialize_with = "millis", rename = "held_ms")]
    pub held_for: Duration,
    /// How many threads wait for it. A waiter on a condition variable does not count.
    pub waiters: usize,
}

fn millis<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

/// The checked locks that are held in this process, those held longest first.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct Held(Vec<HeldLock>);

impl Held {
    /// The locks.
    pub fn locks(&self) -> &[HeldLock] {
        &self.0
    }

    /// An array with an object for each lock.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("strings and numbers are JSON")
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for held in &self.0 {
            writeln!(
                f,
                "{} held by {} since {} for {} ms, {} waiting",
                held.lock,
                held.thread,
                held.at,
                held.held_for.as_millis(),
                held.waiters
            )?;
        }
        Ok(())
    }
}

/// A thread that waits for a lock or a semaphore.
#[derive(Clone, Debug, Serialize)]
pub struct Waiter {
    /// What it waits for.
    pub lock: LockName,
    /// The thread.
    pub thread: ThreadName,
    /// Where it asked.
    #[serde(serialize_with = "place")]
    pub at: Place,
    /// For how long it has waited. The clock steps every few milliseconds.
    #[serde(serialize_with = "millis", rename = "waited_ms")]
    pub waits_for: Duration,
    /// Whether it gives up at some time.
    pub has_deadline: bool,
}

impl fmt::Display for Waiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lock, thread, at, waits_for, has_deadline } = self;
        write!(f, "{thread} waits for {lock} at {at} for {} ms", waits_for.as_millis())?;
        if *has_deadline { f.write_str(", and gives up at a deadline") } else { Ok(()) }
    }
}

/// The threads of this process that wait for checked locks or semaphores, those first that have
/// waited longest. A waiter on a condition variable is not one of them.
///
/// It stops no thread. A thread that waits during the whole call is in the list. It allocates, so a
/// signal handler must not call it.
///
/// # Examples
/// ```
/// use ulocks_debug::{Mutex, waiters};
///
/// static LOG: Mutex<()> = Mutex::new(());
/// let held = LOG.lock();
/// let other = std::thread::spawn(|| drop(LOG.lock()));
/// while waiters().is_empty() {
///     std::thread::yield_now();
/// }
/// assert_eq!(waiters()[0].lock.name, "ThroughputMutex");
/// drop(held);
/// other.join().unwrap();
/// ```
pub fn waiters() -> Vec<Waiter> {
    let now = coarse_now();
    let all = records().filter_map(|record| Some((record, record.waiting()?.0)));
    let mut all: Vec<Waiter> = all
        .map(|(record, wait)| Waiter {
            lock: wait.name(),
            thread: record.name(),
            at: wait.place,
            waits_for: Duration::from_nanos(now.saturating_sub(wait.since)),
            has_deadline: wait.timed,
        })
        .collect();
    all.sort_by_key(|waiter| core::cmp::Reverse(waiter.waits_for));
    all
}

/// The checked locks that are held in this process, once for each holder: a lock that is read has
/// several.
///
/// It stops no thread. A lock that is held during the whole call is in the list. One that is
/// acquired, released, upgraded or downgraded meanwhile may be, and a lock that is passed from
/// thread to thread may be in it twice. It allocates, so a signal handler must not call it;
/// [`on_signal`] is for that.
///
/// # Examples
/// ```
/// let log = ulocks_debug::Mutex::new(());
/// let guard = log.lock();
/// let held = ulocks_debug::held();
/// assert!(held.locks().iter().any(|held| held.lock.name == "ThroughputMutex"));
/// assert!(held.to_json().contains("\"waiters\":0"));
/// print!("{held}");
/// # drop(guard);
/// ```
pub fn held() -> Held {
    let now = coarse_now();
    let all = faults::all_held().into_iter().map(|(thread, held, waiters)| HeldLock {
        lock: held.name(),
        thread,
        at: held.place,
        held_for: Duration::from_nanos(now.saturating_sub(held.since)),
        waiters,
    });
    let mut all: Vec<HeldLock> = all.collect();
    all.sort_by_key(|held| core::cmp::Reverse(held.held_for));
    Held(all)
}
