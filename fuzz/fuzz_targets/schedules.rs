//! A fuzzer chooses executions of a mutex. The input answers every choice of the virtual machine.
//! So coverage leads to new schedules, old values, timeouts and spurious wake-ups.
//!
//! A crash is an execution that went wrong. Its steps are shrunk and printed, with a string that
//! repeats the execution. To see one, plant `forgets-sleepers` of
//! `crates/testkit/mutants/mutex.toml` by hand.
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
