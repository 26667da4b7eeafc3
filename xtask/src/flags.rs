//! The command line.

use std::path::PathBuf;

xflags::xflags! {
    /// The commands of this repository.
    cmd xtask {
        /// Everything that must be green: laws, format, lints, build, tests, docs, loom models, examples, benches.
        cmd test {}

        /// The laws that can be checked by reading the source.
        cmd tidy {}

        /// What a user of `ulocks` compiles: the dependency list must stay short and free of loom.
        cmd lean {}

        /// The loom models (tests/loom*.rs): cargo xtask loom [-p NAME].. [-- FILTER..]
        cmd loom {
            /// Only this package; may be repeated.
            repeated -p, --package name: String
            /// Only models whose name contains one of these.
            repeated filter: String
        }

        /// Unit tests and tests/miri*.rs under Miri, many schedules each (nightly).
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

        /// The stress tests (tests/stress.rs) under ThreadSanitizer (nightly).
        cmd tsan {
            /// The toolchain to use (default nightly).
            optional --toolchain name: String
            /// Only this package; may be repeated.
            repeated -p, --package name: String
            /// Only tests whose name contains one of these.
            repeated filter: String
        }

        /// Rebuilds the HTML report of a benchmark run from its JSON.
        cmd report {
            /// The JSON file (default: the last run's, in target/ulocks-report/).
            optional json: PathBuf
            /// Where to write the report (default: beside the JSON file).
            optional --out path: PathBuf
        }

        /// Would crates.io take it? cargo publish --workspace --dry-run.
        cmd publish-check {
            /// Also with uncommitted changes in the working tree.
            optional --allow-dirty
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
    fn miri_takes_a_number_of_seeds() {
        let Ok(XtaskCmd::Miri(miri)) = parse("miri --seeds 64") else { panic!("not a miri command") };
        assert_eq!(miri.seeds, Some(64));
        assert!(parse("miri --seeds many").unwrap_err().contains("--seeds"));
        assert!(parse("miri --seeds").unwrap_err().contains("--seeds"));
    }

    #[test]
    fn wrong_usage_names_the_word_it_stumbled_over() {
        assert!(parse("tset").unwrap_err().contains("tset"));
        assert!(parse("test --fast").unwrap_err().contains("--fast"));
        assert!(parse("").is_err());
    }
}
