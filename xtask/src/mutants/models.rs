//! Which models may report a weakened ordering: those of its lock, without the models that are only
//! there for planted bugs.

use super::build::Unit;
use super::weaken::Weakening;
use std::fs;
use xtask::workspace::{Package, Workspace};

/// What has its models in another package.
const MODELS_ELSEWHERE: [(&str, &str); 1] = [("crates/core/src/sys/robust.rs", "ulocks-shm")];
/// The worlds with a model of memory, the faster one first.
pub const WORLDS: [&str; 2] = ["vm", "loom"];
/// The models of a lock in a world: some of the tests of a package.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Models {
    /// Their package, and their world.
    pub unit: Unit,
    /// Their targets.
    pub tests: Vec<String>,
    /// Parts of the names of tests that are left out.
    pub without: Vec<String>,
}

impl Models {
    /// The models for `file` in `world`.
    pub fn new(package: &Package, file: &str, world: &str) -> Self {
        let unit = Unit { world: world.to_owned(), package: package.name.clone() };
        let within = file.split_once("/src/").map_or(file, |(_, within)| within);
        let part = within.split(['/', '.']).next().unwrap_or_default();
        if package.name == "ulocks-core" {
            // Its two halves are folders.
            let part = within.split(['/', '.']).nth(1).unwrap_or_default();
            let test = format!("{world}_{part}");
            let tests = package.tests(world).into_iter().filter(|known| *known == test).collect();
            return Self { unit, tests, without: Vec::new() };
        }
        let is_lock = |part: &str| package.dir.join(format!("tests/{world}/{part}.rs")).is_file();
        let others = fs::read_dir(package.dir.join("src")).into_iter().flatten().flatten();
        let others = others.filter(|entry| entry.path().join("mod.rs").is_file());
        let mut without: Vec<String> = others
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            // The models of a condition variable are also models of the mutexes. A folder that has
            // no models of its own is a part of all locks.
            .filter(|other| is_lock(part) && other != part && other != "condvar")
            .map(|other| format!("{other}::"))
            .collect();
        without.push("bugs::".into());
        without.sort();
        Self { unit, tests: package.tests(world), without }
    }
}

/// The models for `weakening`, in the worlds that `world` selects.
pub fn models(workspace: &Workspace, weakening: &Weakening, world: Option<&str>) -> Vec<Models> {
    let elsewhere = MODELS_ELSEWHERE.iter().find(|(file, _)| *file == weakening.file);
    let name = elsewhere.map_or(weakening.package.as_str(), |(_, package)| package);
    let package = workspace.packages.iter().find(|package| package.name == name);
    let worlds = WORLDS.into_iter().filter(|name| world.is_none_or(|world| world == *name));
    let models = worlds.flat_map(|world| Some(Models::new(package?, &weakening.file, world)));
    models.filter(|models| !models.tests.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_models_of_a_lock_are_those_of_its_crate_without_those_of_other_locks() {
        let workspace = Workspace::load().unwrap();
        let package = |name: &str| workspace.packages.iter().find(|package| package.name == name).unwrap();
        let unfair = Models::new(package("ulocks-unfair"), "crates/locks/unfair/src/barging/raw.rs", "vm");
        assert_eq!(unfair.without, ["asym::", "bugs::", "byte::", "throughput::"]);
        assert_eq!(unfair.tests, ["vm"]);
        let queue = Models::new(package("ulocks-fair"), "crates/locks/fair/src/queue/mod.rs", "vm");
        assert_eq!(queue.without, ["bugs::"], "the queue is a part of both locks");
        let core = Models::new(package("ulocks-core"), "crates/core/src/lock/condvar/raw.rs", "loom");
        assert_eq!(core.tests, ["loom_condvar"]);
        assert_eq!(core.without, [""; 0]);
        let calock = Models::new(package("ulocks-calock"), "crates/locks/calock/src/lib.rs", "vm");
        assert_eq!(calock.without, ["bugs::"]);
    }
}
