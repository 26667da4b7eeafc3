//! The tables of the mails: what each measured, and the same figure of today.
//!
//! A rate of then and one of now do not compare, so each row is a ratio of two locks.

use super::Evidence;
use crate::programs::condvar::Condvar;
use crate::programs::convoy::{self, Convoy, seed};
use crate::programs::harness::RecordOf;
use crate::programs::promises::Promises;
use crate::programs::psrw::{self, Psrw};
use crate::programs::semaphores::sembench::Sembench;
use crate::programs::semaphores::semscale::Semscale;
use crate::programs::shared::Shared;
use crate::programs::test_mutex::{self, Count};
use crate::programs::tofutex::{self, Section, Times};
use crate::programs::turns;
use crate::report::{Charts, units};
use crate::subjects::semaphores::{FUTEX, KERNEL, SEMARRAY};
use crate::workloads::Workload;
use crate::workloads::readers::{Rank, Run};
use crate::workloads::semaphores::{self, Order};

/// A row: what, then, today.
pub(super) type Line = [String; 3];

/// Today's figure, if there is a record that has it.
fn line(what: impl Into<String>, then: impl Into<String>, today: Option<String>) -> Line {
    [what.into(), then.into(), today.unwrap_or_else(|| "not run".into())]
}

impl Evidence for Promises {}
impl Evidence for Semscale {}
impl Evidence for Condvar {}
impl Evidence for Shared {}

/// Franke's.
impl Evidence for Convoy {
    fn beside(record: Option<&RecordOf<Self>>) -> Vec<Line> {
        const LOCKS: [(&str, seed::Letter, &str); 3] = [
            ("calock-0", seed::Letter('c', 0), "calock without spinning"),
            ("calock", seed::Letter('C', 0), "calock that spins"),
            (convoy::SEMAPHORE, seed::USEMA, "fair semaphore"),
        ];
        const CHILDREN: [u32; 3] = [2, 100, 1000];
        let workload = Workload { hold_ns: 1_000, non_hold_ns: 9_000 };
        let rows = CHILDREN.iter().flat_map(|&children| LOCKS.iter().map(move |lock| (children, lock)));
        rows.filter_map(|(children, &(lock, letter, name))| {
            let then = seed::ratio(letter, seed::SYSV, workload, children)?;
            let row = record.and_then(|record| {
                let same = |row: &&convoy::Row| {
                    (row.lock.as_str(), row.workload, row.children) == (lock, workload, children)
                };
                record.rows.iter().find(same)
            });
            let today = row.and_then(|row| Some(row.now.as_ref()?.by_sysv.as_ref()?.ratio()));
            let what = format!("(1, 9) us, {children} processes: loops of a {name} by System V's");
            Some(line(what, units::fixed(then), today))
        })
        .collect()
    }
}

/// Desnoyers'. His figures are cycles to lock and to unlock, of his lock and of the kernel's.
impl Evidence for Psrw {
    fn beside(record: Option<&RecordOf<Self>>) -> Vec<Line> {
        let by = |of: &dyn Fn(&psrw::Row) -> Option<f64>, run: Run| {
            let find = |lock| record?.rows.iter().find(|row| row.run == run && row.lock == lock);
            Some(units::digits(of(find("psrw")?)? / of(find("std-rw")?)?))
        };
        let pair = |row: &psrw::Row| Some(row.batch?.pair.0);
        let delay = |names: &'static [&str]| {
            move |row: &psrw::Row| {
                let roles = row.roles.iter().filter(|role| names.contains(&role.name.as_str()));
                let means: Vec<f64> = roles.filter_map(|role| Some(role.lock?.mean)).collect();
                (!means.is_empty()).then(|| means.iter().sum::<f64>() / means.len() as f64)
            }
        };
        let row = |what: &str, then: f64, today| line(what, units::digits(then), today);
        vec![
            row(
                "one writer alone: lock and unlock, by the usual lock's",
                (33.0 + 30.0) / (40.0 + 40.0),
                by(&pair, Run::Writer),
            ),
            row(
                "one reader alone: the same",
                (30.0 + 19.0) / (39.0 + 42.0),
                by(&pair, Run::Reader(Rank::Bulk)),
            ),
            row(
                "four readers, no writer: mean time to lock, by the usual lock's",
                (425.0 + 433.0 + 438.0 + 435.0) / (273.0 + 242.0 + 250.0 + 234.0),
                by(&delay(&["bulk", "urgent"]), Run::Readers),
            ),
            row(
                "busy readers and writers: mean time of a writer to lock, by the usual lock's",
                // Of the usual lock's two writers, one wrote 222,797 times and the other 6,845.
                f64::midpoint(14_021.0, 13_179.0)
                    / ((336_611.0 * 222_797.0 + 17_271_138.0 * 6_845.0) / (222_797.0 + 6_845.0)),
                by(&delay(&["writer"]), Run::Contention(None)),
            ),
        ]
    }

    fn charts(record: &RecordOf<Self>) -> Option<Charts> {
        psrw::plots(record)
    }
}

/// Mason's.
impl Evidence for Sembench {
    fn beside(record: Option<&RecordOf<Self>>) -> Vec<Line> {
        let by = |name, peer| {
            let row = record?.rows.iter().find(|row| {
                row.subject == name && matches!(row.run, semaphores::Run::Wakes { order: Order::Fifo, .. })
            })?;
            Some(row.by(peer)?.ratio())
        };
        vec![
            line("cycles of System V's by those of futexes", "1, and 2 with his patch", by(KERNEL, FUTEX)),
            line("cycles of SemArray by those of futexes", "no such lock", by(SEMARRAY, FUTEX)),
            line("cycles of SemArray by System V's", "no such lock", by(SEMARRAY, KERNEL)),
        ]
    }
}

/// Molnar's.
pub(super) fn test_mutex(record: Option<&test_mutex::Record>) -> Vec<Line> {
    type Column = (&'static str, fn(&Count) -> f64, fn(f64, f64) -> f64);
    const COLUMNS: [Column; 3] = [
        ("loops a second", Count::per_s, |loops, _| loops),
        ("CPU use", Count::cpu, |_, cpu| cpu),
        ("loops of a CPU second", Count::per_cpu_s, |loops, cpu| loops / cpu),
    ];
    let row = |(name, now, then): Column| {
        let before = test_mutex::THEN.map(|(_, loops, cpu)| units::digits(then(loops, cpu)));
        let today = record.and_then(|record| test_mutex::ratio(record, "throughput", "semaphore", now));
        let what = format!("files of 16 tasks: {name} with mutexes by those with semaphores");
        line(what, before.join(" on 8 CPUs, ") + " on a P4 of 2", today.map(units::digits))
    };
    COLUMNS.map(row).to_vec()
}

/// Long's.
pub(super) fn tofutex(record: Option<&tofutex::Record>) -> Vec<Line> {
    type Column = (&'static str, fn(&Times) -> f64, fn(&tofutex::seed::Figures) -> Option<f64>);
    const FIRST: &str = "wait-wake";
    const COLUMNS: [Column; 2] = [
        ("time until the last thread is done", |times| times.max_s, |then| Some(then.max_s)),
        ("system time", |times| times.system_s, |then| then.system_s),
    ];
    let mut lines = Vec::new();
    for section in [Section::Short, Section::Sleep] {
        for lock in ["pi", "throughput"] {
            for (name, now, then) in COLUMNS {
                let then_of = |lock| tofutex::seed::find(section, lock).and_then(then);
                let Some((ours, first)) = then_of(lock).zip(then_of(FIRST)) else { continue };
                let rounds = |lock: &str| {
                    let same = |row: &&tofutex::Row| row.case == section && row.lock == lock;
                    Some(&record?.rows.iter().find(same)?.rounds)
                };
                let today =
                    rounds(lock).zip(rounds(FIRST)).and_then(|(ours, first)| turns::ratio(ours, first, now));
                let today = today.map(|(middle, ..)| units::digits(middle));
                let what = format!("{section}: {name}, {lock} by {FIRST}");
                lines.push(line(what, units::digits(ours / first), today));
            }
        }
    }
    lines
}
