//! The page of all records in a folder: the answer and one chart, then each row, then the runs.
//! One file without scripts, and nothing is fetched.

use super::svg::escape;
use super::tables::{Table, all, legend};
use super::{answer, charts, compare, kept, looks};
use crate::engine::record::{Ended, Mode, Record};
use crate::mails;
use crate::rows::{self, Row};
use anyhow::{Context, Result};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// The words of the page, in five lines.
const LEGEND: [&str; 5] = [
    "Solid lines are locks of this family, dashed ones are its peers; no two of a chart look alike.",
    "By the best peer: the figure by that of the best peer of the same cell, round by round; at 1 they are level.",
    "A thin line is a 95 % interval, [..] in tables, or of a median of fewer than six rounds their range. \
     Two open circles, and a|b, are two modes: no mean is given.",
    "(in, out): mean times inside and outside the lock. All run: the fastest with which no thread hardly ran, \
     up to as many threads as CPUs. Both: the fastest of all, too. A peer has its rate itself.",
    "COV: standard deviation by mean of the threads' operations; 0 is fair. -: unknown, or not measured.",
];

/// The records of one place: the loose ones of a folder, or those of a packed file.
#[derive(Default)]
struct Place {
    name: String,
    records: Vec<Record>,
    before: Vec<Record>,
    /// A line for each file.
    files: Vec<Vec<String>>,
}

/// Writes `index.html` of all records in a folder.
pub fn write(folder: &Path) -> Result<PathBuf> {
    let page = folder.join("index.html");
    write_to(&[folder.to_owned()], &page)?;
    Ok(page)
}

/// Writes the page of all records in these files and folders.
pub fn write_to(paths: &[PathBuf], page: &Path) -> Result<()> {
    let mut loose = Place { name: "this folder".into(), ..Place::default() };
    let mut packed = Vec::new();
    for path in paths {
        let mut files = vec![path.clone()];
        let found = fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
        if found.is_dir() {
            let entries = fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))?;
            files = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
            files.retain(|file| file.extension().is_some_and(|end| end == "json"));
            files.sort();
        }
        for file in files {
            take(&file, &mut loose, &mut packed);
        }
    }
    packed.sort_by(|a, b| b.name.cmp(&a.name));
    let mut places: Vec<Place> = [loose].into_iter().chain(packed).collect();
    places.retain(|place| !place.files.is_empty());
    places.iter_mut().for_each(settle);
    let parent = page.parent().unwrap_or(Path::new("."));
    let criterion = parent.join("../criterion/report/index.html").is_file();
    fs::write(page, html(&places, rows::ALL, criterion))
        .with_context(|| format!("cannot write {}", page.display()))
}

fn take(file: &Path, loose: &mut Place, packed: &mut Vec<Place>) {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let line = |record: &Record| {
        let ended = if record.ended == Ended::Interrupted { ", interrupted" } else { "" };
        let rounds = format!("{} rounds{ended}", record.rounds_done());
        let machine = answer::short_model(&record.machine.cpu_model);
        let machine = format!("{machine}, {} CPUs", record.machine.cpus());
        vec![record.row.clone(), record.machine.date.clone(), machine, rounds, stem.clone()]
    };
    match kept::read(file) {
        Ok(records) if records.len() == 1 => {
            loose.files.extend(records.iter().map(line));
            if stem.ends_with(".before") { &mut loose.before } else { &mut loose.records }.extend(records);
        }
        Ok(records) => {
            let files = records.iter().map(line).collect();
            packed.push(Place { name: stem.clone(), records, before: Vec::new(), files });
        }
        Err(error) => loose.files.push(vec![stem, format!("not shown: {error:#}")]),
    }
}

/// One record of each row, in the order of the rows: a measurement rather than a smoke run, a
/// complete one rather than an interrupted one, and the newest.
fn settle(place: &mut Place) {
    let order = |record: &Record| {
        let row = kept::row_of(&record.row).map_or("", |row| row.name);
        rows::ALL.iter().position(|other| other.name == row).unwrap_or(usize::MAX)
    };
    let merit = |record: &Record| {
        let whole = record.ended != Ended::Interrupted;
        std::cmp::Reverse((record.mode != Mode::Smoke, whole, record.machine.date.clone()))
    };
    place.records.sort_by_key(|record| (order(record), record.row.clone(), merit(record)));
    place.records.dedup_by(|worse, better| worse.row == better.row);
}

/// What the page is made of while it is written.
#[derive(Default)]
struct Page {
    style: String,
    body: String,
    looks: looks::Looks,
    tables: usize,
}

impl Page {
    fn tag(&mut self, tag: &str, text: &str) {
        let name = tag.split(' ').next().unwrap_or(tag);
        writeln!(self.body, "<{tag}>{}</{name}>", escape(&text.replace('`', ""))).unwrap();
    }

    fn table(&mut self, table: Table) {
        for part in table.fitting(false) {
            self.tables += 1;
            let (html, style) = part.html(&format!("t{}", self.tables));
            self.body += &html;
            self.style += &style;
        }
    }

    /// Two beside each other; of an odd number the last is as wide as two.
    fn charts(&mut self, charts: &[charts::Chart]) {
        let figure = |(nth, charts::Chart { caption, svg }): (usize, &charts::Chart)| {
            let wide = if nth + 1 == charts.len() && nth % 2 == 0 { " class=\"wide\"" } else { "" };
            format!("<figure{wide}><figcaption>{}</figcaption>{svg}</figure>\n", escape(caption))
        };
        let figures: String = charts.iter().enumerate().map(figure).collect();
        if !charts.is_empty() {
            self.body += &format!("<div class=\"plots\">\n{figures}</div>\n");
        }
    }

    fn answer(&mut self, place: &Place, rows: &[Row]) {
        let caveats = answer::caveats(&place.records);
        let lines: String = caveats.iter().map(|line| format!("<p>{}</p>", escape(line))).collect();
        if !caveats.is_empty() {
            self.body += &format!("<div class=\"note\">{lines}</div>\n");
        }
        match answer::answered(&place.records) {
            Some(Ok(answer)) => {
                self.tag("h2", &answer.title);
                self.table(answer.table);
                answer.lines.iter().skip(1).for_each(|line| self.tag("p", line));
            }
            Some(Err(why)) => self.tag("p", &why),
            None => self.tag("p", "No answer: `scaling` was not run."),
        }
        let first = place.records.iter().find_map(|record| {
            let row = rows.iter().find(|row| row.name == record.row)?;
            charts::one(record, row, &mut self.looks)
        });
        self.charts(first.as_slice());
    }

    fn record(&mut self, nth: usize, record: &Record, before: Option<&Record>, row: Option<&Row>) {
        let mail = mails::ALL.iter().find(|mail| mail.row == record.row);
        let about = row.map_or_else(|| mail.map_or("", |mail| mail.mail), |row| row.about);
        writeln!(self.body, "<section id=\"{}-{nth}\">", record.row).unwrap();
        self.tag("h2", &format!("{}: {about}", record.row));
        let rounds = record.rounds_done();
        self.tag("p", &format!("{}, {rounds} rounds of {} ms", record.command, record.window_ms));
        answer::sentences_of(record).iter().for_each(|sentence| self.tag("p", sentence));
        if let Some(line) = before.and_then(|before| compare::summary(before, record)) {
            self.tag("p", &line);
        }
        let charts = charts::of_record(record, row, &mut self.looks);
        charts.iter().for_each(|drawn| self.charts(drawn));
        for beside in mail.map_or(Vec::new(), |mail| (mail.tables)(record)) {
            self.tag("h3", &beside.title);
            self.table(beside.table);
            self.tag("p", &beside.today.join(" "));
        }
        if let Some(row) = row {
            self.body += "<details><summary>All figures</summary>\n";
            for (name, table) in all(record, row) {
                self.tag("h3", &name);
                self.table(table);
            }
            for line in legend(record, row).iter().map(String::as_str).chain(row.notes.lines()) {
                self.tag("p", line);
            }
            self.body += "</details>\n";
        }
        self.body += "</section>\n";
    }
}

fn html(places: &[Place], rows: &[Row], criterion: bool) -> String {
    let mut page = Page::default();
    page.tag("h1", "ulocks: figures");
    if let Some(place) = places.first() {
        page.answer(place, rows);
    }
    page.body += "<div class=\"legend\">\n";
    LEGEND.iter().for_each(|line| page.tag("p", line));
    page.body += "</div>\n";
    for (nth, place) in places.iter().enumerate() {
        if nth > 0 {
            page.tag("h1", &place.name);
            page.answer(place, rows);
        }
        for record in &place.records {
            let is_before = |old: &&Record| old.row == record.row && old.mode == record.mode;
            let before = place.before.iter().find(is_before);
            let name = kept::row_of(&record.row).map_or(record.row.as_str(), |row| row.name);
            page.record(nth, record, before, rows.iter().find(|row| row.name == name));
        }
    }
    page.tag("h2", "Runs");
    if criterion {
        page.body += "<p>Uncontended and contended pairs by criterion: \
                      <a href=\"../criterion/report/index.html\">its own report</a>.</p>\n";
    }
    let mut runs = Table::new(5, ["row", "date", "machine", "rounds", "file"]);
    runs.rows = places.iter().flat_map(|place| place.files.clone()).collect();
    page.table(runs);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>ulocks: figures</title>\n\
         <style>\n{}{}{}</style>\n</head>\n<body>\n<main>\n{}</main>\n</body>\n</html>\n",
        include_str!("page.css"),
        looks::style(),
        page.style,
        page.body
    )
}

#[cfg(test)]
mod tests;
