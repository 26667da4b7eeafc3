//! `cargo lab picture`: draws a picture of the crates and their dependencies, from the manifests.
//!
//! A crate stands one floor above the highest crate that it depends on. Development dependencies
//! are not drawn, nor are arrows that follow from other arrows. A test draws the picture again and
//! compares it with the file.

use anyhow::Context;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use xtask::steps::Steps;
use xtask::workspace::{Package, Workspace};

/// The file of the picture.
const FILE: &str = "xtask/records/ARCHITECTURE.svg";

const W: usize = 132;
const H: usize = 34;
const GAP_X: usize = 14;
const GAP_Y: usize = 46;
const MARGIN: usize = 16;

/// Draws the picture and writes it.
pub fn run(workspace: &Workspace, steps: &mut Steps) -> anyhow::Result<()> {
    Ok(steps.check("picture", "cargo lab picture", || {
        fs::write(workspace.root.join(FILE), svg(workspace))
            .with_context(|| format!("cannot write {FILE}"))?;
        println!("wrote {FILE}");
        Ok(true)
    })?)
}

/// The picture.
fn svg(workspace: &Workspace) -> String {
    let arrows = reduced(&dependencies(workspace));
    let floors = floors(&arrows);
    let widest = floors.iter().map(Vec::len).max().unwrap_or(0);
    let width = 2 * MARGIN + widest * (W + GAP_X) - GAP_X;
    let height = 2 * MARGIN + floors.len() * (H + GAP_Y) - GAP_Y;
    let mut places = BTreeMap::new();
    for (floor, names) in floors.iter().enumerate() {
        let row = names.len() * (W + GAP_X) - GAP_X;
        for (nth, name) in names.iter().enumerate() {
            let x = (width - row) / 2 + nth * (W + GAP_X);
            let y = MARGIN + (floors.len() - 1 - floor) * (H + GAP_Y);
            places.insert(*name, (x, y));
        }
    }
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n\
         <title>The crates of ulocks: an arrow points to what a crate depends on</title>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n\
         <marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" \
         orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#667\"/></marker>\n"
    );
    for (from, targets) in &arrows {
        for to in targets {
            let ((x1, y1), (x2, y2)) = (places[from.as_str()], places[to.as_str()]);
            _ = writeln!(
                out,
                "<path d=\"M{} {}L{} {}\" stroke=\"#667\" fill=\"none\" marker-end=\"url(#tip)\"/>",
                x1 + W / 2,
                y1 + H,
                x2 + W / 2,
                y2
            );
        }
    }
    for (name, (x, y)) in places {
        _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{W}\" height=\"{H}\" rx=\"4\" fill=\"#eef\" stroke=\"#446\"/>\
             <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{name}</text>",
            x + W / 2,
            y + H / 2 + 5
        );
    }
    out + "</svg>\n"
}

type Arrows = BTreeMap<String, BTreeSet<String>>;

/// Which members each member depends on.
fn dependencies(workspace: &Workspace) -> Arrows {
    let on = |package: &Package| {
        let others = workspace.packages.iter().filter(|other| package.needs(&other.name));
        others.map(|other| other.name.clone()).collect()
    };
    workspace.packages.iter().map(|package| (package.name.clone(), on(package))).collect()
}

/// The arrows that do not follow from others.
fn reduced(arrows: &Arrows) -> Arrows {
    let without = |from: &str| {
        let direct = &arrows[from];
        let further: BTreeSet<&String> = direct.iter().flat_map(|to| reachable(arrows, to)).collect();
        direct.iter().filter(|to| !further.contains(to)).cloned().collect()
    };
    arrows.keys().map(|from| (from.clone(), without(from))).collect()
}

/// What can be reached from `from`, without itself.
fn reachable<'a>(arrows: &'a Arrows, from: &str) -> BTreeSet<&'a String> {
    arrows[from].iter().flat_map(|to| reachable(arrows, to).into_iter().chain([to])).collect()
}

/// The crates by floor, the lowest first.
fn floors(arrows: &Arrows) -> Vec<Vec<&str>> {
    fn floor(arrows: &Arrows, name: &str) -> usize {
        arrows[name].iter().map(|to| floor(arrows, to) + 1).max().unwrap_or(0)
    }
    let mut floors = Vec::new();
    for name in arrows.keys() {
        let floor = floor(arrows, name);
        floors.resize(floors.len().max(floor + 1), Vec::new());
        floors[floor].push(name.as_str());
    }
    floors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrows(list: &[(&str, &[&str])]) -> Arrows {
        let owned = |names: &&[&str]| names.iter().map(|&name| name.to_owned()).collect();
        list.iter().map(|(from, to)| ((*from).to_owned(), owned(to))).collect()
    }

    #[test]
    fn arrows_that_follow_from_others_are_left_out() {
        let all = arrows(&[("top", &["middle", "base"]), ("middle", &["base"]), ("base", &[])]);
        let few = reduced(&all);
        assert_eq!(few, arrows(&[("top", &["middle"]), ("middle", &["base"]), ("base", &[])]));
        assert_eq!(floors(&few), [vec!["base"], vec!["middle"], vec!["top"]]);
    }

    #[test]
    fn the_picture_shows_every_member() {
        let workspace = Workspace::load().unwrap();
        let picture = svg(&workspace);
        for package in &workspace.packages {
            assert!(picture.contains(&format!(">{}</text>", package.name)), "{}", package.name);
        }
    }

    #[test]
    fn the_picture_is_as_the_manifests_are() {
        let workspace = Workspace::load().unwrap();
        let drawn = fs::read_to_string(workspace.root.join(FILE)).unwrap();
        assert!(drawn == svg(&workspace), "it is out of date: cargo lab picture");
    }
}
