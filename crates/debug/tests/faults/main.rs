//! A table of planted faults. Each is found, and nothing else is, with the right places.
//!
//! A fault returns the places that its report must name. They are lines of the source: the
//! acquisition and the number of its line stand on one line.

#![cfg(not(any(ulocks_loom, ulocks_vm)))]

mod as_errors;
mod awaits;
#[path = "../common/mod.rs"]
mod common;
mod deadlocks;
#[path = "../common/executor.rs"]
mod executor;
mod handler_orders;
mod harness;
mod misuse;
mod notifiers;
mod orders;
mod pi;
mod promises;
#[cfg(feature = "shm")]
mod robust;
#[cfg(not(feature = "shm"))]
mod robust {
    pub const TABLE: &[crate::Fault] = &[];
}
mod rwlocks;
mod semaphores;
mod shared_deadlocks;
mod shared_orders;
mod signals;

use harness::{Places, places, reports};
use ulocks_testkit::watchdog::watch;

type Fault = (&'static str, fn() -> Vec<Places>);

#[test]
fn every_planted_fault_is_found_with_its_places() {
    let table: Vec<Fault> = [
        misuse::TABLE,
        orders::TABLE,
        deadlocks::TABLE,
        rwlocks::TABLE,
        shared_orders::TABLE,
        shared_deadlocks::TABLE,
        robust::TABLE,
        signals::TABLE,
        handler_orders::TABLE,
        awaits::TABLE,
        as_errors::TABLE,
        semaphores::TABLE,
        pi::TABLE,
        promises::TABLE,
        notifiers::TABLE,
    ]
    .concat();
    assert!(table.len() >= 182, "{} faults", table.len());
    let mut wrong = Vec::new();
    for (name, fault) in &table {
        // A deadlock that is not reported never ends.
        let _watchdog = watch(name, String::new);
        println!("{name}");
        let (found, expected) = reports(fault);
        let expected = expected.unwrap_or_else(|| panic!("{name}: the panic was not caught: {found:#?}"));
        let places: Vec<Places> = found.iter().map(places).collect();
        if places != expected {
            wrong.push(format!("{name}:\n  expected {expected:?}\n  found    {places:?}"));
        }
        for report in &found {
            let text = report.to_string();
            assert!(text.contains("to do") && text.contains(&report.lock().name), "{text}");
            assert!(serde_json::from_str::<serde_json::Value>(&report.to_json()).is_ok(), "{name}");
        }
    }
    assert!(wrong.is_empty(), "{} of {} faults:\n{}", wrong.len(), table.len(), wrong.join("\n"));
    println!("{} planted faults were found", table.len());
}
