//! What classes are for: an inversion of two pairs of locks, none of which is used both ways.

use super::reports;
use ulocks_debug::{Class, Mutex, Policy, Rule, Severity, set_policy};

#[derive(Default)]
struct Session {
    account: Mutex<u32>,
    journal: Mutex<u32>,
}

fn opposite(make: fn() -> Session) -> Vec<ulocks_debug::Report> {
    reports(move || {
        let (one, other) = (make(), make());
        drop((one.account.lock(), one.journal.lock()));
        for _ in 0..3 {
            drop((other.journal.lock(), other.account.lock()));
        }
    })
}

/// The fields of two objects of one type play the same parts.
#[test]
fn fields_of_two_objects_in_opposite_orders_are_found() {
    let by_new = || Session { account: Mutex::new(0), journal: Mutex::new(0) };
    for make in [Session::default as fn() -> Session, by_new] {
        let found = opposite(make);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].rule(), found[0].severity()), (Rule::Order, Severity::Fault));
        let text = found[0].to_string();
        assert!(text.contains("same class, different locks, seen in opposite orders"), "{text}");
        assert_eq!(text.matches("are different locks").count(), 2, "{text}");
    }
}

/// A named class is what its author says, so its locks have one order.
#[test]
fn different_locks_of_named_classes_are_a_fault() {
    static FIRST: Class = Class::new("first");
    static LAST: Class = Class::new("last");
    let found = reports(|| {
        let make = || (Mutex::new_in(&FIRST, 0), Mutex::new_in(&LAST, 0));
        let (one, other, more) = (make(), make(), make());
        drop((one.0.lock(), more.1.lock()));
        drop((more.1.lock(), other.0.lock()));
    });
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].severity(), Severity::Fault);
    let text = found[0].to_string();
    assert!(text.contains("different locks") && text.contains("`first` #"), "{text}");
}

/// After the warning of a class, its locks have an order each.
#[test]
fn a_class_that_was_contradicted_orders_its_locks_one_by_one() {
    let found = reports(|| {
        let make = |value| Mutex::new(value);
        let (one, other, plain) = (make(1), make(2), Mutex::new(0));
        drop((one.lock(), plain.lock()));
        drop((plain.lock(), other.lock())); // the warning
        drop((other.lock(), plain.lock())); // a fault
        drop((plain.lock(), one.lock())); // a fault, since the first order was kept
    });
    let severities: Vec<_> = found.iter().map(|report| report.severity()).collect();
    assert_eq!(severities, [Severity::Warning, Severity::Fault, Severity::Fault], "{found:?}");
}

/// The four programs without an inversion that panicked.
#[test]
fn no_report_ends_a_program_that_cannot_deadlock() {
    let Some(output) = ulocks_testkit::limit::child("missed::no_report_ends_a_program_that_cannot_deadlock")
    else {
        set_policy(Policy::Panic);
        for way in super::WAYS {
            let ((first, last), plain) = ((way.make)(), Mutex::new(0));
            let plain: super::Nest = Box::new(move |inner| drop((plain.lock(), inner())));
            super::in_order(&first, &plain);
            super::in_order(&plain, &last);
        }
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
