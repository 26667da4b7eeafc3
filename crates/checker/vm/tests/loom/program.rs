//! What little programs can do in each of the worlds.

pub(crate) use crate::op::{FAILED, Op, Outcome, Program, words};
use core::any::Any;
use core::sync::atomic::Ordering::Relaxed;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use ulocks_vm::explore::{Config, run};

const NO_DEPENDENCE: &str = "no program here depends on what it has read, or waits";

/// One execution of a program, with the atomics and the threads of one of the worlds.
macro_rules! execution {
    ($name:ident, $($atomic:ident)::+, $($thread:ident)::+) => {
        fn $name(program: &Program) -> Outcome {
            use $($atomic)::+::{AtomicU32, fence};
            fn perform(op: Op, memory: &[AtomicU32]) -> Option<u64> {
                let value = match op {
                    Op::Load(x, order) => memory[x].load(order),
                    Op::Store(x, value, order) => {
                        memory[x].store(value as u32, order);
                        return None;
                    }
                    Op::Swap(x, value, order) => memory[x].swap(value as u32, order),
                    Op::Add(x, value, order) => memory[x].fetch_add(value as u32, order),
                    Op::Cas { x, expected, new, success, failure, weak } => {
                        assert!(!weak, "loom's weak exchange does not fail for no reason");
                        match memory[x].compare_exchange(expected as u32, new as u32, success, failure) {
                            Ok(before) => before,
                            Err(other) => return Some(u64::from(other) | FAILED),
                        }
                    }
                    Op::Fence(order) => {
                        fence(order);
                        return None;
                    }
                    Op::Copy(..) | Op::If(..) | Op::LoadAt(..) | Op::StoreAt(..) | Op::Await(..) | Op::Yield => {
                        unreachable!("{NO_DEPENDENCE}")
                    }
                };
                Some(value.into())
            }
            let memory: Arc<[AtomicU32]> = (0..words(program)).map(|_| AtomicU32::new(0)).collect();
            let run =
                |ops: &[Op], memory: &[AtomicU32]| ops.iter().filter_map(|&op| perform(op, memory)).collect();
            let others: Vec<_> = program[1..]
                .iter()
                .map(|ops| {
                    let (ops, memory) = (ops.clone(), Arc::clone(&memory));
                    $($thread)::+::spawn(move || -> Vec<u64> { run(&ops, &memory) })
                })
                .collect();
            let mut reads = vec![run(&program[0], &memory)];
            reads.extend(others.into_iter().map(|other| other.join().expect("nobody dies here")));
            let last = memory.iter().map(|word| word.load(Relaxed).into()).collect();
            Outcome { reads, last }
        }
    };
}

execution!(on_the_machine, ulocks_vm::sync, ulocks_vm::thread);
execution!(under_loom, loom::sync::atomic, loom::thread);

/// A model that runs `program`, and where it puts the outcomes.
fn collecting(
    program: &Program,
    execute: fn(&Program) -> Outcome,
) -> (impl Fn() + Send + Sync + 'static, Arc<Mutex<BTreeSet<Outcome>>>) {
    let (program, found) = (program.clone(), Arc::new(Mutex::new(BTreeSet::new())));
    let outcomes = Arc::clone(&found);
    let model = move || {
        let outcome = execute(&program);
        outcomes.lock().expect("no panic here").insert(outcome);
    };
    (model, found)
}

fn taken(found: &Mutex<BTreeSet<Outcome>>) -> BTreeSet<Outcome> {
    core::mem::take(&mut found.lock().expect("no panic here"))
}

/// Every outcome that the explorer of this crate reaches.
pub fn by_machine(program: &Program) -> BTreeSet<Outcome> {
    let (model, found) = collecting(program, on_the_machine);
    // No program here looks at a word so often that it would have to see the newest value.
    let config = Config { stale: 16, ..Config::exhaustive() };
    let report = run(&config, model).unwrap_or_else(|failure| panic!("{program:#?}\n{failure}"));
    assert!(report.finished, "more than {} executions: {program:#?}", config.executions);
    taken(&found)
}

/// Every outcome that loom reaches, without a bound on preemptions. Nothing in the environment
/// changes what is explored.
pub fn by_loom(program: &Program) -> BTreeSet<Outcome> {
    let (model, found) = collecting(program, under_loom);
    let mut loom = loom::model::Builder::new();
    (loom.preemption_bound, loom.max_branches) = (None, 2_000);
    (loom.max_permutations, loom.max_duration, loom.checkpoint_file) = (None, None, None);
    let explored = catch_unwind(AssertUnwindSafe(|| loom.check(model)));
    if let Err(panic) = explored {
        panic!("loom: {}: {program:#?}", message(&*panic));
    }
    taken(&found)
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message")
}
