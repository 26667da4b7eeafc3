//! The tables of a record: one for each section, a line for each label and subject.

use super::answer::STD;
use super::overview::overview;
use super::svg::escape;
use super::units;
use crate::engine::cell::Kind;
use crate::engine::figures::Figure;
use crate::engine::record::{Line, Measured, Record};
use crate::rows::{By, Column, Row, claims};
use std::fmt::Write;

/// No table is wider.
pub const WIDTH: usize = 100;
/// Labels and names of subjects are cut to so many characters where a table would be too wide.
const LABEL: usize = 44;
const NAME: usize = 18;
/// So wide are the words of a promise.
const PROMISE: usize = 44;

/// A table, as text and as HTML.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The heads of the columns.
    pub head: Vec<String>,
    /// The lines; an empty one is a gap.
    pub rows: Vec<Vec<String>>,
    /// So many columns stand left, all others right.
    pub left: usize,
    /// Text of the first column that is longer than this is written in several lines; 0 for none.
    pub wrap: usize,
}

impl Table {
    /// A table without lines.
    pub fn new(left: usize, head: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { head: head.into_iter().map(Into::into).collect(), rows: Vec::new(), left, wrap: 0 }
    }

    fn widths(&self) -> Vec<usize> {
        let width = |at: usize| {
            let cells = [&self.head].into_iter().chain(&self.rows).filter_map(|row| row.get(at));
            let width = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
            if at == 0 && self.wrap > 0 { width.min(self.wrap) } else { width }
        };
        (0..self.head.len()).map(width).collect()
    }

    /// Columns as wide as what stands in them.
    pub fn text(&self) -> String {
        let widths = self.widths();
        let line = |row: &Vec<String>| {
            let first = row.first().map_or(String::new(), |cell| lines(cell, widths[0], 2).join("\n"));
            let (first, more) = first.split_once('\n').unwrap_or((&first, ""));
            let cells = [first].into_iter().chain(row.iter().skip(1).map(String::as_str));
            let cells = cells.zip(&widths).enumerate().map(|(at, (cell, &width))| {
                if at < self.left { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
            });
            let line = cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n";
            if more.is_empty() { line } else { line + more + "\n" }
        };
        let rule = "-".repeat(widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1));
        line(&self.head) + &rule + "\n" + &self.rows.iter().map(line).collect::<String>()
    }

    /// A table of HTML, and its style: on a narrow page each entry stands behind the head of its
    /// column. A line that follows on a gap has the class `first`.
    pub fn html(&self, id: &str) -> (String, String) {
        let named = self.head.iter().enumerate().filter(|(at, head)| *at >= self.left && !head.is_empty());
        let name = |(at, head): (usize, &String)| {
            format!("#{id} td:nth-child({})::before {{ content: \"{head} \" }}\n", at + 1)
        };
        let style = named.map(name).collect::<String>();
        let cells = |tag: &str, row: &[String]| {
            let cell = |(at, cell): (usize, &String)| {
                let class = if at < self.left { " class=\"l\"" } else { "" };
                format!("<{tag}{class}>{}</{tag}>", escape(cell))
            };
            row.iter().enumerate().map(cell).collect::<String>()
        };
        let after_gap = |at: usize| at > 0 && self.rows[at - 1].is_empty();
        let rows = self.rows.iter().enumerate().filter(|(_, row)| !row.is_empty()).map(|(at, row)| {
            let first = if after_gap(at) { " class=\"first\"" } else { "" };
            format!("<tr{first}>{}</tr>\n", cells("td", row))
        });
        let (head, rows) = (cells("th", &self.head), rows.collect::<String>());
        let html =
            format!("<table id=\"{id}\"><thead><tr>{head}</tr></thead><tbody>\n{rows}</tbody></table>\n");
        (html, style)
    }

    /// Tables that are not wider than [`WIDTH`]: the columns that do not fit stand in another one,
    /// behind the same columns on the left. Those are cut, or left to a page to wrap.
    pub(crate) fn fitting(mut self, cuts: bool) -> Vec<Self> {
        let mut widths = self.widths();
        if widths.iter().map(|width| width + 2).sum::<usize>() > WIDTH + 2 {
            // The longer of the two is the label.
            let rooms = if widths.get(1) > widths.first() { [NAME, LABEL] } else { [LABEL, NAME] };
            for (at, room) in rooms.into_iter().enumerate().take(self.left) {
                widths[at] = widths[at].min(room);
                let cells = self.rows.iter_mut().filter_map(|row| row.get_mut(at));
                cells.filter(|_| cuts).for_each(|cell| *cell = cut(cell, room));
            }
        }
        let fixed: usize = widths[..self.left].iter().map(|width| width + 2).sum();
        let (mut parts, mut used) = (vec![Vec::new()], fixed);
        for (at, width) in widths.iter().enumerate().skip(self.left) {
            if used + width > WIDTH && used > fixed {
                parts.push(Vec::new());
                used = fixed;
            }
            parts.last_mut().expect("there is one").push(at);
            used += width + 2;
        }
        let part = |columns: Vec<usize>| {
            let pick = |row: &Vec<String>| {
                let all = (0..self.left).chain(columns.iter().copied());
                all.filter_map(|at| row.get(at).cloned()).collect::<Vec<_>>()
            };
            Self { head: pick(&self.head), rows: self.rows.iter().map(pick).collect(), ..self }
        };
        parts.into_iter().map(part).collect()
    }
}

/// The first characters of a text, and two dots in place of the others.
pub fn cut(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.into();
    }
    text.chars().take(room - 2).collect::<String>().trim_end().to_owned() + ".."
}

/// Text in lines that are not wider than [`WIDTH`]; those behind the first are indented.
pub fn wrapped(text: &str, indent: usize) -> String {
    lines(text, WIDTH, indent).join("\n") + "\n"
}

/// Text in lines of at most this width.
fn lines(text: &str, width: usize, indent: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is one");
        let begins = line.trim_start().is_empty();
        if !begins && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(" ".repeat(indent) + word);
        } else {
            line.push_str(if begins { "" } else { " " });
            line.push_str(word);
        }
    }
    lines
}

/// `urgent p99.9`: a figure with its role.
pub fn title(name: &str, figure: Figure) -> String {
    let role = name.rsplit_once('/').map_or(String::new(), |(role, _)| format!("{role} "));
    role + figure.title
}

/// What stands in a column for a subject in a cell.
/// `other` is what it is divided by, or the best of the cell.
fn entry(line: &Line, other: Option<&Line>, column: &Column, figure: Figure) -> String {
    let itself = other.is_some_and(|other| std::ptr::eq(other, line));
    let Some(Measured { value, modes, .. }) = line.measured(column.figure) else { return "-".into() };
    match (column.by, other) {
        (By::Nothing, _) => {
            let show = units::of(figure.unit);
            let both = |(slow, fast)| format!("{}|{}", show(slow), show(fast));
            modes.map_or_else(|| show(value), both) + if itself { "*" } else { "" }
        }
        (_, Some(_)) if itself => "1".into(),
        (_, other) => units::ratio(other.and_then(|other| line.ratio(other, column.figure))),
    }
}

/// The table of a section, if something is known.
fn section(record: &Record, row: &Row, section: &str) -> Option<Table> {
    let columns: Vec<(&Column, Figure)> = used(record, row, section);
    let heads = columns.iter().map(|(Column { figure: name, by }, figure)| match by {
        By::Nothing => title(name, *figure),
        By::BestPeer => title(name, *figure) + ", by best peer",
        By::Subject(other) => format!("{}, by {other}", title(name, *figure)),
    });
    let mut table = Table::new(2, ["", "subject"].map(String::from).into_iter().chain(heads));
    for cell in record.cells_of(section) {
        let subjects = record.subjects.iter();
        let lines: Vec<&Line> = subjects.filter_map(|subject| record.line(cell, &subject.name)).collect();
        let other = |column: &Column| {
            let name = match column.by {
                By::Nothing if lines.len() < 3 => None,
                By::Nothing => record.best(cell, column.figure, |kind| kind != Kind::Baseline),
                By::BestPeer => record.best_peer(cell, column.figure),
                By::Subject(name) => Some(name),
            };
            lines.iter().find(|line| Some(line.subject.as_str()) == name).copied()
        };
        let others: Vec<_> =
            columns.iter().map(|&(column, figure)| (column, figure, other(column))).collect();
        for (nth, line) in lines.iter().enumerate() {
            let label = if nth == 0 { record.cells[cell].label.clone() } else { String::new() };
            let entries = others.iter().map(|(column, figure, other)| entry(line, *other, column, *figure));
            table.rows.push([label, line.subject.clone()].into_iter().chain(entries).collect());
        }
        table.rows.extend((lines.len() > 1).then(Vec::new));
    }
    table.rows.pop_if(|last| last.is_empty());
    Some(table).filter(|table| !table.rows.is_empty() && !columns.is_empty())
}

/// The columns for which something is known in the section.
fn used<'a>(record: &Record, row: &'a Row, section: &str) -> Vec<(&'a Column, Figure)> {
    let known = |column: &&Column| {
        let is_other = |line: &Line| !matches!(column.by, By::Subject(name) if line.subject != name);
        let here = record.lines.iter().filter(|line| record.cells[line.cell].section == section);
        here.filter(|line| is_other(line)).any(|line| !line.values(column.figure).is_empty())
    };
    let columns = row.columns.iter().filter(known);
    columns.filter_map(|column| Some((column, Figure::find(column.figure)?))).collect()
}

/// What the columns of these sections mean, a line each, and the marks in them.
pub fn legend(record: &Record, row: &Row) -> Vec<String> {
    let mut figures: Vec<Figure> = Vec::new();
    for (_, figure) in record.sections().iter().flat_map(|section| used(record, row, section)) {
        if !figures.contains(&figure) {
            figures.push(figure);
        }
    }
    let marks = [
        "by: round by round, geometric mean [95 % interval]; {a .. b}: range over two modes, or of a median of \
         few rounds. -: unknown.",
        "*: best of its cell, no lock at all aside. a|b: two modes, without a mean. ..: cut, the page has it.",
    ];
    let figures = figures.iter().map(|Figure { title, about, .. }| format!("{title}: {about}"));
    figures.chain(marks.map(String::from)).collect()
}

/// The tables of a record under their headings: of its promises by their subjects, a line for each
/// with its figure, its bound and the verdict, or of each section.
pub fn all(record: &Record, row: &Row) -> Vec<(String, Table)> {
    let mut tables: Vec<(String, Table)> = Vec::new();
    for judged in claims::judged(row, record) {
        let claims::Claim { mine, what, obstacle, .. } = &judged.claim;
        let verdict = obstacle.map_or(judged.verdict.to_string(), Into::into);
        let line = vec![what.clone(), judged.value(), judged.bound(), verdict];
        match tables.iter_mut().find(|(subject, _)| subject == mine.0) {
            Some((_, table)) => table.rows.push(line),
            None => {
                let empty = Table::new(1, ["promise", "is", "promised", ""]);
                tables.push((mine.0.into(), Table { rows: vec![line], wrap: PROMISE, ..empty }));
            }
        }
    }
    if !tables.is_empty() {
        return tables;
    }
    let sections = record.sections().into_iter();
    let sections = sections.filter_map(|name| Some((name.to_owned(), section(record, row, name)?)));
    let by_std = |column: &Column| column.figure == "rate" && column.by == By::Subject(STD);
    let together = overview(record)
        .filter(|_| row.columns.iter().any(by_std))
        .map(|table| ("All cells from two workers".into(), table));
    sections.chain(together).collect()
}

/// All tables of a record as text, with what their columns mean.
pub fn tables(record: &Record, row: &Row) -> String {
    let mut out = String::new();
    for (name, table) in all(record, row) {
        for (part, table) in table.fitting(true).iter().enumerate() {
            let more = if part == 0 { "" } else { ", more columns" };
            let heading = wrapped(&format!("{name}{more}"), 4);
            writeln!(out, "\n{heading}{}", table.text().trim_end()).unwrap();
        }
    }
    out.push('\n');
    for line in legend(record, row).iter().map(String::as_str).chain(row.notes.lines()) {
        out += &wrapped(line, 4);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture::{ROW, plain};

    #[test]
    fn a_table_has_a_line_for_each_label_and_subject() {
        let mut record = plain(7);
        // What is unknown, and two modes.
        record.lines[1].rounds.remove("wait-max");
        record.lines[1].rounds.insert("rate".into(), vec![Some(1e3), Some(9e3), None]);
        let text = tables(&record, &ROW);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        let line = |subject: &str| text.lines().find(|line| line.contains(subject)).unwrap();
        assert!(line("even").starts_with("1 threads   even "), "{text}");
        assert!(line("even").contains("0.80 [0.80 0.80]"), "{text}");
        assert!(line("greedy").contains("1.00k|9.00k") && line("greedy").ends_with('-'), "{text}");
        assert!(text.contains("rate: Operations a second of all workers together.\n"), "{text}");
        assert!(!text.contains("pair: ") && text.ends_with("A note.\n"), "{text}");
    }

    #[test]
    fn no_table_is_wider_than_the_screen() {
        let long = Table {
            head: (0..12).map(|at| format!("column number {at}")).collect(),
            rows: vec![(0..12).map(|at| "x".repeat(if at == 0 { 70 } else { 9 })).collect(), Vec::new()],
            left: 2,
            wrap: 0,
        };
        let parts = long.clone().fitting(true);
        assert!(parts.len() > 1);
        for part in &parts {
            assert!(part.text().lines().all(|line| line.chars().count() <= WIDTH), "{}", part.text());
            assert!(part.rows[0][0].ends_with(".."));
        }
        let columns: usize = parts.iter().map(|part| part.head.len() - part.left).sum();
        assert_eq!(columns, 10, "every column is in one part");
    }

    #[test]
    fn one_table_is_written_in_two_ways() {
        let mut table = Table::new(1, ["a", "b"]);
        table.rows = vec![vec!["<x>".into(), "1".into()], Vec::new(), vec!["y".into(), "22".into()]];
        assert_eq!(table.text(), "a     b\n-------\n<x>   1\n\ny    22\n");
        let (html, style) = table.html("t1");
        assert_eq!(style, "#t1 td:nth-child(2)::before { content: \"b \" }\n");
        assert!(html.contains("<td class=\"l\">&lt;x&gt;</td><td>1</td>"), "{html}");
        assert!(html.contains("<tr class=\"first\"><td class=\"l\">y</td>"), "{html}");
    }

    #[test]
    fn text_is_wrapped_between_words() {
        let text = wrapped(&"word ".repeat(40), 2);
        assert!(text.lines().count() == 3 && text.lines().all(|line| line.len() <= WIDTH), "{text}");
        assert_eq!(cut("parking_lot-fair", 10), "parking_..");
    }
}
