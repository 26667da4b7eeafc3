//! What to run, how long, how often, worked out from the time there is.
//!
//! Windows grow until six rounds fill the time; what is left over buys more rounds. If
//! the shortest windows do not fit, rounds go down to the fewest that give an interval. If that
//! does not fit either, subjects are left out, those of [`Row::drop_first`] in their order. No cell
//! is ever left out: a row measures every core count, on a machine of any size. What still does not
//! fit is done all the same, and the plan says how long it will take.
//!
//! Subjects that the command line names stay. If it gives a window, a number of rounds, or
//! `--full`, all subjects stay.

use super::cell::Job;
use super::options::{self, Options};
use super::record::Mode;
use crate::report::units::clock;
use crate::rows::Row;
use crate::run::pinning::Pin;
use crate::statistics::random::Rng;
use crate::workloads::{Conditions, Trial};
use std::path::PathBuf;
use std::time::Duration;

/// A run ends in any case when it has taken so many times what its plan reckons with. A plan knows
/// how long its windows are, and supposes that processes and threads cost what they do on a usual
/// machine. Where QEMU translates the machine's instructions, they cost a hundred times as much.
const OVERRUN: f64 = 2.0;

/// How long the groups of criterion take of the fifteen minutes of `cargo bench`, and of the four
/// of `cargo bench -- --quick`, in seconds.
pub const CRITERION_S: (u64, u64) = (86, 47);

/// What is run, how long, how often.
#[derive(Clone, Debug, Default)]
pub struct Order {
    /// The row, or the program whose record it is.
    pub row: String,
    /// The command that asked for it.
    pub command: String,
    /// How much it can support.
    pub mode: Mode,
    /// The cells, and the subjects of each.
    pub jobs: Vec<Job>,
    /// The measured window.
    pub window_ms: u64,
    /// How often.
    pub rounds: u32,
    /// Where workers run.
    pub pin: Pin,
    /// What the plan left out, in words.
    pub left_out: Vec<String>,
    /// The time meant for it; none if it may take as long as it needs.
    pub budget_s: Option<f64>,
    /// After how long it ends in any case.
    pub limit: Option<Duration>,
    /// Where its trials are written down when they have ended.
    pub journal: Option<PathBuf>,
    /// Whether it goes on with the run in the journal.
    pub resume: bool,
    /// What is planned for after it, in seconds.
    pub after_s: f64,
    /// Calibration of the busy work, if not that of the moment.
    pub iterations_per_us: Option<f64>,
}

/// A trial's place in its round: the job, and the subject of it unless all run in one trial.
pub type Turn = (usize, Option<usize>);

impl Order {
    /// All of it, without a limit or a journal.
    pub fn new(row: &str, jobs: Vec<Job>, window_ms: u64, rounds: u32, pin: Pin) -> Self {
        Self {
            row: row.into(),
            command: format!("{row} {}", options::arguments()).trim_end().into(),
            jobs,
            window_ms,
            rounds,
            pin,
            ..Self::default()
        }
    }

    /// How long it will take, in seconds.
    pub fn takes_s(&self) -> f64 {
        f64::from(self.rounds) * round_s(&self.jobs, self.window_ms)
    }

    /// The trials of all rounds.
    pub fn trials(&self) -> usize {
        self.rounds as usize * turns(&self.jobs).len()
    }

    /// The trials of a round in an order drawn from the seed.
    pub fn round(&self, seed: u64) -> Vec<Turn> {
        let mut order = turns(&self.jobs);
        Rng::new(seed).shuffle(&mut order);
        order
    }

    /// A trial.
    pub fn trial(&self, (job, subject): Turn, iterations_per_us: f64, seed: u64) -> Trial {
        let job = &self.jobs[job];
        let subjects = match subject {
            Some(subject) => vec![job.subjects[subject].clone()],
            None => job.subjects.clone(),
        };
        let (window_ms, warmup_ms) = (self.window_ms, warmup_ms(self.window_ms));
        let conditions = Conditions { warmup_ms, window_ms, iterations_per_us, seed, pin: self.pin };
        Trial::new(job.cell.scenario, subjects, conditions)
    }

    /// A trial in words, for progress and errors.
    pub fn describe(&self, (job, subject): Turn) -> String {
        let Job { cell, subjects } = &self.jobs[job];
        let names = subject.map_or_else(|| subjects.join(", "), |subject| subjects[subject].clone());
        let place = [cell.section.as_str(), &cell.label].into_iter().filter(|part| !part.is_empty());
        format!("{names}, {}", place.collect::<Vec<_>>().join(", "))
    }

    /// The plan in words, in a line; what it leaves out in others.
    pub fn summary(&self) -> String {
        let Self { row, window_ms, .. } = self;
        let of = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let (trials, takes) = (of(turns(&self.jobs).len(), "trial"), clock(self.takes_s()));
        let (cells, rounds) = (of(self.jobs.len(), "cell"), of(self.rounds as usize, "round"));
        let mut text = format!(
            "{row}: {cells}; {rounds} of {trials} in random order, windows of {window_ms} ms: {takes} min"
        );
        if let Some(budget_s) = self.budget_s.filter(|budget_s| self.takes_s() > 1.05 * budget_s) {
            text += &format!(
                ", more than the {} min meant for it: fewer rounds or shorter windows say nothing",
                clock(budget_s)
            );
        }
        self.left_out.iter().for_each(|what| text += &format!("\n{row}: {what}"));
        text
    }
}

/// The trials of a round in no order.
fn turns(jobs: &[Job]) -> Vec<Turn> {
    let of = |(at, job): (usize, &Job)| -> Vec<Turn> {
        match job.cell.scenario.is_shared() {
            true => vec![(at, None)],
            false => (0..job.subjects.len()).map(|subject| (at, Some(subject))).collect(),
        }
    };
    jobs.iter().enumerate().flat_map(of).collect()
}

/// A quarter of the window, within reason.
fn warmup_ms(window_ms: u64) -> u64 {
    (window_ms / 4).clamp(1, 100)
}

/// How long a round takes, in seconds.
fn round_s(jobs: &[Job], window_ms: u64) -> f64 {
    let order = Order::new("", jobs.to_vec(), window_ms, 1, Pin::None);
    turns(jobs).into_iter().map(|turn| order.trial(turn, 1.0, 0).takes_s()).sum()
}

/// How much is spent on a run.
struct Effort {
    /// The time meant for it.
    budget_s: f64,
    /// Fewer rounds give no interval worth its name.
    least: u32,
    /// Rounds aimed at when the window is chosen: agreement of six is a verdict.
    aim: u32,
    /// More rounds say no more.
    most: u32,
    /// The shortest window that says anything, and one that is long enough.
    windows_ms: (u64, u64),
}

/// What is run of these jobs of a row. Nothing that the command line says is changed.
pub fn plan(row: &Row, options: &Options, mut jobs: Vec<Job>) -> Order {
    let (mode, full) = (options.mode(), row.share_s.0 as f64);
    // A row that a quick look leaves out is run when it is asked for.
    let quick = if row.share_s.1 == 0 { full } else { row.share_s.1 as f64 };
    let effort = match mode {
        Mode::Full => Effort { budget_s: full, least: 3, aim: 6, most: 13, windows_ms: (60, 500) },
        Mode::Quick => Effort { budget_s: quick, least: 3, aim: 3, most: 6, windows_ms: (60, 200) },
        Mode::Smoke => Effort { budget_s: 1e9, least: 1, aim: 1, most: 1, windows_ms: (1, 1) },
    };
    let budget_s = effort.budget_s;
    let Options { full, locks, seconds, rounds, .. } = options;
    let everything = *full || locks.is_some() || seconds.is_some() || rounds.is_some();
    let mut dropped: Vec<&str> = Vec::new();
    let mut next = row.drop_first.iter().filter(|_| !everything);
    let (window_ms, rounds) = loop {
        let (window_ms, rounds) = fit(&jobs, &effort, options);
        let fits = f64::from(rounds) * round_s(&jobs, window_ms) <= budget_s;
        match next.next() {
            Some(name) if !fits => dropped.extend(leave_out(&mut jobs, name).then_some(*name)),
            _ => break (window_ms, rounds),
        }
    };
    let pin = options.pin.unwrap_or_default();
    let mut order = Order { mode, ..Order::new(row.name, jobs, window_ms, rounds, pin) };
    if !dropped.is_empty() {
        let (names, share) = (dropped.join(", "), clock(budget_s));
        let text = format!("left out, to take no longer than {share} min: {names}; --full measures all");
        order.left_out.push(text);
    }
    if mode != Mode::Smoke && !options.full && options.rounds.is_none() {
        order.budget_s = Some(budget_s);
        order.limit = Some(Duration::from_secs_f64(OVERRUN * budget_s.max(order.takes_s())));
    }
    order
}

/// Takes the subject called `name` out of every job that has another one; whether there was any.
fn leave_out(jobs: &mut [Job], name: &str) -> bool {
    let mut any = false;
    for job in jobs.iter_mut().filter(|job| job.subjects.len() > 1) {
        let all = job.subjects.len();
        job.subjects.retain(|subject| subject != name);
        any |= job.subjects.len() < all;
    }
    any
}

/// The window and the rounds with which these jobs fill their time.
fn fit(jobs: &[Job], effort: &Effort, options: &Options) -> (u64, u32) {
    let fills = |rounds: u32, window_ms: u64| f64::from(rounds) * round_s(jobs, window_ms) > effort.budget_s;
    let (mut window_ms, longest) = effort.windows_ms;
    if let Some(window) = options.seconds {
        window_ms = window.as_millis() as u64;
    } else if options.full {
        window_ms = longest;
    } else {
        let aim = options.rounds.unwrap_or(effort.aim);
        // What a round takes grows steadily with its window.
        let windows: Vec<u64> = (window_ms + 1..=longest).collect();
        window_ms += windows.partition_point(|&window_ms| !fills(aim, window_ms)) as u64;
    }
    let most = effort.most;
    let fitting = || (effort.least..most).find(|&rounds| fills(rounds + 1, window_ms)).unwrap_or(most);
    (window_ms, options.rounds.unwrap_or_else(|| if options.full { most } else { fitting() }))
}

#[cfg(test)]
mod tests;
