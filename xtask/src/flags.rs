//! The command line.

use std::path::PathBuf;

xflags::xflags! {
    /// The commands of this repository.
    cmd xtask {
        /// Runs everything that must pass before a merge: laws, format, lints, build, tests, docs,
        /// models, examples, benches.
        cmd test {}

        /// Checks the laws that can be checked by reading the source.
        cmd tidy {}

        /// Draws the crates and their dependencies into ARCHITECTURE.svg.
        cmd picture {}

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
            /// Also prints what never happened at which site of the source, in all models together.
            optional --coverage
            /// Runs no model, but predicts what the locks would cost, as JSON and a plot.
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
            /// The toolchain that has Miri (default nightly).
            optional --toolchain name: String
            /// Only this package; may be repeated.
            repeated -p, --package name: String
            /// Only tests whose name contains one of these.
            repeated filter: String
        }

        /// Runs the stress tests (tests/stress.rs) under ThreadSanitizer (nightly).
        cmd tsan {
            /// The toolchain to use (default nightly).
            optional --toolchain name: String
            /// Only this package; may be repeated.
            repeated -p, --package name: String
            /// Only tests whose name contains one of these.
            repeated filter: String
        }

        /// Opens the pages of the benches in chromium, and measures what a reader would see.
        cmd page {
        }

        /// Runs the litmus tests in models of processors (herd7): cargo xtask litmus [FILTER]
        cmd litmus {
            /// Only files whose name contains this.
            optional filter: String
        }

        /// Runs the fuzz targets, whose schedules libFuzzer chooses (nightly, cargo-fuzz):
        /// cargo xtask fuzz [--seconds N] [TARGET]
        cmd fuzz {
            /// How long each target runs (default 60).
            optional --seconds n: u32
            /// The toolchain to use (default nightly).
            optional --toolchain name: String
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
            /// Only mutants of files that differ from this commit.
            optional --changed rev: String
            /// Only the tests of this world: native, loom or vm.
            optional --world name: String
            /// How many tests run at once (default: the number of CPUs).
            optional --jobs n: usize
            /// Begins no test after this many minutes; the next run resumes.
            optional --budget minutes: u64
            /// Only one part of the planted bugs: 3/17 is the third of 17 parts. `cargo xtask test`
            /// runs one part, and at the next commit the next part.
            optional --part nth: String
            /// Only the orderings without a verdict in verification.jsonl on the present code.
            optional --stale
            /// Also runs mutants whose verdict an earlier run has recorded.
            optional --again
            /// Also runs the weakened orderings that comments explain.
            optional --explained
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
            /// Prints what would run and how long that took last, and runs nothing.
            optional --plan
        }

        /// Looks for bugs by chance, with one tool after the other: cargo xtask long --minutes N
        cmd long {
            /// How long the whole run takes.
            required --minutes n: u64
            /// Only these parts, with commas between them: vm,soak.
            optional --only parts: String
        }

        /// Runs programs of others on glibc and with the preload libraries, and compares:
        /// cargo xtask real [--minutes N] [--program A,B] [--locks A,B] [--suite DIR]
        cmd real {
            /// How long all programs together run (default 10). Each has at least six rounds.
            optional --minutes n: u64
            /// Only these programs, with commas between them: redis,rocksdb.
            optional --program names: String
            /// Only these locks, with commas between them: throughput,fair.
            optional --locks names: String
            /// Runs the executables below this directory, and compares their exit codes.
            optional --suite dir: PathBuf
        }

        /// Runs the native tests of every crate in virtual machines with other kernels and CPUs:
        /// cargo xtask machines [--kernel SUITE[-rt]] [--arch NAME] [--cpus N] [-- FILTER..]
        cmd machines {
            /// The suite of Debian whose kernel is booted, as bookworm or trixie-rt (default sid).
            optional --kernel suite: String
            /// The processor: x86_64, aarch64, riscv64 or i686.
            optional --arch name: String
            /// How many CPUs (default 4).
            optional --cpus n: u32
            /// On how many NUMA nodes (default 1).
            optional --nodes n: u32
            /// Two CPUs share a core.
            optional --smt
            /// The C library: gnu, this machine's (the default); suite, the kernel's suite's; musl.
            optional --libc name: String
            /// What goes on beside the tests: offline, half-cpu, docker-old or docker-new.
            optional --under load: String
            /// Runs `cargo bench -- --quick` in place of the tests.
            optional --bench
            /// Runs the tests under this machine's kernel; QEMU translates single programs.
            optional --user
            /// Only machines of the standard list whose names contain this; may be repeated.
            repeated --only text: String
            /// Also runs tests that are skipped only because they are slow where QEMU translates.
            optional --slow
            /// Only tests that the last run of the machine in this target directory has not passed.
            optional --rest
            /// How many machines run at once (default 1).
            optional --jobs n: usize
            /// Only tests whose program and name contain one of these.
            repeated filter: String
        }

        /// Rebuilds the HTML report of a benchmark run from its JSON.
        cmd report {
            /// The JSON file (default: the last run's, in target/ulocks-report/).
            optional json: PathBuf
            /// Where to write the report (default: beside the JSON file).
            optional --out path: PathBuf
        }

        /// Packages the public crates, and builds and tests what was packaged.
        cmd publish-check {
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<XtaskCmd, String> {
        Xtask::from_vec(line.split_whitespace().map(Into::into).collect())
            .map(|xtask| xtask.subcommand)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn loom_takes_packages_and_a_filter_after_two_dashes() {
        let Ok(XtaskCmd::Loom(loom)) = parse("loom -p ulocks-unfair -p ulocks-core -- timeout wake") else {
            panic!("not a loom command");
        };
        assert_eq!(loom.package, ["ulocks-unfair", "ulocks-core"]);
        assert_eq!(loom.filter, ["timeout", "wake"]);
    }

    #[test]
    fn vm_takes_a_budget_or_a_machine_to_cost() {
        let Ok(XtaskCmd::Vm(vm)) = parse("vm --budget 1000 -p ulocks-core -- futex") else {
            panic!("not a vm command");
        };
        assert_eq!((vm.budget, vm.cost, vm.filter), (Some(1000), false, vec!["futex".to_owned()]));
        let Ok(XtaskCmd::Vm(vm)) = parse("vm --cost --cpus 1..256 --locks ticket,mcs") else {
            panic!("not a vm command");
        };
        assert_eq!(
            (vm.cost, vm.cpus.as_deref(), vm.locks.as_deref()),
            (true, Some("1..256"), Some("ticket,mcs"))
        );
        assert!(parse("vm --budget some").unwrap_err().contains("--budget"));
    }

    #[test]
    fn miri_takes_a_number_of_seeds() {
        let Ok(XtaskCmd::Miri(miri)) = parse("miri --seeds 64") else { panic!("not a miri command") };
        assert_eq!(miri.seeds, Some(64));
        assert!(parse("miri --seeds many").unwrap_err().contains("--seeds"));
        assert!(parse("miri --seeds").unwrap_err().contains("--seeds"));
    }

    #[test]
    fn mutants_are_listed_or_narrowed() {
        let Ok(XtaskCmd::Mutants(mutants)) = parse("mutants --only mutex.toml --world vm") else {
            panic!("not a mutants command");
        };
        assert_eq!(
            (mutants.list, mutants.only.as_deref(), mutants.world.as_deref()),
            (false, Some("mutex.toml"), Some("vm"))
        );
        assert!(parse("mutants --only").unwrap_err().contains("--only"));
        let Ok(XtaskCmd::Mutants(mutants)) =
            parse("mutants --kind orderings --jobs 3 --budget 60 --changed HEAD~1")
        else {
            panic!("not a mutants command");
        };
        assert_eq!(
            (mutants.kind.as_deref(), mutants.changed.as_deref()),
            (Some("orderings"), Some("HEAD~1"))
        );
        assert_eq!((mutants.jobs, mutants.budget, mutants.again), (Some(3), Some(60), false));
        assert!(parse("mutants --budget long").unwrap_err().contains("--budget"));
    }

    #[test]
    fn header_is_written_or_checked() {
        assert!(matches!(parse("header"), Ok(XtaskCmd::Header(header)) if !header.check));
        assert!(matches!(parse("header --check"), Ok(XtaskCmd::Header(header)) if header.check));
    }

    #[test]
    fn litmus_takes_a_filter() {
        let Ok(XtaskCmd::Litmus(litmus)) = parse("litmus asym") else { panic!("not a litmus command") };
        assert_eq!(litmus.filter.as_deref(), Some("asym"));
        assert!(parse("litmus one two").unwrap_err().contains("two"));
    }

    #[test]
    fn verify_runs_the_checks_of_a_lock_or_writes_the_table() {
        let Ok(XtaskCmd::Verify(verify)) = parse("verify --only unfair::Mutex --tool vm") else {
            panic!("not a verify command")
        };
        assert_eq!((verify.only.as_deref(), verify.tool.as_deref()), (Some("unfair::Mutex"), Some("vm")));
        assert!(!verify.table);
        assert!(matches!(parse("verify --table"), Ok(XtaskCmd::Verify(verify)) if verify.table));
    }

    #[test]
    fn long_takes_minutes_and_parts() {
        let Ok(XtaskCmd::Long(long)) = parse("long --minutes 60 --only vm,soak") else {
            panic!("not a long command")
        };
        assert_eq!((long.minutes, long.only.as_deref()), (60, Some("vm,soak")));
        assert!(parse("long").unwrap_err().contains("--minutes"));
    }

    #[test]
    fn real_takes_programs_and_locks_or_a_suite() {
        let Ok(XtaskCmd::Real(real)) = parse("real --minutes 5 --program redis --locks fair,calock") else {
            panic!("not a real command")
        };
        assert_eq!(
            (real.minutes, real.program.as_deref(), real.locks.as_deref()),
            (Some(5), Some("redis"), Some("fair,calock"))
        );
        assert!(matches!(parse("real --suite tests"), Ok(XtaskCmd::Real(real)) if real.suite.is_some()));
        assert!(parse("real --minutes many").unwrap_err().contains("--minutes"));
    }

    #[test]
    fn machines_takes_what_a_machine_has_and_a_filter() {
        let line = "machines --kernel trixie-rt --arch aarch64 --cpus 64 --nodes 2 --smt -- core-api fair";
        let Ok(XtaskCmd::Machines(machines)) = parse(line) else { panic!("not a machines command") };
        assert_eq!((machines.cpus, machines.nodes, machines.smt), (Some(64), Some(2), true));
        assert_eq!(machines.filter, ["core-api", "fair"]);
        assert!(parse("machines --cpus many").unwrap_err().contains("--cpus"));
    }

    #[test]
    fn fuzz_takes_seconds_and_a_target() {
        let Ok(XtaskCmd::Fuzz(fuzz)) = parse("fuzz --seconds 5 schedules") else {
            panic!("not a fuzz command")
        };
        assert_eq!((fuzz.seconds, fuzz.target.as_deref()), (Some(5), Some("schedules")));
        assert!(parse("fuzz one two").unwrap_err().contains("two"));
    }

    #[test]
    fn wrong_usage_names_the_wrong_word() {
        assert!(parse("tset").unwrap_err().contains("tset"));
        assert!(parse("test --fast").unwrap_err().contains("--fast"));
        assert!(parse("").is_err());
    }
}
