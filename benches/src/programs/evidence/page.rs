//! The page and its twin in Markdown: one list of blocks, written in two ways.

use super::{Found, SOURCES, Shown, Source};
use crate::report;
use crate::report::svg::escape;
use std::fmt::Write;

/// What the page consists of.
enum Block<'a> {
    Title(String),
    /// A heading, and the name by which a link finds it.
    Section(String, &'static str),
    Text(String),
    Command(String),
    /// A header and rows.
    Table(Vec<Vec<String>>),
    /// A record under a line that says of which run it is, and whether it is the first of its
    /// program.
    Record(&'a Found, &'a Shown, bool),
}

/// All blocks, or those of the records alone.
fn blocks(found: &[Found], all: bool) -> Vec<Block<'_>> {
    let mut blocks = vec![
        Block::Title("ulocks: all figures".into()),
        Block::Text(
            "Each section is what its program prints, computed from the record of a run. A ratio compares two locks \
             of one run; rates of two machines do not compare."
                .into(),
        ),
    ];
    if all {
        blocks.push(Block::Table(overview(found)));
    }
    for source in SOURCES.iter().filter(|source| all || of(found, source).next().is_some()) {
        blocks.push(Block::Section(format!("{}: {}", source.name, source.about), source.name));
        blocks.push(Block::Command(source.command.into()));
        if of(found, source).next().is_none() {
            blocks.push(Block::Text("Not run yet. The command above runs it.".into()));
        }
        let mut first = true;
        blocks.extend(of(found, source).map(|run| match &run.shown {
            Ok(shown) => Block::Record(run, shown, std::mem::take(&mut first)),
            Err(error) => Block::Text(format!("{} is not shown: {error:#}.", run.file)),
        }));
    }
    blocks
}

fn of<'a>(found: &'a [Found], source: &Source) -> impl Iterator<Item = &'a Found> {
    found.iter().filter(move |run| run.source.name == source.name)
}

/// What run it is, on one line.
fn caption(run: &Found, shown: &Shown) -> String {
    format!("{}, {}, {}", run.file, shown.run, shown.machine)
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
                [&shown.date, &shown.run].map(String::as_str).join(", ").trim_start_matches(", ").into(),
                shown.cpus.clone(),
            ),
            Err(_) => row(format!("{} cannot be read", run.file), "unknown".into()),
        }));
        if rows.len() == before {
            rows.push(row("not run".into(), "none".into()));
        }
    }
    rows
}

/// The page: one file, no scripts, nothing fetched. Of the records of a program, one is open.
pub(super) fn html(found: &[Found], all: bool) -> String {
    let blocks = blocks(found, all);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <title>ulocks: all figures</title>\n<style>\n{}\
         pre {{ margin: 0; padding: .7rem .9rem; font: .78rem/1.45 var(--mono) }}\n\
         .scroll, .plots {{ margin: .6rem 0 }}\nth, td {{ text-align: left }}\na {{ color: inherit }}\n{}\
         </style>\n</head>\n<body>\n<main>\n",
        include_str!("../../report/page.css"),
        blocks.iter().enumerate().map(|(nth, block)| style(nth, block)).collect::<String>(),
    );
    for (nth, block) in blocks.iter().enumerate() {
        match block {
            Block::Title(text) => writeln!(page, "<h1>{}</h1>", escape(text)),
            Block::Section(text, name) => writeln!(page, "<h2 id=\"{name}\">{}</h2>", escape(text)),
            Block::Text(text) => writeln!(page, "<p>{}</p>", escape(text)),
            Block::Command(text) => {
                writeln!(page, "<div class=\"scroll\"><pre>{}</pre></div>", escape(text))
            }
            Block::Record(run, shown, first) => {
                record(&mut page, nth, run, shown, *first);
                Ok(())
            }
            Block::Table(rows) => {
                let line = |(index, row): (usize, &Vec<String>)| {
                    let tag = if index == 0 { "th" } else { "td" };
                    let cells = row.iter().map(|cell| format!("<{tag}>{}</{tag}>", linked(cell)));
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

/// A cell; the name of a program leads to its section.
fn linked(cell: &str) -> String {
    let text = escape(cell);
    if SOURCES.iter().any(|source| source.name == cell) {
        format!("<a href=\"#{text}\">{text}</a>")
    } else {
        text
    }
}

/// The looks of the lines of a record.
fn style(nth: usize, block: &Block<'_>) -> String {
    match block {
        Block::Record(_, Shown { charts: Some((lines, _)), .. }, _) => {
            report::style(&format!(".r{nth} "), lines)
        }
        _ => String::new(),
    }
}

fn record(page: &mut String, nth: usize, run: &Found, shown: &Shown, first: bool) {
    let open = if first { " open" } else { "" };
    let name = run.source.name;
    let summary = escape(&caption(run, shown));
    writeln!(page, "<details name=\"{name}\"{open}><summary>{summary}</summary>").unwrap();
    if let Some((_, drawings)) = &shown.charts {
        writeln!(page, "<div class=\"plots r{nth}\">").unwrap();
        for drawing in drawings {
            writeln!(page, "<figure>{drawing}</figure>").unwrap();
        }
        writeln!(page, "</div>").unwrap();
    }
    let text = escape(shown.text.trim_matches('\n'));
    writeln!(page, "<div class=\"scroll\"><pre>{text}</pre></div></details>").unwrap();
}

/// The same in Markdown, without the drawings.
pub(super) fn markdown(found: &[Found]) -> String {
    let mut page = String::new();
    for block in blocks(found, true) {
        match block {
            Block::Title(text) => writeln!(page, "# {text}\n"),
            Block::Section(text, _) => writeln!(page, "## {text}\n"),
            Block::Text(text) => writeln!(page, "{text}\n"),
            Block::Command(text) => writeln!(page, "```sh\n{text}\n```\n"),
            Block::Record(run, shown, _) => {
                let text = shown.text.trim_matches('\n');
                writeln!(page, "{}\n\n```text\n{text}\n```\n", caption(run, shown))
            }
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
