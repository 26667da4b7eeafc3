//! A fuzzer chooses executions of a semaphore array. The head of the input says how many threads
//! there are and which calls they make. The rest answers every choice of the virtual machine. Some
//! order of the calls must explain all results in a sequential model.
//!
//! To see it fail, plant a bug of `crates/locks/semarray/mutants` by hand, for example `never-moves`.
//!
//! The input says when a deadline passes. Every wait has a deadline, since no other thread might
//! end it.
#![no_main]

#[cfg(not(ulocks_vm))]
compile_error!("compiled without `--cfg ulocks_vm`: run it with `cargo xtask fuzz`");

#[path = "../../crates/locks/semarray/tests/common/convert.rs"]
mod convert;

use convert::outcome;
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use std::sync::Arc;
use std::time::Duration;
use ulocks_core::time::Deadline;
use ulocks_semarray::{Error, Fairness, RawSemArray, Wait};
use ulocks_testkit::model::sets::History;
use ulocks_testkit::sets::{self, Refusal, Sets, Waiters, add, sub, wait_zero};
use ulocks_testkit::thread::together;
use ulocks_vm::explore::{Config, Strategy, run};

/// How many calls the threads make together. The more calls overlap, the longer takes the search
/// for an order.
const CALLS: usize = 10;
const THREADS: usize = 4;
const LEN: usize = 2;
const LIMIT: u32 = 3;

type Array = RawSemArray;

/// What a thread does once.
enum Call {
    Try(Vec<sets::Op>),
    Wait(Vec<sets::Op>),
    GiveBack(Vec<sets::Op>),
    Set(usize, u32),
    SetAll(Vec<u32>),
    Values,
    Value(usize),
    Waiters(usize),
    Close,
}

struct Script {
    start: Vec<u32>,
    /// What each thread does.
    calls: Vec<Vec<Call>>,
}

impl Script {
    fn read(input: &mut Unstructured<'_>) -> Result<Self> {
        let start = values(input)?;
        let mut calls: Vec<_> = (0..input.int_in_range(1..=THREADS)?).map(|_| Vec::new()).collect();
        for _ in 0..input.int_in_range(1..=CALLS)? {
            let thread = input.choose_index(calls.len())?;
            calls[thread].push(Call::read(input)?);
        }
        Ok(Self { start, calls })
    }
}

impl Call {
    fn read(input: &mut Unstructured<'_>) -> Result<Self> {
        // Many calls count waiters, because only these show which threads wait.
        Ok(match input.int_in_range(0..=31_u8)? {
            0..=13 => Self::Wait(set(input)?),
            14..=16 => Self::Try(set(input)?),
            17 => Self::GiveBack(set(input)?),
            18 => Self::Set(input.choose_index(LEN)?, input.int_in_range(0..=LIMIT)?),
            19 => Self::SetAll(values(input)?),
            20 => Self::Close,
            21 | 22 => Self::Values,
            23 | 24 => Self::Value(input.choose_index(LEN)?),
            _ => Self::Waiters(input.choose_index(LEN)?),
        })
    }

    fn perform(&self, array: &Array, history: &History) {
        let soon = || Wait::Until(Some(Deadline::after(Duration::from_millis(1))));
        match self {
            Self::Try(ops) => _ = history.tries(ops, || outcome(array.apply(&convert::set(ops), Wait::No))),
            Self::Wait(ops) => {
                let apply = || outcome(array.apply(&convert::set(ops), soon()));
                history.waits(ops, Some(Refusal::TimedOut), apply).ok();
            }
            Self::GiveBack(ops) => history.gives_back(ops, || match array.give_back(&convert::set(ops)) {
                // A closed array takes nothing back, and neither does the model's.
                Ok(()) | Err(Error::Closed) => {}
                Err(other) => panic!("{other}"),
            }),
            Self::Set(index, value) => {
                history.sets(*index, *value, || outcome(array.set(*index, *value))).ok();
            }
            Self::SetAll(values) => _ = history.sets_all(values, || outcome(array.set_all(values))),
            Self::Values => history.reads_all(|| array.values()),
            Self::Value(index) => {
                history.reads(*index, || array.value(*index).expect("an index in range"));
            }
            Self::Waiters(index) => history.counts(*index, || {
                let waiters = array.waiters(*index).expect("an index in range");
                Waiters { increase: waiters.increase, zero: waiters.zero }
            }),
            Self::Close => history.closes(|| array.close()),
        }
    }
}

fn values(input: &mut Unstructured<'_>) -> Result<Vec<u32>> {
    (0..LEN).map(|_| input.int_in_range(0..=LIMIT)).collect()
}

fn set(input: &mut Unstructured<'_>) -> Result<Vec<sets::Op>> {
    // A set of more than eight operations is on the heap.
    let most = if input.ratio(1_u8, 16_u8)? { 10 } else { 3 };
    (0..input.int_in_range(1..=most)?).map(|_| op(input)).collect()
}

fn op(input: &mut Unstructured<'_>) -> Result<sets::Op> {
    let index = input.choose_index(LEN)?;
    let amount = input.int_in_range(0..=2)?;
    let op = match input.int_in_range(0..=4_u8)? {
        0 | 1 => add(index, amount),
        2 | 3 => sub(index, amount),
        _ => wait_zero(index),
    };
    Ok(if input.ratio(1_u8, 8_u8)? { op.no_wait() } else { op })
}

fuzz_target!(|input: &[u8]| {
    let mut head = Unstructured::new(input);
    let Ok(script) = Script::read(&mut head) else { return };
    let script = Arc::new(script);
    // The results are compared with an order of the calls, so no read may return an old value.
    let rest = Strategy::Bytes(head.take_rest().to_vec());
    let config = Config { strategy: rest, spurious: 2, stale: 0, ..Config::default() };
    let execution = move || {
        let start = Sets::new(script.start.clone(), LIMIT);
        let array = Array::new(&script.start, LIMIT, 500, Fairness::Barging);
        let history = History::new();
        let (script, recorded) = (Arc::clone(&script), history.clone());
        together(script.calls.len(), move |me| {
            script.calls[me].iter().for_each(|call| call.perform(&array, &recorded));
        });
        history.check(start);
    };
    if let Err(failure) = run(&config, execution) {
        panic!("{failure}");
    }
});
