//! The charts of a record: of each section as many as its figures allow.

use super::answer::{cell_at, places};
use super::looks::{EACH, Looks};
use super::svg::{self, Axis, Mark, Series, Span, WIDTH, text_width};
use super::tables::title;
use super::units;
use crate::engine::cell::{Kind, Subject};
use crate::engine::figures::{Figure, Unit};
use crate::engine::record::{Measured, Record};
use crate::rows::Row;
use crate::rows::claims::{self, Bound, Judged, With};
use crate::statistics::rounds::Ratio;

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
        return sections.map(|name| of_section(record, &names, name, looks)).collect();
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
    of_section(record, &names, sections.get(sections.len() / 2)?, looks).into_iter().next()
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
    let svg = svg::spans("logarithmic", unit, &spans);
    (!spans.is_empty()).then_some(Chart { caption, svg })
}

/// The charts of a section by the first of the figures that it has: over its axis, or in rows.
fn of_section(record: &Record, names: &[&str], section: &str, looks: &mut Looks) -> Vec<Chart> {
    let mut charts = Vec::new();
    let has = |name: &&&str| {
        let mut here = record.lines.iter().filter(|line| record.cells[line.cell].section == section);
        here.any(|line| !line.values(name).is_empty())
    };
    let Some(&main) = names.iter().find(has) else { return charts };
    let axis = places(record, section);
    if axis.len() < 2 {
        charts.extend(in_rows(record, section, main, looks));
    } else {
        charts.extend(over_axis(record, section, main, true, &axis, looks));
        let others = ["cpu", "starved"].into_iter().filter(|name| *name != main);
        charts.extend(others.filter_map(|name| over_axis(record, section, name, false, &axis, looks)));
    }
    // Waits with as many threads as there are CPUs, or in the only cell.
    let cpus = record.machine.cpus_allowed as f64;
    let at = axis.iter().copied().rfind(|&x| x <= cpus).or(axis.last().copied());
    let cells: Vec<usize> = record.cells_of(section).filter(|&cell| record.cells[cell].x == at).collect();
    if at.is_some() || cells.len() == 1 {
        let roles = roles(record, section);
        charts.extend(roles.iter().filter_map(|role| waits(record, section, role, &cells, looks)));
    }
    charts
}

/// The best subjects of a section by a figure: at most [`EACH`] of the family and as many peers.
fn shown<'a>(record: &'a Record, section: &str, figure: &str) -> Vec<&'a Subject> {
    let cells: Vec<usize> = record.cells_of(section).collect();
    let more = Figure::find(figure).is_none_or(|figure| figure.more_is_better);
    let score = |subject: &Subject| {
        let ratios = cells.iter().filter_map(|&cell| {
            let best = record.best(cell, figure, |kind| kind != Kind::Baseline)?;
            let of = |name| Some(record.measured(cell, name, figure)?.value.max(1e-9).ln());
            let ratio = of(&subject.name)? - of(best)?;
            Some(if more { ratio } else { -ratio })
        });
        let ratios: Vec<f64> = ratios.collect();
        (!ratios.is_empty()).then(|| ratios.iter().sum::<f64>() / ratios.len() as f64)
    };
    let known = record.subjects.iter().enumerate().filter(|(_, subject)| subject.kind != Kind::Baseline);
    let mut known: Vec<_> = known.filter_map(|(at, subject)| Some((at, subject, score(subject)?))).collect();
    known.sort_by(|a, b| b.2.total_cmp(&a.2));
    let of = |kind: Kind| known.iter().filter(move |entry| entry.1.kind == kind).take(EACH);
    let mut best: Vec<_> = of(Kind::Family).chain(of(Kind::Peer)).collect();
    best.sort_by_key(|entry| entry.0);
    best.into_iter().map(|entry| entry.1).collect()
}

fn more_is_better(figure: Figure) -> &'static str {
    if figure.more_is_better { "more is better" } else { "less is better" }
}

/// A figure by that of the best peer of its cell.
fn by_peer(record: &Record, cell: usize, subject: &str, name: &str) -> Option<Mark> {
    let peer = record.best_peer(cell, name).or_else(|| record.best(cell, name, |_| true))?;
    let ratio = record.ratio((cell, subject), (cell, peer), name)?;
    let band = ratio.interval.unwrap_or((ratio.value, ratio.value));
    Some(Mark { x: 0.0, value: ratio.value, band, modes: ratio.two_modes.then_some(band) })
}

fn itself(record: &Record, cell: usize, subject: &str, name: &str) -> Option<Mark> {
    let Measured { value, interval, modes } = record.measured(cell, subject, name)?;
    Some(Mark { x: 0.0, value, band: interval.unwrap_or((value, value)), modes })
}

/// A figure over the axis: by that of the best peer of each cell, or itself.
fn over_axis(
    record: &Record,
    section: &str,
    name: &str,
    is_ratio: bool,
    axis: &[f64],
    looks: &mut Looks,
) -> Option<Chart> {
    let figure = Figure::find(name)?;
    let subjects = shown(record, section, name);
    let mark_of = if is_ratio { by_peer } else { itself };
    let line = |(subject, class): (&&'_ Subject, String)| {
        let mark = |&x: &f64| {
            let cell = cell_at(record, section, x, &subject.name, name)?;
            Some(Mark { x, ..mark_of(record, cell, &subject.name, name)? })
        };
        Series { name: subject.name.clone(), class, marks: axis.iter().filter_map(mark).collect() }
    };
    let series: Vec<Series> = subjects.iter().zip(looks.classes(&subjects)).map(line).collect();
    let values = || series.iter().flat_map(|series| &series.marks).map(|mark| mark.value);
    let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    if high <= 0.0 {
        return None;
    }
    let (kind, unit, what) = match units::of(figure.unit) {
        _ if is_ratio => (Axis::Ratios, units::fixed as fn(f64) -> String, " by that of the best peer"),
        unit if low > 0.0 && high > 12.0 * low => (Axis::Log, unit, ""),
        unit => (Axis::Linear, unit, ""),
    };
    let caption = format!("{section}: {}{what}, {}", title(name, figure), more_is_better(figure));
    // What is counted, in the plural: the words of the last label.
    let label = record.cells_of(section).last().map_or("", |cell| &record.cells[cell].label);
    let words: Vec<&str> = label.split(' ').filter(|word| word.parse::<f64>().is_err()).collect();
    let axis = words.join(" ");
    let counts_workers = ["threads", "processes"].contains(&axis.as_str());
    let cpus = if counts_workers { record.machine.cpus_allowed as f64 } else { 0.0 };
    Some(Chart { caption, svg: svg::lines(&axis, cpus, kind, unit, &series) })
}

/// Roles of which waits are known; one without a name if there are no roles.
fn roles(record: &Record, section: &str) -> Vec<String> {
    let here = record.lines.iter().filter(|line| record.cells[line.cell].section == section);
    let mut roles: Vec<String> = here
        .flat_map(|line| line.rounds.keys())
        .filter_map(|name| Some(name.strip_suffix("wait-max")?.into()))
        .collect();
    roles.sort();
    roles.dedup();
    roles
}

/// From the median wait to the longest.
fn waits(record: &Record, section: &str, role: &str, cells: &[usize], looks: &mut Looks) -> Option<Chart> {
    let subjects = shown(record, section, &format!("{role}wait-max"));
    let row = |(subject, class): (&&'_ Subject, String)| {
        let of = |name: &str| {
            let name = format!("{role}{name}");
            let mut known = cells.iter().filter_map(|&cell| record.measured(cell, &subject.name, &name));
            Some(known.next()?.value.max(1.0))
        };
        let (at, max) = (of("wait-p50").or_else(|| of("wait-mean"))?, of("wait-max")?);
        let ticks = ["wait-p99", "wait-p99.9"].into_iter().filter_map(of).collect();
        let (name, ends) = (subject.name.clone(), (at, max.max(at)));
        Some(Span { name, class, ends, at, ticks, ..Span::default() })
    };
    let spans: Vec<Span> = subjects.iter().zip(looks.classes(&subjects)).filter_map(row).collect();
    let who = if role.is_empty() { "" } else { " of " };
    let (place, role) = (&record.cells[*cells.first()?].label, role.trim_end_matches('/'));
    let caption = format!(
        "{section}, {place}: waits{who}{role}, from the median (dot) over p99 and p99.9 to the longest"
    );
    let svg = svg::spans("wait, logarithmic; less is better", units::time, &spans);
    (!spans.is_empty()).then_some(Chart { caption, svg })
}

/// A figure by that of the best peer of each cell, a group for each cell.
fn in_rows(record: &Record, section: &str, name: &str, looks: &mut Looks) -> Option<Chart> {
    let figure = Figure::find(name)?;
    let cells: Vec<usize> = record.cells_of(section).collect();
    let mut subjects = shown(record, section, name);
    let is_thinned = subjects.len() * cells.len() > ROWS;
    if is_thinned {
        let wins = |subject: &Subject| {
            let best = |cell: &&usize| record.best(**cell, name, |kind| kind == subject.kind);
            cells.iter().filter(|cell| best(cell) == Some(subject.name.as_str())).count()
        };
        let most = |kind: Kind| subjects.iter().filter(|s| s.kind == kind).max_by_key(|s| wins(s)).copied();
        subjects = [most(Kind::Family), most(Kind::Peer)].into_iter().flatten().collect();
    }
    let (classes, mut spans) = (looks.classes(&subjects), Vec::new());
    for &cell in &cells {
        spans.extend(heads(&record.cells[cell].label));
        for (subject, class) in subjects.iter().zip(&classes) {
            let Some(mark) = by_peer(record, cell, &subject.name, name) else { continue };
            let (name, class, ends) = (subject.name.clone(), class.clone(), mark.band);
            spans.push(Span { name, class, is_ratio: true, ends, at: mark.value, ..Span::default() });
        }
    }
    let fewer = if is_thinned { "; of the others see the table" } else { "" };
    let (title, more) = (title(name, figure), more_is_better(figure));
    let caption = format!("{section}: {title} by that of the best peer, {more}{fewer}");
    let svg = svg::spans("by the best peer, logarithmic", units::fixed, &spans);
    (!subjects.is_empty()).then_some(Chart { caption, svg })
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
