//! Finds the memory orderings that can be weakened, and the comments that explain some of them.
//!
//! A site is an ordering in the body of a function: `Acquire`, `Release`, `AcqRel` or `SeqCst`, a
//! constant of the crate of type `Ordering`, or a whole `fence(..)`. Modules of tests, imports,
//! constants, patterns and `const fn`s have no sites. A site is weakened in each of these ways:
//!
//! | from | to |
//! |---|---|
//! | `Acquire`, `Release` | `Relaxed` |
//! | `AcqRel` | `Acquire`, `Release`, `Relaxed` |
//! | `SeqCst` | `Relaxed`, and what is weaker by one step: `Acquire` for a load, `Release` for a store, `AcqRel` |
//! | a fence | the same, with `gone` for `Relaxed` |
//!
//! A `compiler_fence` is no site: no world reorders the accesses of one thread for the thread
//! itself.
//!
//! If no model can report a weakening, a comment says why, on the line of the ordering, or directly
//! above that line or its statement:
//!
//! ```text
//! // Mutant: failure Acquire -> Relaxed: the next attempt reads the word again.
//! ```
//!
//! `failure` stands before the second ordering of a `compare_exchange`, `fence` before that of a
//! fence. Several orderings may follow the arrow, with commas.

use super::source::{self, is_of_macro, is_punct, is_word};
use proc_macro2::{Delimiter, Group, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

const WORDS: [&str; 4] = ["Acquire", "Release", "AcqRel", "SeqCst"];
const MARK: &str = "// Mutant:";

/// The constants of a crate that are orderings, and the words in their values.
pub type Constants = BTreeMap<String, BTreeSet<&'static str>>;

/// A line, and what is wrong with its explanation.
pub type Fault = (usize, String);

/// An ordering, or a fence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Where it is, a fence with its parentheses.
    pub range: Range<usize>,
    /// Its line, from 1.
    pub line: usize,
    /// As it is written, with `failure` or `fence` before it.
    pub from: String,
    /// Whether it is a fence.
    pub is_fence: bool,
    /// How it can be weakened.
    pub ways: Vec<Way>,
    /// The first line of its statement.
    statement: usize,
}

/// One way to weaken a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// What remains.
    pub to: &'static str,
    /// The same, as a letter for the selector.
    pub letter: char,
    /// Why no model can report it.
    pub explained: Option<String>,
}

/// What encloses a token.
#[derive(Clone, Copy)]
struct Around<'a> {
    call: &'a str,
    argument: usize,
    statement: usize,
    in_code: bool,
}

/// The sites of a file, and the faults of its explanations.
pub fn find(text: &str, constants: &Constants) -> Result<(Vec<Site>, Vec<Fault>), String> {
    let trees: Vec<TokenTree> = source::tokens(text)?.into_iter().collect();
    let mut sites = Vec::new();
    let around = Around { call: "", argument: 0, statement: 1, in_code: false };
    scan(&trees, around, constants, &mut sites);
    let faults = explain(text, &mut sites);
    Ok((sites, faults))
}

/// Adds to `found` the constants that are orderings.
pub fn constants(text: &str, found: &mut Constants) -> Result<(), String> {
    constants_of(&source::tokens(text)?.into_iter().collect::<Vec<_>>(), found);
    Ok(())
}

fn constants_of(trees: &[TokenTree], found: &mut Constants) {
    for (at, tree) in trees.iter().enumerate() {
        if let TokenTree::Group(group) = tree {
            constants_of(&group.stream().into_iter().collect::<Vec<_>>(), found);
        }
        if !is_const_item(trees, at) {
            continue;
        }
        let end = end_of_item(trees, at);
        let value =
            trees[at..end].iter().position(|tree| is_punct(tree, '=')).map_or(end, |value| at + value);
        if value > at && is_word(&trees[value - 1], "Ordering") {
            let words = found.entry(trees[at + 1].to_string()).or_default();
            words_in(&trees[value..end], &Constants::new(), words);
        }
    }
}

/// Whether a constant is declared at `at`.
fn is_const_item(trees: &[TokenTree], at: usize) -> bool {
    let is_generic = at > 0 && (is_punct(&trees[at - 1], '<') || is_punct(&trees[at - 1], ','));
    let is_pointer = at > 0 && is_punct(&trees[at - 1], '*');
    let is_name = matches!(trees.get(at + 1), Some(TokenTree::Ident(name)) if name != "fn" && name != "unsafe" && name != "extern");
    (is_word(&trees[at], "const") || is_word(&trees[at], "static")) && is_name && !is_generic && !is_pointer
}

/// The place of the semicolon of the item at `at`.
fn end_of_item(trees: &[TokenTree], at: usize) -> usize {
    trees[at..].iter().position(|tree| is_punct(tree, ';')).map_or(trees.len(), |end| at + end)
}

fn words_in(trees: &[TokenTree], constants: &Constants, found: &mut BTreeSet<&'static str>) {
    for tree in trees {
        match tree {
            TokenTree::Group(group) => {
                words_in(&group.stream().into_iter().collect::<Vec<_>>(), constants, found);
            }
            TokenTree::Ident(name) => {
                found.extend(WORDS.into_iter().filter(|word| name == word));
                found.extend(constants.get(&name.to_string()).into_iter().flatten());
            }
            _ => {}
        }
    }
}

fn scan(trees: &[TokenTree], mut around: Around<'_>, constants: &Constants, found: &mut Vec<Site>) {
    let (mut at, mut argument) = (0, 0);
    let mut begins = true;
    while at < trees.len() {
        let tree = &trees[at];
        if begins && around.call.is_empty() {
            around.statement = line(tree);
        }
        begins = false;
        if is_word(tree, "use") || is_const_item(trees, at) {
            at = end_of_item(trees, at);
            continue;
        }
        if is_cfg_test(&trees[at..]) {
            at += 2;
            let is_end = |tree: &TokenTree| is_punct(tree, ';') || is_braces(tree);
            at += trees[at..].iter().position(is_end).map_or(trees.len(), |end| end + 1);
            begins = true;
            continue;
        }
        if is_word(tree, "fn")
            && let Some((function, end)) = source::function(trees, at)
        {
            if let (Some(function), TokenTree::Group(body)) = (function, &trees[end - 1])
                && function.choice != Err(source::IS_CONST)
            {
                let inside = Around { call: "", argument: 0, statement: line(tree), in_code: true };
                scan_group(body, inside, constants, found);
            }
            (at, begins) = (end, true);
            continue;
        }
        match tree {
            TokenTree::Punct(punct) => {
                let is_comma = punct.as_char() == ',';
                argument += usize::from(is_comma);
                begins = punct.as_char() == ';' || is_comma;
            }
            TokenTree::Group(group) => {
                let is_macro = is_of_macro(&trees[..at]);
                let name = name_of_call(&trees[..at], is_macro);
                if around.in_code || !is_macro {
                    let is_call = group.delimiter() != Delimiter::Brace;
                    let call = if is_call { if name.is_empty() { "(" } else { &name } } else { "" };
                    let inside = Around { call, argument: 0, ..around };
                    if !["matches", "macro_rules", "compiler_fence"].contains(&call) {
                        scan_group(group, inside, constants, found);
                    }
                }
                begins = is_braces(tree) && starts_anew(tree, trees.get(at + 1));
            }
            TokenTree::Ident(_) if around.in_code => {
                let here = Around { argument, ..around };
                if let Some((site, end)) = site(trees, at, here, constants) {
                    found.push(site);
                    at = end;
                    continue;
                }
            }
            _ => {}
        }
        at += 1;
    }
}

fn scan_group(group: &Group, around: Around<'_>, constants: &Constants, found: &mut Vec<Site>) {
    scan(&group.stream().into_iter().collect::<Vec<_>>(), around, constants, found);
}

/// The site at `at`, and the place behind it.
fn site(trees: &[TokenTree], at: usize, around: Around<'_>, constants: &Constants) -> Option<(Site, usize)> {
    let name = trees[at].to_string();
    let mut words = BTreeSet::new();
    let is_fence = name == "fence";
    let mut end = at + 1;
    let mut from = name.clone();
    if is_fence {
        let Some(TokenTree::Group(order)) = trees.get(end) else { return None };
        let order: Vec<TokenTree> = order.stream().into_iter().collect();
        words_in(&order, constants, &mut words);
        from = format!("fence {}", order.last()?);
        end += 1;
    } else {
        // A longer path, or a pattern.
        let next = trees.get(end);
        let is_path = next.is_some_and(|next| is_punct(next, ':') || is_punct(next, '|'));
        let is_arm = next.is_some_and(|next| is_punct(next, '='));
        if is_path || is_arm {
            return None;
        }
        words_in(&trees[at..end], constants, &mut words);
        let (call, argument) = (around.call, around.argument);
        if call.starts_with("compare_exchange") && argument == 3 || call == "fetch_update" && argument == 1 {
            from = format!("failure {from}");
        }
    }
    if words.is_empty() {
        return None;
    }
    let start = start_of_path(trees, at);
    let range = trees[start].span().byte_range().start..trees[end - 1].span().byte_range().end;
    let ways = ways(&words, is_fence, around.call);
    Some((Site { range, line: line(&trees[at]), from, is_fence, ways, statement: around.statement }, end))
}

fn ways(words: &BTreeSet<&str>, is_fence: bool, call: &str) -> Vec<Way> {
    let way = |to, letter| Way { to, letter, explained: None };
    let mut ways = Vec::new();
    if words.contains("SeqCst") {
        ways.push(match call {
            "load" => way("Acquire", 'a'),
            "store" => way("Release", 'r'),
            _ => way("AcqRel", 'q'),
        });
    }
    if words.contains("AcqRel") {
        ways.extend([way("Acquire", 'a'), way("Release", 'r')]);
    }
    ways.push(if is_fence { way("gone", 'x') } else { way("Relaxed", 'x') });
    ways
}

/// Where the path that ends at `at` begins.
fn start_of_path(trees: &[TokenTree], at: usize) -> usize {
    match &trees[..at] {
        [.., TokenTree::Ident(_), first, second] if is_punct(first, ':') && is_punct(second, ':') => {
            start_of_path(trees, at - 3)
        }
        _ => at,
    }
}

fn name_of_call(before: &[TokenTree], is_macro: bool) -> String {
    match before {
        [.., TokenTree::Ident(name), _] if is_macro => name.to_string(),
        [.., TokenTree::Ident(_), _, TokenTree::Ident(_)] if is_macro => "macro_rules".into(),
        [.., TokenTree::Ident(name)] => name.to_string(),
        _ => String::new(),
    }
}

/// Whether what follows a block is a statement of its own.
fn starts_anew(block: &TokenTree, next: Option<&TokenTree>) -> bool {
    let TokenTree::Group(block) = block else { return false };
    next.is_some_and(|next| {
        line(next) > block.span_close().start().line && !is_punct(next, '.') && !is_word(next, "else")
    })
}

fn is_cfg_test(trees: &[TokenTree]) -> bool {
    match trees {
        [hash, TokenTree::Group(group), ..] => {
            is_punct(hash, '#') && group.stream().to_string() == "cfg (test)"
        }
        _ => false,
    }
}

fn is_braces(tree: &TokenTree) -> bool {
    matches!(tree, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
}

fn line(tree: &TokenTree) -> usize {
    tree.span().start().line
}

/// Gives the sites their explanations. Returns the explanations that fit no site.
fn explain(text: &str, sites: &mut [Site]) -> Vec<Fault> {
    let lines: Vec<&str> = text.lines().collect();
    let is_comment =
        |line: usize| lines.get(line - 1).is_some_and(|line| line.trim_start().starts_with("//"));
    let mut faults = Vec::new();
    for (number, line) in (1..).zip(&lines) {
        let Some((_, explanation)) = line.split_once(MARK) else { continue };
        let mut covered = number;
        while is_comment(covered) && covered <= lines.len() {
            covered += 1;
        }
        let parsed = explanation.split_once("->").and_then(|(from, rest)| {
            let (ways, why) = rest.split_once(':')?;
            Some((from.trim(), ways.split(',').map(str::trim), why.trim()))
        });
        let Some((from, ways, why)) = parsed.filter(|(.., why)| !why.is_empty()) else {
            faults.push((number, format!("write `{MARK} FROM -> TO: WHY`")));
            continue;
        };
        for to in ways {
            let here = sites.iter_mut().filter(|site| site.from == from);
            let here = here.filter(|site| site.line == covered || site.statement == covered);
            let mut explained = here.flat_map(|site| &mut site.ways).filter(|way| way.to == to).peekable();
            if explained.peek().is_none() {
                faults.push((number, format!("no `{from}` here can become `{to}`: delete the explanation")));
            }
            explained.for_each(|way| way.explained = Some(why.to_owned()));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let mut named = Constants::new();
        constants(text, &mut named).unwrap();
        let (sites, faults) = find(text, &named).unwrap();
        assert_eq!(faults, []);
        let shown = |site: &Site| {
            let ways: Vec<_> = site.ways.iter().map(|way| way.to).collect();
            format!("{}: {} = {} -> {}", site.line, site.from, &text[site.range.clone()], ways.join(" "))
        };
        sites.iter().map(shown).collect()
    }

    #[test]
    fn each_ordering_in_code_is_weakened_in_all_ways() {
        let text = "fn f() {\n    a.load(Ordering::Acquire);\n    \
                    match a.compare_exchange(f(x, y), 1, AcqRel, Acquire) { _ => a.store(1, Release) }\n    \
                    debug_assert!(a.load(Relaxed) == 0 && a.load(SeqCst) == 1);\n    \
                    sync::fence(SeqCst); a.swap(0, if b { Acquire } else { Relaxed })\n}";
        assert_eq!(
            found(text),
            [
                "2: Acquire = Ordering::Acquire -> Relaxed",
                "3: AcqRel = AcqRel -> Acquire Release Relaxed",
                "3: failure Acquire = Acquire -> Relaxed",
                "3: Release = Release -> Relaxed",
                "4: SeqCst = SeqCst -> Acquire Relaxed",
                "5: fence SeqCst = sync::fence(SeqCst) -> AcqRel gone",
                "5: Acquire = Acquire -> Relaxed",
            ]
        );
    }

    #[test]
    fn imports_constants_tests_patterns_and_const_fns_have_no_sites() {
        let text = "use x::Ordering::{Acquire, Release};\nconst A: Ordering = Acquire;\nconst fn b() { x(Acquire) }\n\
                    macro_rules! m { () => { fn f() { x(Acquire) } } }\n\
                    fn c<const N: u8>(p: *const u8, o: Ordering) -> u8 { use x::Release; const B: u8 = f(AcqRel);\n\
                    match o { Acquire | Release => 1, SeqCst => 2, _ => 3 }; matches!(o, Acquire); compiler_fence(SeqCst) }\n\
                    #[cfg(test)]\nmod tests { fn d() { x(Acquire) } }\n#[cfg(test)]\nmod more;\nfn e() { x(Release) }";
        assert_eq!(found(text), ["11: Release = Release -> Relaxed"]);
    }

    #[test]
    fn a_constant_is_weakened_where_it_is_used() {
        let text = "trait T { const DRAINED: Ordering; const N: u8 = 1; }\n\
                    impl T for X { const DRAINED: sync::Ordering = if P { AcqRel } else { Acquire }; }\n\
                    fn f() { a.swap(N, Self::DRAINED) }";
        assert_eq!(found(text), ["3: DRAINED = Self::DRAINED -> Acquire Release Relaxed"]);
    }

    #[test]
    fn an_explanation_covers_its_line_or_the_statement_below() {
        let text = concat!(
            "fn f() {\n    a.load(Acquire); // Mutant: Acquire -> Relaxed: one.\n    // Prose.\n",
            "    // Mutant: AcqRel -> Acquire, Release: two.\n",
            "    // Mutant: failure Acquire -> Relaxed: three.\n    let x = a\n",
            "        .compare_exchange(1, 2, AcqRel, Acquire);\n    a.load(Acquire)\n}",
        );
        let (sites, faults) = find(text, &Constants::new()).unwrap();
        assert_eq!(faults, []);
        let why = |site: usize, way: usize| sites[site].ways[way].explained.as_deref();
        assert_eq!(why(0, 0), Some("one."));
        assert_eq!((why(1, 0), why(1, 1), why(1, 2)), (Some("two."), Some("two."), None));
        assert_eq!((why(2, 0), why(3, 0)), (Some("three."), None));
    }

    #[test]
    fn an_explanation_that_explains_nothing_is_a_fault() {
        let faults = |comment: &str| {
            find(&format!("fn f() {{\n    {comment}\n    a.load(Acquire);\n}}"), &Constants::new()).unwrap().1
        };
        assert_eq!(faults("// Mutant: Acquire -> Relaxed: why."), []);
        let stale = "no `Release` here can become `Relaxed`: delete the explanation";
        assert_eq!(faults("// Mutant: Release -> Relaxed: why."), [(2, stale.into())]);
        assert_eq!(
            faults("// Mutant: Acquire -> Relaxed:"),
            [(2, "write `// Mutant: FROM -> TO: WHY`".into())]
        );
        assert_eq!(faults("// Mutant: unneeded").len(), 1);
    }
}
