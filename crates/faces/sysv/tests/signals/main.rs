//! Handlers of signals: the C library's functions answer as without the library, a handler may use
//! the array that it interrupts, and a sleep ends whenever a handler has run.

#[path = "../common/mod.rs"]
mod common;

use common::{Arrays, compile, folder, preloaded, printed};
use std::process::Command;
use ulocks_testkit as _;

fn run(mode: &str) -> String {
    let program = compile(&folder(mode), &["signals/signals.c"]);
    printed(preloaded(&program, &Arrays::new(mode), true).arg(mode))
}

#[test]
fn actions_are_what_they_are_without_the_library() {
    let program = compile(&folder("actions-bare"), &["signals/signals.c"]);
    assert_eq!(run("actions"), printed(Command::new(program).arg("actions")));
}

#[test]
fn handlers_may_use_the_array_that_they_interrupt_and_leave_by_a_jump() {
    assert_eq!(run("storm"), "after the storm: 0 too many\n");
}

#[test]
fn a_signal_after_any_instruction_ends_a_sleep() {
    match run("steps").as_str() {
        "no ptrace\n" => println!("not tested: this system does not let a process be traced"),
        printed => assert_eq!(printed, "each signal ended the sleep\n"),
    }
}
