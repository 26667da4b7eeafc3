//! The tables on standard output.

use super::seed::{self, Figures};
use super::{Row, SCHEMA, Section, Times, TofutexSpec};
use crate::programs::turns::{Order, Turns, by};
use crate::report::units;
use crate::statistics::median;

impl Turns for TofutexSpec {
    const NAME: &'static str = "tofutex";
    const SCHEMA: &'static str = SCHEMA;
    const WORKERS: &'static str = "threads";
    const HEADER: &'static [&'static str] = &[
        "lock",
        "last",
        "by the first row",
        "2016",
        "first",
        "mean",
        "by the first row",
        "2016",
        "sys",
        "by the first row",
        "2016",
        "lock calls",
        "2016",
        "unlock calls",
        "2016",
    ];
    const NOTES: &'static str = "\
last, first, mean   seconds until the last thread was done, until the first was, and of a thread in the mean: medians of
                    the rounds. A first that is far before the last is an unfair lock
sys                 CPU time in the kernel, of all threads
lock, unlock calls  calls to the kernel, of one operation; - where they cannot be counted
by the first row    the same figure by that of the first lock, in the median of the rounds [least, most]
2016                the same ratio in Long's tables, of other machines: wait-wake futex, PI futex and TO futex.
                    His mail does not say how many threads there were";
    type Case = Section;

    fn new(lock: &str, order: &Order, section: Section, each: u64) -> Self {
        Self { lock: lock.into(), section, threads: order.workers, each }
    }

    fn fields(section: Section, row: &Row, first: &Row) -> Vec<String> {
        let of = |get: fn(&Times) -> f64| {
            let values: Vec<f64> = row.rounds.iter().map(get).collect();
            units::time(median(&values) * 1e9)
        };
        let (then, then_first) = (seed::find(section, &row.lock), seed::find(section, &first.lock));
        let before = |get: fn(&Figures) -> Option<f64>| {
            let ratio = then.and_then(get).zip(then_first.and_then(get)).map(|(a, b)| a / b);
            ratio.map_or_else(|| "-".into(), units::digits)
        };
        let calls = |get: fn(&crate::run::syscalls::Calls) -> u64| {
            let counts: Option<Vec<f64>> =
                row.rounds.iter().map(|times| Some(get(times.calls.as_ref()?) as f64)).collect();
            counts.map_or_else(|| "-".into(), |counts| units::digits(median(&counts) / row.operations as f64))
        };
        let calls_before = |get: fn((f64, f64)) -> f64| {
            then.and_then(|then| then.calls).map_or_else(|| "-".into(), |calls| units::digits(get(calls)))
        };
        vec![
            row.lock.clone(),
            of(|times| times.max_s),
            by(row, first, |times| times.max_s),
            before(|then| Some(then.max_s)),
            of(|times| times.min_s),
            of(|times| times.average_s),
            by(row, first, |times| times.average_s),
            before(|then| Some(then.average_s)),
            of(|times| times.system_s),
            by(row, first, |times| times.system_s),
            before(|then| then.system_s),
            calls(|calls| calls.waits),
            calls_before(|calls| calls.0),
            calls(|calls| calls.wakes),
            calls_before(|calls| calls.1),
        ]
    }
}
