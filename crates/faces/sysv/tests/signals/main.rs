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
fn a_child_of_vfork_that_sets_an_action_changes_nothing_of_its_parents() {
    let program = compile(&folder("vfork"), &["signals/vfork.c"]);
    let expected = "a thread that has spawned: 1 asleep, performed\n\
                    a child that has spawned: 1 asleep, once it is dead 0, value 1\n\
                    the handler is that of the parent\n\
                    a child that raises SIGBUS ends by signal 7\n\
                    a child of a bare call ends with 0\n";
    assert_eq!(printed(&mut preloaded(&program, &Arrays::new("vfork"), true)), expected);
}

#[test]
fn a_thread_that_ends_in_a_call_is_unwound() {
    let program = compile(&folder("unwinding"), &["signals/unwinding.c"]);
    let bare = printed(&mut Command::new(&program));
    assert_eq!(bare.matches("1 cleaned up, 0 asleep").count(), 8, "{bare}");
    assert_eq!(printed(&mut preloaded(&program, &Arrays::new("unwinding"), true)), bare);
}

#[test]
fn a_thread_leaves_a_cpu_to_the_one_that_changes_an_action() {
    let program = compile(&folder("turn"), &["signals/turn.c"]);
    match printed(&mut preloaded(&program, &Arrays::new("turn"), true)).as_str() {
        "no ptrace\n" => println!("not tested: this system does not let a process be traced"),
        printed => assert_eq!(printed, "the second thread sleeps, and both end with 0\n"),
    }
}

#[test]
fn two_signals_at_once_leave_nothing_blocked() {
    assert_eq!(run("pairs"), "nothing stays blocked\n");
}

#[test]
fn a_new_action_is_not_lost_to_a_handler_that_resets_the_one_before() {
    assert_eq!(run("once"), "0 new actions lost\n");
}

#[test]
fn a_call_says_what_its_own_sleep_has_ended_with() {
    let expected = "the inner call was performed: 1, of 2 handlers; the outer one: Interrupted system call\n";
    assert_eq!(run("nested"), expected);
}

#[test]
fn a_handler_that_ends_the_program_leaves_no_set_behind() {
    assert_eq!(run("leaves"), "value 1\nvalue 1\n");
}

#[test]
fn a_handler_that_has_interrupted_the_allocator_does_not_wait_for_it() {
    let program = compile(&folder("allocator"), &["signals/allocator.c"]);
    let printed = printed(&mut preloaded(&program, &Arrays::new("allocator"), true));
    assert_eq!(printed, "0 calls of the allocator, with a thread 0, in a child 0\n");
}

#[test]
fn a_signal_after_any_instruction_ends_a_sleep() {
    match run("steps").as_str() {
        "no ptrace\n" => println!("not tested: this system does not let a process be traced"),
        printed => assert_eq!(printed, "each signal ended the sleep\n"),
    }
}
