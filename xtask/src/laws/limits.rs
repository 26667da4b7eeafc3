//! A law of tests: each binary of tests links the test kit, which ends a test that hangs and says
//! where it waits.
//!
//! A root of tests, or a file beside it in its folder, names `ulocks_testkit`. Roots that are
//! compiled in a model world only need none: their engine ends what does not end. Neither do the
//! crates of [`WITHOUT`].

use std::fs;
use xtask::workspace::{Package, sources, targets};

/// The engine and loom's names on it, whose tests wait in models; and this crate, which waits for
/// programs that the user may end.
const WITHOUT: [&str; 3] = ["ulocks-vm", "ulocks-loom", "xtask"];

/// The roots of tests of a package that have no limit.
pub fn missing(package: &Package) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    if WITHOUT.contains(&package.name.as_str()) {
        return Ok(found);
    }
    let dir = package.dir.join("tests");
    for name in targets(&dir) {
        let (file, folder) = (dir.join(format!("{name}.rs")), dir.join(&name));
        let (root, texts) = if file.exists() {
            (fs::read_to_string(&file)?, Vec::new())
        } else {
            let texts = sources(&folder)?.into_iter().map(fs::read_to_string).collect::<Result<_, _>>()?;
            (fs::read_to_string(folder.join("main.rs"))?, texts)
        };
        if !is_model(&root) && !texts.iter().chain([&root]).any(|text| text.contains("ulocks_testkit")) {
            found.push(format!("tests/{name}: no test here has a limit: `use ulocks_testkit as _;`"));
        }
    }
    Ok(found)
}

/// Whether a root is compiled in a model world only.
fn is_model(root: &str) -> bool {
    let mut conditions = root.lines().filter(|line| line.starts_with("#![cfg("));
    let worlds = ["ulocks_loom", "ulocks_vm", "world = \"loom\"", "world = \"vm\""];
    conditions.any(|line| worlds.iter().any(|world| line.contains(world)) && !line.contains("not("))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_of_models_are_told_from_others() {
        assert!(is_model("//! Models.\n#![cfg(all(ulocks_vm, feature = \"vm\"))]\n"));
        assert!(is_model("#![cfg(world = \"loom\")]\n"));
        assert!(!is_model("#![cfg(not(any(ulocks_loom, ulocks_vm)))]\n"));
        assert!(!is_model("#![cfg(world = \"machine\")]\nuse a::b;\n"));
    }

    #[test]
    fn a_root_without_a_limit_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let files = [
            ("bare.rs", "use std::fs;\n"),
            ("linked.rs", "use ulocks_testkit as _;\n"),
            ("model.rs", "#![cfg(ulocks_loom)]\n"),
            ("folder/main.rs", "mod part;\n"),
            ("folder/part.rs", "use ulocks_testkit::task;\n"),
            ("alone/main.rs", "mod part;\n"),
        ];
        for (file, text) in files {
            let path = dir.path().join("tests").join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::write(dir.path().join("Cargo.toml"), "[package]\nname = \"any\"\n").unwrap();
        let found = missing(&Package::read(dir.path().to_owned()).unwrap()).unwrap();
        let names: Vec<&str> = found.iter().map(|what| what.split(':').next().unwrap()).collect();
        assert_eq!(names, ["tests/alone", "tests/bare"]);
    }
}
