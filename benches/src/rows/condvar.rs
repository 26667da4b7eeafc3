//! `condvar`: bounded buffers and `notify_all` of a crowd, over every condition variable with its
//! mutex.

use super::{Row, Wish, by_peer, named, no_claims, of, standing, standings};
use crate::engine::cell::{Cell, Job};
use crate::engine::record::{Mode, Record};
use crate::report::units;
use crate::subjects::condvars::Entry;
use crate::workloads::Scenario;
use crate::workloads::condvars::{Load, Notify, Place, Run};

pub const ROW: Row = Row {
    name: "condvar",
    about: "condition variables with their mutexes: bounded buffers, and notify_all",
    share_s: (80, 17),
    jobs,
    drop_first: &["asym", "byte", "pi", "usync"],
    columns: &[of("rate"), by_peer("rate"), by_peer("cpu"), of("switches"), of("cov")],
    claims: no_claims,
    sentences,
    notes: "An operation is an item taken out, or a waiter that came back. COV is of the consumers. What two \
            threads do depends on nothing as much as on whether they share a CPU, so both are run.",
};

/// Producers and consumers, and what a buffer holds at most.
const CREWS: [(u32, u32); 4] = [(1, 1), (4, 4), (2, 2), (1, 8)];
const CAPACITIES: [u32; 3] = [1, 2, 64];
const WAITERS: u32 = 100;

fn jobs(wish: &Wish) -> Vec<Job> {
    let full = wish.mode == Mode::Full;
    let crews: Vec<(u32, u32)> = match &wish.threads {
        Some(threads) => threads.iter().map(|&n| ((n / 2).max(1), n.div_ceil(2))).collect(),
        None => CREWS[..if full { 4 } else { 2 }].to_vec(),
    };
    let orders = [(Notify::After, "after"), (Notify::Under, "under")];
    let mut jobs = Vec::new();
    for &(producers, consumers) in &crews {
        let places: &[_] = match producers + consumers {
            2 => &[(Place::Apart, ", a CPU each"), (Place::Together, ", on one CPU")],
            _ => &[(Place::Free, "")],
        };
        for &(place, words) in places {
            for (notify, when) in &orders[..if full { 2 } else { 1 }] {
                let section = format!("{producers} + {consumers}{words}, notified {when} the lock");
                // Under the lock in one size, unless there is time.
                let all = wish.full || full && *notify == Notify::After;
                for &capacity in if all { &CAPACITIES[..] } else { &CAPACITIES[1..2] } {
                    let load = Load::Buffer { producers, consumers, capacity };
                    let label = format!("room for {capacity}");
                    let run = Run { load, notify: *notify, place };
                    jobs.extend(job(wish, &section, label, Some(capacity), run));
                }
            }
        }
    }
    for (notify, when) in orders.into_iter().take(if full { 2 } else { 1 }) {
        let waiters = if wish.mode == Mode::Smoke { 5 } else { WAITERS };
        let run = Run { load: Load::Crowd(waiters), notify, place: Place::Free };
        let section = format!("notify_all of {waiters}");
        jobs.extend(job(wish, &section, format!("notified {when} the lock"), None, run));
    }
    jobs
}

/// What people use today always takes part.
const PEERS: [&str; 2] = ["std", "parking_lot"];

fn job(wish: &Wish, section: &str, label: String, x: Option<u32>, run: Run) -> Option<Job> {
    let subjects = named(wish, Entry::all().iter().map(|entry| entry.name), &PEERS)?;
    let scenario = Scenario::Condvars(run);
    Some(Job { cell: Cell { section: section.into(), label, x: x.map(f64::from), scenario }, subjects })
}

fn sentences(record: &Record) -> Vec<String> {
    let mut sentences = Vec::new();
    for (name, all) in standings(record) {
        let count = |way| all.iter().filter(|all| standing(&all.2) == way).count();
        let of = format!("{} of {} cells, behind in {}", count("ahead"), all.len(), count("behind"));
        sentences.push(format!("{name}: ahead of the best peer in {of}."));
        for (one, way) in [(all.last(), "ahead"), (all.first(), "behind")] {
            let Some(&(at, peer, ratio)) = one.filter(|one| standing(&one.2) == way) else { continue };
            let place = record.cells[at].section.split(", notified").next().unwrap_or_default();
            let ratio = units::ratio(Some(ratio));
            sentences.push(format!("{name} is furthest {way} with {place}: {ratio} of {peer}'s rate."));
        }
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;

    /// BENCHMARKS.md has all of them in its table.
    #[test]
    fn what_people_use_today_takes_part() {
        for job in jobs(&Wish { cpus: 2, ..Wish::default() }) {
            for name in ["std", "parking_lot", "usync", "pthread"] {
                assert!(job.subjects.iter().any(|subject| subject == name), "{name}: {job:?}");
            }
        }
    }
}
