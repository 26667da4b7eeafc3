//! What a promise is, and how those of one form are made.

use crate::workloads::Workload;
use crate::workloads::cell::Cell;
use crate::workloads::figure::Figure;
use crate::workloads::trial::Workers;
use serde::{Deserialize, Serialize};

/// A lock in a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// A name in the registry.
    pub lock: &'static str,
    /// What it is put through.
    pub cell: Cell,
}

/// What a figure must come to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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

/// What is compared with the bound.
#[derive(Clone, Debug, PartialEq)]
pub enum Claim {
    /// The figure of one by that of another, round by round; of several others by the best, which
    /// is the one with the greatest rate, or with the smallest of any other figure.
    Ratio {
        /// Above the line.
        mine: Subject,
        /// Below it.
        others: Vec<Subject>,
    },
    /// The rate of one by what is possible, which in each round is the least of some rates without
    /// a lock.
    Share {
        /// Above the line.
        mine: Subject,
        /// None of them can be exceeded.
        limits: Vec<Subject>,
    },
    /// The figure itself.
    Value(Subject),
}

impl Claim {
    /// All that must be measured for it.
    pub fn subjects(&self) -> Vec<&Subject> {
        match self {
            Self::Value(mine) => vec![mine],
            Self::Ratio { mine, others } | Self::Share { mine, limits: others } => {
                [mine].into_iter().chain(others).collect()
            }
        }
    }
}

/// A promise.
#[derive(Clone, Debug)]
pub struct Promise {
    /// The lock that it is about.
    pub lock: &'static str,
    /// What `--only` looks at; unique.
    pub name: String,
    /// In words.
    pub what: String,
    /// What is read off the trials.
    pub figure: Figure,
    /// What is made of it.
    pub claim: Claim,
    /// What it must come to.
    pub bound: Bound,
    /// Whether it is part of a quick look.
    pub quick: bool,
    /// Why it cannot be measured on this machine.
    pub obstacle: Option<&'static str>,
}

pub(crate) fn workload((hold_us, non_hold_us): (u64, u64)) -> Workload {
    Workload { hold_ns: hold_us * 1000, non_hold_ns: non_hold_us * 1000 }
}

/// A loop of threads.
pub(super) fn threads(us: (u64, u64), threads: u32) -> Cell {
    Cell::Loop { workload: workload(us), workers: Workers::Threads(threads), second: false }
}

/// A ratio of rates to the best of `peers` in a loop.
pub(super) fn against(
    lock: &'static str,
    us: (u64, u64),
    n: u32,
    peers: &[&'static str],
    at_least: f64,
) -> Promise {
    let cell = threads(us, n);
    let others = peers.iter().map(|&lock| Subject { lock, cell }).collect();
    let (hold, non_hold) = us;
    let those = if peers.len() > 1 { format!("best of {}", peers.join(", ")) } else { peers.concat() };
    let many = if n == 1 { "1 thread".into() } else { format!("{n} threads") };
    Promise {
        lock,
        name: format!("{lock}/({hold},{non_hold})x{n}/{}", peers.join("+")),
        what: format!("({hold}, {non_hold}) us, {many}: rate by the {those}"),
        figure: Figure::PerSecond,
        claim: Claim::Ratio { mine: Subject { lock, cell }, others },
        bound: Bound::AtLeast(at_least),
        quick: false,
        obstacle: None,
    }
}

/// A ratio of one figure of two subjects.
pub(crate) fn versus(
    mine: Subject,
    other: Subject,
    figure: Figure,
    bound: Bound,
    name: &str,
    what: String,
) -> Promise {
    versus_best(mine, vec![other], figure, bound, name, what)
}

/// A ratio of one figure of a subject and of the best of others.
pub(super) fn versus_best(
    mine: Subject,
    others: Vec<Subject>,
    figure: Figure,
    bound: Bound,
    name: &str,
    what: String,
) -> Promise {
    Promise {
        lock: mine.lock,
        name: format!("{}/{name}", mine.lock),
        what,
        figure,
        claim: Claim::Ratio { mine, others },
        bound,
        quick: false,
        obstacle: None,
    }
}

/// A figure that must not exceed a bound.
pub(crate) fn at_most(mine: Subject, figure: Figure, bound: f64, name: &str, what: String) -> Promise {
    Promise {
        lock: mine.lock,
        name: format!("{}/{name}", mine.lock),
        what,
        figure,
        claim: Claim::Value(mine),
        bound: Bound::AtMost(bound),
        quick: false,
        obstacle: None,
    }
}
