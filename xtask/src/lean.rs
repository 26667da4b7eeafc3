//! `cargo xtask lean`: the crates that a user compiles after adding `ulocks` to a `Cargo.toml`.
//!
//! The list below is complete, and short on purpose: a new name in it is a decision. It must not
//! contain loom or the virtual machine, which are features that a user asks for.
//!
//! A user of `ulocks-loom` compiles the virtual machine, and none of its features: they are for the
//! authors of locks.

use std::collections::BTreeSet;
use xshell::{Shell, cmd};
use xtask::steps::Steps;
use xtask::workspace::Workspace;

/// Third-party crates in a user's lockfile, with all targets and no feature.
const ALLOWED: [&str; 5] = ["crossbeam-utils", "libc", "lock_api", "scopeguard", "smallvec"];

/// A crate of ours that a user compiles only with the feature `vm`.
const VM: &str = "ulocks-vm";

/// The facade of the virtual machine.
const LOOM: &str = "ulocks-loom";

/// Compares the dependency tree of the facade with the list, and that of loom's with nothing.
pub fn run(shell: &Shell, workspace: &Workspace, steps: &mut Steps) -> anyhow::Result<()> {
    let tree =
        cmd!(shell, "cargo tree --package ulocks --edges normal,build --target all --prefix none").quiet();
    let machine = cmd!(shell, "cargo tree --package {LOOM} --edges normal,features --prefix none").quiet();
    let ours = ours(workspace);
    Ok(steps.check("lean", "cargo xtask lean", || {
        let extra = strangers(&tree.read()?, &ours);
        for name in &extra {
            eprintln!(
                "a user of `ulocks` would compile `{name}`, which is not on the list in xtask/src/lean.rs"
            );
        }
        let machine = machine.read()?;
        let features = features(&machine);
        for name in &features {
            eprintln!("a user of `{LOOM}` would compile the feature `{name}` of `{VM}`");
        }
        Ok(extra.is_empty() && features.is_empty())
    })?)
}

/// The crates of ours that a user may compile.
fn ours(workspace: &Workspace) -> Vec<&str> {
    workspace.packages.iter().map(|package| package.name.as_str()).filter(|name| *name != VM).collect()
}

/// Names in the output of `cargo tree` that are neither our crates nor in the list.
fn strangers(tree: &str, ours: &[&str]) -> BTreeSet<String> {
    tree.lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| !ours.contains(name) && !ALLOWED.contains(name))
        .map(str::to_owned)
        .collect()
}

/// The features of the virtual machine in the output of `cargo tree`.
fn features(tree: &str) -> BTreeSet<&str> {
    let names =
        tree.lines().filter_map(|line| line.strip_prefix(VM)?.strip_prefix(" feature \"")?.split('"').next());
    names.filter(|name| *name != "default").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feature_of_the_machine_is_named() {
        let tree = "ulocks-loom v0.1.0 (/x)\nulocks-vm feature \"default\"\nulocks-vm v0.1.0 (/x)\n\
                    libc feature \"std\"\nulocks-vm feature \"linux\" (*)\n";
        assert_eq!(features(tree).into_iter().collect::<Vec<_>>(), ["linux"]);
        assert!(features("ulocks-vm feature \"default\"\n").is_empty());
    }

    #[test]
    fn a_dependency_that_is_not_on_the_list_is_named() {
        let tree = "ulocks v0.1.0 (/x/crates/ulocks)\nulocks-core v0.1.0\nlibc v0.2.1\nloom v0.7.2\nlibc v0.2.1 (*)\n";
        let found: Vec<String> = strangers(tree, &["ulocks", "ulocks-core"]).into_iter().collect();
        assert_eq!(found, ["loom"]);
    }

    #[test]
    fn the_virtual_machine_is_a_stranger() {
        let workspace = Workspace::load().unwrap();
        let ours = ours(&workspace);
        assert!(ours.contains(&"ulocks-core"));
        let found: Vec<String> =
            strangers("ulocks-core v0.1.0\nulocks-vm v0.1.0\n", &ours).into_iter().collect();
        assert_eq!(found, [VM]);
    }
}
