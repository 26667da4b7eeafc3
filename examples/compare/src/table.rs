//! The tables, and the page that has them.

use crate::tools::{Cell, MIRI, SEEDS, Said, TOOLS, cell, has_miri};
use crate::worlds::std::families;
use crate::worlds::std::programs::{self, Program};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

const BEGIN: &str = "<!-- written by `cargo run --release -- --write` in examples/compare -->\n";
const END: &str = "<!-- end of what is written -->\n";

/// Writes the tables into the guide.
pub fn write() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/checker/vm/guide/others.md");
    let tables = tables();
    let text = fs::read_to_string(&page).expect("the page");
    let (before, rest) = text.split_once(BEGIN).expect("the place where the tables begin");
    let (_, after) = rest.split_once(END).expect("the place where they end");
    fs::write(&page, format!("{before}{BEGIN}\n{tables}\n{END}{after}")).expect("the page");
}

/// Both tables, and what is missing.
pub fn tables() -> String {
    let mut tools: Vec<&str> = TOOLS.into();
    let has_miri = has_miri();
    if has_miri {
        tools.push(MIRI);
    }
    let mut text = format!("{}\n{}", programs_table(&tools), families_table(&tools));
    if !has_miri {
        text += "\nMiri is missing here: `rustup +nightly component add miri rust-src` gets it.\n";
    }
    text
}

fn head(first: &str, tools: &[&str]) -> String {
    let names =
        tools.iter().map(|&tool| if tool == MIRI { format!("{MIRI}, {SEEDS} seeds") } else { tool.into() });
    format!("| {first} | {} |\n|---|{}\n", names.collect::<Vec<_>>().join(" | "), "---|".repeat(tools.len()))
}

/// A row for each program.
fn programs_table(tools: &[&str]) -> String {
    let mut text = head("program | ", tools).replacen("|---|", "|---|---|", 1);
    for program in programs::ALL {
        let kind = if program.is_wrong { "wrong" } else { "right" };
        let _ = write!(text, "| {} | {kind} |", program.name);
        for tool in tools {
            let Cell { said, time } = told(tool, program);
            let count = |what: &str, count: String| {
                if count.is_empty() { what.into() } else { format!("{what}, {count}") }
            };
            let said = match said {
                Said::Passes(executions) => count("passes", executions),
                Said::Found(executions) => count("found", executions),
                Said::NoEnd => "no end".into(),
            };
            let _ = write!(text, " {said}, {} |", seconds(time));
        }
        text.push('\n');
    }
    text
}

/// What a tool has said of a family, or of all of them.
#[derive(Default)]
struct Sum {
    /// Right programs of which the tool says that it has seen all.
    complete: u32,
    bugs: u32,
    found: u32,
    alarms: u32,
    endless: u32,
    time: Duration,
}

/// A row for each family: a right program, and those behind it that are wrong.
fn families_table(tools: &[&str]) -> String {
    let all: Vec<&Program> = families::all().collect();
    let mut text = head("family", tools);
    let mut sums: Vec<Sum> = tools.iter().map(|_| Sum::default()).collect();
    let mut families = 0;
    for family in all.chunk_by(|_, next| next.is_wrong) {
        families += 1;
        let _ = write!(text, "| {} |", family[0].name);
        for (tool, sum) in tools.iter().zip(&mut sums) {
            let _ = write!(text, " {} |", family_cell(tool, family, sum));
        }
        text.push('\n');
    }
    text += "| **complete** |";
    for (tool, sum) in tools.iter().zip(&sums) {
        let said = if says_complete(tool) { format!("{} of {families}", sum.complete) } else { "-".into() };
        let _ = write!(text, " {said} |");
    }
    text += "\n| **bugs found** |";
    for sum in &sums {
        let _ = write!(text, " {} of {} |", sum.found, sum.bugs);
    }
    text += "\n| **false alarms** |";
    for sum in &sums {
        let _ = write!(text, " {} |", sum.alarms);
    }
    text += "\n| **right, no end in time** |";
    for sum in &sums {
        let _ = write!(text, " {} |", sum.endless);
    }
    text += "\n| **all together** |";
    for sum in &sums {
        let _ = write!(text, " {:.0} s |", sum.time.as_secs_f64());
    }
    text + "\n"
}

/// Whether the tool says of a program that passes whether a bound has cut its exploration.
fn says_complete(tool: &str) -> bool {
    tool == TOOLS[0]
}

/// `passes 12; 2, 5; 0.03 s`: what is said of the right program, at which execution each bug is
/// found, and the time of all. A star is behind `passes` if a bound has cut the exploration.
///
/// A wrong program that is reported where the right one is has the same false alarm, and its bug is
/// not found.
fn family_cell(tool: &str, family: &[&Program], sum: &mut Sum) -> String {
    let mut time = Duration::ZERO;
    let mut parts = Vec::new();
    let mut alarm = None;
    for program in family {
        let cell = told(tool, program);
        time += cell.time;
        sum.bugs += u32::from(program.is_wrong);
        parts.push(match cell.said {
            Said::Found(at) if program.is_wrong && alarm.as_ref() == Some(&at) => "alarm".into(),
            Said::Found(at) if program.is_wrong => {
                sum.found += 1;
                if at.is_empty() { "found".into() } else { at }
            }
            Said::Found(at) => {
                sum.alarms += 1;
                let text = format!("ALARM {at}").trim_end().into();
                alarm = Some(at);
                text
            }
            Said::Passes(_) if program.is_wrong => "missed".to_owned(),
            // Of the number and the bounds, the number.
            Said::Passes(count) => {
                let all = count.strip_prefix("all ");
                sum.complete += u32::from(all.is_some());
                let number = all.unwrap_or(&count).split(',').next().unwrap_or_default();
                let star = if says_complete(tool) && all.is_none() { "*" } else { "" };
                format!("passes {number}{star}").trim_end().into()
            }
            Said::NoEnd if program.is_wrong => "no end".into(),
            Said::NoEnd => {
                sum.endless += 1;
                "no end".into()
            }
        });
    }
    sum.time += time;
    let bugs = parts[1..].join(", ");
    format!("{}; {bugs}; {}", parts[0], seconds(time))
}

/// The cell, which is told on the way, since the whole takes long.
fn told(tool: &str, program: &Program) -> Cell {
    let cell = cell(tool, program.name);
    let said = match &cell.said {
        Said::Passes(what) => format!("passes {what}"),
        Said::Found(what) => format!("found {what}"),
        Said::NoEnd => "no end".into(),
    };
    eprintln!("{tool}, {}: {said}, {}", program.name, seconds(cell.time));
    cell
}

fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}
