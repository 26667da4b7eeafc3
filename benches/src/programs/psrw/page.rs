//! The plots of the two properties.

use super::Record;
use super::tables::Property;
use crate::report::svg::{Mark, Plot, Series, draw};
use crate::report::units;
use crate::report::{Charts, distinct, looks};
use crate::subjects::rwlocks::Entry;
use crate::workloads::readers::Probe;

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
