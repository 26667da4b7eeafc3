//! The rules, and their reports. All of it is off the fast path.

use crate::rules::accept::is_accepted;
use crate::rules::deliver::{From, deliver};
use crate::rules::handler;
use crate::rules::once;
use crate::rules::order::{self, Checked, Found};
use crate::seen::access::Access;
use crate::seen::asked::Asked;
use crate::seen::class::Node;
use crate::seen::policy::{Policy, policy};
use crate::seen::report::{Circle, LockName, Place, Report, Rule, Severity, ThreadName};
use crate::seen::stacks;
use crate::seen::thread::{Held, Record, records};
use core::fmt;
use core::panic::Location;

/// Why [`CheckedMutex::try_lock_checked`](crate::CheckedMutex::try_lock_checked) gave no guard, or
/// [`CheckedRwLock::try_read_checked`](crate::CheckedRwLock::try_read_checked).
#[derive(Debug)]
pub enum TryLockError {
    /// Another thread holds the lock, or a reader would have to wait for a writer.
    WouldBlock,
    /// The acquisition would break a rule. It was not made.
    Fault(Box<Report>),
}

impl fmt::Display for TryLockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WouldBlock => f.write_str("the lock is held by another thread"),
            Self::Fault(report) => report.fmt(f),
        }
    }
}

impl core::error::Error for TryLockError {}

/// A caller outside of lock_api, whose guards do not pass on the place of their drop, and outside
/// of the condition variables.
pub(crate) fn known(place: Place) -> Option<Place> {
    let ours = ["/lock_api-", "/core/src/lock/", "/pi/src/condvar/"];
    (!ours.iter().any(|path| place.file().contains(path))).then_some(place)
}

fn report(rule: Rule, lock: LockName, me: &Record) -> Report {
    let severity = match rule {
        Rule::NoFork | Rule::NoLockInWait | Rule::NoLockOfNotifier | Rule::AtMost64 => Severity::Warning,
        _ => Severity::Fault,
    };
    Report {
        rule,
        severity,
        lock,
        thread: me.name(),
        here: None,
        before: None,
        held: None,
        held_lock: None,
        holder: None,
        steps: Vec::new(),
        circle: Circle::OfLocks,
        notes: Vec::new(),
        signal: me.is_handler().then(|| me.signal()),
        stack: stacks::here(None),
        stack_before: None,
    }
}

/// Where the thread is.
fn here(report: &mut Report, place: Place) {
    report.here = Some(place);
    report.stack = report.stack.take().map(|stack| stack.at(place));
}

/// What came before: an acquisition, and the thread that made it.
fn before(report: &mut Report, held: Option<Held>, holder: Option<&Record>) {
    report.before = held.map(|held| held.place);
    report.held = held.map(|held| held.access);
    report.held_lock = held.map(|held| held.name());
    report.holder = holder.map(Record::name);
    report.stack_before = holder.zip(held).and_then(|(holder, held)| stacks::of(holder, held.since));
}

/// Checks the order of an acquisition that is not known to be right.
#[cold]
#[track_caller]
pub(crate) fn order(me: &Record, asked: &Asked, key: u64) {
    if me.is_handler() {
        return;
    }
    if order::is_known(key) {
        return me.validate(key);
    }
    handler::report_news(From::Call);
    let is_known = !order::nests_first(me, asked);
    let Checked { found, is_settled } = ordered(me, asked);
    let panics = matches!(policy(), Policy::Panic);
    // It goes on. If a fault panics, it is to do so each time.
    let mut is_over = true;
    for found in &found {
        // Before it is delivered: that may panic, and the next ones are new still.
        let is_first = order::is_first(found);
        if is_first || panics {
            deliver(&found.report, From::Call);
        }
        is_over &= !panics || !is_refused(&found.report);
    }
    if is_over && is_known && is_settled {
        validate(me, key);
    }
}

/// Whether the report is one of a fault that the program does not accept.
fn is_refused(report: &Report) -> bool {
    report.severity == Severity::Fault && !is_accepted(report)
}

/// All threads know from now on that an acquisition with this key has nothing new.
fn validate(me: &Record, key: u64) {
    me.validate(key);
    order::remember(key);
}

fn ordered(me: &Record, asked: &Asked) -> Checked {
    me.sweep();
    order::check(me, asked)
}

/// As [`order`] and the rule about signal handlers, for an attempt. The report is the error.
/// Nothing is entered, since the attempt may fail. Returns whether [`attempted`] is to do so.
#[cold]
pub(crate) fn attempt(me: &Record, asked: &Asked, has_order: bool) -> Result<bool, TryLockError> {
    let fault = |report| TryLockError::Fault(Box::new(report));
    if asked.class.uses().watch() | me.signal() != 0 {
        handler::fault(me, asked, false).map_or(Ok(()), |report| Err(fault(report)))?;
    }
    if !has_order || !me.holds_any() || me.is_handler() || me.is_validated(order::key(me, asked)) {
        return Ok(false);
    }
    me.sweep();
    for Found { report, .. } in order::look(me, asked) {
        if is_refused(&report) {
            return Err(fault(report));
        }
        deliver(&report, From::Call);
    }
    Ok(true)
}

/// The attempt was made. The lock is not in the thread's list yet.
#[cold]
pub(crate) fn attempted(me: &Record, asked: &Asked) {
    let key = order::key(me, asked);
    let is_known = !order::nests_first(me, asked);
    // What was found meanwhile is found again by the next acquisition.
    let Checked { found, is_settled } = ordered(me, asked);
    if found.is_empty() && is_known && is_settled {
        me.validate(key);
    }
}

/// The thread asks for a lock that it holds: as `held`, if that has a slot.
pub(crate) fn again(me: &Record, asked: &Asked, held: Option<Held>) -> Report {
    let rule = match held {
        Some(held) if held.lock != asked.lock => Rule::NotMoved,
        Some(held) if held.access.is_shared() && asked.access.is_shared() => Rule::NoReadAgain,
        _ => Rule::NoRecursion,
    };
    let mut report = report(rule, asked.name(), me);
    here(&mut report, asked.at);
    before(&mut report, held, Some(me));
    report
}

/// The raw lock gave the thread a lock that another one holds; `None` if that is a task, or was a
/// thread at its end.
#[cold]
#[track_caller]
pub(crate) fn two_holders(me: &Record, asked: &Asked, holder: Option<&Record>) {
    // The kernel has released the lock of a thread that has ended. That was reported, unless the
    // thread acquired at its end, where nothing is checked.
    let Some(holder) = holder.filter(|holder| !holder.has_ended()) else { return };
    let held = holder.held().find(|held| held.lock == asked.lock);
    let mut report = report(Rule::OneHolder, asked.name(), me);
    here(&mut report, asked.at);
    before(&mut report, held, Some(holder));
    deliver(&report, From::Call);
}

/// A release by a thread that is not the holder. `home` is where the lock was acquired.
#[cold]
#[track_caller]
pub(crate) fn wrong_release(
    me: &Record,
    (lock, access): (usize, Access),
    class: Option<&'static Node>,
    holder: Holder,
) {
    let (rule, record, home) = match holder {
        Holder::None => (Rule::ReleasedOnce, None, lock),
        Holder::Other(record) => (Rule::OwnerReleases, Some(record), lock),
        Holder::Moved(record, home) => (Rule::NotMoved, Some(record), home),
    };
    let mut report = report(rule, name(class, lock, access), me);
    report.here = known(Location::caller());
    let held = record.and_then(|record| record.held().find(|held| held.lock == home));
    before(&mut report, held, record);
    deliver(&report, From::Call);
}

/// The holder that a release finds.
pub(crate) enum Holder {
    None,
    Other(&'static Record),
    /// This thread acquired it at another address.
    Moved(&'static Record, usize),
}

fn name(class: Option<&'static Node>, lock: usize, access: Access) -> LockName {
    match class {
        Some(class) => class.lock_name((lock, 0), 0, access),
        None => {
            LockName { name: "lock".to_owned(), made: None, address: lock, number: 0, subclass: 0, access }
        }
    }
}

/// A held lock is dropped.
#[cold]
#[track_caller]
pub(crate) fn dropped(lock: usize, home: usize, class: Option<&'static Node>, holder: Option<&Record>) {
    let held = holder.and_then(|holder| holder.held().find(|held| held.lock == home));
    let access = held.map_or(Access::Exclusive, |held| held.access);
    if let Some(holder) = holder {
        holder.forget(home);
    }
    let Some(me) = crate::rules::current::current() else { return };
    let mut report = report(Rule::NotDropped, name(class, lock, access), me);
    before(&mut report, held, holder);
    deliver(&report, From::Call);
}

/// A thread ends.
pub(crate) fn exit(me: &Record) {
    each_held(me, Rule::NoExit, |_| true);
}

/// A thread forks. What it owes to others stays with it.
pub(crate) fn fork(me: &Record) {
    each_held(me, Rule::NoFork, |held| held.access != Access::Promise);
}

fn each_held(me: &Record, rule: Rule, counts: impl Fn(&Held) -> bool) {
    let held: Vec<Held> = me.held().filter(counts).collect();
    for held in held {
        let mut report = report(rule, held.name(), me);
        before(&mut report, Some(held), Some(me));
        deliver(&report, From::Inside);
    }
}

/// A thread is about to wait on a condition variable of `mutex`, which it has released already in
/// its own table.
#[cold]
pub(crate) fn wait(me: &Record, mutex: &Asked) {
    // What it owes to others it may still owe when it goes on.
    let others = me.held().filter(|held| held.access != Access::Promise);
    if let Some(other) = others.max_by_key(|held| held.since) {
        wait_with(me, mutex, &other, None);
    }
    // Another key than that of an acquisition.
    let key = order::key(me, mutex).rotate_left(7) ^ 0x77;
    if me.is_validated(key) {
        return;
    }
    let is_known = !order::nests_first(me, mutex);
    // The mutex is acquired again while the other locks are held.
    let Checked { found, is_settled } = ordered(me, mutex);
    if is_known && is_settled {
        me.validate(key);
    }
    for mut found in found {
        if order::is_first(&found) {
            found.report.severity = Severity::Warning;
            deliver(&found.report, From::Inside);
        }
    }
}

/// A thread is about to wait with a lock held that each notification so far was made under, which
/// was acquired at `place` then.
#[cold]
pub(crate) fn wait_under(me: &Record, mutex: &Asked, held: &Held, place: Place) {
    wait_with(me, mutex, held, Some(place));
}

fn wait_with(me: &Record, mutex: &Asked, other: &Held, notifier: Option<Place>) {
    let is_first = once::is_first(Rule::NoLockInWait, mutex.at, other.place);
    let (rule, is_first) = match notifier {
        None => (Rule::NoLockInWait, is_first),
        // Once with what is known of notifiers, whether it was said without.
        Some(_) => (Rule::NoLockOfNotifier, once::is_first(Rule::NoLockOfNotifier, mutex.at, other.place)),
    };
    if !is_first {
        return;
    }
    let mut report = report(rule, mutex.name(), me);
    here(&mut report, mutex.at);
    before(&mut report, Some(*other), Some(me));
    if let Some(place) = notifier {
        let number = other.instance;
        report.notes.push(format!(
            "each notification so far came from a thread that held #{number}, the first one since {place}"
        ));
    }
    deliver(&report, From::Inside);
}

/// A task that is watched at `place` waits, and holds a lock.
#[cold]
pub(crate) fn awaits(me: &Record, held: &Held, place: Place) -> Report {
    let mut report = report(Rule::NoAwait, held.name(), me);
    here(&mut report, place);
    before(&mut report, Some(*held), Some(me));
    report
}

/// There is no slot for a lock.
#[cold]
pub(crate) fn too_many(me: &Record, held: &Held) {
    let last = me.held().last();
    if !once::is_first(Rule::AtMost64, held.place, last.map_or(held.place, |last| last.place)) {
        return;
    }
    let mut report = report(Rule::AtMost64, held.name(), me);
    here(&mut report, held.place);
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
