//! Random little programs: the memory and the axioms give the same outcomes.

use super::super::Memory;
use super::axioms;
use super::program::{Program, explore};
use super::random::{CLASSES, DEPENDENTS, Random, generate};
use core::sync::atomic::Ordering::Relaxed;

/// Whether to leave out the twins: where there are many interleavings.
pub(super) fn cut_twins(program: &Program) -> bool {
    let (mut interleavings, mut length) = (1.0, 0.0);
    for ops in program {
        for n in 1..=ops.len() {
            length += 1.0;
            interleavings *= length / n as f64;
        }
    }
    interleavings > 100.0
}

/// How many programs of each class: enough to catch every planted bug, in a few seconds.
fn budget() -> usize {
    let default = if cfg!(debug_assertions) { 200 } else { 600 };
    std::env::var("ULOCKS_VM_FUZZ").map_or(default, |n| n.parse().expect("ULOCKS_VM_FUZZ is a number"))
}

/// A memory without room between labels, without patience with old SC events, and whose slots were
/// all used before.
pub(super) fn worn() -> Memory {
    let at = core::panic::Location::caller();
    let mut memory = Memory::strange(2, 0);
    let thread = memory.spawn(None);
    for value in 0..70 {
        let loc = memory.create(thread, value, at);
        memory.store(thread, loc, 1, Relaxed, at, &mut |_, _| 0).expect("no fault");
        memory.retire(thread, loc, true, at).expect("no fault");
    }
    memory.end(thread);
    memory
}

#[test]
fn random_programs_do_what_the_axioms_allow() {
    let seed = std::env::var("ULOCKS_VM_SEED").map_or(1, |n| n.parse().expect("ULOCKS_VM_SEED is a number"));
    for &class in CLASSES.iter().chain(DEPENDENTS) {
        let mut random = Random(seed);
        let start = std::time::Instant::now();
        let (mut machine_time, mut outcomes, mut most) = (core::time::Duration::ZERO, 0, 0);
        for n in 0..budget() {
            let program = generate(&mut random, class);
            let begun = std::time::Instant::now();
            let memory = || match n % 8 {
                0 => worn(),
                1..4 => Memory::strange(2, 0),
                _ => Memory::new(),
            };
            let (machine, _) = explore(&program, memory, cut_twins(&program));
            machine_time += begun.elapsed();
            let allowed = axioms::outcomes(&program);
            outcomes += allowed.len();
            most = most.max(allowed.len());
            assert_eq!(
                machine.difference(&allowed).next(),
                None,
                "{} {n}: the memory invents an outcome of {program:#?}",
                class.name
            );
            assert_eq!(
                allowed.difference(&machine).next(),
                None,
                "{} {n}: the memory misses an outcome of {program:#?}",
                class.name
            );
        }
        println!(
            "{}: {} programs, {outcomes} outcomes, at most {most}; {:.2?}, of which the memory {machine_time:.2?}",
            class.name,
            budget(),
            start.elapsed()
        );
    }
}
