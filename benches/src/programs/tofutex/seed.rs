//! Long's figures of 2016: seconds, and calls to the kernel.

use super::Section;

/// What he measured of one futex.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    /// The lock of the registry that does the same.
    pub lock: &'static str,
    /// What he calls it.
    pub name: &'static str,
    /// Until the last thread was done.
    pub max_s: f64,
    /// Until the first thread was done.
    pub min_s: f64,
    /// In the mean.
    pub average_s: f64,
    /// System time; none in the table of the section that sleeps.
    pub system_s: Option<f64>,
    /// Calls to lock, and calls to unlock, of one operation.
    pub calls: Option<(f64, f64)>,
}

const OPERATIONS: f64 = 10_000_000.0;

/// His two tables. The labels of the longest and the shortest time are exchanged in the second one:
/// his longest time is below the mean.
#[rustfmt::skip]
const TABLES: [(Section, [Figures; 3]); 2] = [
    (Section::Short, [
        Figures { lock: "wait-wake", name: "wait-wake futex", max_s: 3.49, min_s: 3.24, average_s: 3.41, system_s: Some(442.4), calls: Some((3_090_294.0 / OPERATIONS, 3_268_896.0 / OPERATIONS)) },
        Figures { lock: "pi", name: "PI futex", max_s: 50.91, min_s: 50.84, average_s: 50.90, system_s: Some(55.73), calls: Some((9_999_813.0 / OPERATIONS, 9_999_814.0 / OPERATIONS)) },
        Figures { lock: "throughput", name: "TO futex", max_s: 2.65, min_s: 0.07, average_s: 1.84, system_s: Some(152.9), calls: Some((698_318.0 / OPERATIONS, 134.0 / OPERATIONS)) },
    ]),
    (Section::Sleep, [
        Figures { lock: "wait-wake", name: "wait-wake futex", max_s: 5.59, min_s: 0.06, average_s: 3.25, system_s: None, calls: None },
        Figures { lock: "pi", name: "PI futex", max_s: 9.36, min_s: 9.32, average_s: 9.35, system_s: None, calls: None },
        Figures { lock: "throughput", name: "TO futex", max_s: 5.62, min_s: 4.76, average_s: 5.41, system_s: None, calls: None },
    ]),
];

/// What he measured of a lock of the registry.
pub fn find(section: Section, lock: &str) -> Option<&'static Figures> {
    TABLES.iter().find(|table| table.0 == section)?.1.iter().find(|figures| figures.lock == lock)
}
