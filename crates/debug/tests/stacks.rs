//! Reports with stacks, by a call and by the environment.

#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use std::hint::black_box;
use std::sync::Mutex as Plain;
use std::sync::mpsc;
use std::thread;
use ulocks_debug::*;
use ulocks_testkit::limit::{again, output};
use ulocks_testkit::task::until_asleep;

static REPORTS: Plain<Vec<Report>> = Plain::new(Vec::new());

fn record(report: &Report) {
    REPORTS.lock().unwrap().push(report.clone());
}

/// The only new report.
fn report() -> Report {
    let mut reports = std::mem::take(&mut *REPORTS.lock().unwrap());
    assert_eq!(reports.len(), 1, "{reports:#?}");
    reports.remove(0)
}

#[inline(never)]
fn takes_outer<T>(lock: &Mutex<()>, then: impl FnOnce() -> T) -> T {
    let _held = lock.lock();
    black_box(then())
}

#[inline(never)]
fn takes_inner<T>(lock: &FairMutex<()>, then: impl FnOnce() -> T) -> T {
    let _held = lock.lock();
    black_box(then())
}

#[inline(never)]
fn asks_in_order(outer: &Mutex<()>, inner: &FairMutex<()>) {
    takes_outer(outer, || takes_inner(inner, || ()));
}

#[inline(never)]
fn asks_against_it(outer: &Mutex<()>, inner: &FairMutex<()>) {
    takes_inner(inner, || takes_outer(outer, || ()));
}

/// The frames have these functions, the innermost first, and begin and end with the user's.
fn is_stack(stack: Option<&Stack>, functions: &[&str]) {
    let frames = stack.expect("a stack").frames();
    let mut rest = frames.iter();
    for function in functions {
        assert!(rest.any(|frame| frame.contains(function)), "{function} in {frames:#?}");
    }
    assert!(frames[0].contains(functions[0]), "{frames:#?}");
    assert!(frames.iter().all(|frame| !frame.contains("__rust_begin_short_backtrace")), "{frames:#?}");
}

#[test]
fn reports_have_the_stacks_of_all_places() {
    set_policy(Policy::Call(record));
    set_stacks(true);
    let (outer, inner) = (Mutex::new(()), FairMutex::new(()));
    thread::scope(|scope| _ = scope.spawn(|| asks_in_order(&outer, &inner)));
    asks_against_it(&outer, &inner);
    let inversion = report();
    assert_eq!(inversion.rule(), Rule::Order);
    let [mine, other] = inversion.steps() else { panic!("{inversion}") };
    is_stack(mine.held_stack.as_ref(), &["takes_inner", "asks_against_it", "reports_have_the_stacks"]);
    is_stack(mine.asked_stack.as_ref(), &["takes_outer", "takes_inner", "asks_against_it"]);
    is_stack(other.held_stack.as_ref(), &["takes_outer", "asks_in_order"]);
    is_stack(other.asked_stack.as_ref(), &["takes_inner", "takes_outer", "asks_in_order"]);
    is_stack(inversion.stack(), &["takes_outer", "asks_against_it"]);
    is_stack(inversion.stack_before(), &["takes_inner", "asks_against_it"]);
    let text = inversion.to_string();
    assert!(text.matches("asks_in_order at ").count() == 2, "{text}");
    let json: serde_json::Value = serde_json::from_str(&inversion.to_json()).unwrap();
    assert!(json["steps"][1]["held_stack"][0].as_str().unwrap().contains("takes_outer"), "{json}");

    // A fault of another rule; and the lock is held by another thread.
    let own = Mutex::new(());
    let result = takes_outer(&own, || own.try_lock_checked().err());
    let Some(TryLockError::Fault(recursion)) = result else { panic!() };
    is_stack(recursion.stack(), &["reports_have_the_stacks", "takes_outer"]);
    is_stack(recursion.stack_before(), &["takes_outer", "reports_have_the_stacks"]);
    assert!(recursion.to_string().contains("  stack   before\n"), "{recursion}");

    a_deadlock();

    set_stacks(false);
    let result = takes_outer(&own, || own.try_lock_checked().err());
    let Some(TryLockError::Fault(without)) = result else { panic!() };
    assert!(without.stack().is_none() && without.stack_before().is_none(), "{without}");
}

/// The stack of a thread that waits is that of its wait.
fn a_deadlock() {
    static A: Mutex<()> = Mutex::new(());
    static B: FairMutex<()> = FairMutex::new(());
    #[inline(never)]
    fn waits_for_a() {
        drop(A.lock());
    }
    let in_a = A.lock();
    let (say, hear) = mpsc::channel();
    let other = thread::spawn(move || {
        takes_inner(&B, || {
            say.send(()).unwrap();
            waits_for_a();
        });
    });
    hear.recv().unwrap();
    ulocks_testkit::limit::until("a thread waits", || !waiters().is_empty());
    // It has looked for a deadlock, and would else report this one, too.
    until_asleep(&[waiters()[0].thread.tid.cast_signed()]);
    // The order is wrong, too, but a wait with a deadline does not say so.
    assert!(B.try_lock_for(std::time::Duration::from_millis(10)).is_none());
    drop(in_a);
    other.join().unwrap();
    let deadlock = report();
    assert_eq!(deadlock.rule(), Rule::Deadlock);
    let [mine, other] = deadlock.steps() else { panic!("{deadlock}") };
    is_stack(mine.held_stack.as_ref(), &["a_deadlock", "reports_have_the_stacks"]);
    is_stack(mine.asked_stack.as_ref(), &["a_deadlock", "reports_have_the_stacks"]);
    is_stack(other.held_stack.as_ref(), &["takes_inner", "a_deadlock"]);
    is_stack(other.asked_stack.as_ref(), &["waits_for_a", "takes_inner"]);
}

#[test]
fn the_environment_asks_for_stacks() {
    for (value, count) in [("1", 1), ("0", 0)] {
        let Some(mut command) = again("the_environment_asks_for_stacks") else {
            let own = Mutex::new(());
            let result = takes_outer(&own, || own.try_lock_checked().err());
            return println!("\n{}", result.expect("a fault"));
        };
        let output = output(command.env("ULOCKS_DEBUG_STACKS", value));
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(text.matches("  stack   before\n").count(), count, "{text}");
        assert_eq!(text.matches("takes_outer").count() > 0, count > 0, "{text}");
    }
}
