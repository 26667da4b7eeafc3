//! The charts of a record: of each section as many as its figures allow.

use super::answer::{cell_at, places};
use super::looks::{EACH, Looks};
use super::svg::{self, Axis, Mark, Series, Span, WIDTH, text_width};
use super::units;
use crate::engine::cell::{Kind, Subject};
use crate::engine::figures::{Figure, Unit};
use crate::engine::record::Record;
use crate::rows::Row;
use crate::rows::claims::{self, Bound, Judged, With};

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
        promises(record, what, &of_kind, unit).map(|chart| vec![chart])
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
fn promises(record: &Record, what: &str, judged: &[&Judged], unit: fn(f64) -> String) -> Option<Chart> {
    let (mut spans, mut last) = (Vec::new(), String::new());
    for Judged { claim, value, verdict } in judged.iter().copied() {
        let Some(subject) = record.subjects.iter().find(|subject| subject.name == claim.mine.0) else {
            continue;
        };
        let Some(value) = value.filter(|value| value.value > 0.0) else { continue };
        let head = format!("{} ({verdict})", claim.what);
        if head != last {
            spans.extend(in_lines(&head).into_iter().map(Span::Head));
            last = head;
        }
        let bound = match claim.bound {
            Bound::AtLeast(bound) | Bound::AtMost(bound) | Bound::Within(bound) => Some(bound),
            Bound::Shown => None,
        };
        let ends = value.interval.unwrap_or((value.value, value.value));
        let name = &subject.name;
        let (class, ticks) = ("ink".into(), Vec::new());
        spans.push(Span::Row { name, class, base: None, ends, at: value.value, ticks, bound });
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
    let cells: Vec<usize> = record.cells_of(section).collect();
    if axis.len() < 2 {
        charts.extend(in_rows(record, section, main, &cells, looks));
        return charts;
    }
    charts.extend(over_axis(record, section, main, true, &axis, looks));
    if main != "cpu" {
        charts.extend(over_axis(record, section, "cpu", false, &axis, looks));
    }
    let cpus = record.machine.cpus_allowed as f64;
    let at = axis.iter().copied().filter(|&x| x <= cpus).next_back().or(axis.last().copied());
    for role in roles(record, section) {
        charts.extend(at.and_then(|x| waits(record, section, &role, x, looks)));
    }
    charts.extend(over_axis(record, section, "starved", false, &axis, looks));
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
    let mut known: Vec<(usize, &Subject, f64)> = (record.subjects.iter().enumerate())
        .filter(|(_, subject)| subject.kind != Kind::Baseline)
        .filter_map(|(at, subject)| Some((at, subject, score(subject)?)))
        .collect();
    known.sort_by(|a, b| b.2.total_cmp(&a.2));
    let mut left = [EACH; 2];
    known.retain(|(_, subject, _)| {
        let left = &mut left[usize::from(subject.kind == Kind::Peer)];
        *left > 0 && {
            *left -= 1;
            true
        }
    });
    known.sort_by_key(|entry| entry.0);
    known.into_iter().map(|entry| entry.1).collect()
}

fn more_is_better(figure: Figure) -> &'static str {
    if figure.more_is_better { "more is better" } else { "less is better" }
}

/// `urgent p99.9`: a figure with its role.
fn title(name: &str, figure: Figure) -> String {
    let role = name.rsplit_once('/').map_or(String::new(), |(role, _)| format!("{role} "));
    role + figure.title
}

/// A figure over the axis: by that of the best peer of each cell, or itself.
fn over_axis(
    record: &Record,
    section: &str,
    name: &str,
    by_peer: bool,
    axis: &[f64],
    looks: &mut Looks,
) -> Option<Chart> {
    let figure = Figure::find(name)?;
    let subjects = shown(record, section, name);
    let classes = looks.classes(&subjects);
    let by_peer = by_peer && subjects.iter().any(|subject| subject.kind == Kind::Peer);
    let series: Vec<Series<'_>> = subjects
        .iter()
        .zip(classes)
        .map(|(subject, class)| {
            let mark = |&x: &f64| {
                let subject = subject.name.as_str();
                let cell = cell_at(record, section, x, subject, name)?;
                if !by_peer {
                    let measured = record.measured(cell, subject, name)?;
                    let modes = measured.modes.map(|(slow, fast)| (slow.per_s, fast.per_s));
                    let band = measured.interval.unwrap_or((measured.value, measured.value));
                    return Some(Mark { x, value: measured.value, band, modes });
                }
                let ratio = record.ratio((cell, subject), (cell, record.best_peer(cell, name)?), name)?;
                let band = ratio.interval.unwrap_or((ratio.value, ratio.value));
                Some(Mark { x, value: ratio.value, band, modes: ratio.two_modes.then_some(band) })
            };
            Series { name: &subject.name, class, marks: axis.iter().filter_map(mark).collect() }
        })
        .filter(|series| !series.marks.is_empty())
        .collect();
    let values: Vec<f64> = series.iter().flat_map(|series| &series.marks).map(|mark| mark.value).collect();
    let high = values.iter().copied().fold(0.0, f64::max);
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    if series.is_empty() || high <= 0.0 {
        return None;
    }
    let unit = match figure.unit {
        _ if by_peer => units::fixed,
        Unit::PerSecond => units::rate,
        Unit::Nanoseconds => units::time,
        Unit::Number => units::fixed,
        Unit::Share => units::share,
    };
    let kind = match by_peer {
        true => Axis::Ratios,
        false if low > 0.0 && high > 12.0 * low => Axis::Log,
        false => Axis::Linear,
    };
    let what = if by_peer { " by that of the best peer" } else { "" };
    let caption = format!("{section}: {}{what}, {}", title(name, figure), more_is_better(figure));
    // What is counted, in the plural: the words of the last label.
    let label = record.cells_of(section).last().map_or("", |cell| &record.cells[cell].label);
    let words: Vec<&str> = label.split(' ').filter(|word| word.parse::<f64>().is_err()).collect();
    let axis = words.join(" ");
    let cpus =
        if ["threads", "processes"].contains(&axis.as_str()) { record.machine.cpus_allowed } else { 0 };
    let svg = svg::lines(&axis, cpus as f64, kind, unit, &series);
    Some(Chart { caption, svg })
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
fn waits(record: &Record, section: &str, role: &str, x: f64, looks: &mut Looks) -> Option<Chart> {
    let longest = format!("{role}wait-max");
    let subjects = shown(record, section, &longest);
    let classes = looks.classes(&subjects);
    let row = |(subject, class): (&&'_ Subject, String)| {
        let of = |name: &str| {
            let name = format!("{role}{name}");
            let cell = cell_at(record, section, x, &subject.name, &name)?;
            Some(record.measured(cell, &subject.name, &name)?.value.max(1.0))
        };
        let (at, max) = (of("wait-p50").or_else(|| of("wait-mean"))?, of("wait-max")?);
        let ticks = ["wait-p99", "wait-p99.9"].into_iter().filter_map(of).collect();
        Some((subject.name.clone(), class, (at, max.max(at)), ticks))
    };
    let rows: Vec<_> = subjects.iter().zip(classes).filter_map(row).collect();
    let spans: Vec<Span<'_>> = rows
        .iter()
        .map(|(name, class, ends, ticks): &(_, _, _, Vec<f64>)| Span::Row {
            name,
            class: class.clone(),
            base: None,
            ends: *ends,
            at: ends.0,
            ticks: ticks.clone(),
            bound: None,
        })
        .collect();
    let who =
        if role.is_empty() { "waits".into() } else { format!("waits of {}", role.trim_end_matches('/')) };
    let cell = record.cells_of(section).find(|&cell| record.cells[cell].x == Some(x))?;
    let place = &record.cells[cell].label;
    let caption =
        format!("{section}, {place}: {who}, from the median (dot) over p99 and p99.9 to the longest");
    let svg = svg::spans("wait, logarithmic; less is better", units::time, &spans);
    (!spans.is_empty()).then_some(Chart { caption, svg })
}

/// A figure by that of the best peer of each cell, a group for each cell.
fn in_rows(record: &Record, section: &str, name: &str, cells: &[usize], looks: &mut Looks) -> Option<Chart> {
    let figure = Figure::find(name)?;
    let mut subjects = shown(record, section, name);
    let is_thinned = subjects.len() * cells.len() > ROWS;
    if is_thinned {
        let best = |kind: Kind| {
            let wins = |subject: &&&Subject| {
                cells
                    .iter()
                    .filter(|&&cell| record.best(cell, name, |k| k == kind) == Some(subject.name.as_str()))
                    .count()
            };
            subjects.iter().filter(|subject| subject.kind == kind).max_by_key(wins).copied()
        };
        subjects = [best(Kind::Family), best(Kind::Peer)].into_iter().flatten().collect();
    }
    let classes = looks.classes(&subjects);
    let mut spans = Vec::new();
    for &cell in cells {
        let Some(peer) = record.best_peer(cell, name).or_else(|| record.best(cell, name, |_| true)) else {
            continue;
        };
        spans.extend(in_lines(&record.cells[cell].label).into_iter().map(Span::Head));
        for (subject, class) in subjects.iter().zip(&classes) {
            let Some(ratio) = record.ratio((cell, &subject.name), (cell, peer), name) else { continue };
            let ends = ratio.interval.unwrap_or((ratio.value, ratio.value));
            let (class, base) = (class.clone(), Some(1.0));
            spans.push(Span::Row {
                name: &subject.name,
                class,
                base,
                ends,
                at: ratio.value,
                ticks: Vec::new(),
                bound: None,
            });
        }
    }
    let fewer = if is_thinned { "; of the others see the table" } else { "" };
    let (title, more) = (title(name, figure), more_is_better(figure));
    let caption = format!("{section}: {title} by that of the best peer, {more}{fewer}");
    let svg = svg::spans("by the best peer, logarithmic", units::fixed, &spans);
    (!spans.is_empty()).then_some(Chart { caption, svg })
}

/// A label in lines that fit a chart.
fn in_lines(label: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in label.split_whitespace() {
        let line = lines.last_mut().expect("there is one");
        let longer = format!("{line} {word}");
        if line.is_empty() || text_width(&longer) < WIDTH - 8.0 {
            *line = longer.trim_start().into();
        } else {
            lines.push(word.into());
        }
    }
    lines
}
