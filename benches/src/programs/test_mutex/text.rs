//! The tables on standard output.

use super::{Case, Count, Row, SCHEMA, THEN, TestMutexSpec};
use crate::programs::turns::{Order, Turns, by};
use crate::report::units;
use crate::statistics::median;

impl Turns for TestMutexSpec {
    const NAME: &'static str = "test-mutex";
    const SCHEMA: &'static str = SCHEMA;
    const WORKERS: &'static str = "tasks";
    const HEADER: &'static [&'static str] = &[
        "lock",
        "loops/s",
        "by the first row",
        "2005",
        "CPU",
        "by the first row",
        "2005",
        "loops/CPU s",
        "by the first row",
        "2005",
    ];
    const NOTES: &'static str = "\
loops/s             loops of all tasks a second: the median of the rounds
CPU                 how much of all CPUs they use, in the kernel and outside
loops/CPU s         loops of a second of CPU time
by the first row    the same figure by that of the first lock, in the median of the rounds [least, most]
2005                the same ratio in Molnar's mail, of the kernel with mutexes to the one with semaphores, which
                    handed over: on 8 CPUs, and on 2 CPUs of two threads";
    type Case = Case;

    fn new(lock: &str, order: &Order, case: Case, _: u64) -> Self {
        Self { lock: lock.into(), case, tasks: order.workers, window_ms: order.window_ms }
    }

    fn fields(case: Case, row: &Row, first: &Row) -> Vec<String> {
        let of = |figure: fn(&Count) -> f64| median(&row.rounds.iter().map(figure).collect::<Vec<_>>());
        // His mutexes stand beside the mutex that is the default here.
        let then = |figure: fn(f64, f64) -> f64| match (case, row.lock.as_str()) {
            (Case::Files, "throughput") => {
                THEN.map(|(_, loops, cpu)| units::digits(figure(loops, cpu))).join(", ")
            }
            _ => "-".into(),
        };
        vec![
            row.lock.clone(),
            units::rate(of(Count::per_s)),
            by(row, first, Count::per_s),
            then(|loops, _| loops),
            format!("{:.0} %", 100.0 * of(Count::cpu)),
            by(row, first, Count::cpu),
            then(|_, cpu| cpu),
            units::rate(of(Count::per_cpu_s)),
            by(row, first, Count::per_cpu_s),
            then(|loops, cpu| loops / cpu),
        ]
    }
}
