//! The programs of the five mails: their own arguments and columns, on the engine of all rows.
//!
//! A mail's figures are data here, with the place where they stand. What is compared is the ratio
//! of two locks then with the ratio of the same two locks now, since machines have changed.

pub mod franke;
pub mod test_mutex;
pub mod tofutex;
pub mod ulockflex;

use crate::engine::record::Record;
use std::fmt::Write;

/// A table of a mail, with today's figures beside its own.
#[derive(Clone, Debug)]
pub struct MailTable {
    /// Which table of which mail.
    pub title: String,
    /// The heads of the columns; those of the mail have its year in front.
    pub header: Vec<&'static str>,
    /// A line a row.
    pub rows: Vec<Vec<String>>,
    /// What is different today, and why a figure of the mail has none beside it.
    pub today: &'static [&'static str],
}

/// A program of a mail.
pub struct Mail {
    /// Its records have this as the name of their row.
    pub row: &'static str,
    /// Author and year.
    pub mail: &'static str,
    /// The command that makes the record.
    pub command: &'static str,
    /// The mail's tables beside ours.
    pub tables: fn(&Record) -> Vec<MailTable>,
}

/// Every mail with figures, in the order of their years.
pub const ALL: &[Mail] = &[
    Mail {
        row: ulockflex::ROW,
        mail: "Franke 2002",
        command: "cargo run --release --bin ulockflex",
        tables: ulockflex::tables,
    },
    Mail {
        row: test_mutex::ROW,
        mail: "Molnar 2005",
        command: "cargo run --release --bin test-mutex -- V 16 10",
        tables: test_mutex::tables,
    },
    Mail {
        row: tofutex::ROW,
        mail: "Long 2016",
        command: "cargo run --release --bin tofutex",
        tables: tofutex::tables,
    },
];

impl MailTable {
    /// As text: the first column to the left, the others to the right.
    pub fn text(&self) -> String {
        let columns = self.header.len();
        let width = |at: usize| {
            let cells = self.rows.iter().map(|row| row.get(at).map_or(0, |cell| cell.chars().count()));
            cells.chain([self.header[at].chars().count()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut out = format!("{}\n", self.title);
        let header: Vec<String> = self.header.iter().map(|&name| name.to_owned()).collect();
        for row in [&header].into_iter().chain(&self.rows) {
            let mut line = String::new();
            for (at, cell) in row.iter().enumerate() {
                let width = widths[at];
                let _ = match at {
                    0 => write!(line, "{cell:width$}"),
                    _ => write!(line, "  {cell:>width$}"),
                };
            }
            out += line.trim_end();
            out.push('\n');
        }
        for sentence in self.today {
            let _ = writeln!(out, "{sentence}");
        }
        out
    }
}
