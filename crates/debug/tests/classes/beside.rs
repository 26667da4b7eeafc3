//! Several inversions of one acquisition: each held lock is in an order of its own.

use super::{ONE, REPORTS, record, reports};
use std::panic::{AssertUnwindSafe, catch_unwind};
use ulocks_debug::{Class, Mutex, Policy, Report, Severity, accept, set_policy};

fn severities(found: &[Report]) -> Vec<Severity> {
    found.iter().map(Report::severity).collect()
}

fn count() -> usize {
    REPORTS.lock().unwrap().len()
}

/// A guess about one held lock, and these very locks of another.
#[test]
fn a_guess_of_one_held_lock_hides_no_fault_of_another() {
    let found = reports(|| {
        let pool = [(); 2].map(|()| Mutex::new(()));
        let (outer, inner) = (Mutex::new(0_u8), Mutex::new(0_u16));
        drop((inner.lock(), outer.lock()));
        drop((inner.lock(), pool[0].lock()));
        for _ in 0..3 {
            let _outer = outer.lock();
            let _guess = pool[1].try_lock().unwrap();
            drop(inner.lock());
        }
    });
    // The fault is the last one, since it may panic.
    assert_eq!(severities(&found), [Severity::Warning, Severity::Fault], "{found:#?}");
}

#[test]
fn a_known_inversion_of_one_held_lock_hides_no_new_one_of_another() {
    let found = reports(|| {
        let (first, second, last) = (Mutex::new(0_u8), Mutex::new(0_u16), Mutex::new(0_u32));
        drop((last.lock(), second.lock()));
        drop((last.lock(), first.lock()));
        drop((second.lock(), last.lock()));
        assert_eq!(count(), 1, "`second`, then `last`");
        for _ in 0..3 {
            drop((first.lock(), second.lock(), last.lock()));
        }
    });
    assert_eq!(severities(&found), [Severity::Fault; 2], "`first`, then `last`: {found:#?}");
}

#[test]
fn an_accepted_inversion_of_one_held_lock_hides_no_other_fault() {
    static FIRST: Class = Class::new("first beside");
    static SECOND: Class = Class::new("second beside");
    static LAST: Class = Class::new("last beside");
    let found = reports(|| {
        accept("second beside", "last beside");
        accept("last beside", "second beside");
        let [first, second, last] = [&FIRST, &SECOND, &LAST].map(|class| Mutex::new_in(class, ()));
        drop((last.lock(), second.lock()));
        drop((last.lock(), first.lock()));
        for _ in 0..3 {
            drop((first.lock(), second.lock(), last.lock()));
        }
    });
    assert_eq!(severities(&found), [Severity::Fault], "`first`, then `last`: {found:#?}");
}

/// The function of the policy panics at the first of two reports. The second one is not lost.
#[test]
fn a_panic_at_one_report_loses_no_other() {
    fn record_and_panic(report: &Report) {
        record(report);
        std::panic::resume_unwind(Box::new("reported"));
    }
    let found = reports(|| {
        set_policy(Policy::Call(record_and_panic));
        let (first, second, last) = (Mutex::new(0_u8), Mutex::new(0_u16), Mutex::new(0_u32));
        drop((last.lock(), second.lock()));
        drop((last.lock(), first.lock()));
        for _ in 0..3 {
            let wrong = || drop((first.lock(), second.lock(), last.lock()));
            _ = catch_unwind(AssertUnwindSafe(wrong));
        }
    });
    assert_eq!(severities(&found), [Severity::Fault; 2], "{found:#?}");
}

/// By the default policy, a panic tells of an inversion each time.
#[test]
fn an_inversion_by_a_lost_gate_panics_each_time() {
    let _one = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    set_policy(Policy::Panic);
    let (gate, one, other) = (Mutex::new(0_u8), Mutex::new(0_u16), Mutex::new(0_u32));
    drop((gate.lock(), one.lock(), other.lock()));
    drop((gate.lock(), other.lock(), one.lock()));
    let panics = |()| catch_unwind(AssertUnwindSafe(|| drop((other.lock(), one.lock())))).is_err();
    assert_eq!([(); 3].map(panics), [true; 3]);
}
