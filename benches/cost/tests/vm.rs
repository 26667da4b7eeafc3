//! What is costed does what it is said to do.

#![cfg(all(ulocks_vm, feature = "vm"))]

use ulocks_cost::all;
use ulocks_vm_cost::{Machine, Placement, Run};

#[test]
fn model_locks_exclude_and_let_every_thread_in() {
    let machine = Machine::example();
    let names = ["tas", "ttas", "ticket", "mcs"];
    for lock in all().iter().filter(|lock| names.contains(&lock.name)) {
        for (threads, think_ns) in [(1, 0.0), (2, 0.0), (3, 300.0), (40, 0.0)] {
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
            let outcome = (lock.run)(&run, 0.001).unwrap();
            let in_order = ["ticket", "mcs"].contains(&lock.name);
            assert!(outcome.fairness.starved == 0 || !in_order, "{}: {threads} threads", lock.name);
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
            (lock.run)(&run, 0.001).unwrap().per_us
        };
        let (few, many) = (rate(16), rate(128));
        assert!(many > 0.75 * few, "{}: {few} operations per us on 16 CPUs, {many} on 128", lock.name);
    }
}
