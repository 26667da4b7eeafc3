//! The predictions as tables for a terminal.

use super::Cell;
use std::fmt::Write;
use ulocks_vm_cost::Outcome;

/// The tables: one row for each number of CPUs, one column for each lock.
pub(super) fn text(cells: &[Cell]) -> String {
    let mut text = table(cells, "operations per us (line transfers per operation)", |outcome| {
        format!("{:.2} ({:.1})", outcome.per_us, outcome.transfers_per_operation)
    });
    if cells.iter().any(|cell| cell.outcome.kernel.sleeps > 0) {
        text.push_str(&table(cells, "sleeps in the kernel per operation (preemptions in all)", |outcome| {
            let sleeps = outcome.kernel.sleeps as f64 / outcome.operations.max(1) as f64;
            format!("{sleeps:.4} ({})", outcome.kernel.preemptions)
        }));
    }
    if cells.iter().any(|cell| cell.outcome.threads > 1) {
        text.push_str(&table(
            cells,
            "how even the shares are, from 0 to 1 (threads that got nothing)",
            |outcome| format!("{:.3} ({})", outcome.fairness.jain, outcome.fairness.starved),
        ));
    }
    text
}

fn table(cells: &[Cell], what: &str, show: impl Fn(&Outcome) -> String) -> String {
    let mut locks: Vec<&str> = Vec::new();
    let mut cpus: Vec<usize> = Vec::new();
    for cell in cells {
        if !locks.contains(&cell.lock.as_str()) {
            locks.push(&cell.lock);
        }
        if !cpus.contains(&cell.outcome.cpus) {
            cpus.push(cell.outcome.cpus);
        }
    }
    let mut text = format!("predicted, not measured: {what}\n{:>5}", "cpus");
    for lock in &locks {
        let _ = write!(text, " {lock:>18}");
    }
    text.push('\n');
    for cpus in cpus {
        let _ = write!(text, "{cpus:>5}");
        for lock in &locks {
            let cell = cells.iter().find(|cell| cell.lock == *lock && cell.outcome.cpus == cpus);
            let shown = cell.map_or_else(String::new, |cell| show(&cell.outcome));
            let _ = write!(text, " {shown:>18}");
        }
        text.push('\n');
    }
    text
}
