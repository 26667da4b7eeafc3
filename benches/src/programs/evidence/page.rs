//! The page and its twin in Markdown: one list of blocks, written in two ways.

use super::mails::{MAILS, today};
use super::{Found, SOURCES, Source};
use crate::report::Mode;
use crate::report::svg::escape;
use std::fmt::Write;

/// What the page consists of.
enum Block {
    Title(String),
    Section(String),
    Text(String),
    Command(String),
    /// A header and rows.
    Table(Vec<Vec<String>>),
    /// What a program prints, under a line that says of which run.
    Record(String, String),
}

fn blocks(found: &[Found]) -> Vec<Block> {
    let mut blocks = vec![
        Block::Title("ulocks: all figures".into()),
        Block::Text(
            "Each section is what its program prints, computed from the record of a run. A ratio compares two locks \
             of one run; rates of two machines do not compare."
                .into(),
        ),
        Block::Table(overview(found)),
    ];
    for mail in MAILS {
        blocks.push(Block::Section(mail.title.into()));
        blocks.push(Block::Text(mail.note.into()));
        if !mail.then.is_empty() {
            let rows = mail.then.iter().map(|row| row.iter().map(|&cell| cell.into()).collect());
            blocks.push(Block::Table(rows.collect()));
        }
        if let Some(heading) = mail.heading {
            blocks.push(Block::Text(format!("BENCHMARKS.md, \"{heading}\": {}", today(heading))));
        }
        let today = mail.programs.iter().map(|program| format!("Today: the section {program}."));
        blocks.extend(today.chain(mail.missing.map(|missing| format!("Today: {missing}."))).map(Block::Text));
    }
    for source in SOURCES {
        blocks.push(Block::Section(format!("{}: {}", source.name, source.about)));
        blocks.push(Block::Command(source.command.into()));
        let runs: Vec<_> = of(found, source).collect();
        if runs.is_empty() {
            blocks.push(Block::Text("Not run yet. The command above runs it.".into()));
        }
        blocks.extend(runs.into_iter().map(|run| match &run.shown {
            Ok(shown) => Block::Record(
                format!("{}, {}, {}", run.file, shown.machine, shown.machine.date),
                shown.text.trim_matches('\n').into(),
            ),
            Err(error) => Block::Text(format!("{} is not shown: {error:#}.", run.file)),
        }));
    }
    blocks
}

fn of<'a>(found: &'a [Found], source: &'a Source) -> impl Iterator<Item = &'a Found> {
    found.iter().filter(move |run| run.source.name == source.name)
}

fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Full => "full",
        Mode::Quick => "a quick look",
        Mode::Smoke => "a smoke run, which measures nothing",
    }
}

/// A row for each run, and for each program that was not run.
fn overview(found: &[Found]) -> Vec<Vec<String>> {
    let mut rows = vec![["program", "run", "machine", "command"].map(String::from).to_vec()];
    for source in SOURCES {
        let row =
            |run: String, machine: String| vec![source.name.into(), run, machine, source.command.into()];
        let before = rows.len();
        rows.extend(of(found, source).map(|run| match &run.shown {
            Ok(shown) => row(
                format!("{}, {}", shown.machine.date, mode(shown.mode)),
                format!("{}, {} CPUs", shown.machine.cpu_model, shown.machine.cpus_online),
            ),
            Err(_) => row(format!("{} cannot be read", run.file), "unknown".into()),
        }));
        if rows.len() == before {
            rows.push(row("not run".into(), "none".into()));
        }
    }
    rows
}

/// The page: one file, no scripts, nothing fetched.
pub(super) fn html(found: &[Found]) -> String {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <title>ulocks: all figures</title>\n<style>\n{}\
         pre {{ margin: 0; padding: .7rem .9rem; font: .78rem/1.45 var(--mono) }}\n\
         .scroll {{ margin: .6rem 0 }}\nth, td {{ text-align: left }}\n\
         </style>\n</head>\n<body>\n<main>\n",
        include_str!("../../report/page.css")
    );
    for block in blocks(found) {
        match block {
            Block::Title(text) => writeln!(page, "<h1>{}</h1>", escape(&text)),
            Block::Section(text) => writeln!(page, "<h2>{}</h2>", escape(&text)),
            Block::Text(text) => writeln!(page, "<p>{}</p>", escape(&text)),
            Block::Command(text) => {
                writeln!(page, "<div class=\"scroll\"><pre>{}</pre></div>", escape(&text))
            }
            Block::Record(run, text) => writeln!(
                page,
                "<details open><summary>{}</summary>\n<div class=\"scroll\"><pre>{}</pre></div></details>",
                escape(&run),
                escape(&text)
            ),
            Block::Table(rows) => {
                let line = |(index, row): (usize, &Vec<String>)| {
                    let tag = if index == 0 { "th" } else { "td" };
                    let cells = row.iter().map(|cell| format!("<{tag}>{}</{tag}>", escape(cell)));
                    format!("<tr>{}</tr>\n", cells.collect::<String>())
                };
                let lines: String = rows.iter().enumerate().map(line).collect();
                writeln!(page, "<div class=\"scroll\"><table>\n{lines}</table></div>")
            }
        }
        .unwrap();
    }
    page + "</main>\n</body>\n</html>\n"
}

/// The same in Markdown.
pub(super) fn markdown(found: &[Found]) -> String {
    let mut page = String::new();
    for block in blocks(found) {
        match block {
            Block::Title(text) => writeln!(page, "# {text}\n"),
            Block::Section(text) => writeln!(page, "## {text}\n"),
            Block::Text(text) => writeln!(page, "{text}\n"),
            Block::Command(text) => writeln!(page, "```sh\n{text}\n```\n"),
            Block::Record(run, text) => writeln!(page, "{run}\n\n```text\n{text}\n```\n"),
            Block::Table(rows) => {
                let line = |row: &Vec<String>| {
                    let cells = row.iter().map(|cell| format!(" {} |", cell.replace('|', "\\|")));
                    format!("|{}\n", cells.collect::<String>())
                };
                let rule = format!("|{}\n", "---|".repeat(rows[0].len()));
                let body: String = rows[1..].iter().map(line).collect();
                writeln!(page, "{}{rule}{body}", line(&rows[0]))
            }
        }
        .unwrap();
    }
    page
}
