//! The program `ulocks-region`: what it shows of a region, and its repair.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

#[path = "../common/joined.rs"]
mod joined;
mod list;
mod refused;
mod repair;
#[path = "../region/scratch.rs"]
#[allow(dead_code, reason = "the tests of regions use all of it")]
mod scratch;

use scratch::Scratch;
use std::ffi::OsStr;
use std::process::Command;
use ulocks_core::Shared;
use ulocks_shm::{Directory, Region};
use ulocks_unfair::BargingMutexWith;

/// What the regions of the tests have.
type Names = Directory<8, 16384>;
type Plain = BargingMutexWith<u64, Shared>;

fn open(scratch: &Scratch) -> Region<Names> {
    Region::options().participants(4).create_or_open(scratch.path(), 0o600).expect("a region")
}

/// How a run of the program ended.
#[derive(Debug)]
struct Ran {
    code: i32,
    out: String,
    err: String,
}

impl Ran {
    /// Demands that a line of the output has all of these parts.
    fn has(&self, parts: &[&str]) {
        let found = self.out.lines().any(|line| parts.iter().all(|part| line.contains(part)));
        assert!(found, "no line with {parts:?} in:\n{}{}", self.out, self.err);
    }

    fn has_not(&self, part: &str) {
        assert!(!self.out.contains(part), "{part:?} is in:\n{}", self.out);
    }
}

/// Runs the program.
fn run<S: AsRef<OsStr>>(arguments: &[S]) -> Ran {
    let output = Command::new(env!("CARGO_BIN_EXE_ulocks-region")).args(arguments).output();
    let output = output.expect("the program runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    Ran { code: output.status.code().expect("no signal"), out: text(output.stdout), err: text(output.stderr) }
}

fn list(scratch: &Scratch) -> Ran {
    run(&[OsStr::new("list"), scratch.path().as_os_str()])
}

fn repair(scratch: &Scratch) -> Ran {
    run(&[OsStr::new("repair"), scratch.path().as_os_str()])
}
