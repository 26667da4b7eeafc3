//! The predictions as a page: the parameters first, then one plot for each quantity.

use super::Cell;
use crate::svg::{Mark, Plot, Series, draw, escape};
use std::fmt::Write;
use ulocks_vm_cost::{Machine, Outcome};

/// Line colours that can be told apart, by lock.
const COLOURS: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555"];

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color:#222;\
background:#fff}pre{background:#f4f4f4;padding:1rem;overflow:auto}.warn{background:#fff3cd;padding:.6rem 1rem}\
svg{width:32rem;max-width:100%;font:11px system-ui,sans-serif}svg .grid{stroke:#ddd;fill:none}svg .title{font-weight:600}\
svg .line{fill:none;stroke:var(--c);stroke-width:2}svg .band{display:none}svg .dot{fill:var(--c)}svg .lead{stroke:#bbb;\
fill:none}svg .name{fill:var(--c)}svg path.cpus,svg text.cpus{display:none}";

/// What is plotted of an outcome.
type Value = fn(&Outcome) -> Option<f64>;

/// A page's beginning, with a colour for each of `lines` lines. They come back to the first colour.
fn begin(title: &str, lines: usize) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>ulocks: {}</title>\n<style>{STYLE}",
        escape(title)
    );
    for index in 0..lines {
        let _ = write!(page, ".s{index}{{--c:{}}}", COLOURS[index % COLOURS.len()]);
    }
    page + "</style>\n"
}

/// The page.
pub(super) fn html(machine: &Machine, load: &str, cells: &[Cell]) -> String {
    let locks = locks(cells);
    let mut page = begin("predicted cost", locks.len());
    let _ = write!(
        page,
        "<h1>What the locks would cost</h1>\n<p class=\"warn\">Predicted by a model of caches, kernel and \
         scheduler from the parameters below. Nothing here was measured. Counts, orders and growth hold up; \
         nanoseconds are no better than the parameters.</p>\n<p>{}.</p>\n",
        escape(load)
    );
    let plots: [(&str, bool, Value); 4] = [
        ("operations per microsecond (predicted)", true, |outcome| Some(outcome.per_us)),
        ("line transfers per operation (predicted)", true, |outcome| Some(outcome.transfers_per_operation)),
        ("p99 wait in nanoseconds (predicted)", true, |outcome| outcome.waits.as_ref().map(|w| w.p99)),
        ("Jain's fairness index (predicted)", false, |outcome| Some(outcome.fairness.jain)),
    ];
    for (title, log, value) in plots {
        page.push_str(&plot(title, log, value, &locks, cells));
        page.push('\n');
    }
    let _ = write!(page, "<h2>Parameters</h2>\n<pre>{}</pre>\n</html>\n", escape(&machine.to_string()));
    page
}

fn locks(cells: &[Cell]) -> Vec<&str> {
    let mut locks: Vec<&str> = Vec::new();
    for cell in cells {
        if !locks.contains(&cell.lock.as_str()) {
            locks.push(&cell.lock);
        }
    }
    locks
}

fn plot(title: &str, log: bool, value: Value, locks: &[&str], cells: &[Cell]) -> String {
    /// A logarithmic axis has no zero.
    const LEAST: f64 = 1e-3;
    let mut cpus: Vec<u32> = cells.iter().map(|cell| cell.outcome.cpus as u32).collect();
    cpus.sort_unstable();
    cpus.dedup();
    let series = locks.iter().enumerate().map(|(index, lock)| Series {
        name: lock,
        class: format!("s{index}"),
        points: cells
            .iter()
            .filter(|cell| cell.lock == *lock)
            .filter_map(|cell| {
                let value = value(&cell.outcome)?;
                let value = if log { value.max(LEAST) } else { value };
                Some(Mark { threads: cell.outcome.cpus as u32, value, band: (value, value), modes: None })
            })
            .collect(),
    });
    let most = cpus.last().copied().unwrap_or(1);
    draw(&Plot {
        title: title.to_owned(),
        axis: "threads",
        threads: &cpus,
        cpus: most,
        log,
        unit: short,
        series: series.collect(),
    })
}

/// A value with about three digits.
fn short(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}
