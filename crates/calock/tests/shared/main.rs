//! The lock between processes: policy `Shared`, in memory that forked children map too.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use ulocks_calock::{Every, Interval, RawCalock};
use ulocks_core::spin::{Adaptive, NoSpin, Patience};
use ulocks_core::{Policy, Shared};
use ulocks_testkit::shared;
use ulocks_testkit::stress::Load;

mod deaths;

/// Runs `check` with each way of waiting, and with intervals that pass often.
macro_rules! with_each {
    ($check:ident) => {
        $check::<Shared<NoSpin>, Every>();
        $check::<Shared<NoSpin>, Every<100_000>>();
        $check::<Shared<Patience<3_000>>, Every<20_000>>();
        $check::<Shared<Adaptive>, Every>();
    };
}

#[test]
fn processes_exclude_one_another() {
    fn check<P: Policy, I: Interval>() {
        let load = Load::default();
        shared::exclusion::<RawCalock<P, I>>(load).check(load);
    }
    with_each!(check);
}

#[test]
fn many_processes_exclude_one_another() {
    let load = Load { threads: 32, operations: 500, ..Load::default() };
    shared::exclusion::<RawCalock<Shared>>(load).check(load);
    shared::exclusion::<RawCalock<Shared<NoSpin>, Every<100_000>>>(load).check(load);
}

#[test]
fn a_process_that_gives_up_strands_nobody() {
    fn check<P: Policy, I: Interval>() {
        let load = Load::default();
        shared::timed::<RawCalock<P, I>>(load).check(load);
    }
    with_each!(check);
}

#[test]
fn a_zeroed_page_is_an_unlocked_mutex() {
    assert!(shared::zeroed_is_unlocked::<RawCalock<Shared>>());
}
