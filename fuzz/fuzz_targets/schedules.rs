//! Executions of a mutex, by a fuzzer: the input answers every choice of the virtual machine, so
//! that coverage leads to schedules, old values, time-outs and spurious wake-ups that were not seen
//! before.
//!
//! A crash is an execution that went wrong. Its story is printed, shrunk, and ends with the string
//! that repeats it. To see one, plant `forgets-sleepers` of `crates/testkit/mutants/mutex.toml` by
//! hand.
#![no_main]

#[cfg(not(ulocks_vm))]
compile_error!("compiled without `--cfg ulocks_vm`: run it with `cargo xtask fuzz`");

use libfuzzer_sys::fuzz_target;
use ulocks_testkit::model::timeout_vs_unlock;
use ulocks_testkit::plain::Plain;
use ulocks_vm::explore::{Config, Strategy, run};

fuzz_target!(|input: &[u8]| {
    let config = Config { strategy: Strategy::Bytes(input.to_vec()), spurious: 2, ..Config::default() };
    if let Err(failure) = run(&config, || timeout_vs_unlock::<Plain>(4)) {
        panic!("{failure}");
    }
});
