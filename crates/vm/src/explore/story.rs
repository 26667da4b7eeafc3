//! An execution told as a story: which thread did what, at which line, what was read, and why that
//! could be read.

use super::words::describe;
use super::words::{Seen, number};
use crate::engine::At;
use crate::memory::Loc;
use core::fmt::Write as _;
use core::sync::atomic::Ordering;
use std::collections::HashMap;

/// What happened in a step.
pub(super) enum Said {
    Load { loc: Loc, order: Ordering, seen: Seen },
    Store { loc: Loc, order: Ordering, value: u64, newer: usize },
    Update { loc: Loc, name: &'static str, order: Ordering, seen: Seen, after: Option<u64>, would_have: bool },
    NoSleep { loc: Loc, expected: u32, holds: u64 },
    Sleeps { loc: Option<Loc> },
    Woke { woken: Vec<usize>, moved: Vec<usize> },
    Text(String),
}

/// The steps of one execution.
#[derive(Default)]
pub(super) struct Story {
    lines: Vec<Line>,
    made: HashMap<u32, At>,
}

struct Line {
    step: u64,
    thread: usize,
    place: String,
    text: String,
}

/// How many steps are shown; what comes before them is left out.
const SHOWN: usize = 200;

/// A place in the source, without the way to it.
pub(super) fn place(at: At) -> String {
    place_of(at)
}

/// As `place`, for a location that does not live for ever.
pub(super) fn place_of(at: &core::panic::Location<'_>) -> String {
    let file = at.file();
    let short = file.rsplit_once("/src/").map_or(file, |(before, after)| {
        let crate_start = before.rfind('/').map_or(0, |slash| slash + 1);
        let _ = after;
        &file[crate_start..]
    });
    format!("{short}:{}", at.line())
}

impl Story {
    pub(super) fn made(&mut self, loc: Loc, at: At) {
        self.made.insert(number(loc), at);
    }

    pub(super) fn name_of(&self, loc: Loc) -> String {
        format!("word {}", number(loc))
    }

    pub(super) fn tell(&mut self, step: u64, thread: usize, at: At, said: Said) {
        let text = self.text(said);
        self.lines.push(Line { step, thread, place: place(at), text });
    }

    pub(super) fn tell_without_place(&mut self, step: u64, thread: usize, text: String) {
        self.lines.push(Line { step, thread, place: String::new(), text });
    }

    fn text(&self, said: Said) -> String {
        match said {
            Said::Text(text) => text,
            Said::Load { loc, order, seen } => {
                format!("{}.load({order:?}) = {}", self.name_of(loc), describe(&seen))
            }
            Said::Store { loc, order, value, newer } => {
                let behind = match newer {
                    0 => String::new(),
                    newer => format!(", placed behind {newer} newer write(s) it is not ordered after"),
                };
                format!("{}.store({value:#x}, {order:?}){behind}", self.name_of(loc))
            }
            Said::Update { loc, name, order, seen, after, would_have } => {
                let (word, seen) = (self.name_of(loc), describe(&seen));
                match after {
                    Some(after) => format!("{word}.{name}({order:?}): {seen} becomes {after:#x}"),
                    None if would_have => format!("{word}.{name}({order:?}) fails spuriously at {seen}"),
                    None => format!("{word}.{name}({order:?}) fails at {seen}"),
                }
            }
            Said::NoSleep { loc, expected, holds } => {
                format!("does not sleep: {} holds {holds:#x} and not {expected:#x}", self.name_of(loc))
            }
            Said::Sleeps { loc } => match loc {
                Some(loc) => format!("sleeps on {}", self.name_of(loc)),
                None => "sleeps".into(),
            },
            Said::Woke { woken, moved } => {
                let mut text = match woken.as_slice() {
                    [] => "wakes nobody".to_owned(),
                    [one] => format!("wakes thread {one}"),
                    many => format!("wakes threads {many:?}"),
                };
                if !moved.is_empty() {
                    let _ = write!(text, ", moves {moved:?}");
                }
                text
            }
        }
    }

    /// The whole story, one line a step.
    pub(super) fn tale(&self) -> String {
        let left_out = self.lines.len().saturating_sub(SHOWN);
        let lines = &self.lines[left_out..];
        let width = lines.iter().map(|line| line.place.len()).max().unwrap_or(0);
        let mut tale = String::new();
        if left_out > 0 {
            let _ = writeln!(tale, "  ({left_out} steps before these are left out)");
        }
        for Line { step, thread, place, text } in lines {
            let _ = writeln!(tale, "{step:>6}  thread {thread:<2}  {place:width$}  {text}");
        }
        let mut made: Vec<_> = self.made.iter().collect();
        made.sort_unstable_by_key(|(loc, _)| **loc);
        for (loc, at) in made {
            let _ = writeln!(tale, "        word {loc} was made at {}", place(at));
        }
        tale
    }
}
