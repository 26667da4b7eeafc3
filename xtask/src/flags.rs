//! The command line.

xflags::xflags! {
    /// The commands of this repository.
    cmd xtask {
        /// Runs everything that must pass before a merge: laws, format, lints, build, tests, docs,
        /// models, examples, benches.
        cmd test {}

        /// Checks the laws that can be checked by reading the source.
        cmd tidy {}

        /// Writes the C header of crates/faces/capi from its source.
        cmd header {
            /// Writes nothing, but fails if the header is not what the source says.
            optional --check
        }

        /// Checks what a user of `ulocks` compiles: the list of dependencies must stay short,
        /// without loom and the virtual machine.
        cmd lean {}

        /// Runs the models under loom (tests/loom*.rs): cargo xtask loom [-p NAME].. [-- FILTER..]
        cmd loom {
            /// Only this package; may be repeated.
            repeated -p, --package name: String
            /// Only models whose name contains one of these.
            repeated filter: String
        }

        /// Runs the models on the virtual machine (tests/vm*.rs):
        /// cargo xtask vm [-p NAME].. [-- FILTER..]
        cmd vm {
            /// How many executions each model runs, instead of its own number.
            optional --budget n: u64
            /// Only this package; may be repeated.
            repeated -p, --package name: String
            /// Runs no model, but predicts what the locks would cost, in a table.
            optional --cost
            /// With --cost: numbers of virtual CPUs, as 1..256 or 1,2,8.
            optional --cpus list: String
            /// With --cost: which locks, as ticket,mcs.
            optional --locks list: String
            /// Only models whose name contains one of these; with --cost, options for the program.
            repeated filter: String
        }

        /// Runs the unit tests and tests/miri*.rs under Miri, each with many schedules (nightly).
        cmd miri {
            /// How many schedules (default 16).
            optional --seeds n: u32
            /// Only this package; may be repeated.
            repeated -p, --package name: String
            /// Only tests whose name contains one of these.
            repeated filter: String
        }

        /// Runs the stress tests (tests/stress.rs) under ThreadSanitizer (nightly).
        cmd tsan {
            /// Only this package; may be repeated.
            repeated -p, --package name: String
            /// Only tests whose name contains one of these.
            repeated filter: String
        }

        /// Runs the fuzz targets, whose schedules libFuzzer chooses (nightly, cargo-fuzz):
        /// cargo xtask fuzz [--seconds N] [TARGET]
        cmd fuzz {
            /// How long each target runs (default 60).
            optional --seconds n: u32
            /// Only this target of fuzz/fuzz_targets.
            optional target: String
        }

        /// Plants bugs, weakens memory orderings, and demands that a test reports each.
        cmd mutants {
            /// Lists the mutants, and runs none.
            optional --list
            /// Only `logic`, the planted bugs of crates/*/mutants, or only `orderings`, the
            /// weakened orderings.
            optional --kind name: String
            /// Only the planted bug of this name, the planted bugs of files whose path contains
            /// this, and the weakened orderings whose FILE:LINE contains this.
            optional --only text: String
            /// Only the tests of this world: native, loom or vm.
            optional --world name: String
            /// How many tests run at once (default: the number of CPUs).
            optional --jobs n: usize
            /// Begins no test with a mutant after this many minutes; the next run resumes.
            optional --budget minutes: u64
            /// Only one part of the planted bugs: 3/17 is the third of 17 parts. `cargo xtask test`
            /// runs the part of its commit.
            optional --part nth: String
            /// Only the mutants without a verdict in verification.jsonl on the present code.
            optional --stale
        }

        /// Runs the tests of crates/*/checks.toml, and writes VERIFICATION.md from their output.
        cmd verify {
            /// Runs no test, but writes the table from recorded results.
            optional --table
            /// Only the locks whose names contain this.
            optional --only lock: String
            /// Only this tool: loom, vm, miri, tsan, stress, differential or fuzz.
            optional --tool name: String
            /// Only tests without a record of the present source.
            optional --stale
            /// Begins no test after this many minutes. Each record is stored at once.
            optional --budget minutes: u64
        }

        /// Compares ulocks-shm with boost.interprocess, iceoryx2 and raw_sync, as far as they are
        /// installed (benches/peers/README.md).
        cmd peers {
            /// How often each program runs (default 7).
            optional --rounds n: usize
        }

        /// Packages the public crates, and builds and tests what was packaged.
        cmd publish-check {}
    }
}

/// The help of all commands with their options.
pub fn all() -> &'static str {
    Xtask::HELP_
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<XtaskCmd, String> {
        let xtask = Xtask::from_vec(line.split_whitespace().map(Into::into).collect());
        xtask.map(|xtask| xtask.subcommand).map_err(|error| error.to_string())
    }

    #[test]
    fn packages_repeat_and_filters_stand_after_two_dashes() {
        let Ok(XtaskCmd::Loom(loom)) = parse("loom -p ulocks-unfair -p ulocks-core -- timeout wake") else {
            panic!("not a loom command");
        };
        assert_eq!(loom.package, ["ulocks-unfair", "ulocks-core"]);
        assert_eq!(loom.filter, ["timeout", "wake"]);
    }

    #[test]
    fn wrong_usage_names_the_wrong_word() {
        for (line, word) in [
            ("tset", "tset"),
            ("test --fast", "--fast"),
            ("vm --budget some", "--budget"),
            ("miri --seeds", "--seeds"),
            ("mutants --budget long", "--budget"),
            ("fuzz one two", "two"),
        ] {
            assert!(parse(line).unwrap_err().contains(word), "{line}");
        }
        assert!(parse("").is_err());
    }
}
