//! The charts of a record: of each section as many as its figures allow.

use super::answer::{cell_at, places};
use super::looks::{EACH, Looks};
use super::svg::{self, Axis, Mark, Series, Span, WIDTH, text_width};
use super::tables::title;
use super::units;
use crate::engine::cell::{Kind, Subject};
use crate::engine::figures::{Figure, Unit};
use crate::engine::record::{Line, Measured, Record};
use crate::rows::Row;
use crate::rows::claims::{self, Bound, Judged, With};
use crate::statistics::mean;
use crate::statistics::rounds::Ratio;
use std::collections::BTreeSet;

/// More rows of spans than this are thinned to the best of the family and of the peers.
const ROWS: usize = 48;

/// A chart, and what stands above it.
pub struct Chart {
    /// What is shown.
    pub caption: String,
    /// The drawing.
    pub svg: String,
}

/// The charts of a record, of its promises, or of each section by the first figure of its tables.
pub fn of_record(record: &Record, row: Option<&Row>, looks: &mut Looks) -> Vec<Vec<Chart>> {
    let judged = row.map_or(Vec::new(), |row| claims::judged(row, record));
    if judged.is_empty() {
        let columns = row.into_iter().flat_map(|row| row.columns).map(|column| column.figure);
        let names: Vec<&str> = columns.chain(["rate", "mean-done"]).collect();
        let sections = record.sections().into_iter();
        return sections.map(|name| Section { record, name, looks }.charts(&names)).collect();
    }
    let kind = |judged: &Judged| match Figure::find(judged.claim.figure).map(|figure| figure.unit) {
        _ if judged.claim.with != With::Nothing => "ratios",
        Some(Unit::Nanoseconds) => "times",
        _ => "numbers",
    };
    let charts = ["ratios", "times", "numbers"].into_iter().filter_map(|what| {
        let of_kind: Vec<&Judged> = judged.iter().filter(|judged| kind(judged) == what).collect();
        let unit = if what == "times" { units::time } else { units::fixed };
        promises(what, &of_kind, unit).map(|chart| vec![chart])
    });
    charts.collect()
}

/// One chart of a record: of the section in the middle, which is no extreme.
pub fn one(record: &Record, row: &Row, looks: &mut Looks) -> Option<Chart> {
    let sections = record.sections();
    let names: Vec<&str> = row.columns.iter().map(|column| column.figure).collect();
    Section { record, name: sections.get(sections.len() / 2)?, looks }.charts(&names).into_iter().next()
}

/// Intervals against their bounds.
fn promises(what: &str, judged: &[&Judged], unit: fn(f64) -> String) -> Option<Chart> {
    let (mut spans, mut last) = (Vec::new(), String::new());
    for Judged { claim, value, verdict } in judged.iter().copied() {
        let Some(Ratio { value: at, interval, .. }) = value.filter(|value| value.value > 0.0) else {
            continue;
        };
        let head = format!("{} ({verdict})", claim.what);
        if head != last {
            spans.extend(heads(&head));
            last = head;
        }
        let bound = match claim.bound {
            Bound::AtLeast(bound) | Bound::AtMost(bound) | Bound::Within(bound) => Some(bound),
            Bound::Shown => None,
        };
        let (name, class, ends) = (claim.mine.0.into(), "ink".into(), interval.unwrap_or((at, at)));
        spans.push(Span { name, class, ends, at, bound, ..Span::default() });
    }
    let caption = format!("Promises, {what}: interval against bound (the thick upright line)");
    let svg = svg::spans("logarithmic", Axis::Log, unit, &spans);
    (!spans.is_empty()).then_some(Chart { caption, svg })
}

/// A section of a record, and the looks of its page.
struct Section<'a, 'l> {
    record: &'a Record,
    name: &'a str,
    looks: &'l mut Looks,
}

impl<'a> Section<'a, '_> {
    fn cells(&self) -> Vec<usize> {
        self.record.cells_of(self.name).collect()
    }

    fn lines(&self) -> impl Iterator<Item = &'a Line> {
        let (record, name) = (self.record, self.name);
        record.lines.iter().filter(move |line| record.cells[line.cell].section == name)
    }

    /// The charts by the first of the figures that the section has: over its axis, or in rows.
    fn charts(&mut self, names: &[&str]) -> Vec<Chart> {
        let mut charts = Vec::new();
        let has = |name: &&&str| self.lines().any(|line| !line.values(name).is_empty());
        let Some(&main) = names.iter().find(has) else { return charts };
        let axis = places(self.record, self.name);
        if axis.len() < 2 {
            charts.extend(self.in_rows(main));
        } else {
            charts.extend(self.over_axis(main, true, &axis));
            let others = ["cpu", "starved"].into_iter().filter(|name| *name != main);
            charts.extend(others.filter_map(|name| self.over_axis(name, false, &axis)));
        }
        // Waits with as many threads as there are CPUs, or in the only cell.
        let cpus = self.record.machine.cpus() as f64;
        let at = axis.iter().copied().rfind(|&x| x <= cpus).or(axis.last().copied());
        let mut cells = self.cells();
        cells.retain(|&cell| self.record.cells[cell].x == at);
        if at.is_some() || cells.len() == 1 {
            // Roles of which waits are known; one without a name if there are no roles.
            let figures = self.lines().flat_map(|line| line.rounds.keys());
            let roles: BTreeSet<&str> = figures.filter_map(|name| name.strip_suffix("wait-max")).collect();
            charts.extend(roles.into_iter().filter_map(|role| self.waits(role, &cells)));
        }
        charts
    }

    /// The best subjects by a figure: at most so many of the family and as many peers.
    fn shown(&self, figure: &str, each: usize) -> Vec<&'a Subject> {
        let (record, cells) = (self.record, self.cells());
        let sign = if Figure::find(figure).is_none_or(|figure| figure.more_is_better) { 1.0 } else { -1.0 };
        let score = |subject: &Subject| {
            let ratios = cells.iter().filter_map(|&cell| {
                let best = record.best(cell, figure, |kind| kind != Kind::Baseline)?;
                let of = |name| Some(record.measured(cell, name, figure)?.value.max(1e-9).ln());
                Some(sign * (of(&subject.name)? - of(best)?))
            });
            let ratios: Vec<f64> = ratios.collect();
            (!ratios.is_empty()).then(|| mean(&ratios))
        };
        let scores = record.subjects.iter().enumerate();
        let mut scores: Vec<_> = scores.filter_map(|(at, of)| Some((at, of, score(of)?))).collect();
        scores.sort_by(|a, b| b.2.total_cmp(&a.2));
        let of = |kind: Kind| scores.iter().filter(move |entry| entry.1.kind == kind).take(each);
        let mut best: Vec<_> = of(Kind::Family).chain(of(Kind::Peer)).collect();
        best.sort_by_key(|entry| entry.0);
        best.into_iter().map(|entry| entry.1).collect()
    }

    /// A figure by that of the best peer of its cell, or itself.
    fn mark(&self, x: f64, cell: usize, subject: &str, name: &str, by_peer: bool) -> Option<Mark> {
        let record = self.record;
        let (value, ends, two_modes) = if by_peer {
            let peer = record.best_peer(cell, name).or_else(|| record.best(cell, name, |_| true))?;
            let ratio = record.ratio((cell, subject), (cell, peer), name)?;
            (ratio.value, ratio.interval, ratio.is_range)
        } else {
            let Measured { value, interval, modes, .. } = record.measured(cell, subject, name)?;
            (value, modes.or(interval), modes.is_some())
        };
        Some(Mark { x, value, ends: ends.unwrap_or((value, value)), two_modes })
    }

    /// A figure over the axis: by that of the best peer of each cell, or itself.
    fn over_axis(&mut self, name: &str, by_peer: bool, axis: &[f64]) -> Option<Chart> {
        let (record, section, figure) = (self.record, self.name, Figure::find(name)?);
        let subjects = self.shown(name, EACH);
        let classes = self.looks.classes(&subjects);
        let line = |(subject, class): (&&Subject, String)| {
            let mark = |&x: &f64| {
                let cell = cell_at(record, section, x, &subject.name, name)?;
                self.mark(x, cell, &subject.name, name, by_peer)
            };
            Series { name: subject.name.clone(), class, marks: axis.iter().filter_map(mark).collect() }
        };
        let series: Vec<Series> = subjects.iter().zip(classes).map(line).collect();
        let values = || series.iter().flat_map(|series| &series.marks).map(|mark| mark.value);
        let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
        if high <= 0.0 {
            return None;
        }
        let (kind, unit, what) = match units::of(figure.unit) {
            _ if by_peer => (Axis::Ratios, units::fixed as fn(f64) -> String, " by that of the best peer"),
            unit if low > 0.0 && high > 12.0 * low => (Axis::Log, unit, ""),
            unit => (Axis::Linear, unit, ""),
        };
        let caption = format!("{section}: {}{what}, {}", title(name, figure), better(figure));
        // What is counted, in the plural: the words of the last label.
        let label = record.cells_of(section).last().map_or("", |cell| &record.cells[cell].label);
        let words: Vec<&str> = label.split(' ').filter(|word| word.parse::<f64>().is_err()).collect();
        let words = words.join(" ");
        let counts_workers = ["threads", "processes"].contains(&words.as_str());
        let cpus = if counts_workers { record.machine.cpus() as f64 } else { 0.0 };
        Some(Chart { caption, svg: svg::lines(&words, cpus, kind, unit, &series) })
    }

    /// From the median wait to the longest.
    fn waits(&mut self, role: &str, cells: &[usize]) -> Option<Chart> {
        let (record, section) = (self.record, self.name);
        let subjects = self.shown(&format!("{role}wait-max"), EACH);
        let row = |(subject, class): (&&Subject, String)| {
            let of = |name: &str| {
                let name = format!("{role}{name}");
                let mut known = cells.iter().filter_map(|&cell| record.measured(cell, &subject.name, &name));
                Some(known.next()?.value.max(1.0))
            };
            let (at, max) = (of("wait-p50").or_else(|| of("wait-mean"))?, of("wait-max")?);
            let ticks = ["wait-p99", "wait-p99.9"].into_iter().filter_map(of).collect();
            Some(Span { name: subject.name.clone(), class, ends: (at, max.max(at)), at, ticks, bound: None })
        };
        let spans: Vec<Span> = subjects.iter().zip(self.looks.classes(&subjects)).filter_map(row).collect();
        let place = &record.cells[*cells.first()?].label;
        let who = role.strip_suffix('/').map_or(String::new(), |role| format!(" of {role}"));
        let what = format!("waits{who}, from the median (dot) over p99 and p99.9 to the longest");
        let caption = format!("{section}, {place}: {what}");
        let svg = svg::spans("wait, logarithmic; less is better", Axis::Log, units::time, &spans);
        (!spans.is_empty()).then_some(Chart { caption, svg })
    }

    /// A figure by that of the best peer of each cell, a group for each cell.
    fn in_rows(&mut self, name: &str) -> Option<Chart> {
        let (record, figure, cells) = (self.record, Figure::find(name)?, self.cells());
        let mut subjects = self.shown(name, EACH);
        let mut fewer = "";
        if subjects.len() * cells.len() > ROWS {
            subjects = self.shown(name, 1);
            fewer = "; of the others see the table";
        }
        let (classes, mut spans) = (self.looks.classes(&subjects), Vec::new());
        for &cell in &cells {
            spans.extend(heads(&record.cells[cell].label));
            spans.extend(subjects.iter().zip(&classes).filter_map(|(subject, class)| {
                let Mark { value: at, ends, .. } = self.mark(0.0, cell, &subject.name, name, true)?;
                Some(Span { name: subject.name.clone(), class: class.clone(), ends, at, ..Span::default() })
            }));
        }
        let (section, title, better) = (self.name, title(name, figure), better(figure));
        let caption = format!("{section}: {title} by that of the best peer, {better}{fewer}");
        let svg = svg::spans("by the best peer, logarithmic", Axis::Ratios, units::fixed, &spans);
        (!subjects.is_empty()).then_some(Chart { caption, svg })
    }
}

fn better(figure: Figure) -> &'static str {
    if figure.more_is_better { "more is better" } else { "less is better" }
}

/// A label in rows that fit a chart.
fn heads(label: &str) -> Vec<Span> {
    let mut rows = vec![Span::default()];
    for word in label.split_whitespace() {
        let Some(row) = rows.last_mut() else { continue };
        let longer = format!("{} {word}", row.name);
        if row.name.is_empty() || text_width(&longer) < WIDTH - 8.0 {
            row.name = longer.trim_start().into();
        } else {
            rows.push(Span { name: word.into(), ..Span::default() });
        }
    }
    rows
}
