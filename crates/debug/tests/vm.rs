//! Models of what threads see of each other in the checker, on the virtual machine: the lists of
//! held locks, the table of classes, and the walk for deadlocks. The mutants in
//! `mutants/models.toml` show what they find.
#![cfg(all(ulocks_vm, feature = "vm"))]

use ulocks_core::model::{Config, Report, explore};
use ulocks_debug::modelled::*;
// A program that names these compiles for the virtual machine too.
#[allow(unused_imports)]
use ulocks_debug::{
    Access, Class, FaultsAbort, LockName, Place, Policy, Rule, Severity, Stack, Step, ThreadName, deadlocks,
    policy, set_policy,
};

fn sampled(executions: u64) -> Config {
    Config { spurious: 0, ..Config::sampled(executions) }
}

fn explored(config: Config, model: impl Fn() + 'static) {
    let Report { executions, complete, .. } = explore(config, model);
    println!("{executions} executions{}", if complete { ", which are all" } else { "" });
}

#[test]
fn a_reader_sees_no_entry_made_of_two() {
    explored(Config::exhaustive(), || entries_are_whole(1));
    explored(sampled(20_000), || entries_are_whole(2));
    explored(sampled(10_000), || entries_are_whole(5));
    explored(sampled(20_000), a_later_thread_writes_whole_entries);
}

#[test]
fn a_reader_sees_no_wait_made_of_two() {
    explored(Config::exhaustive(), || waits_are_whole(2));
    explored(sampled(10_000), || waits_are_whole(3));
}

#[test]
fn an_entry_outside_of_the_record_has_a_slot() {
    explored(Config::exhaustive(), far_entries_have_slots);
}

#[test]
fn the_class_of_an_entry_is_known_to_a_reader() {
    explored(Config::exhaustive(), classes_of_entries_are_known);
}

#[test]
fn a_lock_that_another_thread_drops_is_forgotten() {
    explored(Config::exhaustive(), a_dropped_lock_is_forgotten);
}

#[test]
fn a_place_has_one_class_also_if_threads_make_it_at_once() {
    explored(Config::exhaustive(), || a_place_has_one_class(2));
    explored(sampled(10_000), || a_place_has_one_class(3));
}

#[test]
fn a_lock_has_one_class_and_number_also_if_threads_acquire_it_first_at_once() {
    explored(Config::exhaustive(), || a_lock_has_one_number(2));
    explored(sampled(10_000), || a_lock_has_one_number(3));
}

#[test]
fn what_is_known_was_remembered() {
    explored(Config::exhaustive(), || a_known_key_was_remembered(7));
    explored(sampled(10_000), || a_known_key_was_remembered(8));
}

#[test]
fn a_deadlock_is_found_in_each_interleaving() {
    explored(sampled(20_000), || a_deadlock_is_found(2));
    explored(sampled(10_000), || a_deadlock_is_found(3));
}

#[test]
fn no_deadlock_is_reported_that_there_is_not() {
    explored(sampled(20_000), waits_of_different_times_are_no_deadlock);
}

#[test]
fn a_fault_of_a_signal_handler_is_found_in_each_interleaving() {
    explored(sampled(5_000), || a_fault_of_a_handler_is_found(1));
    explored(sampled(5_000), || a_fault_of_a_handler_is_found(2));
    explored(sampled(2_000), no_fault_of_a_handler_is_found_that_there_is_not);
}

#[test]
fn an_edge_of_a_signal_handler_is_entered_in_each_interleaving() {
    explored(sampled(5_000), an_edge_through_a_handler_is_entered);
}

#[test]
fn a_signal_handler_has_a_list_of_its_own_at_each_step() {
    explored(sampled(5_000), a_handler_interrupts_at_any_step);
}
