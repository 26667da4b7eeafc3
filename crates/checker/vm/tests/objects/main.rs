//! The objects of std's shape: what they exclude, what they order, and what is found of a program
//! that uses them wrongly. Outcomes are those of all executions.

#![allow(clippy::undocumented_unsafe_blocks, reason = "cells of models; their accesses are what is tested")]

mod arc;
mod atomics;
mod channels;
mod locks;
mod tasks;
mod threads;
mod weak;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::rc::Rc;
use ulocks_vm::explore::{Config, explore};
use ulocks_vm::sync::UnsafeCell;

/// That the outcomes of all executions of `model` are `expected`, each of them.
#[track_caller]
fn all_outcomes<T: Ord + Debug + 'static, const N: usize>(model: impl Fn() -> T + 'static, expected: [T; N]) {
    let seen = Rc::new(RefCell::new(BTreeSet::new()));
    let into = Rc::clone(&seen);
    explore(Config::exhaustive(), move || {
        let outcome = model();
        into.borrow_mut().insert(outcome);
    });
    assert_eq!(seen.take(), BTreeSet::from(expected));
}

/// Data that nothing but the object under test orders.
#[derive(Default)]
struct Plain(UnsafeCell<u32>);

unsafe impl Sync for Plain {}

impl Plain {
    #[track_caller]
    fn add(&self, more: u32) -> u32 {
        self.0.with_mut(|data| unsafe {
            *data += more;
            *data
        })
    }

    #[track_caller]
    fn get(&self) -> u32 {
        self.0.with(|data| unsafe { *data })
    }
}
