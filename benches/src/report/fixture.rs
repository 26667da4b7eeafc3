//! A small record with known figures, for tests.

use crate::engine::cell::{Cell, Kind, Subject};
use crate::engine::record::{Ended, Line, Mode, Record, SCHEMA};
use crate::report::units;
use crate::rows::{By, Column, Row, turns};
use crate::run::machine;
use crate::workloads::{Scenario, Times, Workers};

/// Columns of every kind.
pub const ROW: Row = Row {
    name: "scaling",
    about: "threads around one lock",
    share_s: (1, 1),
    jobs: |_| Vec::new(),
    drop_first: &[],
    columns: &[
        Column { figure: "rate", by: By::Nothing },
        Column { figure: "rate", by: By::BestPeer },
        Column { figure: "cpu", by: By::Subject("std") },
        Column { figure: "wait-max", by: By::Nothing },
    ],
    claims: crate::rows::no_claims,
    sentences: |_| vec!["A sentence.".into()],
    notes: "A note.",
};

/// How a figure of a subject comes about with so many threads, in a round.
pub type Rule = fn(&str, &str, f64, usize) -> f64;

/// Two workloads with 1, 2, 4 and 16 threads on a machine of 4 CPUs; of `rounds` rounds.
pub fn record(rounds: usize, rule: Rule) -> Record {
    let kinds = [Kind::Family, Kind::Family, Kind::Peer, Kind::Peer, Kind::Baseline];
    let subject = |(name, kind): (&str, Kind)| Subject { name: name.into(), kind, about: String::new() };
    let names = ["even", "greedy", "std", "usync", "none"].into_iter();
    let subjects: Vec<Subject> = names.zip(kinds).map(subject).collect();
    let cell = |times, n: u32| {
        let (section, label) = (units::times(times), format!("{n} threads"));
        let (x, workers) = (f64::from(n), Workers::Threads(n));
        Cell { section, label, x: Some(x), scenario: Scenario::Turns(turns(times, workers)) }
    };
    let all = [Times::default(), Times::us(3, 7)].into_iter();
    let cells: Vec<Cell> = all.flat_map(|times| [1, 2, 4, 16].map(|n| cell(times, n))).collect();
    const FIGURES: [&str; 8] =
        ["rate", "cpu", "starved", "least", "wait-p50", "wait-p99", "wait-p99.9", "wait-max"];
    let line = |(cell, at): (usize, &Cell), subject: &Subject| {
        let value = |figure, round| Some(rule(figure, &subject.name, at.x.unwrap_or(0.0), round));
        let of = |figure| (0..rounds).map(|round| value(figure, round)).collect();
        let rounds = FIGURES.iter().map(|figure| (figure.to_string(), of(figure))).collect();
        Line { cell, subject: subject.name.clone(), rounds }
    };
    let both = cells.iter().enumerate().flat_map(|at| subjects.iter().map(move |of| (at, of)));
    let lines = both.map(|(at, of)| line(at, of)).collect();
    let mut machine = machine::describe();
    (machine.cpu_model, machine.cpus_allowed, machine.quota) = ("Xeon".into(), 4, None);
    Record {
        schema: SCHEMA.into(),
        row: ROW.name.into(),
        command: "cargo bench -- scaling".into(),
        mode: Mode::Full,
        ended: Ended::Rounds,
        machine,
        took_s: 61.0,
        window_ms: 100,
        rounds: rounds as u32,
        pin: "scatter".into(),
        left_out: Vec::new(),
        subjects,
        cells,
        lines,
    }
}

/// `greedy` is the fastest and starves half of the threads, `even` is ahead of the peers and
/// starves nobody, `usync` is ahead of `std` and behind it in turn. Rounds differ.
pub fn plain(rounds: usize) -> Record {
    record(rounds, |figure, subject, threads, round| {
        let noise = [1.0, 0.99, 1.01, 0.98, 1.0, 1.02, 0.97][round % 7];
        match (figure, subject) {
            ("rate", "greedy") => 300e3 * noise,
            ("rate", "even") => 120e3 * noise,
            ("rate", "usync") => [101e3, 99e3][round % 2] * noise,
            ("rate", "none") => 900e3 * noise,
            ("rate", _) => 100e3 * noise,
            ("cpu", "even") => 8e3,
            ("cpu", _) => 10e3,
            ("starved", "greedy") if threads > 1.0 => 0.5,
            ("starved", _) => 0.0,
            ("least", "greedy") if threads > 1.0 => 0.0,
            ("least", _) => 0.9,
            ("wait-p50", _) => 1e3,
            ("wait-p99", _) => 5e3,
            ("wait-p99.9", _) => 20e3,
            ("wait-max", "greedy") => 50e6,
            (_, _) => 200e3 * threads,
        }
    })
}
