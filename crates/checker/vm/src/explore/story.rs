//! An execution told as a story: which thread did what, at which line, what was read, and why that
//! could be read.

use super::missing;
use super::names::Sources;
use super::words::{Seen, number};
use crate::engine::At;
use crate::memory::{Fault, Loc, MsgId, Why};
use core::fmt::Write as _;
use core::sync::atomic::Ordering;
use std::collections::{HashMap, HashSet};

/// What happened in a step.
pub(super) enum Said {
    Load {
        loc: Loc,
        order: Ordering,
        seen: Seen,
    },
    Store {
        loc: Loc,
        order: Ordering,
        value: u64,
        newer: usize,
        message: MsgId,
    },
    Update {
        loc: Loc,
        name: &'static str,
        order: Ordering,
        seen: Seen,
        after: Option<(MsgId, u64)>,
        would_have: bool,
    },
    Fence {
        order: Ordering,
    },
    Starts {
        thread: usize,
        own_process: bool,
    },
    Joined {
        thread: usize,
    },
    Membarrier,
    NoSleep {
        loc: Loc,
        expected: u32,
        holds: u64,
    },
    Sleeps {
        loc: Option<Loc>,
    },
    Woke {
        woken: Vec<usize>,
        moved: Vec<usize>,
    },
    Text(String),
    /// Not told, but known: an atomic was made, or dropped, or `size` bytes of plain data were
    /// accessed.
    Made {
        loc: Loc,
    },
    Dropped {
        loc: Loc,
    },
    Plain {
        address: usize,
        size: usize,
        write: bool,
    },
}

/// The steps of one execution.
#[derive(Default)]
pub(super) struct Story {
    pub(super) lines: Vec<Line>,
    words: Vec<Named>,
    by_loc: HashMap<Loc, usize>,
    /// How many words have each name.
    names: HashMap<String, usize>,
    sources: Sources,
}

pub(super) struct Line {
    pub(super) step: u64,
    pub(super) thread: usize,
    pub(super) at: Option<At>,
    pub(super) said: Said,
}

/// A word, and where it was made or, if it was zeroed memory, used first.
struct Named {
    name: String,
    /// Whether the name is the number, for want of a better one.
    is_number: bool,
    made: Option<At>,
    used: Option<At>,
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

/// The lines of the source on which a story has more than one place: these are told with their
/// columns.
pub(super) struct Places(HashSet<(&'static str, u32)>);

impl Places {
    pub(super) fn of(&self, at: At) -> String {
        let place = place(at);
        match self.0.contains(&(at.file(), at.line())) {
            true => format!("{place}:{}", at.column()),
            false => place,
        }
    }
}

impl Story {
    pub(super) fn made(&mut self, step: u64, thread: usize, loc: Loc, at: At) {
        let name = self.sources.made(at);
        self.add(loc, name, Some(at));
        self.lines.push(Line { step, thread, at: Some(at), said: Said::Made { loc } });
    }

    /// The model calls the word `label`.
    pub(super) fn label(&mut self, loc: Loc, label: &str) {
        match self.by_loc.get(&loc).copied() {
            Some(index) => self.rename(index, label.to_owned()),
            None => self.add(loc, Some(label.to_owned()), None),
        }
    }

    fn add(&mut self, loc: Loc, name: Option<String>, made: Option<At>) {
        let index = self.words.len();
        self.by_loc.insert(loc, index);
        let number = format!("word {}", number(loc));
        self.words.push(Named { name: number.clone(), is_number: true, made, used: None });
        match name {
            Some(name) => self.rename(index, name),
            None => self.words[index].name = self.unique(number),
        }
    }

    fn rename(&mut self, index: usize, name: String) {
        self.words[index].name = self.unique(name);
        self.words[index].is_number = false;
    }

    fn unique(&mut self, name: String) -> String {
        let count = self.names.entry(name.clone()).or_insert(0);
        *count += 1;
        if *count == 1 { name } else { format!("{name}#{count}") }
    }

    /// A word is used at `at`. The first use may give it its name.
    fn used(&mut self, loc: Loc, at: At) {
        if !self.by_loc.contains_key(&loc) {
            self.add(loc, None, None);
        }
        let index = self.by_loc[&loc];
        if self.words[index].used.is_none() {
            self.words[index].used = Some(at);
            if self.words[index].is_number
                && let Some(name) = self.sources.used(at)
            {
                self.rename(index, name);
            }
        }
    }

    pub(super) fn name_of(&self, loc: Loc) -> String {
        let known = self.by_loc.get(&loc).map(|&index| self.words[index].name.clone());
        known.unwrap_or_else(|| format!("word {}", number(loc)))
    }

    pub(super) fn tell(&mut self, step: u64, thread: usize, at: At, said: Said) {
        match said {
            Said::Load { loc, .. } | Said::Store { loc, .. } | Said::Update { loc, .. } => self.used(loc, at),
            _ => {}
        }
        self.lines.push(Line { step, thread, at: Some(at), said });
    }

    pub(super) fn tell_without_place(&mut self, step: u64, thread: usize, text: String) {
        self.lines.push(Line { step, thread, at: None, said: Said::Text(text) });
    }

    /// What would have ordered the two sides of `fault`.
    pub(super) fn missing(&self, fault: &Fault) -> Option<String> {
        missing::of(self, fault)
    }

    /// The places that are told with their columns.
    pub(super) fn places(&self) -> Places {
        let mut columns: HashMap<(&'static str, u32), u32> = HashMap::new();
        let mut several = HashSet::new();
        let steps = self.lines.iter().filter(|line| !line.is_hidden()).filter_map(|line| line.at);
        for at in steps.chain(self.words.iter().filter_map(|word| word.made)) {
            let line = (at.file(), at.line());
            if *columns.entry(line).or_insert(at.column()) != at.column() {
                several.insert(line);
            }
        }
        Places(several)
    }

    /// A step in words.
    pub(super) fn text(&self, line: &Line, places: &Places) -> String {
        match &line.said {
            Said::Text(text) => text.clone(),
            Said::Load { loc, order, seen } => {
                format!("{}.load({order:?}) = {}", self.name_of(*loc), describe(seen, places))
            }
            Said::Store { loc, order, value, newer, .. } => {
                let behind = match newer {
                    0 => String::new(),
                    newer => format!(", placed behind {newer} newer write(s) it is not ordered after"),
                };
                format!("{}.store({value:#x}, {order:?}){behind}", self.name_of(*loc))
            }
            Said::Update { loc, name, order, seen, after, would_have } => {
                let (word, seen) = (self.name_of(*loc), describe(seen, places));
                match after {
                    Some((_, after)) => format!("{word}.{name}({order:?}): {seen} becomes {after:#x}"),
                    None if *would_have => format!("{word}.{name}({order:?}) fails spuriously at {seen}"),
                    None => format!("{word}.{name}({order:?}) fails at {seen}"),
                }
            }
            Said::Fence { order } => format!("fence({order:?})"),
            Said::Starts { thread, own_process: false } => format!("starts thread {thread}"),
            Said::Starts { thread, own_process: true } => format!("starts a process, thread {thread}"),
            Said::Joined { thread } => format!("has joined thread {thread}"),
            Said::Membarrier => "membarrier: a fence(SeqCst) on every thread of the process".into(),
            Said::NoSleep { loc, expected, holds } => {
                format!("does not sleep: {} holds {holds:#x} and not {expected:#x}", self.name_of(*loc))
            }
            Said::Sleeps { loc } => match loc {
                Some(loc) => format!("sleeps on {}", self.name_of(*loc)),
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
            Said::Made { loc } => format!("makes {}", self.name_of(*loc)),
            Said::Dropped { loc } => format!("drops {}", self.name_of(*loc)),
            Said::Plain { write: true, .. } => "writes the data".into(),
            Said::Plain { write: false, .. } => "reads the data".into(),
        }
    }

    /// The steps that are told: how many are left out before them, and they.
    pub(super) fn told(&self) -> (usize, Vec<&Line>) {
        let mut lines: Vec<&Line> = self.lines.iter().filter(|line| !line.is_hidden()).collect();
        let left_out = lines.len().saturating_sub(SHOWN);
        (left_out, lines.split_off(left_out))
    }

    /// Where each word comes from.
    pub(super) fn origins<'a>(&'a self, places: &'a Places) -> impl Iterator<Item = String> + 'a {
        self.words.iter().filter_map(|word| match (word.made, word.used) {
            (Some(at), _) => Some(format!("{} was made at {}", word.name, places.of(at))),
            (None, Some(at)) => Some(format!("{} was zero, and used first at {}", word.name, places.of(at))),
            (None, None) => None,
        })
    }

    /// The whole story, one line a step.
    pub(super) fn tale(&self) -> String {
        let places = self.places();
        let (left_out, lines) = self.told();
        let place = |line: &Line| line.at.map_or_else(String::new, |at| places.of(at));
        let width = lines.iter().map(|line| place(line).len()).max().unwrap_or(0);
        let mut tale = String::new();
        if left_out > 0 {
            let _ = writeln!(tale, "  ({left_out} steps before these are left out)");
        }
        for line in lines {
            let Line { step, thread, .. } = line;
            let text = self.text(line, &places);
            let _ = writeln!(tale, "{step:>6}  thread {thread:<2}  {:width$}  {text}", place(line));
        }
        for origin in self.origins(&places) {
            let _ = writeln!(tale, "        {origin}");
        }
        tale
    }
}

impl Line {
    fn is_hidden(&self) -> bool {
        matches!(self.said, Said::Made { .. } | Said::Dropped { .. } | Said::Plain { .. })
    }
}

/// For reports: where a value that was read came from.
fn describe(seen: &Seen, places: &Places) -> String {
    let Seen { value, newer, writer, written_at, why, .. } = seen;
    if *newer == 0 {
        return format!("{value:#x}");
    }
    let writes = if *newer == 1 { "write" } else { "writes" };
    let from = match (writer, written_at) {
        (Some(thread), Some(at)) => format!(" of thread {thread} at {}", places.of(at)),
        _ => " of the beginning".to_owned(),
    };
    let why = match why {
        Why::Newest => "the newest value".to_owned(),
        Why::Unordered { writer, written_at } => {
            format!(
                "nothing orders this after the next value, by thread {writer} at {}",
                places.of(written_at)
            )
        }
    };
    format!("{value:#x}{from}, {newer} {writes} behind: {why}")
}
