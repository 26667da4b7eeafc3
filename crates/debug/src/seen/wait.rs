//! Deadlocks that happen: a walk from thread to lock to holder.
//!
//! A thread that has to wait publishes the lock, and then walks: to the holders of that lock, to
//! the locks which those threads wait for, and so on. If the walk comes back to the thread, there
//! is a deadlock. Of the threads of a circle, the last one to publish finds it: between the
//! publication and the walk is a `fence(SeqCst)`, (fence). Two threads that publish at once store
//! and then load each other's words, and by (fence) one of them sees both. If both do, both report.
//! The walk stops no thread and takes no lock.
//!
//! A thread waits for *each* holder that keeps it waiting: a writer for all readers. So one circle
//! is enough.
//!
//! # No false report
//! The circle is looked at twice, and must have the same threads in the same waits, by their
//! numbers. A thread whose wait has the same number both times waited in between, or had just given
//! up by its deadline. It released nothing then, so all locks of the first look were still held. A
//! thread enters a lock as held after its wait has ended, and removes it before the release. So no
//! lock of the walk was on its way from one holder to the next.
//!
//! A thread that waits for a promise runs, and may acquire and release. So of what it holds only
//! those entries count that it had when the wait began, if none of their slots has got a later one.
//!
//! # A thread that waits for itself
//! What a thread holds may keep its own wait from ever ending. The rules of one lock report that
//! before the wait. So such a circle of one step is only in the list of [`deadlocks`].
//!
//! # Readers behind a writer
//! A reader, also an upgradable one, waits for other readers only behind a writer that waits for
//! them. There is no telling whether that writer has shut the reader out yet, or whether the reader
//! is inside and about to return. So a circle with such a step is looked at for a tenth of a
//! second, and reported if it stands. If the reader got no CPU for so long, the report comes of
//! threads that do not wait. All of them have then asked for locks in a circle, in a way that may
//! deadlock.

use crate::seen::access::Access;
use crate::seen::report::{Circle, Report, Rule, Severity, Step};
use crate::seen::stacks;
use crate::seen::thread::{Held, Record, Wait, records};
use core::ptr;
use core::time::Duration;
use smallvec::SmallVec;
use ulocks_core::sync::{Ordering::SeqCst, fence};

/// How often a circle with a reader behind a writer is looked at, and how far apart. No such circle
/// is modelled.
const LOOKS: u32 = 20;
const APART: Duration = Duration::from_millis(5);

/// The thread waits for another one: for a holder, or as a reader for a writer in front.
#[derive(Clone)]
struct Link {
    waiter: &'static Record,
    number: u64,
    wait: Wait,
    next: &'static Record,
    /// `None` if the other one waits in front.
    held: Option<Held>,
    /// Whether the other one, or one beside it, waits with a deadline.
    is_timed: bool,
}

impl Link {
    /// Whether the thread is still in the same wait.
    fn waits(&self) -> bool {
        self.waiter.waiting().is_some_and(|(_, number)| number == self.number)
    }
}

/// Writers that wait for the same lock, and so may shut out a reader that waits.
fn in_front(waiter: &'static Record, wait: Wait) -> impl Iterator<Item = (&'static Record, Wait)> {
    let writers = records().filter(move |record| wait.access.joins_readers() && !ptr::eq(*record, waiter));
    writers.filter_map(move |record| {
        let (other, _) = record.waiting()?;
        (other.instance == wait.instance && other.access.shuts_out()).then_some((record, other))
    })
}

/// Without an allocation for the waits that are short: each contended acquisition walks.
type Links = SmallVec<[Link; 8]>;

/// A thread that was looked at, and the wait of the reader that it may shut out.
type Seen = (*const Record, Option<Wait>);

struct Walk {
    start: &'static Record,
    links: Links,
    seen: SmallVec<[Seen; 8]>,
}

impl Walk {
    /// Whether there is a way from `waiter` to the start. `behind` is the wait of a reader that
    /// `waiter`, a writer, may shut out: readers that do not keep that one waiting do not count.
    fn go(&mut self, waiter: &'static Record, behind: Option<Wait>) -> bool {
        let Some((wait, number)) = waiter.waiting() else { return false };
        let me = (ptr::from_ref(waiter), behind);
        let is_same = |seen: &Seen| {
            ptr::eq(seen.0, me.0) && seen.1.map(|wait| wait.access) == behind.map(|wait| wait.access)
        };
        if self.seen.iter().any(is_same) {
            return false;
        }
        self.seen.push(me);
        for record in records().filter(|record| !ptr::eq(*record, waiter)) {
            let keeps = |held: &Held| {
                let shared = held.access.is_shared() && wait.access.joins_readers();
                let is_kept = held.access.blocks(wait.access) && !shared;
                held.instance == wait.instance
                    && is_kept
                    && behind.is_none_or(|behind| held.access.blocks(behind.access))
            };
            // A thread may hold the lock several times. One time is enough.
            if let Some(held) = record.held().find(|held| keeps(held) && record.keeps(held)) {
                let link =
                    Link { waiter, number, wait, next: record, held: Some(held), is_timed: wait.timed };
                if self.follow(link, None) {
                    return true;
                }
            }
        }
        let is_timed = wait.timed || in_front(waiter, wait).any(|(_, other)| other.timed);
        in_front(waiter, wait).any(|(writer, _)| {
            let link = Link { waiter, number, wait, next: writer, held: None, is_timed };
            self.follow(link, Some(wait))
        })
    }

    fn follow(&mut self, link: Link, behind: Option<Wait>) -> bool {
        let next = link.next;
        self.links.push(link);
        let found = if ptr::eq(next, self.start) { self.fits(behind) } else { self.go(next, behind) };
        if !found {
            self.links.pop();
        }
        found
    }

    /// Whether the first link keeps waiting the reader that waits behind the start.
    fn fits(&self, behind: Option<Wait>) -> bool {
        let Some(behind) = behind else { return true };
        self.links[0].held.is_some_and(|held| held.access.blocks(behind.access))
    }
}

/// The wait of a thread for what it holds itself, if that never ends.
fn own(start: &'static Record) -> Option<Links> {
    let (wait, number) = start.waiting()?;
    let keeps = |held: &Held| {
        // A reader that asks to read is only shut out by a writer. An owner may keep its promise.
        let is_let_in = held.access.is_shared() && wait.access.joins_readers();
        held.instance == wait.instance
            && held.access.blocks(wait.access)
            && !is_let_in
            && wait.access != Access::Promise
    };
    let held = start.held().find(keeps)?;
    let link = Link { waiter: start, number, wait, next: start, held: Some(held), is_timed: wait.timed };
    (!wait.timed).then(|| Links::from_iter([link]))
}

/// The waits from `start` back to `start`.
fn walk(start: &'static Record) -> Option<Links> {
    let mut walk = Walk { start, links: Links::new(), seen: SmallVec::new() };
    walk.go(start, None).then_some(walk.links)
}

fn confirmed(first: Links) -> Option<Links> {
    let is_soft = first.iter().any(|link| link.held.is_none());
    for look in 0..if is_soft { LOOKS } else { 1 } {
        if look > 0 && cfg!(checking) {
            std::thread::sleep(APART);
        }
        // A look must not see one thread as it is and another one as it was, also on a machine
        // whose stores do not reach all threads at once.
        // Mutant: fence SeqCst -> AcqRel: threads of the models' circles have told each other more.
        // Mutant: fence SeqCst -> gone: as above.
        fence(SeqCst);
        // The numbers once more, after the locks were seen to be held.
        if !first.iter().all(is_still) || !first.iter().all(Link::waits) {
            return None;
        }
    }
    Some(first)
}

/// Whether a link is as it was.
fn is_still(link: &Link) -> bool {
    if !link.waits() {
        return false;
    }
    match link.held {
        Some(held) => link.next.held().any(|now| {
            (now.lock, now.access, now.since) == (held.lock, held.access, held.since)
                && ptr::eq(now.place, held.place)
                && link.next.keeps(&now)
        }),
        // That its wait is the same is known of its own link.
        None => link.next.waiting().is_some_and(|(wait, _)| wait.instance == link.wait.instance),
    }
}

/// The deadlock that `start` is part of.
#[cold]
pub(crate) fn deadlock(start: &'static Record) -> Option<Box<Report>> {
    fence(SeqCst); // (fence)
    // Most walks end here, at a holder that does not wait.
    walk(start).and_then(confirmed).map(|links| Box::new(report(&links)))
}

fn report(links: &[Link]) -> Report {
    let (first, last) = (&links[0], &links[links.len() - 1]);
    let mut before = last;
    let mut steps = Vec::new();
    for link in links {
        let asked = link.wait.name();
        let (held, since) = match before.held {
            Some(held) => (held.name(), held.place),
            None => (asked.clone(), link.wait.place),
        };
        steps.push(Step {
            thread: link.waiter.name(),
            held,
            since,
            held_stack: before.held.and_then(|held| stacks::of(link.waiter, held.since)),
            asked,
            at: link.wait.place,
            asked_stack: stacks::of(link.waiter, link.wait.since),
            signal: None,
        });
        before = link;
    }
    let next = links.get(1).unwrap_or(first);
    let severity = if links.iter().any(|link| link.is_timed) { Severity::Warning } else { Severity::Fault };
    Report {
        rule: if links.len() == 1 { Rule::NoRecursion } else { Rule::Deadlock },
        severity,
        lock: first.wait.name(),
        thread: first.waiter.name(),
        here: Some(first.wait.place),
        before: Some(first.held.map_or(next.wait.place, |held| held.place)),
        held: first.held.map(|held| held.access),
        held_lock: None,
        holder: Some(first.next.name()),
        steps,
        circle: Circle::OfLocks,
        notes: Vec::new(),
        signal: None,
        stack: stacks::of(first.waiter, first.wait.since),
        stack_before: first.held.and_then(|held| stacks::of(first.next, held.since)),
    }
}

/// The deadlocks of this moment, one report for each circle. A thread that waits for itself is a
/// circle of one step.
///
/// It stops no thread and changes nothing. A deadlock is also reported by the thread that closes
/// the circle, so this is for a program that has gone on from that report, by a callback.
pub fn deadlocks() -> Vec<Report> {
    // As (fence), by a thread that does not wait.
    // Mutant: fence SeqCst -> AcqRel: models have only the threads of a circle look.
    // Mutant: fence SeqCst -> gone: as above.
    fence(SeqCst);
    let mut circles: Vec<Vec<*const Record>> = Vec::new();
    let mut reports = Vec::new();
    for record in records().filter(|record| record.is_taken()) {
        let Some(links) = own(record).or_else(|| walk(record)).and_then(confirmed) else { continue };
        let mut circle: Vec<_> = links.iter().map(|link| ptr::from_ref(link.waiter)).collect();
        circle.sort_unstable();
        if !circles.contains(&circle) {
            circles.push(circle);
            reports.push(report(&links));
        }
    }
    reports
}
