//! The predictions as a table for a terminal.

use super::Cell;
use std::fmt::Write;

/// One row for each number of CPUs, one column for each lock: operations per microsecond, and in brackets line
/// transfers per operation.
pub(super) fn text(cells: &[Cell]) -> String {
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
    let mut text =
        String::from("predicted, not measured: operations per us (line transfers per operation)\n");
    let _ = write!(text, "{:>5}", "cpus");
    for lock in &locks {
        let _ = write!(text, " {lock:>18}");
    }
    text.push('\n');
    for cpus in cpus {
        let _ = write!(text, "{cpus:>5}");
        for lock in &locks {
            let cell = cells.iter().find(|cell| cell.lock == *lock && cell.outcome.cpus == cpus);
            let shown = cell.map_or_else(String::new, |Cell { outcome, .. }| {
                format!("{:.2} ({:.1})", outcome.per_us, outcome.transfers_per_operation)
            });
            let _ = write!(text, " {shown:>18}");
        }
        text.push('\n');
    }
    text
}
