//! Deadlocks that happen: a walk from thread to lock to holder.
//!
//! A thread that has to wait publishes the lock, and then walks: to the holder of that lock, to the
//! lock which that thread waits for, and so on. If the walk comes back to the thread, there is a
//! deadlock. Of the threads of a circle, the last one to publish finds it: between the publication
//! and the walk is a `fence(SeqCst)` (F). Two threads that publish at once store and then load each
//! other's words, and by (F) one of them sees both. The walk stops no thread and takes no lock.
//!
//! # No false report
//! The walk is done twice, and must find the same threads in the same waits, by their numbers. A
//! thread whose wait has the same number both times waited in between, or had just given up by its
//! deadline. It released nothing then, so all locks of the first walk were still held. A thread
//! enters a lock as held after its wait has ended, and removes it before the release. So no lock of
//! the walk was on its way from one holder to the next.

use crate::report::{Report, Rule, Severity, Step};
use crate::thread::{Held, Record, Wait, records};
use core::ptr;
use ulocks_core::sync::{Ordering::SeqCst, fence};

struct Link {
    waiter: &'static Record,
    number: u64,
    wait: Wait,
    holder: &'static Record,
    held: Held,
}

fn holder_of(lock: usize) -> Option<(&'static Record, Held)> {
    records().find_map(|record| Some((record, record.held().find(|held| held.lock == lock)?)))
}

/// The waits from `start` back to `start`.
fn walk(start: &'static Record) -> Option<Vec<Link>> {
    let mut links: Vec<Link> = Vec::new();
    let mut waiter = start;
    loop {
        let (wait, number) = waiter.waiting()?;
        let (holder, held) = holder_of(wait.lock)?;
        links.push(Link { waiter, number, wait, holder, held });
        if ptr::eq(holder, start) {
            return Some(links);
        }
        if links.iter().any(|link| ptr::eq(link.waiter, holder)) {
            // Another circle, which does not contain `start`.
            return None;
        }
        waiter = holder;
    }
}

fn confirmed(start: &'static Record) -> Option<Vec<Link>> {
    let first = walk(start)?;
    fence(SeqCst);
    let second = walk(start)?;
    let key = |link: &Link| {
        (ptr::from_ref(link.waiter), link.number, link.wait.lock, ptr::from_ref(link.holder), link.held.lock)
    };
    first.iter().map(key).eq(second.iter().map(key)).then_some(first)
}

/// The deadlock that `start` is part of.
#[cold]
pub(crate) fn deadlock(start: &'static Record) -> Option<Box<Report>> {
    fence(SeqCst); // (F)
    // Most walks end here, at a holder that does not wait.
    let links = confirmed(start)?;
    let last = links.last()?;
    let mut held = last.held;
    let mut steps = Vec::new();
    for link in &links {
        steps.push(Step {
            thread: link.waiter.name(),
            held: held.class.lock_name(held.lock, held.subclass),
            since: held.place,
            asked: link.wait.class.lock_name(link.wait.lock, link.wait.subclass),
            at: link.wait.place,
        });
        held = link.held;
    }
    let first = &links[0];
    let severity = if links.iter().any(|link| link.wait.timed) { Severity::Warning } else { Severity::Fault };
    Some(Box::new(Report {
        rule: Rule::Deadlock,
        severity,
        lock: first.wait.class.lock_name(first.wait.lock, first.wait.subclass),
        thread: start.name(),
        here: Some(first.wait.place),
        before: Some(first.held.place),
        holder: Some(first.holder.name()),
        steps,
    }))
}

/// The deadlocks of this moment, one report for each circle.
///
/// It stops no thread and changes nothing. A deadlock is also reported by the thread that closes
/// the circle, so this is for a program that has gone on from that report, by a callback.
pub fn deadlocks() -> Vec<Report> {
    let all = records().filter(|record| record.is_taken());
    let circles = all.filter_map(|record| {
        let links = confirmed(record)?;
        let least = links.iter().map(|link| ptr::from_ref(link.waiter)).min()?;
        ptr::eq(least, record).then(|| deadlock(record)).flatten()
    });
    circles.map(|report| *report).collect()
}
