//! The answer of a run, in sentences: which lock for which workload.
//!
//! # The rule
//! For a workload, all thread counts of two and more count alike. Of the locks of the family, those
//! within [`LEVEL`] of the highest rate are level. Of these the one with the shortest p99.9 wait is
//! recommended.
//!
//! Every lock, of the family or not, whose rate is higher than the recommended one's is named with
//! what it costs: an interval that excludes 1 says so. So is a peer that is level with it and whose
//! p99.9 wait is less than half as long.

use super::summary::{Rates, over_cells, rates};
use super::{Ended, Kind, Report, units};
use crate::statistics::geometric_mean;
use crate::statistics::rounds::{Ratio, Verdict};
use crate::workloads::Workload;
use std::fmt::Write;

/// Rates within this part of the highest are level.
const LEVEL: f64 = 0.05;
/// At most so many locks that are ahead or level are named.
const NAMED: usize = 3;

/// What a lock does under a workload, over all contended thread counts.
struct Standing<'a> {
    lock: &'a str,
    kind: Kind,
    /// Geometric mean of its rates.
    rate: f64,
    /// The longest p99.9 wait, in nanoseconds.
    wait: f64,
}

/// A recommendation.
pub(crate) struct Choice<'a> {
    /// The lock of the family.
    pub lock: &'a str,
    /// The longest of its p99.9 waits, in nanoseconds.
    wait: f64,
    /// The fastest peer, its longest p99.9 wait, and the rate of the lock by that of the peer.
    peer: Option<(&'a str, f64, Option<Ratio>)>,
    /// Locks that are ahead in rate, or level with a far shorter wait: the ratio of their rates to
    /// that of the recommended lock, and their p99.9 waits.
    pub ahead: Vec<(&'a str, Ratio, f64)>,
}

/// The last screen of a run: what a reader must know first, and the answer. With the paths of three
/// files below it, it has fewer than 40 lines.
///
/// There is none before a whole round has ended: locks would be compared in different cells.
pub fn answer(report: &Report) -> String {
    let is_cut_short = matches!(report.ended, Ended::Budget | Ended::Interrupted);
    if is_cut_short && report.rounds() < 2 {
        return String::new();
    }
    let rates = rates(report);
    let all = report.workloads();
    let choices: Vec<_> =
        all.iter().filter_map(|&workload| Some((workload, choose(report, &rates, workload)?))).collect();
    let Some((head, tail)) = frame(report, &rates).filter(|_| !choices.is_empty()) else {
        return String::new();
    };
    let screen = |shown: usize, named: usize| {
        let mut out = head.clone();
        for (workload, choice) in &choices[..shown] {
            out += &sentences(report, *workload, choice, named);
        }
        if shown < choices.len() {
            writeln!(out, "And {} more workloads; see the tables.", choices.len() - shown).unwrap();
        }
        out + &tail
    };
    // First fewer locks are named, then fewer workloads are shown.
    let sizes = (0..=NAMED).rev().map(|named| (choices.len(), named));
    let mut screens = sizes.chain((0..choices.len()).rev().map(|shown| (shown, 0)));
    let fitting = screens.find(|&(shown, named)| height(&screen(shown, named)) <= HEIGHT);
    let (shown, named) = fitting.unwrap_or((0, 0));
    screen(shown, named)
}

/// Lines of the answer on a terminal of [`WIDTH`] columns.
const HEIGHT: usize = 35;
/// Longer lines take two or more.
const WIDTH: usize = 100;

fn height(text: &str) -> usize {
    text.lines().map(|line| line.chars().count().div_ceil(WIDTH).max(1)).sum()
}

/// What stands before the workloads, and behind them; nothing if there was no contention.
fn frame(report: &Report, rates: &Rates<'_>) -> Option<(String, String)> {
    let (mut head, mut tail) = (String::from("\n"), String::new());
    let counts: Vec<u32> = report.options.threads.iter().copied().filter(|&threads| threads > 1).collect();
    let span = match (counts.iter().min(), counts.iter().max()) {
        (Some(least), Some(most)) if least < most => format!("{least} to {most} threads"),
        (Some(one), _) => format!("{one} threads"),
        _ => return None,
    };
    let caveats = super::text::caveats(report);
    for line in &caveats {
        writeln!(head, "{line}").unwrap();
    }
    if !caveats.is_empty() {
        head.push('\n');
    }
    writeln!(head, "THE ANSWER for this machine ({}), {span}", report.machine.cpu_model).unwrap();
    if let Some(line) = uncontended(report, rates) {
        writeln!(head, "{line}").unwrap();
    }
    if let Some(line) = overall(report) {
        writeln!(tail, "{line}").unwrap();
    }
    writeln!(
        tail,
        "The rule: the shortest p99.9 wait of the locks of this family within {:.0} % of the highest rate.",
        LEVEL * 100.0
    )
    .unwrap();
    Some((head, tail))
}

/// The recommendation for a workload; none if no lock of the family ran with two threads.
pub(crate) fn choose<'a>(report: &'a Report, rates: &Rates<'a>, workload: Workload) -> Option<Choice<'a>> {
    let cells: Vec<usize> = (0..report.cells.len())
        .filter(|&index| {
            let cell = &report.cells[index];
            cell.is_main() && cell.threads > 1 && cell.workload == workload
        })
        .collect();
    let standings: Vec<Standing> =
        report.locks.iter().filter_map(|l| standing(report, &l.name, workload)).collect();
    let of_kind = |kind: Kind| standings.iter().filter(move |s| s.kind == kind);
    let most = |kind| of_kind(kind).map(|s| s.rate).max_by(f64::total_cmp);
    let highest = most(Kind::Family)?;
    let level = of_kind(Kind::Family).filter(|s| s.rate >= highest * (1.0 - LEVEL));
    let best = level.min_by(|a, b| a.wait.total_cmp(&b.wait))?;
    let by = |lock: &str| over_cells(rates, best.lock, lock, &cells);
    let peer = of_kind(Kind::Peer).max_by(|a, b| a.rate.total_cmp(&b.rate));
    let mut ahead: Vec<_> = standings
        .iter()
        .filter(|s| s.kind != Kind::Baseline && s.lock != best.lock)
        .filter_map(|s| Some((s.lock, over_cells(rates, s.lock, best.lock, &cells)?, s.wait)))
        .filter(|&(lock, ratio, wait)| match ratio.verdict() {
            Verdict::Faster => true,
            Verdict::Slower => false,
            Verdict::None | Verdict::TwoModes => report.kind(lock) == Kind::Peer && wait < best.wait / 2.0,
        })
        .collect();
    ahead.sort_by(|a, b| b.1.value.total_cmp(&a.1.value));
    Some(Choice {
        lock: best.lock,
        wait: best.wait,
        peer: peer.map(|peer| (peer.lock, peer.wait, by(peer.lock))),
        ahead,
    })
}

fn standing<'a>(report: &'a Report, lock: &'a str, workload: Workload) -> Option<Standing<'a>> {
    let points: Vec<_> = report
        .summary
        .points
        .iter()
        .filter(|p| p.lock == lock && p.workload == workload && p.threads > 1)
        .collect();
    let rates: Vec<f64> = points.iter().map(|p| p.typical()).collect();
    let wait = points.iter().filter_map(|p| p.waits).map(|w| w.p999.median).max_by(f64::total_cmp);
    let wait = wait.unwrap_or(f64::INFINITY);
    (!rates.is_empty()).then(|| Standing {
        lock,
        kind: report.kind(lock),
        rate: geometric_mean(&rates),
        wait,
    })
}

fn wait(ns: f64) -> String {
    if ns.is_finite() { units::time(ns) } else { "unknown".into() }
}

/// The recommendation in words. Of the locks that are ahead, so many are named.
fn sentences(report: &Report, workload: Workload, choice: &Choice<'_>, named: usize) -> String {
    let mut out = String::new();
    let about = report.locks.iter().find(|l| l.name == choice.lock).map_or("", |l| l.about.as_str());
    write!(out, "{}: use {} ({about}).", units::workload(workload), choice.lock).unwrap();
    match choice.peer {
        Some((peer, peer_wait, ratio)) => writeln!(
            out,
            "\n    {} of the rate of {peer}, the fastest peer. p99.9 wait up to {}, {peer}'s {}.",
            units::ratio(ratio),
            wait(choice.wait),
            wait(peer_wait)
        ),
        None => writeln!(out, "\n    p99.9 wait up to {}. No peer ran.", wait(choice.wait)),
    }
    .unwrap();
    for &(lock, ratio, its_wait) in choice.ahead.iter().take(named) {
        if ratio.verdict() != Verdict::Faster {
            let part = units::fixed(its_wait / choice.wait);
            let ratio = units::ratio(Some(ratio));
            writeln!(out, "    Level: {lock}, {ratio} of its rate, with {part} of its p99.9 wait.").unwrap();
            continue;
        }
        let reason = if its_wait > choice.wait {
            format!("but its p99.9 wait is {} times as long", units::fixed(its_wait / choice.wait))
        } else if report.kind(lock) == Kind::Family {
            "and waits no longer: take it where that counts more".to_owned()
        } else {
            "and nothing measured here speaks against it".to_owned()
        };
        writeln!(out, "    Ahead: {lock}, {} of its rate, {reason}.", units::ratio(Some(ratio))).unwrap();
    }
    if choice.ahead.len() > named {
        let more = choice.ahead.len() - named;
        writeln!(out, "    {more}{} ahead or level; see the tables.", if named > 0 { " more" } else { "" })
            .unwrap();
    }
    if choice.ahead.is_empty() {
        writeln!(out, "    No lock is ahead of it.").unwrap();
    }
    out
}

/// The cheapest pair of one thread.
fn uncontended(report: &Report, rates: &Rates<'_>) -> Option<String> {
    let cell = report.cells.iter().position(|c| c.is_main() && c.threads == 1 && c.workload.is_bare())?;
    let family = report
        .summary
        .points
        .iter()
        .filter(|p| p.threads == 1 && p.workload.is_bare() && report.kind(&p.lock) == Kind::Family);
    let best = family.max_by(|a, b| a.typical().total_cmp(&b.typical()))?;
    let ratio = over_cells(rates, &best.lock, super::STD, &[cell]);
    Some(format!(
        "One thread, nothing inside or outside: {} is the cheapest, with {} of std's rate.",
        best.lock,
        units::ratio(ratio)
    ))
}

/// The lock for users who do not know their workload: the best mean over all cells.
fn overall(report: &Report) -> Option<String> {
    let family = report.summary.scores.iter().filter(|s| report.kind(&s.lock) == Kind::Family);
    let means = family.filter_map(|score| Some((score, score.vs_best?)));
    let (best, mean) = means.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let worst = best.worst.as_ref()?;
    Some(format!(
        "Any workload: {}, {} of the best peer of each cell in the mean, {} in the worst (x{}, {}, by {}).",
        best.lock,
        units::fixed(mean),
        units::fixed(worst.ratio),
        worst.threads,
        units::workload(worst.workload),
        worst.peer
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture::{BUSY, empty, filled, plain, with_trials};
    use crate::report::{Cell, Ended, Lock, Mode};

    #[test]
    fn the_answer_names_the_lock_the_margin_and_the_peer() {
        let text = answer(&plain(7));
        assert!(text.contains("hold 3 us, non-hold 7 us: use ours (<ours> & co)."), "{text}");
        // parking_lot has 1.1 and 0.9 of std's rate in turn: four times the one, three the other.
        assert!(text.contains("of the rate of parking_lot, the fastest peer"), "{text}");
        assert!(text.contains("No lock is ahead of it."), "{text}");
        assert!(text.contains("ours is the cheapest, with 2.00 [2.00 2.00] of std's rate"), "{text}");
    }

    #[test]
    fn an_interrupted_first_round_has_no_answer() {
        for (rounds, ended, has_one) in [
            (1, Ended::Interrupted, false),
            (1, Ended::Budget, false),
            (1, Ended::Rounds, true),
            (2, Ended::Interrupted, true),
        ] {
            let report = Report { ended, ..plain(rounds) };
            assert_eq!(!answer(&report).is_empty(), has_one, "{rounds} {ended:?}");
        }
    }

    /// Every lock but the recommended one is ahead in every workload, and every caveat is there.
    #[test]
    fn the_answer_is_one_screen_however_many_locks_and_workloads_there_are() {
        let mut heights = Vec::new();
        for (locks, workloads) in [(3, 2), (12, 4), (40, 4), (40, 8), (40, 30), (3, 30)] {
            let mut report = empty();
            report.mode = Mode::Quick;
            report.ended = Ended::Interrupted;
            report.resumed = vec!["2026-11-24T00:00:00Z".into(); 2];
            report.options.left_out = (0..8).map(|n| format!("{} threads", 1 << n)).collect();
            for extra in 0..locks {
                let lock = Lock { name: format!("peer{extra}"), ..report.locks[1].clone() };
                report.locks.push(lock);
            }
            let workload = |n: u64| Workload { hold_ns: 1000 * n, non_hold_ns: 1000 };
            report.options.workloads = (0..workloads).map(workload).collect();
            report.cells = Cell::all(&report.options.workloads, &[1, 2]);
            let report = with_trials(report, 4, |lock, _, round| {
                let factor = if lock.starts_with("peer") { 2.0 } else { 1.0 };
                factor * 100e3 * (1.0 + 0.001 * f64::from(round))
            });
            let text = answer(&report);
            assert!(height(&text) <= HEIGHT && HEIGHT + 4 < 40, "{} lines: {text}", height(&text));
            assert!(text.contains("This is a quick look") && text.contains("The rule: "), "{text}");
            assert!(locks <= NAMED || text.contains("ahead or level; see the tables"), "{text}");
            assert_eq!(text.contains("more workloads; see the tables"), workloads > 4, "{text}");
            heights.push(height(&text));
        }
        assert!(heights[0] > 20 && heights.is_sorted(), "what fits is shown: {heights:?}");
    }

    #[test]
    fn a_lock_that_is_ahead_is_named() {
        let rate = |lock: &str, _, round: u32| {
            let factor = match lock {
                "std" => 1.2 + 0.001 * f64::from(round),
                "none" => 9.0,
                _ => 1.0,
            };
            factor * 100e3
        };
        let report = filled(7, rate);
        let rates = rates(&report);
        let choice = choose(&report, &rates, BUSY).unwrap();
        assert_eq!(choice.lock, "ours");
        let ahead: Vec<_> = choice.ahead.iter().map(|lock| lock.0).collect();
        assert_eq!(ahead, ["std"]);
        let text = answer(&report);
        assert!(text.contains("Ahead: std, 1.20 [1.20 1.20] of its rate, and nothing measured"), "{text}");
    }

    #[test]
    fn a_peer_that_is_level_with_a_far_shorter_wait_is_named() {
        let rate = |lock: &str, _, round: u32| match (lock, round % 2) {
            ("none", _) => 900e3,
            ("std", 0) | ("ours", 1) => 101e3,
            _ => 100e3,
        };
        let mut report = filled(8, rate);
        for trial in report.trials.iter_mut().filter(|trial| trial.lock == "std") {
            if let Some(waits) = &mut trial.result.waits {
                waits.p999 = 400;
            }
        }
        report.summary = crate::report::summarise(&report);
        let text = answer(&report);
        assert!(
            text.contains("Level: std, 1.00 [0.99 1.01] of its rate, with 0.10 of its p99.9 wait."),
            "{text}"
        );
    }

    #[test]
    fn a_run_without_contention_has_no_answer() {
        let mut report = empty();
        report.options.threads = vec![1];
        assert_eq!(answer(&report), "");
    }

    #[test]
    fn of_locks_that_are_level_the_one_with_the_shorter_wait_is_recommended() {
        let mut report = filled(7, |lock, _, _| if lock == "ours" { 100e3 } else { 97e3 });
        report.locks[1].kind = Kind::Family; // std
        for trial in &mut report.trials {
            if let Some(waits) = &mut trial.result.waits {
                waits.p999 = if trial.lock == "ours" { 9000 } else { 5000 };
            }
        }
        report.summary = crate::report::summarise(&report);
        let rates = rates(&report);
        let choice = choose(&report, &rates, BUSY).unwrap();
        assert_eq!(choice.lock, "std");
        assert_eq!(choice.ahead.iter().map(|lock| lock.0).collect::<Vec<_>>(), ["ours"]);
        assert!(answer(&report).contains("but its p99.9 wait is 1.80 times as long"));
    }
}
