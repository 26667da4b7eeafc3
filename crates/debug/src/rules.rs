//! The rules, and their reports. All of it is off the fast path.

use crate::class::Node;
use crate::order::{self, Asked};
use crate::report::{From, LockName, Place, Report, Rule, Severity, ThreadName, deliver};
use crate::thread::{Held, MOST, Record, records};
use crate::{Policy, policy};
use core::panic::Location;
use core::ptr;

/// A caller outside of lock_api, whose guards do not pass on the place of their drop.
pub(crate) fn known(place: Place) -> Option<Place> {
    let file = place.file();
    (!file.contains("/lock_api-") && !file.contains("/core/src/lock/api/")).then_some(place)
}

fn report(rule: Rule, lock: LockName, me: &Record) -> Report {
    let severity = match rule {
        Rule::NoFork | Rule::NoLockInWait | Rule::AtMost64 => Severity::Warning,
        _ => Severity::Fault,
    };
    Report {
        rule,
        severity,
        lock,
        thread: me.name(),
        here: None,
        before: None,
        holder: None,
        steps: Vec::new(),
    }
}

/// Checks the order of an acquisition that is not known to be right.
#[cold]
#[track_caller]
pub(crate) fn order(me: &Record, asked: &Asked, key: u64) {
    match ordered(me, asked, matches!(policy(), Policy::Panic)) {
        Ok(()) => me.validate(key),
        Err(Some(report)) => deliver(&report, From::Call),
        Err(None) => {}
    }
}

pub(crate) fn ordered(me: &Record, asked: &Asked, again: bool) -> Result<(), Option<Box<Report>>> {
    me.sweep();
    order::check(me, asked, again)
}

/// The thread asks for a lock that it holds.
pub(crate) fn recursion(me: &Record, asked: &Asked, home: usize) -> Report {
    let held = me.held().find(|held| held.lock == home);
    let rule = if home == asked.lock { Rule::NoRecursion } else { Rule::NotMoved };
    let name = asked.class.lock_name(asked.lock, asked.subclass);
    let mut report = report(rule, name, me);
    report.here = Some(asked.at);
    report.before = held.map(|held| held.place);
    report.holder = Some(report.thread.clone());
    report
}

/// The raw lock gave the thread a lock that another one holds.
#[cold]
#[track_caller]
pub(crate) fn two_holders(me: &Record, asked: &Asked, holder: Option<&Record>) {
    let held = holder.and_then(|holder| holder.held().find(|held| held.lock == asked.lock));
    let mut report = report(Rule::OneHolder, asked.class.lock_name(asked.lock, asked.subclass), me);
    report.here = Some(asked.at);
    report.before = held.map(|held| held.place);
    report.holder = holder.map(Record::name);
    deliver(&report, From::Call);
}

/// A release by a thread that is not the holder. `home` is where the lock was acquired.
#[cold]
#[track_caller]
pub(crate) fn wrong_release(me: &Record, lock: usize, class: Option<&'static Node>, holder: Holder) {
    let (rule, record, home) = match holder {
        Holder::None => (Rule::ReleasedOnce, None, lock),
        Holder::Other(record) => (Rule::OwnerReleases, Some(record), lock),
        Holder::Moved(record, home) => (Rule::NotMoved, Some(record), home),
    };
    let mut report = report(rule, name(class, lock), me);
    report.here = known(Location::caller());
    let held = record.and_then(|record| record.held().find(|held| held.lock == home));
    report.before = held.map(|held| held.place);
    report.holder = record.map(Record::name);
    deliver(&report, From::Call);
}

/// The holder that a release finds.
pub(crate) enum Holder {
    None,
    Other(&'static Record),
    /// This thread acquired it at another address.
    Moved(&'static Record, usize),
}

fn name(class: Option<&'static Node>, lock: usize) -> LockName {
    match class {
        Some(class) => class.lock_name(lock, 0),
        None => LockName { name: "lock".to_owned(), made: None, address: lock, subclass: 0 },
    }
}

/// A held lock is dropped.
#[cold]
#[track_caller]
pub(crate) fn dropped(lock: usize, home: usize, class: Option<&'static Node>, holder: Option<&Record>) {
    let held = holder.and_then(|holder| holder.held().find(|held| held.lock == home));
    if let Some(holder) = holder {
        holder.forget(home);
    }
    let Some(me) = crate::thread::current() else { return };
    let mut report = report(Rule::NotDropped, name(class, lock), me);
    report.before = held.map(|held| held.place);
    report.holder = holder.map(Record::name);
    deliver(&report, From::Call);
}

/// A thread ends.
pub(crate) fn exit(me: &Record) {
    each_held(me, Rule::NoExit);
}

/// A thread forks.
pub(crate) fn fork(me: &Record) {
    each_held(me, Rule::NoFork);
}

fn each_held(me: &Record, rule: Rule) {
    let held: Vec<Held> = me.held().collect();
    for held in held {
        let mut report = report(rule, held.class.lock_name(held.lock, held.subclass), me);
        report.before = Some(held.place);
        report.holder = Some(report.thread.clone());
        deliver(&report, From::Inside);
    }
}

/// A thread is about to wait on a condition variable of `mutex`, which it has released already in
/// its own table.
#[cold]
pub(crate) fn wait(me: &Record, mutex: &Asked) {
    let Some(other) = me.held().max_by_key(|held| held.since) else { return };
    let salt = ptr::from_ref(other.place).addr() as u64;
    let key = crate::class::mix(order::key(me, mutex) ^ salt).rotate_left(7) ^ 0x77;
    if me.is_validated(key) {
        return;
    }
    me.validate(key);
    let name = mutex.class.lock_name(mutex.lock, mutex.subclass);
    let mut report = report(Rule::NoLockInWait, name, me);
    report.here = Some(mutex.at);
    report.before = Some(other.place);
    report.holder = Some(report.thread.clone());
    deliver(&report, From::Inside);
    // The mutex is acquired again while the other locks are held.
    if let Err(Some(mut report)) = ordered(me, mutex, false) {
        report.severity = Severity::Warning;
        deliver(&report, From::Inside);
    }
}

/// There is no slot for a lock.
#[cold]
pub(crate) fn too_many(me: &Record, held: &Held) {
    let mut report = report(Rule::AtMost64, held.class.lock_name(held.lock, held.subclass), me);
    report.here = Some(held.place);
    debug_assert_eq!(me.held().count(), MOST);
    deliver(&report, From::Inside);
}

/// All held locks with their threads, and how many threads wait for each.
pub(crate) fn all_held() -> Vec<(ThreadName, Held, usize)> {
    let waits: Vec<usize> = records().filter_map(|record| Some(record.waiting()?.0.lock)).collect();
    let mut all = Vec::new();
    for record in records() {
        for held in record.held() {
            all.push((record.name(), held, waits.iter().filter(|&&lock| lock == held.lock).count()));
        }
    }
    all
}
