//! `semscale`: one array and several threads, which sleep or do not: on semaphores of their own, in
//! turns, in sets.

use super::{Record, Subject, row, trials};
use crate::programs::harness::plan::Effort;
use crate::programs::harness::{Cli, Program};
use crate::programs::shares;
use crate::report::{Mode, Table, units};
use crate::subjects::semaphores::{Entry, KERNEL, POSIX};
use crate::workloads::cell::Probe;
use crate::workloads::semaphores::{BULK, Run};
use std::fmt::Write;
use std::mem::discriminant;

/// The program.
#[derive(Debug)]
pub enum Semscale {}

impl Program for Semscale {
    const NAME: &'static str = "semscale";
    const SCHEMA: &'static str = "ulocks-semscale/1";
    type Cli = Cli;
    type Subject = Subject;

    fn effort(mode: Mode) -> Effort {
        match mode {
            Mode::Full => Effort::new(shares::full(Self::NAME), (3, 9), (60, 300), Some(200)),
            Mode::Quick => Effort::new(shares::quick(Self::NAME), (3, 5), (30, 100), None),
            Mode::Smoke => Effort::new(2, (1, 1), (5, 5), None),
        }
    }

    fn subjects(cli: &Cli, mode: Mode, cpus: u32) -> Vec<Subject> {
        let every = mode == Mode::Full || cli.as_ref().only.is_some();
        let is_quick = |run: &Run| match *run {
            Run::Own { threads, .. } => threads == 1 || threads == cpus,
            Run::PingPong { pairs } => pairs == 1,
            Run::Complex { threads } => threads == 4,
            Run::Readers { threads, .. } => threads == 8,
            Run::Philosophers { seats } => seats == 5,
            _ => true,
        };
        Subject::of(&runs(cpus).into_iter().filter(|run| every || is_quick(run)).collect::<Vec<_>>())
    }

    fn trials(subjects: &[Subject]) -> (Vec<Probe>, Vec<Probe>) {
        trials(subjects)
    }

    fn tables(record: &Record) -> String {
        let mut out = String::from("\nOne array\n");
        let header =
            ["run", "semaphores", "turns/s", "by sysv", "by sem_t", "CPU/turn", "COV", "beside/s", "share"];
        let mut table = Table::new(&[0, 1, 3, 4, 8], &header);
        let mut last: Option<Run> = None;
        for row in &record.rows {
            if last.is_some_and(|last| discriminant(&last) != discriminant(&row.run)) {
                table.gap();
            }
            let first = last != Some(row.run);
            last = Some(row.run);
            table.row(vec![
                if first { row.run.to_string() } else { String::new() },
                row.subject.clone(),
                row.per_s.rate(),
                row::ratio(row.by(KERNEL)),
                row::ratio(row.by(POSIX)),
                units::time(row.cpu_ns),
                units::digits(row.cov),
                row::known(row.beside_per_s, units::rate),
                row::ratio(row.share.as_ref()),
            ]);
        }
        table.print(&mut out);
        out.push('\n');
        for entry in
            Entry::all().iter().filter(|entry| record.rows.iter().any(|row| row.subject == entry.name))
        {
            writeln!(out, "{:<22} {}", entry.name, entry.about).unwrap();
        }
        let beside = format!(
            "beside/s   sets of a thread that posts to {BULK} others and takes that back, or turns of the manager"
        );
        out + &record.notes(&format!("{NOTES}\n{beside}"))
    }
}

/// Numbers of threads on semaphores of their own, on a machine with so many CPUs: doubled up to
/// eight, or to twice as many as CPUs.
pub(crate) fn counts(cpus: u32) -> Vec<u32> {
    std::iter::successors(Some(1), |n| Some(n * 2)).take_while(|&n| n <= (2 * cpus).max(8)).collect()
}

/// All runs, in the order of the table.
pub(super) fn runs(cpus: u32) -> Vec<Run> {
    let own = [false, true]
        .into_iter()
        .flat_map(|poster| counts(cpus).into_iter().map(move |threads| Run::Own { threads, poster }));
    own.chain([1, 4].map(|pairs| Run::PingPong { pairs }))
        .chain([1, 4].map(|threads| Run::Complex { threads }))
        .chain([2, 8].map(|threads| Run::Readers { threads, reads: 80 }))
        .chain([5, 16].map(|seats| Run::Philosophers { seats }))
        .chain([0, 10].map(|hold_us| Run::Manager { workers: 8, hold_us }))
        .collect()
}

const NOTES: &str = "\
turns/s    of all threads but the one beside them, geometric mean over rounds; a|b are two modes
by         that of another in the same round, [95 % interval], {range} over two modes
CPU/turn   CPU time of the whole process, median over rounds
COV        coefficient of variation of the threads' turns: 0 is fair
share      turns of the manager by the mean of the workers', median over rounds";
