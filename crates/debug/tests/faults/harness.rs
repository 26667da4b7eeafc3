//! Runs planted faults and reads the reports.

use std::io::Write;
use std::panic::Location;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use ulocks_debug::{Policy, Report, Rule, Severity, set_policy};

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

/// Ends the process if one fault takes long: a deadlock that is not reported never ends.
pub fn watch(running: &'static AtomicUsize, names: Vec<&'static str>) {
    std::thread::spawn(move || {
        let mut seen = (usize::MAX, 0);
        loop {
            std::thread::sleep(Duration::from_secs(1));
            let now = running.load(Relaxed);
            seen = if seen.0 == now { (now, seen.1 + 1) } else { (now, 0) };
            if seen.1 == 30 {
                // Not by `eprintln!`: the harness of tests would keep it, and it ends here.
                let _ = writeln!(std::io::stderr(), "{}: it does not end", names[now]);
                std::process::exit(101);
            }
        }
    });
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
#[derive(Debug, PartialEq, Eq)]
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
