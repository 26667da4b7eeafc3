//! The explorer against the axioms of RC11: the litmus tests of the literature, and random little
//! programs with yields, waits and addresses.
//!
//! The memory by itself is held against the same axioms in `src/memory/tests`. Here a program runs
//! as a model, and what is in question is the search: that it leaves out no execution that has an
//! outcome of its own, and that its report does not say [`complete`](Report::complete) if it has.
//!
//! A yield is nothing to the axioms, and a wait is the one read that ends it: the rounds before it
//! only look. A wait that never ends reads the last value of its word. If the axioms allow that,
//! the exploration has to end with a failure, unless an unfair turn was cut. Else it must not.
//!
//! | demanded of | |
//! |---|---|
//! | each outcome | the axioms allow it |
//! | a report that says `complete` | all outcomes that the axioms allow |
//! | a report that says that a bound was hit | the same, unless the bound is a second failure of a weak exchange, or an unfair turn |
//!
//! `ULOCKS_VM_FUZZ` is how many programs of each class, `ULOCKS_VM_SEED` where they begin. A longer
//! run, of 200,000 programs:
//!
//! ```text
//! ULOCKS_VM_FUZZ=10000 cargo test --profile model -p ulocks-vm --test axioms -- --nocapture random
//! ```

#[allow(dead_code, reason = "for other tests")]
#[path = "../../src/memory/tests/axioms.rs"]
mod axioms;
#[path = "../../src/memory/tests/op.rs"]
mod op;
mod program;
#[path = "../../src/memory/tests/random.rs"]
mod random;
#[path = "../../src/memory/tests/relation.rs"]
mod relation;
#[path = "../../src/memory/tests/table.rs"]
mod table;

use crate::op::{BLOCKED, Outcome, Program};
use crate::program::explored;
use crate::random::{CLASSES, DEPENDENTS, Random, SCHEDULED, generate};
use crate::table::TABLE;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// What came of some programs.
#[derive(Debug, Default)]
struct Sum {
    programs: u64,
    outcomes: usize,
    executions: u64,
    redundant: u64,
    /// Explorations that ended with a wait that nobody ends.
    stuck: u64,
    /// Explorations that have missed such a wait.
    not_stuck: u64,
    /// Explorations that hit a bound, and how many of them have missed an outcome.
    bounded: u64,
    missed: u64,
    time: Duration,
}

impl Sum {
    fn check(&mut self, name: &str, program: &Program, allowed: &BTreeSet<Outcome>) {
        let blocks =
            allowed.iter().any(|outcome| outcome.reads.iter().flatten().any(|read| read & BLOCKED != 0));
        let begun = Instant::now();
        let explored = explored(program);
        self.time += begun.elapsed();
        self.programs += 1;
        self.outcomes += allowed.len();
        let (found, report) = match explored {
            Ok(explored) => explored,
            Err(failure) => {
                assert!(blocks, "{name}: all waits of {program:#?} end\n{failure}");
                assert_eq!(failure.verdict.kind(), "deadlock", "{name}: {program:#?}\n{failure}");
                self.stuck += 1;
                return;
            }
        };
        if blocks {
            // To block, it takes the last value of a word: threads may have to go on after yields.
            let is_unfair = report.bounds.yields.is_some();
            assert!(is_unfair, "{name}: a wait of {program:#?} may never end, and does not fail\n{report}");
            self.not_stuck += 1;
        }
        assert!(report.finished, "{name}: {report}: {program:#?}");
        self.executions += report.executions;
        self.redundant += report.redundant;
        self.bounded += u64::from(!report.complete);
        if let Some(outcome) = found.difference(allowed).next() {
            panic!("{name}: the explorer invents {outcome:?} of {program:#?}");
        }
        if let Some(outcome) = allowed.difference(&found).next() {
            let may_miss = report.bounds.weak_failures.or(report.bounds.yields).is_some();
            assert!(may_miss, "{name}: the explorer misses {outcome:?} of {program:#?}\n{report}");
            self.missed += 1;
        }
    }
}

/// The number in this variable, if it is set.
fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text}: not a number")))
}

#[test]
fn the_explorer_does_what_the_table_of_litmus_tests_says() {
    let mut sum = Sum::default();
    for litmus in TABLE {
        let program = litmus.program();
        let allowed = axioms::outcomes(&program);
        assert_eq!(litmus.written(&allowed), litmus.allowed(), "{}: {}", litmus.name, litmus.because);
        sum.check(litmus.name, &program, &allowed);
    }
    println!("{sum:?}");
    assert!(sum.programs >= 120 && sum.missed == 0);
}

#[test]
fn the_explorer_does_with_random_programs_what_the_axioms_allow() {
    let programs = number("ULOCKS_VM_FUZZ").unwrap_or(200);
    for &class in CLASSES.iter().chain(DEPENDENTS).chain(SCHEDULED) {
        let mut random = Random(number("ULOCKS_VM_SEED").unwrap_or(1));
        let (mut sum, begun) = (Sum::default(), Instant::now());
        for _ in 0..programs {
            let program = generate(&mut random, class);
            sum.check(class.name, &program, &axioms::outcomes(&program));
        }
        println!("{}: {sum:?}; all {:.2?}", class.name, begun.elapsed());
        // Bounds may cut what they are for: unfair turns, and second failures of weak exchanges.
        let share = if class.yields > 0 { 6 } else { 25 };
        assert!(sum.missed <= 2 + programs / share, "{}: {sum:?}", class.name);
        assert!(sum.not_stuck <= 1 + programs / 100, "{}: {sum:?}", class.name);
    }
}
