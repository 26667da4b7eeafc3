//! A test that runs a part of itself in a process of its own.

use std::env;
use std::process::{Command, Output};
use ulocks_testkit::limit::output;

const CHILD: &str = "ULOCKS_DEBUG_CHILD";

/// Runs the test `name` again in a process of its own, or `None` in that process.
pub fn child(name: &str) -> Option<Output> {
    if env::var_os(CHILD).is_some() {
        return None;
    }
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]);
    Some(output(command.env(CHILD, "").env("RUST_BACKTRACE", "0")))
}
