//! A law of padding: what has cache lines of its own is in a `CachePadded` of crossbeam-utils.
//!
//! A struct of one field with `#[repr(align(64))]` or `#[repr(align(128))]` is such a wrapper, made
//! by hand. A struct with several fields has a layout, which is for its author to decide.

/// Files and folders whose wrappers stay, and why.
const BY_HAND: [(&str, &str); 2] = [
    ("crates/checker/", "the checker depends on nothing that its user would have to compile"),
    ("benches/src/subjects/rwlocks/timed.rs", "a lock is made in its place, through a pointer to the field"),
];

/// The lines of a file with a wrapper that is made by hand.
pub fn by_hand(file: &str, text: &str) -> Vec<(usize, &'static str)> {
    if BY_HAND.iter().any(|(known, _)| file.starts_with(known)) {
        return Vec::new();
    }
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let is_wrapper = |at: &usize| {
        let is_aligned = ["#[repr(align(64))]", "#[repr(align(128))]"].contains(&lines[*at]);
        let item = lines[*at..].iter().find(|line| line.contains("struct "));
        is_aligned && item.is_some_and(|item| item.ends_with(");") && !item.contains(", "))
    };
    let found = (0..lines.len()).filter(is_wrapper);
    found.map(|at| (at + 1, "padding by hand: use `crossbeam_utils::CachePadded`")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrapper_with_an_alignment_is_found_and_a_layout_is_not() {
        let found = |text: &str| by_hand("crates/core/src/x.rs", text).len();
        assert_eq!(found("/// X.\n#[repr(align(128))]\n#[derive(Debug)]\nstruct Line<T>(T);\n"), 1);
        assert_eq!(found("    #[repr(align(64))]\n    pub struct Line(AtomicU32);\n"), 1);
        for other in [
            "#[repr(align(64))]\npub(crate) struct Node {\n    word: u32,\n}\n",
            "#[repr(align(128))]\nstruct Pair(u32, u32);\n",
            "#[repr(C, align(64))]\nstruct Line(u32);\n",
            "(\"#[repr(align(64))] struct S(u32);\", 1)\n",
        ] {
            assert_eq!(found(other), 0, "{other}");
        }
        assert!(by_hand("crates/checker/vm/src/x.rs", "#[repr(align(64))]\nstruct Line(u8);").is_empty());
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        BY_HAND.iter().for_each(|(path, _)| assert!(root.join(path).exists(), "{path} is gone"));
    }
}
