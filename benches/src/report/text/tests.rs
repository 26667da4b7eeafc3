use super::*;
use crate::report::fixture::{BUSY, filled, plain};

#[test]
fn columns_are_aligned() {
    let mut table = Table::new(&[0], &["lock", "rate", "", "p"]);
    table.rows.push(["a", "100", "*", "1"].map(String::from).into());
    table.gap();
    table.rows.push(["longer", "7", "", "22"].map(String::from).into());
    let mut out = String::new();
    table.print(&mut out);
    assert_eq!(out, "lock    rate    p\n-----------------\na        100*   1\n\nlonger     7   22\n");
}

#[test]
fn every_workload_has_a_table_with_all_locks_and_threads() {
    let text = tables(&plain(7));
    let sections: Vec<&str> = text.split("\n\nhold ").collect();
    assert!(text.contains("\nhold 0, non-hold 0\n") && text.contains("\nhold 3 us, non-hold 7 us\n"));
    assert!(text.contains("All contended cells"));
    let busy = sections.last().unwrap();
    for lock in ["ours", "std", "parking_lot", "none"] {
        let rows = busy.lines().filter(|l| l.split_whitespace().nth(1) == Some(lock)).count();
        assert_eq!(rows, 2, "{lock}\n{text}");
    }
}

#[test]
fn the_best_lock_is_marked_and_no_lock_is_not() {
    let text = tables(&plain(7));
    let rows = |lock: &str| -> Vec<String> {
        let of = |l: &&str| l.split_whitespace().nth(1) == Some(lock) && l.contains('%');
        text.lines().filter(of).map(String::from).collect()
    };
    assert!(rows("ours").iter().all(|row| row.contains("*  ")), "{text}");
    assert!(rows("none").iter().all(|row| !row.contains('*')), "{text}");
}

#[test]
fn verdicts_stand_in_the_summary_table() {
    let text = tables(&plain(7));
    let row = |lock: &str| text.lines().rfind(|l| l.starts_with(lock)).unwrap().to_string();
    assert!(row("ours").contains(" faster "), "{}", row("ours"));
    assert!(row("parking_lot").contains(" no verdict "), "{}", row("parking_lot"));
    assert!(row("none").contains(" ceiling "), "{}", row("none"));

    // Twice as fast in one cell, a little slower in the other: the mean alone would hide that.
    let text = tables(&filled(7, |lock, cell, round| {
        let noise = 1.0 + 0.01 * f64::from(round);
        match (lock, cell.workload == BUSY) {
            ("ours", true) => 0.9e5 * noise,
            ("ours", false) => 2e5 * noise,
            _ => 1e5 * noise,
        }
    }));
    assert!(text.contains("faster on average"), "{text}");
}

#[test]
fn what_limits_a_run_is_said() {
    let mut report = plain(3);
    assert!(caveats(&report).iter().any(|l| l.contains("the time was used up")));
    report.mode = Mode::Quick;
    report.ended = Ended::Interrupted;
    let text = tables(&report);
    assert!(text.contains("This is a quick look") && text.contains("The run was interrupted"));
    report.mode = Mode::Full;
    report.ended = Ended::Converged;
    report.machine.cpus_allowed = 2;
    assert_eq!(caveats(&report), [""; 0]);
    report.trials.iter_mut().for_each(|t| (t.result.user_s, t.result.system_s) = (0.04, 0.01));
    report.summary = crate::report::summarise(&report);
    assert!(caveats(&report)[0].contains("got only 38 % of the CPUs"), "{:?}", caveats(&report));
}

#[test]
fn two_modes_are_both_printed() {
    let report = filled(6, |lock, _, round| if lock == "ours" && round % 2 == 0 { 5.6e6 } else { 58e3 });
    let text = tables(&report);
    assert!(text.contains("58.0k|5.60M"), "{text}");
    assert!(report.summary.point("ours", BUSY, 2).unwrap().modes.is_some());
    assert!(caveats(&report).iter().any(|l| l.contains("4 of 16 points have two modes")));
}
