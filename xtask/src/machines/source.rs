//! Builds a kernel from the source of a suite, with an option that Debian's own kernels leave out.
//!
//! It is as small as the tests of that option need it: `slice.config` adds to the tiniest kernel
//! what the first process and these tests use.

use super::kernel::{Apt, find, run};
use crate::tools::{Missing, need};
use anyhow::{Context, ensure};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;

/// The options, a line each.
const CONFIG: &str = include_str!("slice.config");

/// Demands what builds a kernel.
fn needs() -> Result<(), Missing> {
    for (tool, package) in
        [("make", "make"), ("gcc", "gcc"), ("flex", "flex"), ("bison", "bison"), ("bc", "bc")]
    {
        need("a tool that builds kernels", format!("apt-get install {package}"), &[tool, "--version"])?;
    }
    let header = "/usr/include/libelf.h";
    need("libelf", "apt-get install libelf-dev", &["test", "-r", header])
}

/// Puts `vmlinuz` and `release` into `work`.
pub fn build(apt: &Apt, work: &Path) -> anyhow::Result<()> {
    needs()?;
    let depends = apt.run("apt-cache", &["depends", "linux-source"])?;
    let package = depends.lines().find_map(|line| line.trim().strip_prefix("Depends: "));
    apt.unpack(&[package.context("the suite has no package linux-source")?])?;
    let packed = find(&work.join("root"), &|name| name.ends_with(".tar.xz"));
    run(Command::new("tar").arg("-xf").arg(packed.context("the package has no source")?).current_dir(work))?;
    let tree = fs::read_dir(work)?.filter_map(Result::ok).map(|entry| entry.path());
    let tree = tree.into_iter().find(|path| path.join("Kbuild").exists());
    let tree = tree.context("the package has no kernel")?;

    let make = |target: &str| {
        let jobs = thread::available_parallelism().map_or(1, Into::into);
        let mut make = Command::new("nice");
        make.args(["-n", "19", "make", "-s", &format!("-j{jobs}"), target]).current_dir(&tree);
        run(&mut make)
    };
    make("tinyconfig")?;
    let config = tree.join(".config");
    // The last line about an option holds.
    fs::write(&config, fs::read_to_string(&config)? + CONFIG)?;
    make("olddefconfig")?;
    let chosen = fs::read_to_string(&config)?;
    for line in CONFIG.lines() {
        ensure!(chosen.lines().any(|known| known == line), "this kernel does not take {line}");
    }
    println!("-- building the kernel: minutes on an idle machine");
    make("bzImage")?;
    fs::rename(tree.join("arch/x86/boot/bzImage"), work.join("vmlinuz"))?;
    fs::write(work.join("release"), make("kernelrelease")?)?;
    Ok(())
}
