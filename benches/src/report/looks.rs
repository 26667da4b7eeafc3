//! The looks of lines: a lock has the same colours and dashes on every page.

use super::{Kind, Lock, Report};
use std::fmt::Write;

/// A line's look: colour in the light scheme, dashes, colour in the dark scheme.
pub(crate) type Look = (&'static str, &'static str, &'static str);

/// Warm colours for the family, cool ones for the peers, by name, so that a lock looks the same on
/// every page. No two are alike.
const NAMED: &[(&str, Look)] = &[
    ("unfair", ("#d6246e", "none", "#ff6fa8")),
    ("throughput", ("#c2460a", "none", "#ff9a57")),
    ("asym", ("#8a6508", "none", "#f0c040")),
    ("byte", ("#d6246e", "3 3", "#ff6fa8")),
    ("calock", ("#a0281c", "none", "#ff8577")),
    ("fair", ("#c2460a", "7 3", "#ff9a57")),
    ("semaphore", ("#8a6508", "7 3", "#f0c040")),
    ("pi", ("#a0281c", "7 3", "#ff8577")),
    ("std", ("#1c64d8", "none", "#6aa5ff")),
    ("parking_lot", ("#08776a", "none", "#3fd0bd")),
    ("parking_lot-0.12", ("#08776a", "5 3", "#3fd0bd")),
    ("parking_lot-fair", ("#08776a", "2 3", "#3fd0bd")),
    ("usync", ("#7a3fd1", "none", "#b794ff")),
    ("pthread", ("#5f6b7a", "none", "#a9b4c0")),
    ("pthread-adaptive", ("#5f6b7a", "6 3", "#a9b4c0")),
    ("pthread-pi", ("#5f6b7a", "2 3", "#a9b4c0")),
    ("pthread-robust", ("#5f6b7a", "8 3 2 3", "#a9b4c0")),
    ("sem_t", ("#4c7616", "none", "#a5d65a")),
    ("sysv", ("#8a5a2b", "none", "#d6a878")),
];

/// The look and the width of each line, in the order of their classes, and the drawings.
pub(crate) type Charts = (Vec<(Look, f64)>, Vec<String>);

/// For locks that are not listed, each with each of the [`DASHES`].
const COLOURS: &[(&str, &str)] = &[
    ("#266f93", "#7cc8ee"),
    ("#8a3f8f", "#e09be6"),
    ("#4b6f44", "#a3cf99"),
    ("#6b5b00", "#d8c860"),
    ("#44546a", "#b8c8dd"),
    ("#004b49", "#5fb8b4"),
    ("#5a1e5e", "#c08ac4"),
];
const DASHES: &[&str] = &["none", "5 3", "2 2", "9 3 2 3", "9 3", "1 2", "5 3 1 3", "12 3"];

/// No lock at all.
const CEILING: Look = ("#6b7076", "1 4", "#8b8f94");

/// The look of each lock of a page. No two are alike, unless there are more than fifty.
pub(crate) fn looks<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<Look> {
    let others =
        DASHES.iter().flat_map(|dashes| COLOURS.iter().map(move |&(day, night)| (day, *dashes, night)));
    let mut others = others.cycle();
    let look = |name| match NAMED.iter().find(|(known, _)| *known == name) {
        Some((_, look)) => *look,
        None => others.next().unwrap_or(CEILING),
    };
    names.into_iter().map(look).collect()
}

/// The look of each lock, in the order of the record.
fn looks_in(report: &Report) -> Vec<Look> {
    let is_lock = |lock: &&Lock| lock.kind != Kind::Baseline;
    let mut looks = looks(report.locks.iter().filter(is_lock).map(|lock| lock.name.as_str())).into_iter();
    let look = |lock: &Lock| Some(lock).filter(is_lock).and_then(|_| looks.next()).unwrap_or(CEILING);
    report.locks.iter().map(look).collect()
}

/// The style of lines: each has its look and its width, in the order of the classes `s0`, `s1` and
/// so on. They hold inside of `scope`, which is a selector that ends with a space, or nothing.
pub(crate) fn style(scope: &str, lines: &[(Look, f64)]) -> String {
    let (mut light, mut dark) = (String::new(), String::new());
    for (index, ((day, dashes, night), width)) in lines.iter().enumerate() {
        writeln!(light, "{scope}.s{index} {{ --c: {day}; --d: {dashes}; --w: {width} }}").unwrap();
        writeln!(dark, "  {scope}.s{index} {{ --c: {night} }}").unwrap();
    }
    format!("{light}@media (prefers-color-scheme: dark) {{\n{dark}}}\n")
}

/// The look and the width of the lines of each lock, in the order of the record.
pub(crate) fn lines_in(report: &Report) -> Vec<(Look, f64)> {
    let width = |lock: &Lock| if lock.kind == Kind::Family { 3.0 } else { 1.6 };
    looks_in(report).into_iter().zip(report.locks.iter().map(width)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture::empty;

    #[test]
    fn no_two_locks_look_alike() {
        let mut report = empty();
        report.locks = crate::subjects::locks::Entry::all()
            .iter()
            .filter(|entry| !entry.metered)
            .map(|entry| {
                let kind = if !entry.excludes {
                    Kind::Baseline
                } else if entry.family {
                    Kind::Family
                } else {
                    Kind::Peer
                };
                Lock { name: entry.name.into(), kind, about: entry.about.into() }
            })
            .collect();
        let mut seen = std::collections::HashMap::new();
        for (lock, (day, dashes, night)) in report.locks.iter().zip(looks_in(&report)) {
            for look in [(day, dashes), (night, dashes)] {
                let other = seen.insert(look, &lock.name).filter(|other| *other != &lock.name);
                assert_eq!(other, None, "{} looks like it", lock.name);
            }
        }
        assert!(report.locks.len() > 30);
    }
}
