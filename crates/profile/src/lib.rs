#![doc = include_str!("../README.md")]
//!
//! # What is counted
//! - An *acquisition* counts when the lock is held: also one by `try_lock`, and one after a wait on
//!   a condition variable. So does each upgrade and downgrade of a checked reader-writer lock,
//!   which ends one hold and begins another. Those of a plain one do not count.
//! - A *wait* begins when the lock is found taken. It counts when it ends, also if it ends without
//!   the lock, by its deadline. So there may be more waits than acquisitions.
//! - Who made it wait is the acquisition that had the lock when the wait began. If the lock had
//!   several holders meanwhile, the first one has the whole wait. Of plain locks that is not known.
//! - A *hold* counts at the release. Between its begin and its end the profile was on, and was not
//!   reset.
//!
//! A waiter on a condition variable does not wait in this sense. If its notifier left it asleep on
//! the lock, the time until it has the lock is not counted either. A checked lock that a thread
//! acquires while it holds 64 is not counted; of plain ones the last 64 have a hold. Readers and
//! writers of a lock count together, and differ in their places. Of a checked semaphore only the
//! waits count, since permits have no holder. Promises count as locks: the owner holds one, and a
//! wait for it is a wait. What the thread waits for in that wait counts by itself, and the wait in
//! two parts around it.
//!
//! Where holds are told by the counter of the CPU, a suspend of the machine makes the holds of a
//! snapshot wrong. The kernel's clock does not go on meanwhile, and the counter may, or begin anew.
//! Only a program that starts its first profile after the suspend has right ones.
//!
//! # Cost
//! If the profile is off, an acquisition makes one Relaxed load more. If it is on, an acquisition
//! and a release read a clock, and add to sums of their thread: no lock, no locked instruction.
//! The first acquisition of a thread, and the first one of a lock at a place, allocate. The release
//! adds before it lets the lock go, so a profiled hold is some ten nanoseconds longer.
//!
//! A thread tells 4096 pairs of a lock and a place apart. Of its waits for holders that are known,
//! it tells 4096 triples of a lock and two places apart. Beyond that, the sums of a lock are those
//! of its class and places only. A lock is known by its address. So two locks of one class, the
//! second of which is made where the first was dropped, count as one.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg(counting)]

mod forks;
mod once;
#[cfg(feature = "pprof")]
mod pprof;
mod recorder;
mod stamped;
mod stamps;
mod subject;
mod sums;
mod text;
mod ticks;
mod wanted;

pub use stamped::{Name, Named, Stamped};
pub use subject::Place;
pub use sums::is_on;

/// What the checked locks count by.
#[doc(hidden)]
pub mod counting {
    pub use crate::forks::{ForkGuard, ForkMutex};
    pub use crate::once::Once;
    pub use crate::recorder::{acquired, enter_handler, leave_handler, released, waited};
    pub use crate::subject::Subject;
    pub use crate::sums::{Key, SLOTS};
    pub use crate::ticks::now;
    pub use crate::wanted::{PROFILE, is_wanted, want, wanted};
}

use core::fmt;
use core::time::Duration;
use forks::{ForkGuard, ForkMutex};
use once::Once;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use sums::Key;
use ticks::now;

/// How long the profile has been on.
struct Ran {
    /// Before it was switched on the last time.
    before: u64,
    /// When it was switched on, if it is on.
    since: Option<u64>,
    /// Whether it was ever switched on: the clock of holds is chosen then.
    has_clock: bool,
}

static RAN: ForkMutex<Ran> = ForkMutex::new(Ran { before: 0, since: None, has_clock: false });

/// Takes `RAN`, which forks know of from then on.
fn ran() -> ForkGuard<'static, Ran> {
    watch_forks();
    RAN.lock()
}

/// Has forks watched from now on. What is to run before that in a fork registers later.
#[doc(hidden)]
pub fn watch_forks() {
    static WATCH: Once = Once::new();
    // SAFETY: the three functions do not unwind, and stay where they are.
    WATCH.call_once(|| _ = unsafe { libc::pthread_atfork(Some(prepare), Some(parent), Some(child)) });
}

/// The child must not find `RAN` locked by a thread that it does not have.
extern "C" fn prepare() {
    RAN.hold();
}

extern "C" fn parent() {
    RAN.release();
}

extern "C" fn child() {
    parent();
    // The sums are those of the parent.
    forget(&mut RAN.lock());
}

/// Switches the profile on. What was counted before stays.
pub fn start() {
    let mut ran = ran();
    if ran.since.is_none() {
        if !core::mem::replace(&mut ran.has_clock, true) {
            ticks::choose();
        }
        ran.since = Some(now());
        sums::switch(true);
    }
}

/// Switches the profile off. What was counted can still be read.
pub fn stop() {
    let mut ran = ran();
    if let Some(since) = ran.since.take() {
        sums::switch(false);
        ran.before += now() - since;
    }
}

/// Forgets what was counted. The profile stays on or off.
pub fn reset() {
    forget(&mut ran());
}

fn forget(ran: &mut Ran) {
    *ran = Ran { before: 0, since: ran.since.map(|_| now()), ..*ran };
    sums::reset();
}

/// What was counted since the last [`reset`], in all threads, also those that have ended.
///
/// It stops no thread. An acquisition that is counted meanwhile may be in some of the sums and not
/// yet in the others.
pub fn snapshot() -> Profile {
    let ran = ran();
    let mut all: Vec<_> = sums::all().collect();
    let scale = ticks::Scale::now();
    all.iter_mut().for_each(|(.., sums)| sums::tell_holds(sums, &scale));
    // Afterwards: so no hold is longer than the profile has been on.
    let ran = ran.before + ran.since.map_or(0, |since| now() - since);
    let name =
        |key: &Key, address| Lock { name: key.class.name().to_owned(), made: key.class.made(), address };
    let classes = all.iter().map(|(_, key, sums)| (name(key, 0), key.place, sums));
    let locks = all.iter().filter(|(_, key, _)| key.lock != 0);
    let locks = locks.map(|(_, key, sums)| (name(key, key.lock), key.place, sums));
    let sites = all.iter().map(|(thread, key, sums)| (((*thread).to_owned(), name(key, 0)), key.place, sums));
    Profile {
        ran: Duration::from_nanos(ran),
        classes: by_lock(classes),
        locks: by_lock(locks),
        sites: by_site(sites),
        pairs: by_pair(all.iter().map(|(_, key, sums)| (name(key, 0), key, sums))),
    }
}

/// The order of lines of a profile: the longest wait first.
fn weight(sums: &Sums) -> impl Ord + use<> {
    core::cmp::Reverse((sums.waited, sums.held, sums.acquired))
}

fn by_lock<'a>(entries: impl Iterator<Item = (Lock, Place, &'a sums::Sums)>) -> Vec<LockLine> {
    let mut lines: BTreeMap<_, LockLine> = BTreeMap::new();
    for (lock, place, sums) in entries {
        let key = (lock.made, lock.name.clone(), lock.address);
        let line = lines.entry(key).or_insert_with(|| LockLine {
            lock,
            sums: Sums::default(),
            waited_longest_at: None,
            held_longest_at: None,
        });
        let (wait, hold) = (line.sums.longest_wait, line.sums.longest_hold);
        line.sums.add(sums);
        if line.sums.longest_wait > wait {
            line.waited_longest_at = Some(place);
        }
        if line.sums.longest_hold > hold {
            line.held_longest_at = Some(place);
        }
    }
    let mut lines: Vec<LockLine> = lines.into_values().collect();
    lines.sort_by_key(|line| weight(&line.sums));
    lines
}

fn by_site<'a>(entries: impl Iterator<Item = ((String, Lock), Place, &'a sums::Sums)>) -> Vec<SiteLine> {
    let mut lines: BTreeMap<_, SiteLine> = BTreeMap::new();
    for ((thread, lock), at, sums) in entries {
        let key = (thread.clone(), lock.made, lock.name.clone(), at);
        let new = || SiteLine { thread, lock, at, sums: Sums::default() };
        lines.entry(key).or_insert_with(new).sums.add(sums);
    }
    let mut lines: Vec<SiteLine> = lines.into_values().collect();
    lines.sort_by_key(|line| weight(&line.sums));
    lines
}

fn by_pair<'a>(entries: impl Iterator<Item = (Lock, &'a Key, &'a sums::Sums)>) -> Vec<PairLine> {
    let mut lines: BTreeMap<_, (PairLine, Sums)> = BTreeMap::new();
    for (lock, Key { class, place: waiter, holder, .. }, sums) in entries {
        let key = (lock.made, lock.name.clone(), *waiter, *holder);
        let (is_plain, waited) = (class.is_plain(), Duration::ZERO);
        let times = PairLine { lock, waiter, holder: *holder, waits: 0, waited, is_plain };
        let (line, all) = lines.entry(key).or_insert_with(|| (times, Sums::default()));
        all.add(sums);
        (line.waits, line.waited) = (all.contended, all.waited);
    }
    let mut lines: Vec<PairLine> =
        lines.into_values().map(|(line, _)| line).filter(|line| line.waits > 0).collect();
    lines.sort_by_key(|line| core::cmp::Reverse((line.waited, line.waits)));
    lines
}

fn place<S: Serializer>(place: &Place, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(place)
}

fn place_option<S: Serializer>(place: &Option<Place>, serializer: S) -> Result<S::Ok, S::Error> {
    match place {
        Some(place) => serializer.collect_str(place),
        None => serializer.serialize_none(),
    }
}

/// A class, or a lock of one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lock {
    /// The name of the class, if it was given one; or its type.
    pub name: String,
    /// Where the class was made.
    #[serde(serialize_with = "place")]
    pub made: Place,
    /// The address of the lock; 0 for a class as a whole.
    pub address: usize,
}

impl fmt::Display for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` of {}", self.name, self.made)
    }
}

/// What was counted of a class, a lock or a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sums {
    /// Acquisitions.
    pub acquired: u64,
    /// Waits: acquisitions that found the lock taken, also those that gave up.
    pub contended: u64,
    /// The time of all waits together.
    #[serde(serialize_with = "nanos", rename = "waited_ns")]
    pub waited: Duration,
    /// The time of the longest wait.
    #[serde(serialize_with = "nanos", rename = "longest_wait_ns")]
    pub longest_wait: Duration,
    /// The time of all holds together.
    #[serde(serialize_with = "nanos", rename = "held_ns")]
    pub held: Duration,
    /// The time of the longest hold.
    #[serde(serialize_with = "nanos", rename = "longest_hold_ns")]
    pub longest_hold: Duration,
}

fn nanos<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

impl Sums {
    fn add(&mut self, more: &sums::Sums) {
        let [acquired, contended, times @ ..] = *more;
        let [wait, longest_wait, hold, longest_hold] = times.map(Duration::from_nanos);
        self.acquired += acquired;
        self.contended += contended;
        self.waited += wait;
        self.longest_wait = self.longest_wait.max(longest_wait);
        self.held += hold;
        self.longest_hold = self.longest_hold.max(longest_hold);
    }
}

/// The sums of a class or of a lock.
#[derive(Clone, Debug, Serialize)]
pub struct LockLine {
    /// The class or the lock.
    pub lock: Lock,
    /// What was counted.
    #[serde(flatten)]
    pub sums: Sums,
    /// Where the acquisition is that waited longest.
    #[serde(serialize_with = "place_option")]
    pub waited_longest_at: Option<Place>,
    /// Where the acquisition is that held longest.
    #[serde(serialize_with = "place_option")]
    pub held_longest_at: Option<Place>,
}

/// The sums of the acquisitions at one place, by threads of one name, of locks of one class.
#[derive(Clone, Debug, Serialize)]
pub struct SiteLine {
    /// The name of the threads; empty if they have none. After 256 names, the threads of further
    /// names count as `(other threads)`.
    pub thread: String,
    /// The class.
    pub lock: Lock,
    /// Where the acquisition is.
    #[serde(serialize_with = "place")]
    pub at: Place,
    /// What was counted.
    #[serde(flatten)]
    pub sums: Sums,
}

/// Who made whom wait: the waits at one place, for locks of one class that were acquired at
/// another.
#[derive(Clone, Debug, Serialize)]
pub struct PairLine {
    /// The class.
    pub lock: Lock,
    /// Where the waiters asked.
    #[serde(serialize_with = "place")]
    pub waiter: Place,
    /// Where the lock was acquired that they waited for. `None` of a plain lock, whose holder is
    /// not recorded. `None` if no holder was found, as of a semaphore, or of a lock that a task has
    /// or that is released just then.
    #[serde(serialize_with = "place_option")]
    pub holder: Option<Place>,
    /// How many waits there were.
    pub waits: u64,
    /// The time of all of them together.
    #[serde(serialize_with = "nanos", rename = "waited_ns")]
    pub waited: Duration,
    #[serde(skip)]
    is_plain: bool,
}

/// A contention profile, from [`snapshot`]. Its `Display` is a table of the classes.
#[derive(Clone, Debug, Serialize)]
pub struct Profile {
    #[serde(serialize_with = "nanos", rename = "ran_ns")]
    ran: Duration,
    classes: Vec<LockLine>,
    locks: Vec<LockLine>,
    sites: Vec<SiteLine>,
    pairs: Vec<PairLine>,
}

impl Profile {
    /// For how long the profile has been on.
    pub fn ran(&self) -> Duration {
        self.ran
    }

    /// The classes, those with the longest waits first.
    pub fn classes(&self) -> &[LockLine] {
        &self.classes
    }

    /// The locks, those with the longest waits first.
    pub fn locks(&self) -> &[LockLine] {
        &self.locks
    }

    /// The places of acquisitions by threads, those with the longest waits first.
    pub fn sites(&self) -> &[SiteLine] {
        &self.sites
    }

    /// Who made whom wait, those with the longest waits first: the cells of a matrix of the places
    /// of waiters and of holders.
    pub fn pairs(&self) -> &[PairLine] {
        &self.pairs
    }

    /// The first `lines` classes, locks, places and pairs of this profile.
    #[must_use]
    pub fn top(&self, lines: usize) -> Self {
        let mut top = self.clone();
        top.classes.truncate(lines);
        top.locks.truncate(lines);
        top.sites.truncate(lines);
        top.pairs.truncate(lines);
        top
    }

    /// An object with the arrays `classes`, `locks`, `sites` and `pairs`. Times are in nanoseconds.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("strings and numbers are JSON")
    }
}
