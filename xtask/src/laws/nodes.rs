//! A law of the lock crates: a node that a queue may name is made only inside `without_unwinding`.
//!
//! A waiter's node lives on the waiter's stack. If the waiter unwinds while the node is in a queue,
//! the queue names freed memory. So the node is made inside of the call that turns a panic into an
//! abort:
//!
//! ```text
//! without_unwinding(|| {
//!     let node = Node::new(..);
//!     ...
//! })
//! ```
//!
//! A struct `T` is a node if its crate has a raw pointer to it: `*const T`, `*mut T`,
//! `AtomicPtr<T>` or `NonNull<T>`, spelled exactly so. Each `T::new(` must stand between the
//! parentheses of a `without_unwinding(` in the same file. Modules of tests at the end of a file
//! are not scanned.
//!
//! The scan does not follow calls and values. It misses a node that is made by anything else than
//! `new`, a node that leaves the closure, an alias of the type, and a pointer that is kept as a
//! number. It also misses tickets and counts, on which other threads may depend as much. The header
//! of a protocol has to say what a panic does to tickets and counts.

use super::{has_word, without_comment};
use std::collections::BTreeSet;
use std::ops::Range;

const GUARD: &str = "without_unwinding(";
const POINTERS: [&str; 4] = ["*const ", "*mut ", "AtomicPtr<", "NonNull<"];
const WHAT: &str =
    "a node is made outside of `without_unwinding(`: a panic would free it while a queue names it";

/// Where in `sources`, the texts of a crate, a node is made without a guard: the index of the text,
/// and the line.
pub fn unguarded(sources: &[String]) -> Vec<(usize, usize, &'static str)> {
    let codes: Vec<String> = sources.iter().map(|text| code(text)).collect();
    let named = |starts: &[&str]| {
        let of_code = |code| starts.iter().flat_map(move |start| names_after(code, start));
        codes.iter().flat_map(|code| of_code(code.as_str())).collect::<BTreeSet<_>>()
    };
    let (structs, pointed_to) = (named(&["struct "]), named(&POINTERS));
    let mut found = Vec::new();
    for (nth, code) in codes.iter().enumerate() {
        let guarded = guarded(code);
        for node in structs.intersection(&pointed_to) {
            let make = format!("{node}::new(");
            for (at, _) in code.match_indices(&make) {
                let is_longer = code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
                if !is_longer && !guarded.iter().any(|range| range.contains(&at)) {
                    found.push((nth, 1 + code[..at].matches('\n').count(), WHAT));
                }
            }
        }
    }
    found
}

/// The code of a file, line for line: without comments, the insides of strings, and the tests at
/// its end.
fn code(text: &str) -> String {
    let mut code = String::new();
    for line in text.lines() {
        if line == "#[cfg(test)]" {
            break;
        }
        let mut parts = without_comment(line).split('"');
        code.extend(parts.next());
        // What stands between the first and the second quotation mark, and so on, is a string.
        code.extend(parts.skip(1).step_by(2));
        code.push('\n');
    }
    code
}

/// The names that stand directly after `start`.
fn names_after<'a>(code: &'a str, start: &str) -> impl Iterator<Item = &'a str> {
    code.match_indices(start).filter_map(move |(at, _)| {
        let rest = &code[at + start.len()..];
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        (end > 0 && has_word(rest, &rest[..end])).then_some(&rest[..end])
    })
}

/// What stands between the parentheses of each guard.
fn guarded(code: &str) -> Vec<Range<usize>> {
    let range = |(at, _): (usize, _)| {
        let start = at + GUARD.len();
        let mut depth = 1;
        let end = code[start..].find(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            depth == 0
        });
        start..end.map_or(code.len(), |end| start + end)
    };
    code.match_indices(GUARD).map(range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUEUE: &str = "struct Node { older: *const Node }\nstruct Plain;\n";

    fn lines(code: &str) -> Vec<usize> {
        let sources = [QUEUE.to_owned(), code.to_owned()];
        unguarded(&sources).into_iter().filter(|(nth, ..)| *nth == 1).map(|(_, line, _)| line).collect()
    }

    #[test]
    fn a_node_that_is_made_outside_of_a_guard_is_found() {
        assert_eq!(lines("fn f() {\n    let node = Node::new(1);\n}\n"), [2]);
        assert_eq!(lines("let node = Node::new(1);\nwithout_unwinding(|| push(&node));\n"), [1]);
        assert_eq!(lines("without_unwinding(|| push(1));\nlet node = queue::Node::new(1);\n"), [2]);
    }

    #[test]
    fn a_node_that_is_made_inside_of_a_guard_passes() {
        assert_eq!(
            lines("without_unwinding(|| {\n    let node = Node::new(f(1));\n    g(&node)\n})\n"),
            [0; 0]
        );
        assert_eq!(lines("without_unwinding(|| g(&Node::new(1), \":)\"));\n"), [0; 0]);
    }

    #[test]
    fn other_types_comments_and_tests_do_not_count() {
        assert_eq!(lines("let plain = Plain::new();\nlet other = MyNode::new();\n"), [0; 0]);
        assert_eq!(lines("// Node::new(1)\n"), [0; 0]);
        assert_eq!(lines("#[cfg(test)]\nmod tests {\n    Node::new(1);\n}\n"), [0; 0]);
    }

    #[test]
    fn each_kind_of_pointer_makes_a_node() {
        for pointer in ["*const T", "*mut T", "AtomicPtr<T>", "NonNull<T>"] {
            let sources = [format!("struct T;\nfn f(at: {pointer}) {{}}\nlet node = T::new();\n")];
            assert_eq!(unguarded(&sources), [(0, 3, WHAT)], "{pointer}");
        }
    }
}
