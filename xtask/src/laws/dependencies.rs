//! A law of manifests: each dependency is used by some source of its package, and each entry of
//! `[workspace.dependencies]` by some member.
//!
//! A dependency is used if code names it as a crate: `NAME::`, `NAME!`, or `use NAME`. What only
//! tests use is a development dependency, unless it is optional. The code in documentation counts
//! for these.

use super::{has_word, shown, without_comment};
use std::collections::BTreeSet;
use std::fs;
use toml::Value;
use xtask::workspace::{Dependency, Manifest, Workspace, sources};

/// The dependencies that nothing uses, as `MANIFEST: what`.
pub fn faults(workspace: &Workspace) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    let mut inherited = BTreeSet::new();
    let library = |name: &str| {
        let member = workspace.packages.iter().find(|package| package.name == name);
        let own = member.and_then(|package| package.manifest.get("lib", "name")?.as_str());
        own.unwrap_or(name).replace('-', "_")
    };
    for package in &workspace.packages {
        let (mut plain, mut of_tests) = (String::new(), String::new());
        for path in sources(&package.dir)? {
            let inside = path.strip_prefix(&package.dir)?;
            let is_plain = inside.starts_with("src") || inside == "build.rs";
            let to = if is_plain { &mut plain } else { &mut of_tests };
            *to += &fs::read_to_string(&path)?;
        }
        of_tests += &fs::read_to_string(package.dir.join("README.md")).unwrap_or_default();
        let manifest = shown(&package.dir.join("Cargo.toml"), &workspace.root);
        let unused = unused(&package.manifest, library, &plain, &of_tests).into_iter();
        found.extend(unused.map(|name| format!("{manifest}: no source uses `{name}`: delete it")));
        inherited.extend(package.manifest.dependencies().map(|one| one.name.to_owned()));
    }
    let root = Manifest::read(&workspace.root)?;
    found.extend(
        unclaimed(&root, &inherited).map(|name| {
            format!("Cargo.toml: no member takes `{name}` of [workspace.dependencies]: delete it")
        }),
    );
    Ok(found)
}

/// The dependencies that neither `plain`, the source of a library or program, nor `of_tests` uses.
fn unused(
    manifest: &Manifest,
    library: impl Fn(&str) -> String,
    plain: &str,
    of_tests: &str,
) -> BTreeSet<String> {
    let is_unused = |one: &Dependency<'_>| {
        let krate = library(one.name);
        let is_of_tests = one.is_of_tests || one.value.get("optional") == Some(&Value::Boolean(true));
        let code = |line: &&str| names_crate(without_comment(line), &krate);
        let documentation = |line: &&str| line.trim_start().starts_with("//") && names_crate(line, &krate);
        let in_tests = || of_tests.lines().any(|line| names_crate(line, &krate));
        !(plain.lines().any(|line| code(&line) || (is_of_tests && documentation(&line)))
            || (is_of_tests && in_tests()))
    };
    manifest.dependencies().filter(is_unused).map(|one| one.name.to_owned()).collect()
}

/// Whether a line of code names the crate `krate`.
fn names_crate(line: &str, krate: &str) -> bool {
    has_word(line, krate)
        && line.match_indices(krate).any(|(at, _)| {
            let after = line[at + krate.len()..].trim_start();
            let before = line[..at].trim_end();
            after.starts_with("::")
                || after.starts_with('!')
                || ["use", "crate"].iter().any(|word| before.ends_with(word))
        })
}

/// The entries of the workspace that are not among `inherited`.
fn unclaimed<'a>(root: &'a Manifest, inherited: &BTreeSet<String>) -> impl Iterator<Item = &'a str> {
    let all = root.get("workspace", "dependencies").and_then(Value::as_table).into_iter().flatten();
    all.map(|(name, _)| name.as_str()).filter(|name| !inherited.contains(*name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_that_no_source_names_is_found() {
        let manifest = Manifest::parse(
            "[dependencies]\nlock-api.workspace = true\nserde = \"1\"\nlibc = \"0.2\"\n\
             lib = { version = \"1\", optional = true }\n[dev-dependencies]\nold = { package = \"new\", version = \"1\" }\ncc = \"1\"\nproptest = \"1\"\n",
        )
        .unwrap();
        let found = |plain: &str, tests: &str| -> Vec<String> {
            let library = |name: &str| if name == "lib" { "other".into() } else { name.replace('-', "_") };
            unused(&manifest, library, plain, tests).into_iter().collect()
        };
        let plain = "use lock_api::Mutex;\n#[derive(serde::Serialize)]\nstruct S(libc::c_int);\n";
        assert_eq!(found(plain, "use other::x;\nuse old as _;\ncc::Build::new();\nproptest! {}\n"), [""; 0]);
        let all = ["cc", "lib", "libc", "lock-api", "old", "proptest", "serde"];
        assert_eq!(found("// lock_api::x\nlet libc = 1;\nlibc_extra::f();\n", "new::f();"), all);
        let in_tests =
            "use lock_api as _; use serde as _; libc::f(); use old; cc!(); proptest::x(); other!();";
        assert_eq!(found("", in_tests), ["libc", "lock-api", "serde"], "they are for tests only");
        assert_eq!(
            found(&format!("{plain}/// old::f(); cc::f();\n/// proptest::x(); other::x()\n"), ""),
            [""; 0]
        );
    }

    #[test]
    fn an_entry_of_the_workspace_that_no_member_takes_is_found() {
        let root = Manifest::parse("[workspace.dependencies]\nlibc = \"1\"\nloom = { version = \"0.7\" }\n")
            .unwrap();
        let inherited = BTreeSet::from(["libc".to_owned()]);
        assert_eq!(unclaimed(&root, &inherited).collect::<Vec<_>>(), ["loom"]);
    }
}
