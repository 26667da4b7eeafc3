//! A crate that depends on ours has loom or the virtual machine in its lockfile if it asked for it,
//! and not otherwise.
//!
//! The scratch crates live in the target folder; the workspace's lockfile is their starting point,
//! so that nothing is looked up on the network.
#![cfg(world = "machine")]

use std::fs;
use std::path::Path;
use std::process::Command;
use ulocks_testkit as _;

/// The names of the packages in the lockfile of a crate with the given rest of a manifest.
fn locked(name: &str, rest: &str) -> Vec<String> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/core has a root");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(folder.join("src")).unwrap();
    fs::write(folder.join("src/lib.rs"), "").unwrap();
    let root = workspace.display();
    let rest = rest.replace("ROOT", &root.to_string());
    let manifest = format!(
        "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n{rest}\n\n[workspace]\n"
    );
    fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    fs::copy(workspace.join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();

    // `cargo update` of one package that is there prunes what the manifest does not ask for and
    // keeps the versions.
    let output = Command::new(env!("CARGO"))
        .args(["update", "--offline", "--quiet", "--package", "ulocks-core"])
        .current_dir(&folder)
        .output()
        .expect("cargo runs this test");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lockfile = fs::read_to_string(folder.join("Cargo.lock")).unwrap();
    let names = lockfile.lines().filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    names.map(str::to_owned).collect()
}

/// What the model worlds bring along.
const LOOM: &str = "loom";
const VM: [&str; 2] = ["ulocks-vm", "corosensei"];

fn has(names: &[String], name: &str) -> bool {
    names.iter().any(|locked| locked == name)
}

#[test]
fn a_plain_dependency_locks_no_model_world() {
    for package in ["crates/core", "crates/locks/unfair", "crates/faces/ulocks"] {
        let key = match package.rsplit_once('/').unwrap().1 {
            "ulocks" => "ulocks".to_owned(),
            name => format!("ulocks-{name}"),
        };
        let dependency = format!(
            "[dependencies]\n{key} = {{ path = \"ROOT/{package}\", features = [\"arc_lock\", \"serde\"] }}"
        );
        let names = locked(&format!("plain-{key}"), &dependency);
        assert!(has(&names, "lock_api"), "{package}: {names:?}");
        for name in [LOOM, VM[0], VM[1]] {
            assert!(!has(&names, name), "{package}: {names:?}");
        }
    }
}

#[test]
fn who_asks_for_loom_has_loom_and_nothing_of_the_machine() {
    let names = locked(
        "modelled",
        "[dependencies]\nulocks = { path = \"ROOT/crates/faces/ulocks\" }\n\n\
         [features]\nloom = [\"ulocks/loom\", \"dep:loom\"]\n\n\
         [target.'cfg(ulocks_loom)'.dependencies]\nloom = { version = \"0.7\", optional = true }",
    );
    assert!(has(&names, LOOM), "{names:?}");
    assert!(!VM.iter().any(|name| has(&names, name)), "{names:?}");
}

#[test]
fn who_asks_for_the_virtual_machine_has_it_and_no_loom() {
    let names = locked(
        "explored",
        "[dependencies]\nulocks = { path = \"ROOT/crates/faces/ulocks\" }\n\n[features]\nvm = [\"ulocks/vm\"]",
    );
    assert!(VM.iter().all(|name| has(&names, name)), "{names:?}");
    assert!(!has(&names, LOOM), "{names:?}");
}
