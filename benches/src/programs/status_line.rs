//! What a long run is doing just now: one line on standard error that is written over. It is shown
//! on a terminal only.

use std::io::{IsTerminal, Write, stderr};

/// The line.
#[derive(Debug)]
pub struct StatusLine {
    /// Its greatest length; none where there is no terminal.
    columns: Option<usize>,
}

impl StatusLine {
    /// An empty line.
    pub fn new() -> Self {
        let given = || std::env::var("COLUMNS").ok()?.parse().ok();
        Self { columns: stderr().is_terminal().then(|| given().unwrap_or(79)) }
    }

    /// Whether there is a terminal to show it.
    pub fn is_shown(&self) -> bool {
        self.columns.is_some()
    }

    /// Writes over the line.
    pub fn show(&self, text: &str) {
        if let Some(columns) = self.columns {
            let text: String = text.chars().take(columns).collect();
            eprint!("\r\x1b[2K{text}");
            let _ = stderr().flush();
        }
    }

    /// Makes room for other output.
    pub fn clear(&self) {
        if self.is_shown() {
            eprint!("\r\x1b[2K");
        }
    }
}

impl Default for StatusLine {
    fn default() -> Self {
        Self::new()
    }
}
