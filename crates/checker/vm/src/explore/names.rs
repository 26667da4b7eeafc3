//! What the words of a story are called.
//!
//! A label that the model gives comes first. Else the source is read, where it still is: the line
//! that made the word says what it was made for.
//!
//! | the source says | the word is called |
//! |---|---|
//! | `let turn = Arc::new(AtomicU32::new(0))` | `turn` |
//! | `let (data, flag) = (AtomicU32::new(0), AtomicU32::new(0))` | `data`, `flag` |
//! | `let slots = [AtomicU32::new(0), AtomicU32::new(0)]` | `slots[0]`, `slots[1]` |
//! | `Node { status: AtomicU32::new(0), .. }` | `Node.status` |
//! | `Self { status: .. }` or `Self(..)` in `impl Node` | `Node.status`, `Node.0` |
//! | nothing of this, and `self.turn.load(..)` where the word is used first | `turn` |
//!
//! If a second word has the name of a first, it is `status#2`. If nothing is known, a word is
//! called by its number. This reads text, and knows no grammar: a name is a help for the reader of
//! a story, and nothing else depends on it.

use core::mem::replace;
use core::panic::Location;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Lines above the one of a constructor that may belong to its expression.
const LINES_ABOVE: usize = 12;

/// Source files that have been read; `None` is one that is not there.
#[derive(Default)]
pub(super) struct Sources(HashMap<String, Option<Vec<String>>>);

impl Sources {
    /// What the word is called that is made at `at`.
    pub(super) fn made(&mut self, at: &Location<'_>) -> Option<String> {
        let lines = self.lines(at)?;
        let line = (at.line() as usize).checked_sub(1)?;
        let (before, constructor) = split(lines.get(line)?, at.column() as usize)?;
        // If the file has changed since it was compiled, something else may be there now.
        if !constructor.starts_with(|c: char| c.is_alphabetic()) || !constructor.contains('(') {
            return None;
        }
        let mut text = lines[line.saturating_sub(LINES_ABOVE)..line].iter().map(|line| code(line)).fold(
            String::new(),
            |mut text, line| {
                text.push_str(line);
                text.push('\n');
                text
            },
        );
        text.push_str(before);
        let (owner, name) = Backwards(&text).binding()?;
        match owner.as_deref() {
            Some("Self") => Some(format!("{}.{name}", implemented(&lines[..line])?)),
            Some(owner) => Some(format!("{owner}.{name}")),
            None => Some(name),
        }
    }

    /// What the word is called that a method is called on at `at`.
    pub(super) fn used(&mut self, at: &Location<'_>) -> Option<String> {
        let lines = self.lines(at)?;
        let (before, _) = split(lines.get((at.line() as usize).checked_sub(1)?)?, at.column() as usize)?;
        let name = Backwards(before.strip_suffix('.')?).word()?;
        (name != "self" && name.starts_with(|c: char| c.is_lowercase())).then(|| name.to_owned())
    }

    fn lines(&mut self, at: &Location<'_>) -> Option<&[String]> {
        let read = |path: PathBuf| fs::read_to_string(path).ok();
        let file = at.file();
        let lines = self.0.entry(file.to_owned()).or_insert_with(|| {
            // The paths of a workspace begin at its root, and a test runs in its package.
            let here = std::env::current_dir().ok()?;
            let text = here.ancestors().find_map(|above| read(above.join(Path::new(file))))?;
            Some(text.lines().map(str::to_owned).collect())
        });
        lines.as_deref()
    }
}

/// `line` before its column, counted from 1, and from there on.
fn split(line: &str, column: usize) -> Option<(&str, &str)> {
    let (index, _) = line.char_indices().nth(column.checked_sub(1)?)?;
    Some(line.split_at(index))
}

/// A line without the comment at its end.
fn code(line: &str) -> &str {
    line.split_once("//").map_or(line, |(code, _)| code)
}

/// The type of the innermost `impl` above.
fn implemented(above: &[String]) -> Option<String> {
    let is_head = |rest: &&str| rest.starts_with(['<', ' ']);
    let heads = above.iter().rev().filter_map(|line| line.trim_start().strip_prefix("impl"));
    let head = heads.into_iter().find(is_head)?;
    let head = head.strip_prefix('<').map_or(Some(head), |rest| {
        let mut depth = 1;
        let end = rest.char_indices().find(|(index, c)| {
            let is_arrow = rest[..*index].ends_with('-');
            depth += i32::from(*c == '<') - i32::from(*c == '>' && !is_arrow);
            depth == 0
        })?;
        Some(&rest[end.0 + 1..])
    })?;
    let name = head.split_once(" for ").map_or(head, |(_, name)| name).trim_start_matches([' ', '&']);
    let path = name.split(|c: char| !is_path(c)).next()?;
    let name = path.rsplit("::").next()?;
    (!name.is_empty()).then(|| name.to_owned())
}

fn is_path(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == ':'
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// A part of what has a name.
#[derive(Clone, Copy)]
enum Part {
    OfTuple(usize),
    OfArray(usize),
}

fn with_part(name: &str, part: Option<Part>) -> String {
    match part {
        None => name.to_owned(),
        Some(Part::OfTuple(index)) => format!("{name}.{index}"),
        Some(Part::OfArray(index)) => format!("{name}[{index}]"),
    }
}

/// Text that is read from its end.
#[derive(Clone, Copy)]
struct Backwards<'a>(&'a str);

impl<'a> Backwards<'a> {
    /// What the expression that follows the text is bound to: the type it is a field of, if it is
    /// one, and the name.
    fn binding(mut self) -> Option<(Option<String>, String)> {
        // Which one it is of the innermost list, and of a tuple or an array.
        let (mut nth, mut part) = (0, None);
        loop {
            self.trim();
            match self.0.chars().next_back()? {
                // An argument, or a part of a tuple.
                '(' => {
                    self.drop_last();
                    let index = replace(&mut nth, 0);
                    let path = self.take(is_path);
                    let name = path.rsplit("::").next().unwrap_or_default();
                    if name.starts_with(char::is_uppercase) {
                        return Some((Some(name.to_owned()), index.to_string()));
                    }
                    if path.is_empty() {
                        part = Some(Part::OfTuple(index));
                    } else if self.0.ends_with('.') {
                        self.drop_last();
                        self.skip_value()?;
                    }
                }
                ',' => nth = self.skip_list()?.0,
                '[' => {
                    self.drop_last();
                    part = Some(Part::OfArray(replace(&mut nth, 0)));
                    if self.0.ends_with('!') {
                        self.drop_last();
                        self.take(is_path);
                    }
                }
                '&' => self.drop_last(),
                // The parameters of a closure.
                '|' => self.0 = &self.0[..self.0[..self.0.len() - 1].rfind('|')?],
                '=' => {
                    self.drop_last();
                    return self.pattern(part).map(|name| (None, name));
                }
                ':' if !self.0.ends_with("::") => {
                    self.drop_last();
                    let field = self.word()?;
                    self.trim();
                    if self.0.ends_with(',') {
                        self.skip_list().filter(|(_, opening)| *opening == '{')?;
                    }
                    self.trim();
                    if !self.0.ends_with('{') {
                        return None;
                    }
                    self.drop_last();
                    self.trim();
                    let path = self.take(is_path);
                    let owner =
                        path.rsplit("::").next().filter(|name| name.starts_with(char::is_uppercase))?;
                    return Some((Some(owner.to_owned()), with_part(field, part)));
                }
                _ => return None,
            }
        }
    }

    /// The name in the pattern of a `let`, a `static` or an assignment.
    fn pattern(mut self, part: Option<Part>) -> Option<String> {
        let start = self.0.rfind([';', '{', '}']).map_or(0, |index| index + 1);
        self.0 = self.0[start..].trim();
        for keyword in ["pub ", "let ", "static ", "const ", "ref ", "mut "] {
            self.0 = self.0.strip_prefix(keyword).unwrap_or(self.0).trim_start();
        }
        if let Some(tuple) = self.0.strip_prefix('(') {
            let Some(Part::OfTuple(index)) = part else { return None };
            let name = tuple.split([',', ')']).nth(index)?.trim().trim_start_matches("mut ");
            return name.chars().all(is_word).then(|| name.to_owned()).filter(|name| !name.is_empty());
        }
        let name = self.0.split(':').next()?.trim();
        let name = name.rsplit('.').next()?;
        (!name.is_empty() && name.chars().all(is_word)).then(|| with_part(name, part))
    }

    /// Goes back over the items of a list up to the bracket that opens it. How many commas there
    /// are, and the bracket.
    fn skip_list(&mut self) -> Option<(usize, char)> {
        let (mut depth, mut items) = (0, 0);
        for (index, c) in self.0.char_indices().rev() {
            match c {
                ')' | ']' | '}' => depth += 1,
                '(' | '[' | '{' if depth == 0 => {
                    self.0 = &self.0[..=index];
                    return Some((items, c));
                }
                '(' | '[' | '{' => depth -= 1,
                ',' if depth == 0 => items += 1,
                ';' if depth == 0 => return None,
                _ => {}
            }
        }
        None
    }

    /// Goes back over the value that a method is called on.
    fn skip_value(&mut self) -> Option<()> {
        loop {
            self.trim();
            match self.0.chars().next_back()? {
                ')' | ']' => {
                    self.drop_last();
                    self.skip_list()?;
                    self.drop_last();
                }
                c if is_path(c) || c == '.' || c == '?' => {
                    self.take(|c| is_path(c) || c == '.' || c == '?');
                }
                _ => return Some(()),
            }
        }
    }

    /// The word at the end, which an index may follow.
    fn word(&mut self) -> Option<&'a str> {
        self.trim();
        while self.0.ends_with(']') {
            self.drop_last();
            self.skip_list()?;
            self.drop_last();
        }
        Some(self.take(is_word)).filter(|word| !word.is_empty())
    }

    fn trim(&mut self) {
        self.0 = self.0.trim_end();
    }

    fn drop_last(&mut self) {
        let mut chars = self.0.chars();
        chars.next_back();
        self.0 = chars.as_str();
    }

    fn take(&mut self, keep: impl Fn(char) -> bool) -> &'a str {
        let rest = self.0.trim_end_matches(keep);
        let taken = &self.0[rest.len()..];
        self.0 = rest;
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::{Backwards, implemented};

    fn name(text: &str) -> Option<String> {
        let (before, _) = text.split_once('$').expect("a place");
        let (owner, name) = Backwards(before).binding()?;
        Some(owner.map_or(name.clone(), |owner| format!("{owner}.{name}")))
    }

    #[test]
    fn a_word_is_called_what_it_was_made_for() {
        for (text, expected) in [
            ("let turn = $AtomicU32::new(0);", "turn"),
            ("let mut turn: Arc<_> = Arc::new($AtomicU32::new(0));", "turn"),
            ("; let (data, flag) = (Arc::new($AtomicU32::new(0)), Arc::new(", "data"),
            ("; let (data, flag) = (Arc::new(AtomicU32::new(0)), Arc::new($AtomicU32", "flag"),
            ("static LOCKED: PerRun<AtomicU32> = PerRun::new(|| $AtomicU32::new(0));", "LOCKED"),
            ("let slots: Vec<_> = (0..3).map(|_| $AtomicU32::new(0)).collect();", "slots"),
            ("let slots = [AtomicU32::new(0), $AtomicU32::new(0)];", "slots[1]"),
            ("let slots = vec![$AtomicU32::new(0), AtomicU32::new(0)];", "slots[0]"),
            ("let pair = (AtomicU32::new(0), Box::new($AtomicU32::new(0)));", "pair.1"),
            ("let _ = Node { next: null(), slots: [f(), g(1, 2), $AtomicU32::new(0)] }", "Node.slots[2]"),
            ("self.turn = $AtomicU32::new(0)", "turn"),
            ("let node = Node { next: null(), status: $AtomicU32::new(0) }", "Node.status"),
            ("let node = Node {\n  status: Futex::new($AtomicU32::new(0)),", "Node.status"),
            ("each!(Count($AtomicU32::new(0)); N)", "Count.0"),
            ("Pair(AtomicU32::new(0), $AtomicU32::new(0))", "Pair.1"),
        ] {
            assert_eq!(name(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn where_the_source_does_not_say_it_there_is_no_name() {
        for text in ["threads($AtomicU32::new(0), [", "{ $AtomicU32::new(0) }", "let x; $AtomicU32", "$A"] {
            assert_eq!(name(text), None, "{text}");
        }
    }

    #[test]
    fn self_is_the_type_of_the_impl() {
        for (line, expected) in [
            ("impl<P: Policy> RawMutex<P> {", "RawMutex"),
            ("    impl Default for queue::Node {", "Node"),
            ("impl<T: Fn() -> bool> Drop for &Guard<'_, T> {", "Guard"),
        ] {
            assert_eq!(implemented(&[line.to_owned(), "fn new() {".into()]).as_deref(), Some(expected));
        }
    }
}
