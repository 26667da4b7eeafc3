//! Little programs as models.

use crate::op::{ADDRESS, FAILED, Op, Outcome, Program, pointee, words};
use core::sync::atomic::Ordering::Relaxed;
use std::collections::BTreeSet;
use std::ptr;
use std::sync::{Arc, Mutex};
use ulocks_vm::explore::{Config, Failure, Report, run};
use ulocks_vm::sync::{AtomicUsize, fence, yield_now};
use ulocks_vm::thread;

/// The words of an execution. What a program calls an address is one here.
struct Words(Box<[AtomicUsize]>);

impl Words {
    fn stored(&self, value: u64) -> usize {
        match pointee(value) {
            Some(x) => ptr::from_ref(&self.0[x]).expose_provenance(),
            None => value as usize,
        }
    }

    fn read(&self, value: usize) -> u64 {
        match self.0.iter().position(|word| ptr::from_ref(word).addr() == value) {
            Some(x) => ADDRESS + x as u64,
            None => value as u64,
        }
    }

    /// What is at the address that was read.
    fn at(&self, read: u64) -> Option<&AtomicUsize> {
        let place = self.stored(pointee(read % FAILED).map(|_| read % FAILED)?);
        // SAFETY: it is the address of one of these words, which live as long as `self`.
        Some(unsafe { &*ptr::with_exposed_provenance(place) })
    }

    /// What the operations return.
    fn perform(&self, ops: &[Op]) -> Vec<u64> {
        let mut returned: Vec<u64> = Vec::new();
        for &op in ops {
            let value = match op {
                Op::Load(x, order) => self.0[x].load(order),
                Op::LoadAt(read, order) => match self.at(returned[read]) {
                    Some(word) => word.load(order),
                    None => break,
                },
                Op::Await(x, value, order) => loop {
                    let seen = self.0[x].load(order);
                    if seen == self.stored(value) {
                        break seen;
                    }
                    yield_now();
                },
                Op::Swap(x, value, order) => self.0[x].swap(self.stored(value), order),
                Op::Add(x, value, order) => self.0[x].fetch_add(value as usize, order),
                Op::Cas { x, expected, new, success, failure, weak } => {
                    let (expected, new) = (self.stored(expected), self.stored(new));
                    let exchanged = if weak {
                        self.0[x].compare_exchange_weak(expected, new, success, failure)
                    } else {
                        self.0[x].compare_exchange(expected, new, success, failure)
                    };
                    match exchanged {
                        Ok(before) => before,
                        Err(other) => {
                            returned.push(self.read(other) | FAILED);
                            continue;
                        }
                    }
                }
                Op::Store(x, value, order) => {
                    self.0[x].store(self.stored(value), order);
                    continue;
                }
                Op::Copy(x, read, order) => {
                    self.0[x].store(self.stored(returned[read] % FAILED), order);
                    continue;
                }
                Op::StoreAt(read, value, order) => match self.at(returned[read]) {
                    Some(word) => {
                        word.store(self.stored(value), order);
                        continue;
                    }
                    None => break,
                },
                Op::Fence(order) => {
                    fence(order);
                    continue;
                }
                Op::If(read, value) if returned[read] % FAILED == value => continue,
                Op::If(..) => break,
                Op::Yield => {
                    yield_now();
                    continue;
                }
            };
            returned.push(self.read(value));
        }
        returned
    }
}

fn execute(program: &Program) -> Outcome {
    let memory = Arc::new(Words((0..words(program)).map(|_| AtomicUsize::new(0)).collect()));
    let others: Vec<_> = program[1..]
        .iter()
        .map(|ops| {
            let (ops, memory) = (ops.clone(), Arc::clone(&memory));
            thread::spawn(move || memory.perform(&ops))
        })
        .collect();
    let mut reads = vec![memory.perform(&program[0])];
    reads.extend(others.into_iter().map(|other| other.join().expect("nobody dies here")));
    let last = memory.0.iter().map(|word| memory.read(word.load(Relaxed))).collect();
    Outcome { reads, last }
}

/// Every outcome that the explorer reaches, and what it says of it.
pub fn explored(program: &Program) -> Result<(BTreeSet<Outcome>, Report), Box<Failure>> {
    let found = Arc::new(Mutex::new(BTreeSet::new()));
    let (model, outcomes) = (program.clone(), Arc::clone(&found));
    // No program here looks at a word so often that it would have to see the newest value. What is
    // demanded of a failure is its verdict.
    let config = Config { stale: 16, shrink: 0, ..Config::exhaustive() };
    let report = run(&config, move || {
        let outcome = execute(&model);
        outcomes.lock().expect("no panic here").insert(outcome);
    })?;
    let found = core::mem::take(&mut *found.lock().expect("no panic here"));
    Ok((found, report))
}
