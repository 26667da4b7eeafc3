//! Parts of the planted bugs, for `cargo xtask test`. A run has one part, which the id of the
//! commit chooses. So each part has its turn, also where only every tenth commit is tested, or
//! where the clone is shallow and git cannot count commits.
//!
//! A part has bugs of one crate, so that one package is built for each world. The tests of a part
//! take about as long as the build.

use super::spec::Mutant;
use anyhow::{Context, bail};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// The greatest number of bugs in a part. With the build, such a part takes about a minute and a
/// half on two CPUs.
const MOST: usize = 8;
/// How many digits of the id of a commit choose its part: as many as fit into 64 bits.
const DIGITS: usize = 16;

/// The parts, each as indices into `mutants`. Every bug is in one part.
pub fn parts(mutants: &[Mutant]) -> Vec<Vec<usize>> {
    let mut of_crates = BTreeMap::<&str, Vec<usize>>::new();
    for (nth, mutant) in mutants.iter().enumerate() {
        let name = mutant.spec.split("/mutants/").next().unwrap_or_default();
        of_crates.entry(name).or_default().push(nth);
    }
    let mut parts = Vec::new();
    for places in of_crates.values() {
        // The bugs of one lock stand one after the other. So a part takes bugs at intervals, and
        // has bugs of each lock.
        let count = places.len().div_ceil(MOST);
        parts.extend((0..count).map(|part| places.iter().copied().skip(part).step_by(count).collect()));
    }
    parts
}

/// The bugs of a part. `text` is its number, as `3/17`.
pub fn choose(text: &str, mutants: &[Mutant]) -> anyhow::Result<Vec<Mutant>> {
    let parts = parts(mutants);
    let all = parts.len();
    let number = |text: &str| text.parse::<usize>().ok();
    let numbers = text.split_once('/').and_then(|(part, of)| Some((number(part)?, number(of)?)));
    match numbers {
        Some((1.., of)) if of != all => {
            bail!("--part {text}: there are {all} parts now, since the bugs have changed")
        }
        Some((part @ 1.., _)) if part <= all => {
            Ok(parts[part - 1].iter().map(|&nth| mutants[nth].clone()).collect())
        }
        _ => bail!("--part {text}: write it as 3/{all}, from 1/{all} to {all}/{all}"),
    }
}

/// The part that belongs to the commit that is checked out in `root`, as `3/17`.
pub fn of_commit(root: &Path, mutants: &[Mutant]) -> anyhow::Result<String> {
    let printed = Command::new("git").args(["rev-parse", "HEAD"]).current_dir(root).output()?;
    let id = String::from_utf8_lossy(&printed.stdout);
    turn(&id, parts(mutants).len()).context("git names no commit")
}

/// The part for the commit `id`, whose digits are a hash already.
fn turn(id: &str, parts: usize) -> Option<String> {
    let number = u64::from_str_radix(id.get(..DIGITS)?, 16).ok()?;
    Some(format!("{}/{parts}", number % parts.max(1) as u64 + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::spec::PLANTED;
    use std::collections::BTreeSet;
    use xtask::workspace::Workspace;

    #[test]
    fn every_bug_is_in_one_part_and_a_part_is_of_one_crate() {
        let parts = parts(&PLANTED);
        let all: Vec<_> = parts.iter().flatten().copied().collect();
        assert_eq!(all.len(), PLANTED.len());
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), PLANTED.len());
        for part in &parts {
            let crates: BTreeSet<_> =
                part.iter().map(|&nth| PLANTED[nth].spec.split("/mutants/").next().unwrap()).collect();
            assert!(crates.len() == 1 && !part.is_empty() && part.len() <= MOST, "{crates:?}");
        }
    }

    #[test]
    fn a_part_is_named_by_its_number_and_by_how_many_there_are() {
        let all = parts(&PLANTED).len();
        let chosen = choose(&format!("{all}/{all}"), &PLANTED).unwrap();
        assert!(!chosen.is_empty() && chosen.len() <= MOST);
        let refused = |text: &str| choose(text, &PLANTED).unwrap_err().to_string();
        assert!(refused(&format!("1/{}", all + 1)).contains(&format!("there are {all} parts")));
        for text in ["3", "0/9", "x/9", &format!("{}/{all}", all + 1)] {
            assert!(refused(text).contains(&format!("from 1/{all} to {all}/{all}")), "{text}");
        }
    }

    #[test]
    fn the_id_of_a_commit_chooses_its_part() {
        let id = "6bd3728e1f0c5a9ddeadbeefdeadbeefdeadbeef\n";
        assert_eq!(turn(id, 1).as_deref(), Some("1/1"));
        assert_eq!(turn(id, 16).as_deref(), Some("14/16"), "the 16th digit is d");
        assert_eq!(turn("", 3), None);
        let root = Workspace::load().unwrap().root;
        assert!(choose(&of_commit(&root, &PLANTED).unwrap(), &PLANTED).is_ok());
    }
}
