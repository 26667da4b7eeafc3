//! How the time of `cargo bench` is shared out among its programs on two CPUs: fifteen minutes, and
//! four with `--quick`.
//!
//! A program with a harness of its own chooses windows and rounds so that its plan fits its share.
//! A criterion bench chooses how long it samples ([`sampling`]). Where there are more CPUs,
//! `scaling` measures less of everything, and the others do as much as on two.

use std::time::Duration;

/// All of `cargo bench`, and of `cargo bench -- --quick`, in seconds.
pub const ALL_S: (u64, u64) = (15 * 60, 4 * 60);

/// A program and its shares of both, in seconds.
const SHARES: [(&str, u64, u64); 13] = [
    ("condvar", 106, 17),
    ("contended", 38, 11),
    ("convoy", 97, 14),
    ("handoff", 8, 6),
    ("no_contention", 14, 12),
    ("promises", 175, 22),
    ("psrw", 75, 20),
    ("readers", 20, 14),
    ("scaling", 250, 75),
    ("sembench", 38, 12),
    ("semscale", 34, 10),
    ("sets", 6, 4),
    ("shared", 36, 12),
];

/// The share of a program of `cargo bench`, in seconds.
pub fn full(program: &str) -> u64 {
    of(program).0
}

/// The share of a program of `cargo bench -- --quick`, in seconds.
pub fn quick(program: &str) -> u64 {
    of(program).1
}

fn of(program: &str) -> (u64, u64) {
    let share = SHARES.iter().find(|share| share.0 == program);
    let &(_, full, quick) = share.unwrap_or_else(|| panic!("{program} has no share of the time"));
    (full, quick)
}

/// What criterion does before it samples.
pub const WARM_UP: Duration = Duration::from_millis(100);
/// What criterion takes beside warm-up and samples, to judge them and to write files.
const OVERHEAD: Duration = Duration::from_millis(50);
/// Samples of a shorter time say nothing.
const SHORTEST: Duration = Duration::from_millis(100);
/// Samples of a longer time say no more.
pub const LONGEST: Duration = Duration::from_secs(1);

/// How long a criterion bench samples each of its benchmarks, so that all of them take its share.
pub fn sampling(program: &str, quick: bool, benchmarks: usize) -> Duration {
    let (full, short) = of(program);
    let share = Duration::from_secs(if quick { short } else { full });
    let each = share / u32::try_from(benchmarks.max(1)).unwrap_or(u32::MAX);
    each.saturating_sub(WARM_UP + OVERHEAD).clamp(SHORTEST, LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_fill_the_time_and_no_more() {
        let sum = |of: fn(&str) -> u64| SHARES.iter().map(|share| of(share.0)).sum::<u64>();
        for (sum, all) in [(sum(full), ALL_S.0), (sum(quick), ALL_S.1)] {
            assert!(sum <= all && sum > all * 9 / 10, "{sum} of {all} s");
        }
    }

    #[test]
    fn the_shares_are_those_of_the_documentation() {
        let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../BENCHMARKS.md")).unwrap();
        let text = text.replace(" (criterion)", "");
        for (program, full, quick) in SHARES {
            let row = format!("| `{program}` | {full} | {quick} |");
            assert!(text.contains(&row), "no {row} in BENCHMARKS.md");
        }
        let sum = |of: fn(&str) -> u64| SHARES.iter().map(|share| of(share.0)).sum::<u64>();
        assert!(text.contains(&format!("| **all** | {} | {} |", sum(full), sum(quick))));
        let (minutes, quick) = (ALL_S.0 / 60, ALL_S.1 / 60);
        assert!(text.contains(&format!("at most {minutes} minutes on two CPUs")) && quick == 4);
    }

    /// The names of the benches are those of their files.
    #[test]
    fn every_bench_has_a_share() {
        let folder = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/benches")).unwrap();
        let files = folder.map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
        let mut names: Vec<_> =
            files.map(|file| file.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
        names.sort();
        assert_eq!(names, SHARES.map(|share| share.0));
    }

    #[test]
    fn samples_fill_the_share_within_limits() {
        let (full, _) = of("contended");
        let each = sampling("contended", false, 120) + WARM_UP + OVERHEAD;
        assert!(120 * each <= Duration::from_secs(full));
        assert_eq!(sampling("contended", false, 1), LONGEST);
        assert_eq!(sampling("contended", true, 1000), SHORTEST);
    }
}
