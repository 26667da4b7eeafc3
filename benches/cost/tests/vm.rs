//! The model and its locks against what others have measured.

#![cfg(all(ulocks_vm, feature = "vm"))]

use ulocks_cost::{all, curves};
use ulocks_vm_cost::{Machine, Placement, Run};

/// Also the test that two runs are equal: the table was made by another.
#[test]
fn the_published_table_is_what_the_model_says() {
    let text = include_str!("../../../BENCHMARKS.md");
    let (_, rest) = text.split_once(curves::BEGIN).expect("the mark");
    let (table, _) = rest.split_once(curves::END).expect("the other mark");
    assert!(
        table == curves::compare().unwrap().tables,
        "out of date: cargo xtask vm --cost -- --curves BENCHMARKS.md"
    );
}

#[test]
fn model_locks_exclude_and_let_every_thread_in() {
    let text = include_str!("../../../crates/checker/cost/machines/xeon-e7-8895v3-x4.json");
    let machine = Machine::from_json(text).unwrap();
    let names = ["clh", "cna", "cohort", "reciprocating", "qspinlock", "qspinlock-cna"];
    for lock in all().iter().filter(|lock| names.contains(&lock.name)) {
        for (threads, think_ns) in [(1, 0.0), (2, 0.0), (3, 300.0), (40, 0.0), (144, 2_000.0)] {
            let cpus = machine.topology.total();
            let placement = Placement::Spread;
            let run = Run {
                cpus,
                placement,
                think_ns,
                time_ns: 4e6,
                warm_up_ns: 0.0,
                ..Run::new(machine.clone(), threads)
            };
            // `Worker::hold` asserts that no other thread is inside.
            let outcome = (lock.run)(&run).unwrap();
            // The second queue of `cna` waits for 65,536 releases, longer than this run.
            assert!(outcome.fairness.starved == 0 || lock.name == "cna", "{}: {threads} threads", lock.name);
        }
    }
}

/// Sections of 1 us, of which 16 CPUs use all that there is.
#[test]
fn barging_locks_do_not_collapse_from_16_cpus_to_128() {
    for lock in all().iter().filter(|lock| ["unfair", "throughput", "asym", "byte"].contains(&lock.name)) {
        let rate = |cpus| {
            let (hold_ns, think_ns, time_ns) = (1_000.0, 9_000.0, 2e6);
            let run = Run { hold_ns, think_ns, time_ns, ..Run::new(Machine::example(), cpus) };
            (lock.run)(&run).unwrap().per_us
        };
        let (few, many) = (rate(16), rate(128));
        assert!(many > 0.75 * few, "{}: {few} operations per us on 16 CPUs, {many} on 128", lock.name);
    }
}
