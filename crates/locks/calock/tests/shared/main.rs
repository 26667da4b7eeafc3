//! The lock between processes: policy `Shared`, in memory that forked children map too.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use ulocks_calock::{Every, RawCalock};
use ulocks_core::Shared;
use ulocks_core::spin::{Adaptive, NoSpin, Patience};
use ulocks_testkit::shared;
use ulocks_testkit::stress::Load;

mod deaths;

// Each way of waiting, and intervals that pass often.
ulocks_testkit::shared_tests! {
    Load::default();
    RawCalock<Shared<NoSpin>>,
    RawCalock<Shared<NoSpin>, Every<100_000>>,
    RawCalock<Shared<Patience<3_000>>, Every<20_000>>,
    RawCalock<Shared<Adaptive>>,
}

#[test]
fn many_processes_exclude_one_another() {
    let load = Load { threads: 32, operations: 500, ..Load::default() };
    shared::exclusion::<RawCalock<Shared>>(load).check(load);
    shared::exclusion::<RawCalock<Shared<NoSpin>, Every<100_000>>>(load).check(load);
}
