//! `psrw`: the runs of 2008 with today's reader-writer locks, and two properties of the sifting one.
//!
//! *Behind*: what a reader at the top waits, while readers at the bottom hold for longer and longer
//! and a writer comes now and then. *Beside*: the same beside more and more writers.

use super::{By, Column, Row, Wish, no_claims};
use crate::engine::cell::{Cell, Job};
use crate::engine::record::{Mode, Record};
use crate::report::units;
use crate::subjects::rwlocks::{Entry, Rank};
use crate::workloads::Scenario;
use crate::workloads::readers::{Module, Probe, Run, Test};

const fn column(figure: &'static str) -> Column {
    Column { figure, by: By::Nothing }
}

pub const ROW: Row = Row {
    name: "psrw",
    about: "reader-writer locks: writers, readers by class, and readers in signal handlers",
    mail: Some("Desnoyers 2008"),
    share_s: (75, 20),
    jobs,
    drop_first: &["usync-rw", "pthread-rw-writer-masked", "pthread-rw-writer", "pthread-rw-masked"],
    columns: &[
        column("urgent/wait-p99.9"),
        column("urgent/rate"),
        column("bulk/wait-p99.9"),
        column("bulk/rate"),
        column("writer/wait-mean"),
        column("writer/rate"),
        column("writer/masked-max"),
        column("writer/held-off-max"),
        column("handler/wait-p99.9"),
        column("handler/delivery-max"),
        column("pair"),
        column("lock"),
        column("unlock"),
    ],
    claims: no_claims,
    sentences,
    notes: "A hundred variables under the lock are equal whenever no thread writes, and every reader looks. \
            Peers know no classes: their urgent readers are like all others, and where handlers read them \
            each thread blocks the signals for as long as it wants or has the lock (`masked`).",
};

/// Locks that are not read in handlers, those that are and say how long they mask, and those of
/// which readers at the top are looked at: other peers are of one kind with one of them.
const PLAIN: &[&str] =
    &["psrw", "psrw-distributed", "std-rw", "parking_lot-rw", "pthread-rw", "pthread-rw-writer", "usync-rw"];
const MASKS: &[&str] = &[
    "psrw-timed",
    "std-rw-masked",
    "parking_lot-rw-masked",
    "pthread-rw-masked",
    "pthread-rw-writer-masked",
];
const LOOKED_AT: &[&str] = &["psrw", "std-rw", "parking_lot-rw", "pthread-rw"];
const LOOKED_AT_IN_HANDLERS: &[&str] = &["psrw-handler", "parking_lot-rw-masked"];
/// What a quick look leaves out.
const NOT_QUICK: [&str; 6] = [
    "psrw-distributed",
    "pthread-rw-writer",
    "usync-rw",
    "std-rw-masked",
    "pthread-rw-masked",
    "pthread-rw-writer-masked",
];

const ALONE: &str = "uncontended";
const READERS: &str = "readers, no writer";
const CONTENTION: &str = "high contention";
const BEHIND: &str = "a writer behind a reader of 3 ms";
const URGENT_BEHIND: &str = "an urgent reader behind readers that hold";
const HANDLER_BEHIND: &str = "a handler behind readers that hold";
const BESIDE: &str = "an urgent reader beside writers that queue";
/// How long readers of class `Bulk` hold, in microseconds, and how many writers queue; the first
/// and the last are the quick ones.
const HOLDS_US: [u32; 5] = [1, 10, 100, 1000, 3000];
const WRITERS: [u32; 4] = [1, 2, 4, 8];

fn jobs(wish: &Wish) -> Vec<Job> {
    let full = wish.full || wish.subjects.is_some();
    let mut jobs = Vec::new();
    let mut add = |section: &str, label: String, x: Option<u32>, run: Run, subjects: &[&str]| {
        let names: Vec<&str> = match &wish.subjects {
            Some(names) => names.iter().map(String::as_str).collect(),
            None if wish.mode == Mode::Full => subjects.to_vec(),
            None => subjects.iter().copied().filter(|name| !NOT_QUICK.contains(name)).collect(),
        };
        let can = |name: &&str| Entry::find(name).is_ok_and(|lock| run.is_for(lock));
        let subjects: Vec<String> = names.into_iter().filter(can).map(String::from).collect();
        let (section, x, scenario) = (section.into(), x.map(f64::from), Scenario::Readers(run));
        if !subjects.is_empty() {
            jobs.push(Job { cell: Cell { section, label, x, scenario }, subjects });
        }
    };
    let family = &PLAIN[..2];
    add(ALONE, "write".into(), None, Run::new(Test::Writer), PLAIN);
    if full {
        add(ALONE, "write, if at once".into(), None, Run::new(Test::TryWriter), PLAIN);
    }
    add(ALONE, "read".into(), None, Run::new(Test::Reader(Rank::Bulk)), PLAIN);
    add(ALONE, "urgent read".into(), None, Run::new(Test::Reader(Rank::Urgent)), family);
    add(ALONE, "nested read".into(), None, Run::new(Test::Reader(Rank::Nested)), family);
    add(READERS, "2 bulk, 2 urgent".into(), None, Run::new(Test::Readers), PLAIN);
    let all = "2 writers, 1 tries; 2 bulk, 2 urgent, 1 tries";
    add(CONTENTION, all.into(), None, Run::new(Test::Contention), PLAIN);
    for (every_us, often) in [(100, "100 us"), (100_000, "100 ms")] {
        let module = Module { interrupt_delay: every_us, ..Module::DEFAULT };
        if full || every_us == 100 {
            let section = format!("{CONTENTION}, a handler every {often}");
            add(&section, all.into(), None, Run { test: Test::Contention, module }, MASKS);
        }
    }
    add(BEHIND, "a handler every 100 us".into(), None, Run::new(Test::Behind), MASKS);
    let ends = |at: usize, len: usize| at == 0 || at + 1 == len;
    for (section, probe, subjects) in
        [(URGENT_BEHIND, Probe::Urgent, LOOKED_AT), (HANDLER_BEHIND, Probe::Handler, LOOKED_AT_IN_HANDLERS)]
    {
        let all = full || wish.mode == Mode::Full && probe == Probe::Urgent;
        for (_, hold_us) in HOLDS_US.into_iter().enumerate().filter(|at| all || ends(at.0, HOLDS_US.len())) {
            let run = Run::new(Test::Invariance(hold_us, probe));
            add(section, format!("{hold_us} us"), Some(hold_us), run, subjects);
        }
    }
    for (section, probe, subjects) in [
        (BESIDE, Probe::Urgent, &["psrw", "std-rw", "pthread-rw"][..]),
        ("a handler beside writers that queue", Probe::Handler, LOOKED_AT_IN_HANDLERS),
    ] {
        let some = |at: &(usize, u32)| full || probe == Probe::Urgent && ends(at.0, WRITERS.len());
        for (_, writers) in WRITERS.into_iter().enumerate().filter(some) {
            let label = if writers == 1 { "1 writer".into() } else { format!("{writers} writers") };
            let run = Run::new(Test::Queue(writers, probe));
            add(section, label, Some(writers), run, subjects);
        }
    }
    jobs
}

/// The writer, the readers by class, the mask, and the lock when nobody else wants it: ours by the
/// best peer of the cell.
fn sentences(record: &Record) -> Vec<String> {
    let first = |section: &str| record.cells_of(section).next();
    let last = |section: &str| record.cells_of(section).last();
    let by_best = |cell: usize, subject: &str, figure: &str| {
        let peer = record.best_peer(cell, figure)?;
        let ratio = record.ratio((cell, subject), (cell, peer), figure)?;
        Some((units::ratio(Some(ratio)), peer))
    };
    let time = |cell: usize, subject: &str, figure: &str| {
        Some(units::time(record.measured(cell, subject, figure)?.value))
    };
    let growth = |section: &str, subject: &str, figure: &str| {
        Some(units::ratio(record.ratio((last(section)?, subject), (first(section)?, subject), figure)))
    };
    let writer = || {
        let (ratio, peer) = by_best(first(CONTENTION)?, "psrw", "writer/rate")?;
        Some(format!("high contention: {ratio} of the writes of {peer}, which writes most of the peers."))
    };
    let bulk = || {
        let (ratio, peer) = by_best(first(READERS)?, "psrw", "bulk/rate")?;
        let spread = by_best(first(READERS)?, "psrw-distributed", "bulk/rate");
        let spread = spread.map_or(String::new(), |(ratio, _)| format!(", psrw-distributed {ratio}"));
        Some(format!("readers alone: {ratio} of the bulk reads of {peer}{spread}."))
    };
    let urgent = || {
        let (cell, figure) = (last(URGENT_BEHIND)?, "urgent/wait-p99.9");
        let peer = record.best_peer(cell, figure)?;
        let (mine, other) = (time(cell, "psrw", figure)?, time(cell, peer, figure)?);
        Some(format!("an urgent reader behind readers of 3 ms waits {mine} (p99.9); {peer} {other}."))
    };
    let invariant = || {
        let behind = growth(URGENT_BEHIND, "psrw", "urgent/wait-p99.9")?;
        let beside = growth(BESIDE, "psrw", "urgent/wait-p99").unwrap_or("-".into());
        Some(format!("its wait by that behind readers of 1 us: {behind}; by 8 writers for 1: {beside}."))
    };
    let masked = || {
        let (cell, figure) = (last(BEHIND)?, "writer/masked-max");
        let peer = record.best_peer(cell, figure)?;
        let (mine, other) = (time(cell, "psrw-timed", figure)?, time(cell, peer, figure)?);
        Some(format!("a writer behind a reader of 3 ms keeps signals off for {mine}; {peer} {other}."))
    };
    let alone = || {
        let (read, best) = by_best(record.cell(ALONE, "read")?, "psrw", "pair")?;
        let (write, other) = by_best(record.cell(ALONE, "write")?, "psrw", "pair")?;
        Some(format!("uncontended: a read takes {read} of {best}'s, a write {write} of {other}'s."))
    };
    let all = [writer(), bulk(), urgent(), invariant(), masked(), alone()];
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
