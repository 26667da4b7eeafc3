use super::*;
use crate::programs::scaling::plan::{Given, Wish};
use crate::report::fixture;

/// A journal of its own, which goes when it is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let file = format!("ulocks-journal-{}-{name}.journal", std::process::id());
        Self(std::env::temp_dir().join(file))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        for path in [self.0.clone(), self.0.with_extension("journal.old")] {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// A run of three rounds, in the order of its plan.
fn run() -> (Report, Plan) {
    let mut report = fixture::plain(3);
    let wish = Wish {
        mode: report.mode,
        locks: report.locks.clone(),
        workloads: report.options.workloads.clone(),
        threads: report.options.threads.clone(),
        given: Given::default(),
    };
    let plan = Plan::new(wish, 2);
    assert_eq!(plan.cells, report.cells);
    let mut trials = Vec::new();
    for round in 0..3 {
        for (lock, cell) in plan.round(u64::from(report.options.seed) + u64::from(round)) {
            let is = |trial: &&Trial| {
                (trial.round, &trial.lock, trial.cell) == (round, &plan.locks[lock].name, cell)
            };
            trials.push(report.trials.iter().find(is).unwrap().clone());
        }
    }
    report.trials = trials;
    (report, plan)
}

/// The same without trials.
fn head(report: &Report) -> Report {
    Report { trials: Vec::new(), ..report.clone() }
}

fn write(path: &Path, report: &Report, trials: usize) {
    let mut journal = Journal::begin(path, &head(report)).unwrap();
    for trial in &report.trials[..trials] {
        journal.trial(trial).unwrap();
    }
    journal.sync().unwrap();
}

fn append(path: &Path, text: &str) {
    OpenOptions::new().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

fn refusal(path: &Path, report: &Report, plan: &Plan) -> String {
    let refused = Journal::resume(path, &mut head(report), plan);
    format!("{:#}", refused.err().expect("a refusal"))
}

#[test]
fn a_run_goes_on_where_it_was_interrupted_twice() {
    let (whole, plan) = run();
    let scratch = Scratch::new("twice");
    write(&scratch.0, &whole, 10);
    let mut again = head(&whole);
    // What a new run would have, and does not get.
    (again.options.seed, again.options.iterations_per_us) = (77, 1234.5);
    again.machine.load_average = [9.0; 3];
    again.machine.date = "2026-11-24T10:00:00Z".into();
    let mut journal = Journal::resume(&scratch.0, &mut again, &plan).unwrap();
    assert_eq!((again.trials.len(), &again.resumed[..]), (10, &["2026-11-24T10:00:00Z".to_owned()][..]));
    assert_eq!((&again.options, &again.machine), (&whole.options, &whole.machine));
    for trial in &whole.trials[10..] {
        journal.trial(trial).unwrap();
    }
    drop(journal);
    let mut third = head(&whole);
    let journal = Journal::resume(&scratch.0, &mut third, &plan).unwrap();
    assert_eq!(third.resumed.len(), 2);
    assert_eq!(serde_json::to_value(&third.trials).unwrap(), serde_json::to_value(&whole.trials).unwrap());
    journal.remove().unwrap();
    assert!(refusal(&scratch.0, &whole, &plan).contains("there is no interrupted run in "));
}

#[test]
fn half_a_last_line_does_not_count() {
    let (whole, plan) = run();
    let scratch = Scratch::new("half");
    write(&scratch.0, &whole, 5);
    append(&scratch.0, "{\"trial\":{\"at_s\":3.2,\"tri");
    let mut again = head(&whole);
    let mut journal = Journal::resume(&scratch.0, &mut again, &plan).unwrap();
    assert_eq!(again.trials.len(), 5);
    journal.trial(&whole.trials[5]).unwrap();
    drop(journal);
    let mut again = head(&whole);
    Journal::resume(&scratch.0, &mut again, &plan).unwrap();
    assert_eq!(again.trials.len(), 6, "what was half a line is gone");
}

#[test]
fn another_plan_machine_or_program_is_refused() {
    let (whole, plan) = run();
    let scratch = Scratch::new("another");
    write(&scratch.0, &whole, 5);
    let refused = |change: &dyn Fn(&mut Report)| {
        let mut other = whole.clone();
        change(&mut other);
        refusal(&scratch.0, &other, &plan)
    };
    let said = refused(&|report| report.options.window_ms = 80);
    assert!(said.contains("another one: options.window_ms was 100 and is 80; it was begun with '"), "{said}");
    assert!(said.ends_with("; without --resume a run begins anew") && !said.contains('\n'), "{said}");
    let said = refused(&|report| report.options.pin = "node".into());
    assert!(said.contains("options.pin was \"scatter\" and is \"node\""), "{said}");
    let said = refused(&|report| report.machine.cpu_model = "Pentium III".into());
    assert!(said.contains("machine.cpu_model was ") && said.contains("is \"Pentium III\""), "{said}");
    let said = refused(&|report| report.machine.topology = None);
    assert!(said.contains("machine.topology"), "{said}");
    let said = refused(&|report| report.version = "9.9.9".into());
    assert!(said.contains("version was \"0.0.0\" and is \"9.9.9\""), "{said}");
    let said = refused(&|report| drop(report.locks.pop()));
    assert!(said.contains("locks was [\"ours\",\"std\",\"parking_lot\",\"none\"] and is ["), "{said}");

    let text = std::fs::read_to_string(&scratch.0).unwrap();
    let program = Head::new(&head(&whole)).unwrap().program;
    std::fs::write(&scratch.0, text.replace(&program, "0123")).unwrap();
    let said = refusal(&scratch.0, &whole, &plan);
    assert!(said.contains(&format!("program was \"0123\" and is \"{program}\"")), "{said}");
}

#[test]
fn a_damaged_journal_is_refused() {
    let (whole, plan) = run();
    let scratch = Scratch::new("damaged");
    write(&scratch.0, &whole, 5);
    let good = std::fs::read_to_string(&scratch.0).unwrap();
    let lines: Vec<&str> = good.lines().collect();
    let swapped = [lines[0], lines[2], lines[1]].map(|line| format!("{line}\n")).concat();
    let doubled = format!("{good}{}\n", lines[0]);
    let garbled = good.replacen("{\"trial\"", "{\"tri\"", 1);
    for (text, reason) in [
        ("", "is damaged; without --resume a run begins anew: its first line is not a head"),
        (&lines[1..].join("\n"), "its first line is not a head"),
        (&swapped, "are not in the order of this plan; without --resume a run begins anew"),
        (&doubled, "has two heads"),
        (&garbled, "is damaged"),
    ] {
        std::fs::write(&scratch.0, text).unwrap();
        let said = refusal(&scratch.0, &whole, &plan);
        assert!(said.contains(reason), "{said}");
    }
}

#[test]
fn a_journal_has_one_writer_and_an_old_one_is_kept() {
    let (whole, plan) = run();
    let scratch = Scratch::new("writer");
    write(&scratch.0, &whole, 5);
    let old = std::fs::read_to_string(&scratch.0).unwrap();
    let _writer = Journal::begin(&scratch.0, &head(&whole)).unwrap();
    assert_eq!(std::fs::read_to_string(scratch.0.with_extension("journal.old")).unwrap(), old);
    assert!(refusal(&scratch.0, &whole, &plan).starts_with("another run is writing "));
    assert!(Journal::begin(&scratch.0, &head(&whole)).is_err());
}
