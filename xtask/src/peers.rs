//! `cargo xtask peers`: `ulocks-shm` beside the libraries of `benches/peers`, in turns.
//!
//! A program prints lines of a subject, a figure and a number of nanoseconds. Our time by that of a
//! peer is taken within a round, so that what else the machine does in it meets both.

use crate::flags::Peers;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs;
use xshell::{Cmd, Shell, cmd};
use xtask::steps::Steps;
use xtask::workspace::Workspace;

const OURS: &str = "ours";
const FIGURES: [&str; 4] = ["pair", "trip", "trip2", "message"];

/// The figures of the rounds, by subject and figure; and the remarks, by topic and subject.
#[derive(Default)]
struct Told {
    times: BTreeMap<(String, String), Vec<f64>>,
    remarks: BTreeMap<(String, String), String>,
}

/// Builds what is installed, runs it, and prints ratios.
pub fn run(flags: &Peers, shell: &Shell, workspace: &Workspace, steps: &mut Steps) -> Result<()> {
    let rounds = flags.rounds.unwrap_or(7).max(1);
    let target = workspace.target();
    let folder = target.join("peers");
    fs::create_dir_all(&folder)?;
    steps.run(
        "ours",
        cmd!(shell, "cargo build --release --quiet -p ulocks-benches --bin ulocks-peer"),
        &[],
    )?;
    let (ours, boost, rust) =
        (target.join("release/ulocks-peer"), folder.join("boost"), folder.join("release/peers"));
    let mut programs = vec![cmd!(shell, "{ours}").quiet()];
    let built = |compile: Cmd<'_>, hint: &str| {
        let is_built = compile.run().is_ok();
        if !is_built {
            println!("not measured, since it does not compile; to install it: {hint}");
        }
        is_built
    };
    let source = "benches/peers/boost.cpp";
    let compile = cmd!(shell, "g++ -std=c++17 -O2 -o {boost} {source} -pthread -lrt");
    if built(compile, "apt install g++ libboost-dev") {
        programs.push(cmd!(shell, "{boost}").quiet());
    }
    let manifest = "benches/peers/Cargo.toml";
    let compile =
        cmd!(shell, "cargo build --release --quiet --manifest-path {manifest} --target-dir {folder}");
    if built(compile, "cargo needs crates.io, for iceoryx2 and raw_sync") {
        programs.push(cmd!(shell, "{rust} iceoryx2").quiet());
        programs.push(cmd!(shell, "{rust} raw_sync").quiet());
    }
    Ok(steps.check("peers", "cargo xtask peers", || {
        let mut told = Told::default();
        for _ in 0..rounds {
            for program in &programs {
                told.read(&program.read()?)?;
            }
        }
        print!("{}", told.table(rounds)?);
        Ok(true)
    })?)
}

impl Told {
    fn read(&mut self, output: &str) -> Result<()> {
        for line in output.lines() {
            let mut words = line.splitn(3, ' ').map(str::to_owned);
            let parts = (words.next(), words.next(), words.next());
            let (Some(subject), Some(figure), Some(value)) = parts else { continue };
            if !FIGURES.contains(&&*figure) {
                self.remarks.insert((figure, subject), value);
            } else {
                let value = value.parse().with_context(|| line.to_owned())?;
                self.times.entry((subject, figure)).or_default().push(value);
            }
        }
        Ok(())
    }

    /// The machine, and a line for each peer and figure, with the median and the range.
    fn table(&self, rounds: usize) -> Result<String> {
        let cpus = std::thread::available_parallelism()?;
        let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = info.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or(": unknown");
        let mut text = format!("{cpus} CPUs, {}; {rounds} rounds\n", model.trim_matches([' ', '\t', ':']));
        for figure in FIGURES {
            let ours = self.times.get(&(OURS.into(), figure.into())).context("ours has told nothing")?;
            for ((subject, _), theirs) in self.times.iter().filter(|((_, of), _)| of == figure) {
                let mut ratios: Vec<f64> =
                    theirs.iter().zip(ours).map(|(theirs, ours)| ours / theirs).collect();
                ratios.sort_by(f64::total_cmp);
                let last = ratios.len() - 1;
                let median = (ratios[last / 2] + ratios[last.div_ceil(2)]) / 2.0;
                let [least, median, most] = [ratios[0], median, ratios[last]].map(|x| format!("{x:.2}"));
                if subject != OURS {
                    text += &format!("{figure:8} our time by that of {subject}: {median} [{least} {most}]\n");
                }
            }
        }
        for ((topic, subject), remark) in &self.remarks {
            text += &format!("{topic:8} {subject}: {remark}\n");
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_one_round() {
        let mut told = Told::default();
        for (ours, theirs) in [(20, 10), (300, 100), (1000, 1000)] {
            let lines = FIGURES.map(|figure| format!("ours {figure} {ours}\nboost {figure} {theirs}\n"));
            told.read(&lines.concat()).unwrap();
        }
        told.read("boost death there is no mutex").unwrap();
        let table = told.table(3).unwrap();
        assert!(table.contains("our time by that of boost: 2.00 [1.00 3.00]"), "{table}");
        assert!(table.contains("death    boost: there is no mutex"), "{table}");
        told.read(&FIGURES.map(|figure| format!("ours {figure} 4\nboost {figure} 1\n")).concat()).unwrap();
        let table = told.table(4).unwrap();
        assert!(table.contains("our time by that of boost: 2.50 [1.00 4.00]"), "{table}");
        assert!(told.read("ours pair many").is_err());
    }
}
