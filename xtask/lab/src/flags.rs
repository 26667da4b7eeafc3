//! The command line.

use std::path::PathBuf;

xflags::xflags! {
    /// The laboratory of this repository: what needs other machines, other programs, or hours.
    cmd lab {
        /// Checks what `cargo xtask test` leaves out: format, lints and tests of the laboratory,
        /// and by these tests the litmus tests' quotations and the picture of the crates.
        cmd test {}

        /// Runs the native tests of every crate in virtual machines with other kernels and CPUs:
        /// cargo lab machines [--only TEXT].. [-- FILTER..]
        cmd machines {
            /// Only machines of machines.toml whose names contain this; may be repeated.
            repeated --only text: String
            /// Also runs tests that are skipped only because they are slow where QEMU translates.
            optional --slow
            /// Only tests that the last run of the machine in this target directory has not passed.
            optional --rest
            /// Runs nothing, but writes a table of the recorded runs.
            optional --table
            /// How many machines run at once (default 1).
            optional --jobs n: usize
            /// Only tests whose program and name contain one of these.
            repeated filter: String
        }

        /// Runs programs of others on glibc and with the preload libraries, and compares:
        /// cargo lab real [--minutes N] [--program A,B] [--locks A,B] [--suite DIR]
        cmd real {
            /// How long all programs together run (default 10). Each has at least six rounds.
            optional --minutes n: u64
            /// Only these programs, with commas between them: redis,rocksdb.
            optional --program names: String
            /// Only these locks, with commas between them: throughput,fair.
            optional --locks names: String
            /// Runs the executables below this directory, and compares their exit codes.
            optional --suite dir: PathBuf
            /// Of a suite: executables that are left out, by their names: one.test,two.test.
            optional --skip names: String
            /// Of a suite: after how many seconds a test counts as hung (default 120).
            optional --limit seconds: u64
            /// Of a suite: how many tests run at once (default 1).
            optional --jobs n: usize
        }

        /// Runs the loom tests of published crates on the virtual machine, and writes the table of
        /// the README of ulocks-loom: cargo lab suites [--only A,B]
        cmd suites {
            /// Only these crates, with commas between them: tokio,haphazard.
            optional --only names: String
        }

        /// Looks for bugs by chance, with one tool after the other: cargo lab long --minutes N
        cmd long {
            /// How long the whole run takes.
            required --minutes n: u64
            /// Only these parts, with commas between them: vm,soak.
            optional --only parts: String
        }

        /// Runs the litmus tests in models of processors (herd7): cargo lab litmus [FILTER]
        cmd litmus {
            /// Only files whose name contains this.
            optional filter: String
        }

        /// Opens the pages of the benches in chromium, and measures what a reader would see.
        cmd page {
        }

        /// Draws the crates and their dependencies into ARCHITECTURE.svg.
        cmd picture {}
    }
}

/// The help of all commands with their options.
pub fn all() -> &'static str {
    Lab::HELP_
}
