//! `psrw`: the runs of 2008 with today's reader-writer locks, and two properties of the sifting
//! one.
//!
//! *Behind*: what a reader at the top waits, while readers at the bottom hold for longer and longer
//! and a writer comes now and then. *Beside*: the same beside more and more writers.

use super::claims::{Bound, Claim, place};
use super::{Row, Wish, by_best, no_claims, of};
use crate::engine::cell::{Cell, Job};
use crate::engine::record::{Mode, Record};
use crate::report::units;
use crate::subjects::rwlocks::{Entry, Rank};
use crate::workloads::Scenario;
use crate::workloads::readers::{Module, Probe, Run, Test};

pub const ROW: Row = Row {
    name: "psrw",
    about: "reader-writer locks: writers, readers by class, and readers in signal handlers",
    share_s: (75, 20),
    jobs,
    drop_first: &["usync-rw", "pthread-rw-masked"],
    columns: &[
        of("urgent/wait-p99.9"),
        of("urgent/rate"),
        of("bulk/rate"),
        of("writer/wait-mean"),
        of("writer/rate"),
        of("writer/masked-max"),
        of("handler/wait-p99.9"),
        of("pair"),
    ],
    claims: no_claims,
    sentences,
    notes: "High contention: 2 writers, one that tries, 2 bulk and 2 urgent readers, one that tries. \
            A hundred variables under the lock are equal whenever no thread writes, and every reader looks. \
            Peers know no classes: their urgent readers are like all others, and where handlers read them \
            each thread blocks the signals for as long as it wants or has the lock (`masked`).",
};

/// Locks that are not read in handlers, those that are and say how long they mask, and those of
/// which readers at the top are looked at: other peers are of one kind with one of them.
const PLAIN: &[&str] = &["psrw", "std-rw", "parking_lot-rw", "pthread-rw", "psrw-central", "usync-rw"];
const MASKS: &[&str] = &["psrw-timed", "parking_lot-rw-masked", "std-rw-masked", "pthread-rw-masked"];
const LOOKED_AT: &[&str] = &["psrw", "std-rw", "parking_lot-rw", "pthread-rw"];
const LOOKED_AT_IN_HANDLERS: &[&str] = &["psrw-handler", "parking_lot-rw-masked"];

const ALONE: &str = "uncontended";
const READERS: &str = "readers, no writer";
const CONTENTION: &str = "high contention";
const BEHIND: &str = "a writer behind a reader of 3 ms";
const URGENT_BEHIND: &str = "an urgent reader behind readers that hold";
const HANDLER_BEHIND: &str = "a handler behind readers that hold";
const BESIDE: &str = "an urgent reader beside writers that queue";
/// How long readers of class `Bulk` hold, in microseconds, and how many writers queue.
const HOLDS_US: [u32; 5] = [1, 10, 100, 1000, 3000];
const WRITERS: [u32; 4] = [1, 2, 4, 8];

/// When a cell is run: also for a quick look, in a usual run, or when all is asked for.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum When {
    Quick,
    Usual,
    Full,
}

/// Section, label, place on the axis, what is run, and what of.
type Place = (When, &'static str, String, Option<u32>, Run, &'static [&'static str]);

fn places() -> Vec<Place> {
    use When::{Full, Quick, Usual};
    let alone =
        |when, label: &str, test, subjects| (when, ALONE, label.to_owned(), None, Run::new(test), subjects);
    let struck = |every_us| {
        let module = Module { handler_every_us: every_us, ..Module::DEFAULT };
        Run { test: Test::Contention, module }
    };
    let family = &["psrw", "psrw-central"];
    let threads = || "8 threads".to_owned();
    let mut all: Vec<Place> = vec![
        alone(Quick, "write", Test::Writer, PLAIN),
        alone(Full, "write, if at once", Test::TryWriter, PLAIN),
        alone(Quick, "read", Test::Reader(Rank::Bulk), PLAIN),
        alone(Quick, "urgent read", Test::Reader(Rank::Urgent), family),
        alone(Quick, "nested read", Test::Reader(Rank::Nested), family),
        (Quick, READERS, "2 bulk, 2 urgent".into(), None, Run::new(Test::Readers), PLAIN),
        (Quick, CONTENTION, threads(), None, Run::new(Test::Contention), PLAIN),
        (Quick, "high contention, a handler every 100 us", threads(), None, struck(100), MASKS),
        (Full, "high contention, a handler every 100 ms", threads(), None, struck(100_000), MASKS),
        (Quick, BEHIND, "a handler every 100 us".into(), None, Run::new(Test::Behind), MASKS),
    ];
    for hold_us in HOLDS_US {
        let (label, x) = (format!("{hold_us} us"), Some(hold_us));
        let run = |probe| Run::new(Test::Invariance { hold_us, probe });
        let ends = hold_us == 1 || hold_us == 3000;
        let [urgent, handler] = if ends { [Quick; 2] } else { [Usual, Full] };
        all.push((urgent, URGENT_BEHIND, label.clone(), x, run(Probe::Urgent), LOOKED_AT));
        all.push((handler, HANDLER_BEHIND, label, x, run(Probe::Handler), LOOKED_AT_IN_HANDLERS));
    }
    for writers in WRITERS {
        let label = format!("{writers} writer{}", if writers == 1 { "" } else { "s" });
        let run = |probe| Run::new(Test::Queue { writers, probe });
        let urgent = if writers == 1 || writers == 8 { Quick } else { Full };
        let subjects = &["psrw", "std-rw", "pthread-rw"];
        all.push((urgent, BESIDE, label.clone(), Some(writers), run(Probe::Urgent), subjects));
        let (section, run) = ("a handler beside writers that queue", run(Probe::Handler));
        all.push((Full, section, label, Some(writers), run, LOOKED_AT_IN_HANDLERS));
    }
    all
}

/// A quick look is at the first locks of the lists, those of `LOOKED_AT` and a peer that masks.
fn jobs(wish: &Wish) -> Vec<Job> {
    let when = match wish.mode {
        _ if wish.full || wish.subjects.is_some() => When::Full,
        Mode::Full => When::Usual,
        _ => When::Quick,
    };
    let job = |(_, section, label, x, run, subjects): Place| {
        let few = if subjects == MASKS { 2 } else { LOOKED_AT.len() };
        let few = if when == When::Quick { few.min(subjects.len()) } else { subjects.len() };
        let usual = || subjects[..few].iter().map(|&name| name.to_owned()).collect();
        let mut subjects: Vec<String> = wish.subjects.clone().unwrap_or_else(usual);
        subjects.retain(|name| Entry::find(name).is_ok_and(|lock| run.is_for(lock)));
        let (section, x, scenario) = (section.to_owned(), x.map(f64::from), Scenario::Readers(run));
        Job { cell: Cell { section, label, x, scenario }, subjects }
    };
    let mut places = places();
    places.retain(|place| place.0 <= when);
    // Sections stay together.
    let first: Vec<&str> = places.iter().map(|place| place.1).collect();
    places.sort_by_key(|place| first.iter().position(|section| *section == place.1));
    places.into_iter().map(job).filter(|job| !job.subjects.is_empty()).collect()
}

/// What is promised of `PsRwLock`: its readers at the top wait neither for those at the bottom nor
/// for all the writers of a queue, and signals are kept off for as long as handlers are shut out.
pub(super) fn promises() -> Vec<Claim> {
    let at = |subject, test| place(subject, "readers and writers", Scenario::Readers(Run::new(test)));
    let growth = |subject, tests: [Test; 2], figure, bound, what: &str| {
        let [few, many] = tests.map(|test| at(subject, test));
        Claim::versus(many, vec![few], figure, Bound::AtMost(bound), what.into())
    };
    let behind = |probe| [1, 3000].map(|hold_us| Test::Invariance { hold_us, probe });
    let beside = [1, 8].map(|writers| Test::Queue { writers, probe: Probe::Urgent });
    let [mine, other] = ["psrw", "pthread-rw"].map(|subject| at(subject, Test::Contention));
    let maskers = MASKS[1..].iter().map(|name| at(name, Test::Behind)).collect();
    let [wait, least, masked] = ["urgent/wait-p99.9", "writer/rate", "writer/masked-max"];
    let urgent = "Urgent: p99.9 wait behind Bulk readers of 3 ms by that behind readers of 1 us";
    let handler = "Handler: p99.9 wait behind Bulk readers of 3 ms by that behind readers of 1 us";
    let queued = "Urgent: p99 wait beside 8 queued writers by that beside one";
    let writes = "high contention: writes by those of pthread-rw";
    let behind_one = "a writer behind a reader of 3 ms: longest masked time by the best peer that masks";
    vec![
        growth("psrw", behind(Probe::Urgent), wait, 3.0, urgent).quick(),
        growth("psrw-handler", behind(Probe::Handler), "handler/wait-p99.9", 3.0, handler),
        growth("psrw", beside, "urgent/wait-p99", 1.5, queued),
        Claim::versus(mine, vec![other], least, Bound::AtLeast(3.0), writes.into()),
        Claim::versus(
            at("psrw-timed", Test::Behind),
            maskers,
            masked,
            Bound::AtMost(0.02),
            behind_one.into(),
        ),
    ]
}

/// The writer, the readers by class, the mask, and the lock when nobody else wants it: ours by the
/// best peer of the cell.
fn sentences(record: &Record) -> Vec<String> {
    let first = |section: &str| record.cells_of(section).next();
    let last = |section: &str| record.cells_of(section).last();
    let by_best = |cell, subject, figure| {
        by_best(record, cell, subject, figure).map(|(ratio, peer)| (units::ratio(Some(ratio)), peer))
    };
    // A time, that of the best peer, and which that is.
    let times = |cell, subject, figure| {
        let peer = record.best_peer(cell, figure)?;
        let time = |name| record.measured(cell, name, figure).map(|time| units::time(time.value));
        Some((time(subject)?, format!("{peer} {}", time(peer)?)))
    };
    let writer = || {
        let (ratio, peer) = by_best(first(CONTENTION)?, "psrw", "writer/rate")?;
        Some(format!("high contention: {ratio} of the writes of {peer}, the best peer."))
    };
    let bulk = || {
        let (ratio, peer) = by_best(first(READERS)?, "psrw", "bulk/rate")?;
        let central = by_best(first(READERS)?, "psrw-central", "bulk/rate");
        let central = central.map_or(String::new(), |(ratio, _)| format!("; in the state alone {ratio}"));
        Some(format!("readers alone: {ratio} of {peer}'s reads{central}."))
    };
    let urgent = || {
        let (mine, other) = times(last(URGENT_BEHIND)?, "psrw", "urgent/wait-p99.9")?;
        Some(format!("an urgent reader behind readers of 3 ms waits {mine} (p99.9); {other}."))
    };
    let masked = || {
        let (mine, other) = times(last(BEHIND)?, "psrw-timed", "writer/masked-max")?;
        Some(format!("a writer behind a reader of 3 ms masks for {mine}; {other}."))
    };
    let alone = || {
        let (read, best) = by_best(record.cell(ALONE, "read")?, "psrw", "pair")?;
        let (write, other) = by_best(record.cell(ALONE, "write")?, "psrw", "pair")?;
        Some(format!("uncontended: read {read} of {best}'s, write {write} of {other}'s."))
    };
    let all = [writer(), bulk(), urgent(), masked(), alone()];
    all.into_iter().flatten().map(|sentence| format!("psrw: {sentence}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(mode: Mode, full: bool) -> Wish {
        Wish { cpus: 2, mode, full, ..Wish::default() }
    }

    #[test]
    fn every_lock_has_every_run_that_it_can_if_all_is_asked_for() {
        let all: Vec<String> = Entry::all().iter().map(|lock| lock.name.to_owned()).collect();
        let asked = Wish { subjects: Some(all), ..wish(Mode::Quick, false) };
        for Job { cell, subjects } in jobs(&asked) {
            let Scenario::Readers(run) = cell.scenario else { panic!("{cell:?}") };
            let can: Vec<&str> =
                Entry::all().iter().filter(|lock| run.is_for(lock)).map(|lock| lock.name).collect();
            assert_eq!(subjects, can, "{cell:?}");
        }
        let trials = |wish: &Wish| jobs(wish).iter().map(|job| job.subjects.len()).sum::<usize>();
        let [quick, usual, full] =
            [(Mode::Quick, false), (Mode::Full, false), (Mode::Full, true)].map(|(mode, full)| {
                let wish = wish(mode, full);
                assert!(jobs(&wish).iter().any(|job| job.subjects.contains(&"psrw".into())));
                trials(&wish)
            });
        assert!(quick < 45 && quick < usual && usual < 75 && usual < full, "{quick} {usual} {full}");
    }
}
