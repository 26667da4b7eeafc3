//! The page with the two properties: a file without scripts, in the manner of the report of
//! `scaling`.

use super::Record;
use super::tables::Property;
use crate::report::svg::{Mark, Plot, Series, draw, escape};
use crate::report::units;
use crate::report::{self, Charts, distinct, looks};
use crate::subjects::rwlocks::Entry;
use crate::workloads::readers::Probe;
use std::fmt::Write;

/// The plots of a record: the looks of their lines, and the drawings. Nothing if it has no property
/// to show.
pub(in crate::programs) fn plots(record: &Record) -> Option<Charts> {
    let probes = [Probe::Urgent, Probe::Handler];
    let properties: Vec<Property> =
        probes.map(Property::invariance).into_iter().chain(probes.map(Property::queue)).collect();
    let locks = distinct(properties.iter().flat_map(|property| property.axes(record).1));
    if locks.is_empty() {
        return None;
    }
    let width = |lock: &&str| if Entry::find(lock).is_ok_and(|entry| entry.family) { 2.6 } else { 1.6 };
    let lines = looks(locks.iter().copied()).into_iter().zip(locks.iter().map(width)).collect();
    let drawn = properties.iter().filter_map(|property| plot(record, property, &locks)).collect();
    Some((lines, drawn))
}

/// The page of a record, if it has a property to show.
pub(super) fn render(record: &Record) -> Option<String> {
    let (lines, plots) = plots(record)?;
    let mut page = String::new();
    write!(
        page,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <title>ulocks readers and writers</title>\n<style>\n{}{}</style>\n</head>\n<body>\n<main>\n\
         <h1>Readers and writers <small>what a reader at the top waits</small></h1>\n<p class=\"soft\">{}</p>\n",
        include_str!("../../report/page.css"),
        report::style("", &lines),
        escape(&record.machine.to_string())
    )
    .unwrap();
    for caveat in record.caveats() {
        writeln!(page, "<div class=\"note\"><p>{}</p></div>", escape(&caveat)).unwrap();
    }
    page.push_str("<div class=\"plots\">\n");
    for plot in plots {
        writeln!(page, "<figure>{plot}</figure>").unwrap();
    }
    page.push_str(
        "</div>\n<p>Medians over rounds. A lock whose line is flat keeps such readers from the wait on the horizontal \
         axis. All figures, and how they were measured, are in the record beside this page.</p>\n</main>\n</body>\n\
         </html>\n",
    );
    Some(page)
}

fn plot(record: &Record, property: &Property, locks: &[&str]) -> Option<String> {
    let (values, measured) = property.axes(record);
    if values.is_empty() {
        return None;
    }
    let (percentile, of) = property.shown;
    let mark = |lock: &str, value| {
        let ns = property.figure(record, lock, value, of)?.max(1.0);
        Some(Mark { threads: value, value: ns, band: (ns, ns), modes: None })
    };
    let series = locks.iter().enumerate().filter(|(_, lock)| measured.contains(lock)).map(|(index, lock)| {
        let points = values.iter().filter_map(|&value| mark(lock, value)).collect();
        Series { name: lock, class: format!("s{index}"), points }
    });
    Some(draw(&Plot {
        title: format!("{percentile}, {}", property.title.split(" against ").next().unwrap_or_default()),
        axis: property.axis,
        threads: &values,
        cpus: 0,
        log: true,
        unit: units::time,
        series: series.collect(),
    }))
}
