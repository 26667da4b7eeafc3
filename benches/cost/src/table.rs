//! The predictions as tables for a terminal.

use super::Cell;
use std::fmt::Write;
use ulocks_vm_cost::Outcome;

/// The tables: a row for each number of CPUs, a column for each of so many locks.
pub(super) fn text(cells: &[Cell], locks: usize) -> String {
    let table = |what, show: fn(&Outcome) -> String| table(cells, locks, what, show);
    let mut text = table("operations per us (line transfers per operation)", |outcome| {
        format!("{:.2} ({:.1})", outcome.per_us, outcome.transfers_per_operation)
    });
    if cells.iter().any(|cell| cell.outcome.kernel.sleeps > 0) {
        text += &table("sleeps in the kernel per operation (preemptions in all)", |outcome| {
            let sleeps = outcome.kernel.sleeps as f64 / outcome.operations.max(1) as f64;
            format!("{sleeps:.4} ({})", outcome.kernel.preemptions)
        });
    }
    if cells.iter().any(|cell| cell.outcome.threads > 1) {
        text += &table("how even the shares are, from 0 to 1 (threads that got nothing)", |outcome| {
            format!("{:.3} ({})", outcome.fairness.jain, outcome.fairness.starved)
        });
    }
    text
}

fn table(cells: &[Cell], locks: usize, what: &str, show: fn(&Outcome) -> String) -> String {
    let mut text = format!("predicted, not measured: {what}\n{:>5} {:>7}", "cpus", "threads");
    for cell in &cells[..locks] {
        let _ = write!(text, " {:>18}", cell.lock);
    }
    for row in cells.chunks(locks) {
        // Spread threads have all CPUs of the machine.
        let _ = write!(text, "\n{:>5} {:>7}", row[0].outcome.cpus, row[0].outcome.threads);
        for cell in row {
            let _ = write!(text, " {:>18}", show(&cell.outcome));
        }
    }
    text + "\n"
}
