//! The ways in which programs make locks, and what is reported of them.
//!
//! Each way makes two locks that have nothing to do with each other, `first` and `last`. A plain
//! lock lies between them in the one order of the program. So no fault may be reported. If the two
//! locks are of one class, a warning may say that different locks of it were seen in opposite
//! orders. The table says of which ways that is.
//!
//! Then the same two locks are used in both orders, which is a fault in each way.

#![cfg(not(any(ulocks_loom, ulocks_vm)))]

mod attempts;
mod beside;
mod missed;
mod random;
mod traffic;
mod ways;

use std::sync::Mutex as Std;
use ulocks_debug::{Mutex, Policy, Report, Rule, Severity, set_policy};
use ulocks_testkit as _;
use ways::{Nest, WAYS};

static REPORTS: Std<Vec<Report>> = Std::new(Vec::new());
/// The tests share one policy and one graph.
static ONE: Std<()> = Std::new(());

fn record(report: &Report) {
    REPORTS.lock().unwrap().push(report.clone());
}

/// What is reported of `program`, which runs in a thread of its own.
fn reports(program: impl FnOnce() + Send + 'static) -> Vec<Report> {
    let _one = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    set_policy(Policy::Call(record));
    std::thread::spawn(program).join().unwrap();
    std::mem::take(&mut *REPORTS.lock().unwrap())
}

fn in_order(outer: &Nest, inner: &Nest) {
    outer(&mut || inner(&mut || ()));
}

#[test]
fn locks_of_one_making_and_two_purposes_are_no_fault() {
    let mut wrong = Vec::new();
    for way in WAYS {
        let found = reports(move || {
            let ((first, last), plain) = ((way.make)(), Mutex::new(0));
            let plain: Nest = Box::new(move |inner| drop((plain.lock(), inner())));
            for _ in 0..3 {
                in_order(&first, &plain);
                in_order(&plain, &last);
            }
        });
        let is_right = found.iter().all(|report| {
            report.severity() == Severity::Warning
                && report.to_string().contains("same class, different locks, seen in opposite orders")
        });
        if !is_right || found.len() != usize::from(way.is_class) {
            wrong.push(format!("{}: {} reports, {found:?}", way.name, found.len()));
        }
    }
    assert!(WAYS.len() >= 30, "{} ways", WAYS.len());
    assert!(wrong.is_empty(), "{} of {} ways:\n{}", wrong.len(), WAYS.len(), wrong.join("\n"));
    println!("{} ways", WAYS.len());
}

#[test]
fn two_locks_of_one_making_in_both_orders_are_a_fault() {
    for way in WAYS {
        let found = reports(move || {
            let (first, last) = (way.make)();
            in_order(&first, &last);
            for _ in 0..3 {
                in_order(&last, &first);
            }
        });
        let rules: Vec<_> = found.iter().map(|report| (report.rule(), report.severity())).collect();
        assert_eq!(rules, [(Rule::Order, Severity::Fault)], "{}: {found:?}", way.name);
        assert!(!found[0].to_string().contains("different locks"), "{}: {}", way.name, found[0]);
    }
}
