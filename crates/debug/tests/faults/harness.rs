//! Runs planted faults and reads the reports.

use std::panic::Location;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use ulocks_debug::{Policy, Report, Rule, Severity, TryLockError, set_policy};

static REPORTS: Mutex<Vec<Report>> = Mutex::new(Vec::new());
/// Whether inversions are to go on, so that they deadlock.
pub static GO_ON: AtomicBool = AtomicBool::new(false);
/// Whether the report comes at the end of a thread, which may not panic.
pub static AT_EXIT: AtomicBool = AtomicBool::new(false);

fn record(report: &Report) {
    REPORTS.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(report.clone());
    let goes_on = report.rule() == Rule::Order && GO_ON.load(Relaxed);
    let is_inside =
        report.rule() == Rule::NoExit || report.severity() == Severity::Warning || AT_EXIT.load(Relaxed);
    if !goes_on && !is_inside && !std::thread::panicking() {
        // Not printed by the hook: there are many.
        std::panic::resume_unwind(Box::new("planted"));
    }
}

/// Runs `program` on a thread of its own, and returns what was reported. A panic of the program is
/// passed on, unless it came from a report.
pub fn reports<T: Send>(program: impl FnOnce() -> T + Send) -> (Vec<Report>, Option<T>) {
    set_policy(Policy::Call(record));
    let result = std::thread::scope(|scope| {
        std::thread::Builder::new().name("culprit".to_owned()).spawn_scoped(scope, program).unwrap().join()
    });
    let reports = std::mem::take(&mut *REPORTS.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
    let value = match result {
        Ok(value) => Some(value),
        Err(panic) if panic.downcast_ref::<&str>() == Some(&"planted") => None,
        Err(panic) => std::panic::resume_unwind(panic),
    };
    (reports, value)
}

/// Runs `call`, which may break a rule. Other panics are passed on.
pub fn breaks<T>(call: impl FnOnce() -> T) -> Option<T> {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)) {
        Ok(value) => Some(value),
        Err(panic) if panic.downcast_ref::<&str>() == Some(&"planted") => None,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// The places of a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    pub rule: Rule,
    /// The line that breaks the rule. `None` if Rust does not tell it.
    pub here: Option<u32>,
    /// The line of the acquisition before.
    pub before: Option<u32>,
    /// For a circle: where each of its threads held, and where it asked.
    pub steps: Vec<(u32, u32)>,
}

pub fn fault(rule: Rule, here: impl Into<Option<u32>>, before: impl Into<Option<u32>>) -> Places {
    Places { rule, here: here.into(), before: before.into(), steps: Vec::new() }
}

pub fn circle(rule: Rule, steps: &[(u32, u32)]) -> Places {
    let before = if rule == Rule::Deadlock { steps[1].0 } else { steps[0].0 };
    Places { rule, here: Some(steps[0].1), before: Some(before), steps: steps.to_vec() }
}

/// The circle of the four lines below `at`: one order, and then the other.
pub fn inversion(at: u32) -> Places {
    circle(Rule::Order, &[(at + 3, at + 4), (at + 1, at + 2)])
}

/// The error of an attempt has these places. Nothing is reported.
pub fn is_error<T>(result: Result<T, TryLockError>, expected: &Places) -> Vec<Places> {
    let Err(TryLockError::Fault(report)) = result else { panic!("no fault") };
    assert_eq!(places(&report), *expected);
    Vec::new()
}

/// The places that a report names. All must be in the test's own files.
pub fn places(report: &Report) -> Places {
    let line = |place: &'static Location<'static>| {
        assert!(place.file().contains("tests/"), "a place that is not the user's: {report}");
        place.line()
    };
    Places {
        rule: report.rule(),
        here: report.here().map(line),
        before: report.before().map(line),
        steps: report.steps().iter().map(|step| (line(step.since), line(step.at))).collect(),
    }
}

// The rows of the tables. Each acquisition stands on a line of its own below the line of the macro,
// so a place is the line of the macro and a number. Names in brackets are made first.

/// A thread acquires, and breaks a rule by what it asks for next.
#[macro_export]
macro_rules! twice {
    ($title:literal, $rule:ident [$($name:ident = $make:expr),*] $first:expr; $second:expr) => {
        ($title, || {
            $(let $name = $make;)*
            let held = $first;
            $crate::harness::breaks(|| drop($second));
            drop(held);
            vec![$crate::harness::fault(Rule::$rule, line!() + 2, line!() + 1)]
        })
    };
}

/// The same, as the error of an attempt. Nothing is reported besides.
#[macro_export]
macro_rules! twice_error {
    ($title:literal, $rule:ident [$($name:ident = $make:expr),*] $first:expr; $second:expr) => {
        ($title, || {
            $(let $name = $make;)*
            let _held = $first;
            $crate::harness::is_error($second, &$crate::harness::fault(Rule::$rule, line!() + 2, line!() + 1))
        })
    };
}

/// One lock in another, and then the other way around.
#[macro_export]
macro_rules! order {
    ($title:literal, [$($name:ident = $make:expr),*]
        $first:expr; $second:expr; $third:expr; $fourth:expr) => {
        ($title, || {
            $(let $name = $make;)*
            let outer = $first;
            let inner = $second;
            drop((inner, outer));
            let _held = $third;
            $crate::harness::breaks(|| drop($fourth));
            vec![$crate::harness::inversion(line!())]
        })
    };
}

/// The same, as the error of an attempt.
#[macro_export]
macro_rules! order_error {
    ($title:literal, [$($name:ident = $make:expr),*]
        $first:expr; $second:expr; $third:expr; $fourth:expr) => {
        ($title, || {
            $(let $name = $make;)*
            let outer = $first;
            let inner = $second;
            drop((inner, outer));
            let _held = $third;
            $crate::harness::is_error($fourth, &$crate::harness::inversion(line!()))
        })
    };
}

/// Three locks: the second in the first, the third in the second, and the first in the third.
#[macro_export]
macro_rules! order_of_three {
    ($title:literal, [$($name:ident = $make:expr),*]
        $a1:expr; $b1:expr; $b2:expr; $c1:expr; $c2:expr; $a2:expr) => {
        ($title, || {
            $(let $name = $make;)*
            let outer = $a1;
            let inner = $b1;
            drop((inner, outer));
            let outer = $b2;
            let inner = $c1;
            drop((inner, outer));
            let _held = $c2;
            $crate::harness::breaks(|| drop($a2));
            let at = line!();
            let steps = [(at + 5, at + 6), (at + 1, at + 2), (at + 3, at + 4)];
            vec![$crate::harness::circle(Rule::Order, &steps)]
        })
    };
}

/// This thread holds one lock and another thread the other one, for which each then asks.
#[macro_export]
macro_rules! deadlock {
    ($title:literal, [$($name:ident = $make:expr),*]
        $mine:expr; $others:expr; $asks:expr; $closes:expr) => {
        ($title, || {
            $(let $name = $crate::common::leaked($make);)*
            $crate::harness::GO_ON.store(true, std::sync::atomic::Ordering::Relaxed);
            let mine = $mine;
            let (say, hear) = std::sync::mpsc::channel();
            let other = std::thread::spawn(move || {
                let _others = $others;
                say.send(()).unwrap();
                drop($asks);
            });
            hear.recv().unwrap();
            $crate::deadlocks::await_waiters(1);
            assert!(waiters()[0].at.file().contains("tests/"), "{}", waiters()[0]);
            $crate::harness::breaks(|| drop($closes));
            assert_eq!(deadlocks().len(), 0, "this thread does not wait any more");
            drop(mine);
            other.join().unwrap();
            let at = line!();
            let steps = [(at + 1, at + 4), (at + 2, at + 3)];
            $crate::deadlocks::with_order(&steps, &steps)
        })
    };
}

/// A thread ends with a lock.
#[macro_export]
macro_rules! ends {
    ($title:literal, [$($name:ident = $make:expr),*] $first:expr) => {
        ($title, || {
            $(let $name = $crate::common::leaked($make);)*
            std::mem::forget($first);
            vec![$crate::harness::fault(Rule::NoExit, None, line!() + 1)]
        })
    };
}

/// A held lock is dropped in the way of the last expression.
#[macro_export]
macro_rules! dropped {
    ($title:literal, [$name:ident = $make:expr] $first:expr; $end:expr) => {
        ($title, || {
            let $name = $make;
            std::mem::forget($first);
            $crate::harness::breaks(|| $end);
            vec![$crate::harness::fault(Rule::NotDropped, None, line!() + 1)]
        })
    };
}

/// A handler of the signal acquires, and then a thread with the signal open.
#[macro_export]
macro_rules! open {
    ($title:literal, $signal:expr, [$name:ident = $make:expr] $handler:expr; $thread:expr) => {
        ($title, || {
            let $name = $crate::common::leaked($make);
            $crate::common::interrupt($signal, || drop($handler));
            $crate::harness::breaks(|| drop($thread));
            vec![$crate::harness::fault(Rule::NoOpenSignal, line!() + 2, line!() + 1)]
        })
    };
}

/// A watched task acquires, and waits.
#[macro_export]
macro_rules! awaits {
    ($title:literal, [$($name:ident = $make:expr),*] $first:expr) => {
        ($title, || {
            $(let $name = $make;)*
            let task = async {
                let _held = $first;
                $crate::executor::turn().await;
            };
            let task = watch(task);
            $crate::harness::breaks(|| $crate::executor::run(vec![Box::pin(task)]));
            vec![$crate::harness::fault(Rule::NoAwait, line!(), line!() + 1)]
        })
    };
}
