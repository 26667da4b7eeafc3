//! Which models may report a weakened ordering: those of its lock, without the models that are only
//! there for planted bugs.

use super::build::Unit;
use super::weaken::Weakening;
use std::fs;
use xtask::workspace::{Package, Workspace};

/// What has its models in other packages: the file or its folder, a package, and the part of it
/// whose models they are, or none if all are.
const MODELS_ELSEWHERE: [(&str, &str, &str); 4] = [
    ("crates/core/src/lock/sleep.rs", "ulocks-psrwlock", ""),
    ("crates/core/src/sys/robust.rs", "ulocks-shm", ""),
    ("crates/core/src/lock/queue/", "ulocks-fair", ""),
    ("crates/core/src/lock/queue/", "ulocks-unfair", "throughput"),
];
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
    /// The models for `file` of `package` in `world`.
    pub fn new(package: &Package, file: &str, world: &str) -> Self {
        let within = file.split_once("/src/").map_or(file, |(_, within)| within);
        if package.name == "ulocks-core" {
            let unit = Unit { world: world.to_owned(), package: package.name.clone() };
            // Its two halves are folders.
            let part = within.split(['/', '.']).nth(1).unwrap_or_default();
            let test = format!("{world}_{part}");
            let tests = package.tests(world).into_iter().filter(|known| *known == test).collect();
            return Self { unit, tests, without: Vec::new() };
        }
        Self::of_part(package, within.split(['/', '.']).next().unwrap_or_default(), world)
    }

    /// The models for a part of `package` in `world`: for a file or a folder in its source.
    fn of_part(package: &Package, part: &str, world: &str) -> Self {
        let unit = Unit { world: world.to_owned(), package: package.name.clone() };
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
    let package = |name: &str| workspace.packages.iter().find(|package| package.name == name);
    let is_elsewhere = |file: &str| weakening.file.starts_with(file);
    let mut found = Vec::new();
    for world in WORLDS.into_iter().filter(|name| world.is_none_or(|world| world == *name)) {
        for (_, name, part) in MODELS_ELSEWHERE.into_iter().filter(|(file, ..)| is_elsewhere(file)) {
            found.extend(package(name).map(|package| Models::of_part(package, part, world)));
        }
        if !MODELS_ELSEWHERE.iter().any(|(file, ..)| is_elsewhere(file)) {
            let own = package(&weakening.package);
            found.extend(own.map(|package| Models::new(package, &weakening.file, world)));
        }
    }
    found.retain(|models| !models.tests.is_empty());
    found
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
        let queue = Models::of_part(package("ulocks-fair"), "", "vm");
        assert_eq!(queue.without, ["bugs::"], "the queue is a part of both locks");
        let queue = Models::of_part(package("ulocks-unfair"), "throughput", "vm");
        assert_eq!(queue.without, ["asym::", "barging::", "bugs::", "byte::"]);
        let core = Models::new(package("ulocks-core"), "crates/core/src/lock/condvar/raw.rs", "loom");
        assert_eq!(core.tests, ["loom_condvar"]);
        assert_eq!(core.without, [""; 0]);
        let calock = Models::new(package("ulocks-calock"), "crates/locks/calock/src/lib.rs", "vm");
        assert_eq!(calock.without, ["bugs::"]);
    }
}
