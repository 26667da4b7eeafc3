//! The tables on standard output.

use super::row::Times;
use super::{Record, Row};
use crate::report::{Table, distinct, units};
use crate::run::clock::{Calibration, UNIT};
use crate::workloads::readers::{Handlers, Probe, Run};
use std::fmt::Write;

/// All tables of a run.
pub(super) fn all(record: &Record) -> String {
    let mut out = String::new();
    if let Some(row) = record.rows.first() {
        let [least, middle, most] = row.clock.empty;
        let Calibration { per_ns, step, .. } = row.clock;
        writeln!(
            out,
            "clock: {per_ns:.3} {UNIT} a ns, in steps of {step}; an empty pair of reads takes [min, median, max] \
             {least}, {middle}, {most}, and the median is subtracted"
        )
        .unwrap();
    }
    uncontended(record, &mut out);
    let is_plot = |run: &Run| matches!(run, Run::Invariance { .. } | Run::Queue { .. });
    let runs = record.rows.iter().map(|row| row.run).filter(|run| !is_plot(run));
    for run in distinct(runs) {
        run_table(record, run, &mut out);
    }
    for probe in [Probe::Urgent, Probe::Handler] {
        property(record, &mut out, &Property::invariance(probe));
    }
    for probe in [Probe::Urgent, Probe::Handler] {
        property(record, &mut out, &Property::queue(probe));
    }
    out + "\n" + &record.notes(NOTES)
}

const NOTES: &str = "\
times: of all threads of a name; percentiles and means are medians over rounds, min and max of all rounds.
had: acquisitions a second; of those who try, also the share of attempts that succeeded, and how often they gave up.
shares: the most acquisitions of one thread by the fewest of another. fewest: acquisitions in the worst tenth of a second.
preempted: involuntary context switches a second. steal: CPU time that went to other machines, in the worst round.
masked: signals kept off the thread, from mask up to mask down. held off: that without the time for which the thread was
ready and had no CPU, when no handler could have run. delivery: expiry of the timer to entry of the handler.
2008: cycles of Desnoyers' lock by the kernel's rwlock, on eight CPUs: one writer alone, lock and unlock, 63 by 80; one
reader alone, 49 by 81; four readers, mean time to lock, 433 by 250; busy readers and writers, mean time of a writer to
lock, 13.6 k by 841 k. His lock is in the kernel; ours is in processes, where a holder can be preempted.";

/// What a run is called above its table.
fn title(run: Run) -> String {
    match run {
        Run::Writer => "Single writer, no contention".into(),
        Run::TryWriter => "Single try-writer, no contention".into(),
        Run::Reader(rank) => format!("Single {rank:?} reader, no contention"),
        Run::Readers => "Several readers, no writer: 2 Bulk, 2 Urgent".into(),
        Run::Contention(handlers) => {
            let handlers = handlers.map(|Handlers { every_us, tries }| {
                let every = units::time(f64::from(every_us) * 1000.0);
                format!("; handlers {} every {every}", if tries { "that try" } else { "that read" })
            });
            let threads = "2 writers, a try-writer, 2 Bulk, 2 Urgent, a try-reader";
            format!("High contention: {threads}{}", handlers.unwrap_or_default())
        }
        Run::Behind => "A writer behind a Bulk reader of 3 ms, struck by signals".into(),
        Run::Invariance { .. } | Run::Queue { .. } => run.name(),
    }
}

/// Lock and unlock by themselves.
fn uncontended(record: &Record, out: &mut String) {
    let header = ["run", "lock", "lock", "unlock", "pair", "median pair", UNIT];
    let mut table = Table::new(&[0, 1], &header);
    let mut last = None;
    for row in &record.rows {
        let Some(batch) = row.batch else { continue };
        if last.is_some_and(|last| last != row.run) {
            table.gap();
        }
        last = Some(row.run);
        let ns = |ns: Option<(f64, f64)>| ns.map_or("-".into(), |(best, _)| format!("{best:.2}"));
        table.row(vec![
            row.run.name(),
            row.lock.clone(),
            ns(batch.lock),
            ns(batch.unlock),
            ns(Some(batch.pair)),
            format!("{:.2}", batch.pair.1),
            format!("{:.0}", batch.pair.0 * row.clock.per_ns),
        ]);
    }
    if last.is_some() {
        writeln!(out, "\nUncontended, ns: the best of some hundred batches").unwrap();
        table.print(out);
    }
}

/// The seed's figures of one run.
fn run_table(record: &Record, run: Run, out: &mut String) {
    let rows: Vec<&Row> = record.rows.iter().filter(|row| row.run == run).collect();
    writeln!(out, "\n{}; {UNIT}/time", title(run)).unwrap();
    let header = [
        "lock",
        "thread",
        "delay",
        "min",
        "avg",
        "p50",
        "p99",
        "p99.9",
        "max",
        "had",
        "shares",
        "fewest",
        "preempted",
        "steal",
    ];
    let mut table = Table::new(&[0, 1, 2], &header);
    for (index, row) in rows.iter().enumerate() {
        if index > 0 {
            table.gap();
        }
        let mut lock = row.lock.clone();
        for role in row.roles.iter().filter(|role| role.name != "idle" || role.handler_lock.is_some()) {
            let mut thread = role.name.clone();
            let mut rest = vec![
                had(role),
                if role.counted > 0 { units::digits(role.shares) } else { "-".into() },
                role.fewest.to_string(),
                format!("{}/s", units::digits(role.preemptions_per_s)),
                row.steal.map_or("-".into(), |steal| format!("{:.1}%", 100.0 * steal)),
            ];
            for (what, times) in [
                ("lock", role.lock),
                ("unlock", role.unlock),
                ("masked", role.masked),
                ("held off", role.held_off),
                ("handler: delivery", role.delivery),
                ("handler: lock", role.handler_lock),
                ("handler: unlock", role.handler_unlock),
            ] {
                let Some(times) = times else { continue };
                let mut cells = vec![std::mem::take(&mut lock), std::mem::take(&mut thread), what.into()];
                cells.extend(delays(&row.clock, times));
                cells.append(&mut rest);
                cells.resize(header.len(), String::new());
                table.row(cells);
            }
            if role.refused > 0 {
                let refused = format!("handler: refused {} times", role.refused);
                let mut cells = vec![std::mem::take(&mut lock), std::mem::take(&mut thread), refused];
                cells.resize(header.len(), String::new());
                table.row(cells);
            }
        }
    }
    table.print(out);
}

fn had(role: &super::Role) -> String {
    let rate = format!("{}/s", units::rate(role.per_s));
    if role.attempts <= role.counted {
        return rate;
    }
    let share = 100.0 * role.counted as f64 / role.attempts as f64;
    format!(
        "{rate}, {}% of {}, gave up {}",
        units::digits(share),
        units::rate(role.attempts as f64),
        role.failures
    )
}

fn delays(clock: &Calibration, times: Times) -> [String; 6] {
    let Times { min, mean, p50, p99, p999, max, .. } = times;
    [min, mean, p50, p99, p999, max].map(|ticks| format!("{ticks:.0}/{}", units::time(clock.ns(ticks))))
}

/// Which of the delays.
type Percentile = fn(&Times) -> f64;

/// A property: what is waited at the top against something that ought not to matter.
pub(super) struct Property {
    /// The table's title, and the page's.
    pub(super) title: String,
    /// What ought not to matter.
    pub(super) axis: &'static str,
    /// Which percentile the page shows.
    pub(super) shown: (&'static str, Percentile),
    /// Its value, if the run is one of these.
    pub(super) at: Box<dyn Fn(Run) -> Option<u32>>,
}

impl Property {
    pub(super) fn invariance(probe: Probe) -> Self {
        Self {
            title: format!("Invariance: wait of {probe:?} readers against the hold time of Bulk readers, us"),
            axis: "us held by Bulk readers",
            shown: ("p99.9", |times| times.p999),
            at: Box::new(move |run| match run {
                Run::Invariance { hold_us, probe: of } if of == probe => Some(hold_us),
                _ => None,
            }),
        }
    }

    pub(super) fn queue(probe: Probe) -> Self {
        Self {
            title: format!("Queue: wait of {probe:?} readers against the number of queued writers"),
            axis: "queued writers",
            shown: ("p99", |times| times.p99),
            at: Box::new(move |run| match run {
                Run::Queue { writers, probe: of } if of == probe => Some(writers),
                _ => None,
            }),
        }
    }

    /// The values, and the locks, that were measured.
    pub(super) fn axes<'a>(&self, record: &'a Record) -> (Vec<u32>, Vec<&'a str>) {
        let (mut values, mut locks) = (Vec::new(), Vec::new());
        for row in &record.rows {
            let Some(value) = (self.at)(row.run) else { continue };
            if !values.contains(&value) {
                values.push(value);
            }
            if !locks.contains(&row.lock.as_str()) {
                locks.push(row.lock.as_str());
            }
        }
        values.sort_unstable();
        (values, locks)
    }

    /// A percentile of a lock at a value, in nanoseconds.
    pub(super) fn figure(
        &self,
        record: &Record,
        lock: &str,
        value: u32,
        of: fn(&Times) -> f64,
    ) -> Option<f64> {
        let row = record.rows.iter().find(|row| row.lock == lock && (self.at)(row.run) == Some(value))?;
        Some(row.clock.ns(of(&row.top()?)))
    }
}

fn property(record: &Record, out: &mut String, property: &Property) {
    let (values, locks) = property.axes(record);
    let (Some(&first), Some(&last)) = (values.first(), values.last()) else { return };
    writeln!(out, "\n{}", property.title).unwrap();
    let values_text: Vec<String> = values.iter().map(u32::to_string).collect();
    let mut header = vec!["lock", "wait"];
    header.extend(values_text.iter().map(String::as_str));
    let by = format!("{last} by {first}");
    header.push(&by);
    let mut table = Table::new(&[0, 1], &header);
    let percentiles: [(&str, Percentile); 4] =
        [("p50", |t| t.p50), ("p99", |t| t.p99), ("p99.9", |t| t.p999), ("max", |t| t.max)];
    for (index, lock) in locks.iter().enumerate() {
        if index > 0 {
            table.gap();
        }
        for (line, (name, of)) in percentiles.into_iter().enumerate() {
            let at = |value| property.figure(record, lock, value, of);
            let mut cells = vec![if line == 0 { (*lock).to_owned() } else { String::new() }, name.into()];
            cells.extend(values.iter().map(|&value| at(value).map_or("-".into(), units::time)));
            let ratio = at(last).zip(at(first)).map(|(many, few)| many / few.max(1.0));
            cells.push(ratio.map_or("-".into(), units::digits));
            table.row(cells);
        }
    }
    table.print(out);
}
