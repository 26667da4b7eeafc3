//! Processes that die: at random, and after each number of instructions. Files that are damaged, or
//! become shorter while they are in use. Other users.

#[path = "../common/mod.rs"]
mod common;
mod files;
mod users;

use common::{Arrays, compile, folder, preloaded, printed};
use std::fs;
use std::path::{Path, PathBuf};
use ulocks_testkit::refusal;

fn run(name: &str, arguments: &[&str]) -> String {
    run_built(&built(name), name, arguments)
}

fn built(name: &str) -> PathBuf {
    compile(&folder(name), &[&format!("shared/{name}.c")])
}

fn run_built(program: &Path, name: &str, arguments: &[&str]) -> String {
    let arrays = Arrays::new(name);
    if name == "slots" {
        arrays.let_in_all_users();
    }
    let printed = printed(preloaded(program, &arrays, true).args(arguments));
    assert!(arrays.0.join("registry").exists(), "the library was not used");
    let left = fs::read_dir(&arrays.0).unwrap().count();
    assert_eq!(left, 1, "files of arrays were left behind");
    printed
}

#[test]
fn values_come_back_after_random_deaths() {
    assert_eq!(run("stress", &["3"]), "whole after some deaths\n");
}

#[test]
fn a_death_at_any_instruction_leaves_all_or_nothing() {
    let program = built("steps");
    // Each call has a limit of its own: each step of a process is two switches.
    for call in ["give", "release", "set", "sleep", "make", "first", "remove", "private", "reap"] {
        match run_built(&program, "steps", &[call]).as_str() {
            "no ptrace\n" => println!("not tested: this system does not let a process be traced"),
            printed => assert_eq!(printed, "whole after each death\n", "{call}"),
        }
    }
}

#[test]
fn a_removal_takes_no_lock_away_with_it() {
    assert_eq!(run("removal", &[]), "all returned\n");
}

#[test]
fn a_program_with_functions_of_files_of_its_own_is_not_called_back() {
    assert_eq!(run("own_files", &[]), "none was called\n");
}

#[test]
fn processes_that_have_ended_use_up_no_slots() {
    match run("slots", &[]).as_str() {
        "not root\n" => println!("not tested: this takes two users"),
        printed => assert_eq!(printed, "all had a slot\n"),
    }
}

#[test]
fn what_a_child_takes_comes_back() {
    assert_eq!(run("undo_child", &[]), "given back\n");
}

/// Some emulators of the kernel answer success to every advice, and wipe nothing. Here a filter
/// does.
#[test]
fn what_a_child_takes_comes_back_under_a_kernel_that_accepts_any_advice() {
    let program = compile(&folder("undo_filtered"), &["shared/undo_child.c"]);
    let arrays = Arrays::new("undo_filtered");
    let run = || {
        refusal::refuse(libc::SYS_madvise, 0);
        printed(&mut preloaded(&program, &arrays, true))
    };
    let printed = std::thread::scope(|scope| scope.spawn(run).join().unwrap());
    assert_eq!(printed, "given back\n");
}

#[test]
fn a_limit_of_the_process_is_an_error_for_as_long_as_it_lasts() {
    assert_eq!(run("limits", &["file"]), "semget errno 28, then 0\n");
    assert_eq!(run("limits", &["descriptors"]), "semget errno 24, then 0\n");
}

#[test]
fn a_removed_array_keeps_no_memory_locked() {
    match run("locked", &[]).as_str() {
        "no mlockall\n" => println!("not tested: this system does not let a process lock its memory"),
        printed => assert_eq!(printed, "0, and nothing is kept\n"),
    }
}
