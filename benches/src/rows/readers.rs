//! `readers`: reader-writer locks over thread counts and shares of reads, with sections of 100 ns
//! and nothing outside. `psrw` has the lock with classes, signal handlers, and the comparison of
//! 2008.

use super::{Row, Wish, by_peer, cell, chosen, doubled, no_claims, of, scores, turns};
use crate::engine::cell::{Cell, Job};
use crate::engine::record::{Mode, Record};
use crate::subjects::locks::Entry;
use crate::workloads::turns::Turns;
use crate::workloads::{Times, Workers};

pub const ROW: Row = Row {
    name: "readers",
    about: "reader-writer locks over threads and shares of reads, crossbeam's sharded one beside them",
    share_s: (30, 0),
    jobs,
    drop_first: &["psrw-central", "usync-rw", "pthread-rw", "arc-swap"],
    columns: &[of("rate"), by_peer("rate"), of("cpu"), of("starved"), of("cov")],
    claims: no_claims,
    sentences,
    notes: "`psrw-central` is `psrw` without the slots that it borrows while many threads read. \
            `arc-swap` is no lock: its readers see the old value beside a writer.",
};

const SUBJECTS: [&str; 8] =
    ["arc-swap", "std-rw", "parking_lot-rw", "usync-rw", "pthread-rw", "sharded-rw", "psrw", "psrw-central"];

/// Reads, in a hundred operations.
const SHARES: [u8; 4] = [100, 99, 90, 50];

fn jobs(wish: &Wish) -> Vec<Job> {
    // A quick look has `psrw`.
    if wish.mode == Mode::Quick && wish.threads.is_none() {
        return Vec::new();
    }
    let counts = match &wish.threads {
        Some(threads) => threads.clone(),
        None if wish.mode == Mode::Smoke => vec![2],
        None => doubled(wish.cpus, &[1, 4]),
    };
    let times = wish.times.unwrap_or(Times { hold_ns: 100, think_ns: 0 });
    let shares = if wish.mode == Mode::Smoke { &SHARES[1..2] } else { &SHARES[..] };
    let job = |(reads, n)| {
        let turns = Turns { read_share: reads, ..turns(times, Workers::Threads(n)) };
        let cell = cell(turns);
        let section = format!("{reads} % reads, {}", cell.section);
        let mut subjects = chosen(wish, &SUBJECTS);
        // What --locks names may have no mode for readers.
        subjects.retain(|name| Entry::find(name).is_ok_and(|lock| lock.shared_mode));
        Job { cell: Cell { section, ..cell }, subjects }
    };
    shares.iter().flat_map(|&reads| counts.iter().map(move |&n| (reads, n))).map(job).collect()
}

fn sentences(record: &Record) -> Vec<String> {
    scores("readers", record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_without_a_mode_for_readers_takes_no_part() {
        let named = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let wish = |names| Wish { cpus: 2, subjects: Some(named(names)), ..Wish::default() };
        assert!(jobs(&wish(&["unfair", "std-rw"])).iter().all(|job| job.subjects == ["std-rw"]));
        let usual = jobs(&Wish { cpus: 2, ..Wish::default() });
        assert!(usual.iter().all(|job| job.subjects == SUBJECTS));
    }
}
