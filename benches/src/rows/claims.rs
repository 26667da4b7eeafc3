//! What is promised of a lock, and what a record says of it.
//!
//! A promise *holds* if the whole interval keeps the bound, *falls short* if all of it is beyond,
//! and in between there is no verdict. Where one of two rates has two modes, and where a median is
//! judged, a verdict needs six rounds that agree.

use super::{Row, Wish};
use crate::engine::cell::{Cell, Job};
use crate::engine::figures::{Figure, Unit};
use crate::engine::record::{Line, Measured, Record};
use crate::report::units;
use crate::statistics::rounds::Ratio;
use crate::workloads::Scenario;
use std::fmt;

/// A subject in a cell. Cells of claims are told apart by their scenarios.
pub type Place = (&'static str, Cell);

/// `subject`, put through `scenario`, which is called `label`.
pub fn place(subject: &'static str, label: &str, scenario: Scenario) -> Place {
    (subject, Cell { section: "claims".into(), label: label.into(), x: None, scenario })
}

/// What a figure must come to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// No less than this.
    AtLeast(f64),
    /// No more than this.
    AtMost(f64),
    /// Two that are not to differ by more than this factor, whichever is above the line.
    Within(f64),
    /// Nothing was promised: shown beside a promise.
    Shown,
}

impl Bound {
    /// The least and the greatest that keeps it, if something was promised.
    fn range(self) -> Option<(f64, f64)> {
        match self {
            Self::AtLeast(least) => Some((least, f64::INFINITY)),
            Self::AtMost(most) => Some((f64::NEG_INFINITY, most)),
            Self::Within(factor) => Some((1.0 / factor, factor)),
            Self::Shown => None,
        }
    }
}

/// What a figure is compared with.
#[derive(Clone, Debug, PartialEq)]
pub enum With {
    /// With the bound itself.
    Nothing,
    /// With the best of these, round by round.
    Best(Vec<Place>),
    /// With the least of these in each round: none of them can be exceeded.
    Least(Vec<Place>),
}

/// A promise.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// What is promised, in words; its section is the subject.
    pub what: String,
    /// The figure.
    pub figure: &'static str,
    /// Of what.
    pub mine: Place,
    /// Compared with what.
    pub with: With,
    /// What it must come to.
    pub bound: Bound,
    /// Whether it is part of a quick look.
    pub quick: bool,
    /// Why it cannot be measured on this machine.
    pub obstacle: Option<&'static str>,
}

/// What became of a promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The whole interval keeps the bound.
    Holds,
    /// None of the interval does.
    FallsShort,
    /// The bound is inside the interval, or there are too few rounds for one.
    Open,
    /// Nothing was promised.
    Shown,
    /// Nothing was measured.
    NoData,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Holds => "holds",
            Self::FallsShort => "FALLS SHORT",
            Self::Open => "no verdict",
            Self::Shown => "-",
            Self::NoData => "no data",
        })
    }
}

/// A promise and what became of it.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The promise.
    pub claim: Claim,
    /// What its figure came to: a ratio, or for [`With::Nothing`] the figure itself.
    pub value: Option<Ratio>,
    /// So.
    pub verdict: Verdict,
}

/// The jobs of all `claims`: each subject in its cell once.
pub fn jobs(claims: &[Claim]) -> Vec<Job> {
    let mut jobs: Vec<Job> = Vec::new();
    for claim in claims.iter().filter(|claim| claim.obstacle.is_none()) {
        for (subject, cell) in claim.places() {
            match jobs.iter_mut().find(|job| job.cell.scenario == cell.scenario) {
                Some(job) if job.subjects.iter().any(|name| name == subject) => {}
                Some(job) => job.subjects.push((*subject).into()),
                None => jobs.push(Job { cell: cell.clone(), subjects: vec![(*subject).into()] }),
            }
        }
    }
    jobs
}

impl Claim {
    /// A figure that must keep a bound.
    pub fn of(mine: Place, figure: &'static str, bound: Bound, what: String) -> Self {
        Self { what, figure, mine, with: With::Nothing, bound, quick: false, obstacle: None }
    }

    /// A figure by the best of those of others.
    pub fn versus(mine: Place, others: Vec<Place>, figure: &'static str, bound: Bound, what: String) -> Self {
        Self { with: With::Best(others), ..Self::of(mine, figure, bound, what) }
    }

    /// A figure by the best of those of `peers`, which are put through the same scenario, called
    /// `label`.
    pub fn beside(
        (subject, peers): (&'static str, &[&'static str]),
        (label, scenario): (&str, Scenario),
        figure: &'static str,
        bound: Bound,
        words: &str,
    ) -> Self {
        let at = |subject| place(subject, label, scenario);
        let best = if peers.len() > 1 { "the best" } else { "that" };
        let what = format!("{label}: {words} by {best} of {}", peers.join(", "));
        Self::versus(at(subject), peers.iter().map(|peer| at(peer)).collect(), figure, bound, what)
    }

    /// As part of a quick look.
    pub fn quick(self) -> Self {
        Self { quick: true, ..self }
    }

    /// All that must be measured for it.
    fn places(&self) -> impl Iterator<Item = &Place> {
        let others: &[Place] = match &self.with {
            With::Nothing => &[],
            With::Best(places) | With::Least(places) => places,
        };
        [&self.mine].into_iter().chain(others)
    }

    /// Whether the record is one of a quick look that leaves this promise out.
    fn is_out(&self, record: &Record) -> bool {
        self.places().any(|(subject, cell)| find(record, subject, cell).is_none())
    }

    /// Judges it by a record.
    pub fn judge(self, record: &Record) -> Judged {
        let value = self.measure(record);
        let verdict = value.as_ref().map_or(Verdict::NoData, |value| self.verdict(value));
        Judged { claim: self, value, verdict }
    }

    fn measure(&self, record: &Record) -> Option<Ratio> {
        let mine = find(record, self.mine.0, &self.mine.1)?;
        match &self.with {
            With::Nothing => {
                let Measured { value, interval, is_range, .. } = mine.measured(self.figure)?;
                let rounds = mine.values(self.figure).len();
                Some(Ratio { value, interval, rounds, is_range })
            }
            With::Best(places) => {
                let more = Figure::find(self.figure)?.more_is_better;
                let sign = if more { 1.0 } else { -1.0 };
                let lines = places.iter().filter_map(|(subject, cell)| find(record, subject, cell));
                let known = lines.filter_map(|line| Some((sign * line.typical(self.figure)?, line)));
                mine.ratio(known.max_by(|a, b| a.0.total_cmp(&b.0))?.1, self.figure)
            }
            With::Least(places) => {
                let lines = places.iter().map(|(subject, cell)| find(record, subject, cell));
                let lines: Vec<&Line> = lines.collect::<Option<_>>()?;
                let series: Vec<_> = lines.iter().filter_map(|line| line.rounds.get(self.figure)).collect();
                let rounds = series.iter().map(|values| values.len()).min()?;
                let least = |round: usize| {
                    let values = series.iter().map(|values| values[round]);
                    values.collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::min)
                };
                let least: Vec<Option<f64>> = (0..rounds).map(least).collect();
                let limit = Line { rounds: [(self.figure.to_owned(), least)].into(), ..mine.clone() };
                mine.ratio(&limit, self.figure)
            }
        }
    }

    fn verdict(&self, value: &Ratio) -> Verdict {
        let agree = value.is_enough();
        let Some((least, most)) = self.bound.range() else { return Verdict::Shown };
        match value.interval.filter(|_| agree) {
            Some((low, high)) if low >= least && high <= most => Verdict::Holds,
            Some((low, high)) if high < least || low > most => Verdict::FallsShort,
            _ => Verdict::Open,
        }
    }
}

fn find<'a>(record: &'a Record, subject: &str, cell: &Cell) -> Option<&'a Line> {
    record.line(record.cell_of(&cell.scenario)?, subject)
}

impl Judged {
    /// How the figure and its bound are written.
    fn show(&self) -> fn(f64) -> String {
        let figure = Figure::find(self.claim.figure).filter(|_| self.claim.with == With::Nothing);
        if figure.is_some_and(|figure| figure.unit == Unit::Nanoseconds) { units::time } else { units::fixed }
    }

    /// The value as tables have it.
    pub fn value(&self) -> String {
        let show = self.show();
        let Some(Ratio { value, interval, is_range, .. }) =
            self.value.filter(|_| self.claim.with == With::Nothing)
        else {
            return units::ratio(self.value);
        };
        let value = show(value);
        match interval.map(|(low, high)| (show(low), show(high))) {
            Some((low, high)) if is_range => format!("{value} {{{low} .. {high}}}"),
            Some((low, high)) => format!("{value} [{low} {high}]"),
            None => format!("{value} [?]"),
        }
    }

    /// The bound as tables have it.
    pub fn bound(&self) -> String {
        let show = self.show();
        match self.claim.bound {
            Bound::AtLeast(bound) => format!("at least {}", show(bound)),
            Bound::AtMost(bound) => format!("at most {}", show(bound)),
            Bound::Within(bound) => format!("within {}", show(bound)),
            Bound::Shown => String::new(),
        }
    }
}

/// The promises that a record is about, judged.
pub fn judged(row: &Row, record: &Record) -> Vec<Judged> {
    let claims = (row.claims)(record).into_iter();
    claims.filter(|claim| claim.quick || !claim.is_out(record)).map(|claim| claim.judge(record)).collect()
}

/// Counts of verdicts, and the promises that fall short, in sentences.
pub fn sentences(row: &Row, record: &Record) -> Vec<String> {
    let all = judged(row, record);
    let count = |verdict| all.iter().filter(|judged| judged.verdict == verdict).count();
    let mut sentences = vec![format!(
        "{}: {} hold, {} fall short, {} without a verdict.",
        row.name,
        count(Verdict::Holds),
        count(Verdict::FallsShort),
        count(Verdict::Open)
    )];
    for judged in all.iter().filter(|judged| judged.verdict == Verdict::FallsShort) {
        let Claim { mine, what, .. } = &judged.claim;
        sentences.push(format!("Falls short: {}, {what}: {}, {}.", mine.0, judged.value(), judged.bound()));
    }
    sentences
}

/// The claims of a quick look, if that is what is wished for.
pub fn wished(claims: Vec<Claim>, wish: &Wish) -> Vec<Claim> {
    use crate::engine::record::Mode;
    let wanted = |claim: &Claim| {
        let named = wish.subjects.as_ref().is_none_or(|names| names.iter().any(|name| name == claim.mine.0));
        named && (claim.quick || wish.mode == Mode::Full)
    };
    claims.into_iter().filter(wanted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;

    #[test]
    fn a_median_of_few_rounds_has_a_range_and_no_verdict() {
        let judged = |rounds| {
            let record = fixture::record(rounds, |_, _, _, round| 0.001 * (1 + round % 2) as f64);
            let mine = ("even", record.cells[0].clone());
            Claim::of(mine, "least", Bound::AtMost(0.02), String::new()).judge(&record)
        };
        let words = |judged: Judged| (judged.verdict, judged.value());
        assert_eq!(words(judged(5)), (Verdict::Open, "0.001 {0.001 .. 0.002}".into()));
        assert_eq!(words(judged(6)), (Verdict::Holds, "0.002 [0.001 0.002]".into()));
    }
}
