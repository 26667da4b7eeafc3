use super::*;
use crate::report::fixture::{BARE, BUSY, filled, plain};

fn close(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < 1e-4
}

#[test]
fn ratios_are_paired_so_a_slow_round_does_not_show() {
    let report = plain(7);
    let point = report.summary.point("ours", BUSY, 2).unwrap();
    let ratio = point.vs_std.unwrap();
    let (low, high) = ratio.interval.unwrap();
    assert!(close(ratio.value, 2.0) && close(low, 2.0) && close(high, 2.0), "{ratio:?}");
    assert_eq!(ratio.verdict(), Verdict::Faster);
    // The throughput itself is known far less well.
    let (low, high) = point.per_s.interval.unwrap();
    assert!(high / low > 1.2 && low < point.per_s.value && point.per_s.value < high);
    assert_eq!(report.summary.point("std", BUSY, 2).unwrap().vs_std, None);
}

#[test]
fn an_interval_around_one_is_no_verdict() {
    for rounds in [4, 7] {
        let report = plain(rounds);
        let ratio = report.summary.point("parking_lot", BUSY, 2).unwrap().vs_std.unwrap();
        let (low, high) = ratio.interval.unwrap();
        assert!(low < 1.0 && high > 1.0, "{ratio:?}");
        assert_eq!(ratio.verdict().as_str(), "no verdict");
    }
    let ratio = Ratio { value: 1.3, interval: Some((1.01, 1.6)), rounds: 7, two_modes: false };
    assert_eq!(ratio.verdict().as_str(), "faster");
    assert_eq!(Ratio { interval: Some((0.999, 1.6)), ..ratio }.verdict().as_str(), "no verdict");
    assert_eq!(Ratio { interval: Some((0.5, 0.99)), ..ratio }.verdict().as_str(), "slower");
    assert_eq!(Ratio { interval: None, ..ratio }.verdict().as_str(), "no verdict");
    // Over two modes all rounds have to agree, and there have to be enough of them.
    assert_eq!(Ratio { two_modes: true, ..ratio }.verdict().as_str(), "faster");
    assert_eq!(Ratio { two_modes: true, rounds: 5, ..ratio }.verdict().as_str(), "two modes");
    assert_eq!(
        Ratio { two_modes: true, interval: Some((0.9, 3.0)), ..ratio }.verdict().as_str(),
        "two modes"
    );
}

#[test]
fn one_round_has_values_but_no_interval() {
    let report = plain(1);
    let point = report.summary.point("ours", BUSY, 2).unwrap();
    assert_eq!((point.rounds, point.per_s.interval), (1, None));
    assert_eq!(point.vs_std.unwrap().verdict(), Verdict::None);
}

#[test]
fn two_modes_are_kept_apart() {
    let report = filled(7, |lock, _, round| match (lock, round) {
        ("ours", 0 | 3) => 5_600_000.0,
        ("ours", _) => 58_000.0 + 100.0 * f64::from(round),
        _ => 100_000.0,
    });
    let point = report.summary.point("ours", BUSY, 2).unwrap();
    let (slow, fast) = point.modes.unwrap();
    assert_eq!((slow.rounds, fast.rounds), (5, 2));
    assert!(close(fast.per_s, 5_600_000.0) && (58_000.0..59_000.0).contains(&slow.per_s));
    assert_eq!(point.typical(), slow.per_s);
    let ratio = point.vs_std.unwrap();
    assert!(ratio.two_modes && ratio.verdict() == Verdict::TwoModes);
    assert!(ratio.value < 1.0, "the median round is a slow one");
    // The peer's own figure stays whole, its ratios to the other peer too.
    assert!(report.summary.point("std", BUSY, 2).unwrap().modes.is_none());
    assert!(!report.summary.point("std", BUSY, 2).unwrap().vs_parking_lot.unwrap().two_modes);
    let score = report.summary.scores.iter().find(|s| s.lock == "ours").unwrap();
    assert_eq!((score.two_modes, score.tally), (2, Tally { none: 2, ..Tally::default() }));
}

#[test]
fn the_other_figures_of_a_point() {
    let report = plain(7);
    let point = report.summary.point("ours", BUSY, 2).unwrap();
    assert!((point.least.median - 0.5).abs() < 1e-3 && (point.most.median - 1.5).abs() < 1e-3);
    assert!((point.cov.median - 0.5).abs() < 1e-3, "{:?}", point.cov);
    assert!((point.sleeps.median - 0.01).abs() < 1e-3);
    // 0.2 s of CPU in a window of 0.1 s: 2 s of CPU a second, by the rate of the median round.
    assert!(close(point.cpu_ns.median, 2e9 / (2.0 * 100e3 * 0.8)), "{:?}", point.cpu_ns);
    // The same CPU time for twice the operations of `std`.
    assert!(
        close(point.cpu_vs_std.unwrap().value, 0.5)
            && close(report.summary.scores[0].cpu_vs_std.unwrap().value, 0.5)
    );
    let waits = point.waits.unwrap();
    assert_eq!((waits.p50.median, waits.p999.median, waits.max), (40.0, 4003.0, 7e6));
    assert_eq!((waits.p999.low, waits.p999.high), (4000.0, 4006.0));
    // The bare workload takes its throughput from the cell without clock reads, its waits from the
    // other.
    let bare = report.summary.point("ours", BARE, 2).unwrap();
    assert!(bare.waits.is_some() && bare.rounds == 7);
    assert_eq!(report.summary.points.len(), 4 * 4);
}

#[test]
fn the_score_of_a_lock() {
    let report = plain(7);
    let ours = &report.summary.scores[0];
    assert_eq!(ours.lock, "ours");
    assert_eq!(ours.tally, Tally { faster: 2, slower: 0, none: 0 });
    assert!(close(ours.vs_std.unwrap().value, 2.0) && close(ours.uncontended.unwrap().value, 2.0));
    assert_eq!((ours.max_p999, ours.two_modes), (Some(4003.0), 0));
    // A family's lock is measured against the best of the others, and no lock at all is no lock's
    // peer.
    let worst = ours.worst.as_ref().unwrap();
    assert!(["std", "parking_lot"].contains(&worst.peer.as_str()) && worst.ratio > 1.8, "{worst:?}");
    let std = &report.summary.scores[1];
    assert_eq!(std.vs_std, None);
    assert!(std.vs_best.unwrap() <= 1.05);
}

#[test]
fn an_interrupted_round_is_compared_as_far_as_it_went() {
    let mut report = plain(4);
    report.trials.retain(|t| t.round < 3 || t.lock == "std");
    let summary = summarise(&report);
    let point = summary.point("ours", BUSY, 2).unwrap();
    assert_eq!((point.rounds, point.vs_std.unwrap().rounds), (3, 3));
    assert_eq!(summary.point("std", BUSY, 2).unwrap().rounds, 4);
    assert_eq!(summary.scores[0].vs_std.unwrap().rounds, 3);
    report.trials.retain(|t| t.lock == "std" && t.cell == 0);
    let summary = summarise(&report);
    assert_eq!(summary.points.len(), 1);
    assert!(summary.scores[0].vs_std.is_none() && summary.scores[0].worst.is_none());
}

#[test]
fn a_cell_is_open_until_its_interval_is_narrow() {
    let mut report = filled(3, |_, _, round| 100_000.0 + f64::from(round));
    assert_eq!(open_cells(&report), 0);
    report.trials.retain(|t| t.round == 0);
    assert_eq!(open_cells(&report), 16);
    let noisy =
        filled(3, |lock, _, round| if lock == "ours" { 1e5 * (1.0 + 0.3 * f64::from(round)) } else { 1e5 });
    assert_eq!(open_cells(&noisy), 4);
    let bimodal = filled(3, |lock, _, round| if lock == "ours" && round == 1 { 1e6 } else { 1e5 });
    assert_eq!(open_cells(&bimodal), 0);
}

#[test]
fn the_median_has_an_order_statistics_interval() {
    let values = |n: i32| (1..=n).map(f64::from).collect::<Vec<_>>();
    let spread = |n| Spread::of(&values(n));
    assert_eq!(spread(3), Spread { median: 2.0, low: 1.0, high: 3.0 });
    assert_eq!(spread(6), Spread { median: 3.5, low: 1.0, high: 6.0 });
    // From the binomial table: 9 values leave out one at each end, 12 two, 15 three.
    assert_eq!(spread(9), Spread { median: 5.0, low: 2.0, high: 8.0 });
    assert_eq!(spread(12), Spread { median: 6.5, low: 3.0, high: 10.0 });
    assert_eq!(spread(15), Spread { median: 8.0, low: 4.0, high: 12.0 });
    assert_eq!(Spread::of(&[]).median, 0.0);
}
