//! Plants all mutants at once: each changed function chooses its body at run time.
//!
//! ```text
//! fn release(&self) { if ::ulocks_core::__mutant::is(7) { MUTATED BODY } else { ORIGINAL BODY } }
//! ```
//!
//! An ordering that can be weakened is passed through a function of the same module:
//! `::ulocks_core::__mutant::ordering(9, Acquire)`.
//!
//! The bodies are copied from the text, not printed from tokens. If a mutant changes more than
//! bodies, or does not compile beside the others, it gets a build of its own.

use super::source::{self, Function};
use super::spec::Mutant;
use super::weaken::Placed;
use anyhow::Context;
use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::Path;
use xtask::workspace::{Package, Workspace};

/// The variable that says which mutant runs.
pub const VARIABLE: &str = "ULOCKS_MUTANT";
/// The variable that names the file of the orderings that a run passes, if the other is `reach`.
pub const REACHED: &str = "ULOCKS_REACHED";
/// The module that reads it, and its text.
const SELECTOR: &str = "__mutant";
const SELECTOR_TEXT: &str = include_str!("selector.rs");
/// The packages that get the module, and the names of their crates. All others depend on one.
const HOSTS: [(&str, &str); 2] = [("ulocks-core", "ulocks_core"), ("ulocks-vm", "ulocks_vm")];

/// The mutants in the copy of the workspace, and the mutants that need a build of their own.
#[derive(Default)]
pub struct Plan {
    /// The changed files and their texts.
    pub files: BTreeMap<String, Planted>,
    /// The mutants that need a build of their own, by number, and why.
    pub alone: BTreeMap<u32, String>,
}

/// A file with its mutants.
#[derive(Debug, Default)]
pub struct Planted {
    /// Its text.
    pub text: String,
    /// Where in this text the mutated bodies are, and whose they are.
    pub bodies: Vec<(Range<usize>, u32)>,
}

impl Plan {
    /// Plants all `mutants` and `sites`, except the mutants that `alone` contains already.
    pub fn new(
        workspace: &Workspace,
        mutants: &[Mutant],
        sites: &[Placed],
        alone: BTreeMap<u32, String>,
    ) -> anyhow::Result<Self> {
        let mut plan = Self { alone, ..Self::default() };
        let mut by_file = BTreeMap::<&str, (Vec<&Mutant>, Vec<&Placed>)>::new();
        mutants.iter().for_each(|mutant| by_file.entry(&mutant.file).or_default().0.push(mutant));
        sites.iter().for_each(|site| by_file.entry(&site.file).or_default().1.push(site));
        for (file, (mutants, sites)) in by_file {
            let text = read(workspace, file)?;
            let Some(selector) = selector(workspace, file) else {
                let why = "its package depends neither on ulocks-core nor on ulocks-vm";
                plan.alone.extend(mutants.iter().map(|mutant| (mutant.id(), why.to_owned())));
                continue;
            };
            let mut changed = Vec::new();
            for mutant in mutants {
                let id = mutant.id();
                if plan.alone.contains_key(&id) {
                    continue;
                }
                let mutated =
                    mutant.applied(&text).map_err(|fault| anyhow::anyhow!("{}: {fault}", mutant.name))?;
                match changes(&text, &mutated) {
                    Ok(bodies) => changed.extend(bodies.into_iter().map(|(at, body)| (at, id, body))),
                    Err(why) => drop(plan.alone.insert(id, why)),
                }
            }
            let sites = sites.into_iter().filter(|site| !plan.alone.contains_key(&site.id));
            let edits: Vec<Edit> = sites.map(|site| edit(&text, &selector, site)).collect();
            plan.files.insert(file.to_owned(), plant(&text, &selector, &changed, &edits));
        }
        plan.add_selectors(workspace)?;
        Ok(plan)
    }

    fn add_selectors(&mut self, workspace: &Workspace) -> anyhow::Result<()> {
        for (host, _) in HOSTS {
            let Some(package) = workspace.packages.iter().find(|package| package.name == host) else {
                continue;
            };
            let dir = package.dir.strip_prefix(&workspace.root)?.join("src");
            let [lib, module] = ["lib", SELECTOR].map(|name| dir.join(name).with_extension("rs"));
            let lib = lib.to_string_lossy().into_owned();
            let planted = match self.files.remove(&lib) {
                Some(planted) => planted,
                None => Planted { text: read(workspace, &lib)?, bodies: Vec::new() },
            };
            let text = format!("{}\n#[doc(hidden)]\npub mod {SELECTOR};\n", planted.text);
            self.files.insert(lib, Planted { text, ..planted });
            let text = SELECTOR_TEXT.to_owned();
            self.files.insert(module.to_string_lossy().into_owned(), Planted { text, bodies: Vec::new() });
        }
        Ok(())
    }

    /// The mutant whose body in `file` contains the byte `at`.
    pub fn owner(&self, file: &str, at: usize) -> Option<u32> {
        let planted = self.files.get(file)?;
        planted.bodies.iter().find(|(body, _)| body.contains(&at)).map(|(_, id)| *id)
    }

    /// The mutants that have a body in `file`.
    pub fn owners(&self, file: &str) -> Vec<u32> {
        self.files.get(file).map_or_else(Vec::new, |file| file.bodies.iter().map(|(_, id)| *id).collect())
    }
}

fn read(workspace: &Workspace, file: &str) -> anyhow::Result<String> {
    fs::read_to_string(workspace.root.join(file)).with_context(|| format!("cannot read {file}"))
}

/// How code in `file` names the selector. None if it has no way to.
fn selector(workspace: &Workspace, file: &str) -> Option<String> {
    let path = workspace.root.join(file);
    let package = workspace.packages.iter().find(|package| path.starts_with(&package.dir))?;
    let is_host = HOSTS.iter().find(|(host, _)| *host == package.name);
    if is_host.is_some() && is_of_library(package, &path) {
        return Some(format!("crate::{SELECTOR}"));
    }
    let (_, host) = is_host.or_else(|| HOSTS.iter().find(|(host, _)| package.depends_on(host)))?;
    Some(format!("::{host}::{SELECTOR}"))
}

fn is_of_library(package: &Package, path: &Path) -> bool {
    let src = package.dir.join("src");
    path.starts_with(&src) && !path.starts_with(src.join("bin")) && path != src.join("main.rs")
}

/// The bodies of `original` that differ in `mutated`, as the places of the original ones and the
/// mutated texts; or what else differs.
fn changes(original: &str, mutated: &str) -> Result<Vec<(Range<usize>, String)>, String> {
    let [before, after] = [original, mutated].map(|text| source::tokens(text).map(source::functions));
    let (before, after) = (before?, after?);
    if between(original, &before) != between(mutated, &after) {
        return Err("it changes what is not in the body of a function".into());
    }
    let mut changed = Vec::new();
    for (before, after) in before.iter().zip(after) {
        let body = &mutated[after.body];
        if original[before.body.clone()] != *body {
            before.choice?;
            changed.push((before.body.clone(), body.to_owned()));
        }
    }
    Ok(changed)
}

/// What is between the bodies of `functions`.
fn between<'a>(text: &'a str, functions: &[Function]) -> Vec<&'a str> {
    let starts = [0].into_iter().chain(functions.iter().map(|function| function.body.end));
    let ends = functions.iter().map(|function| function.body.start).chain([text.len()]);
    starts.zip(ends).map(|(start, end)| &text[start..end]).collect()
}

/// A part of a text, whose site it is, and what takes its place.
type Edit = (Range<usize>, u32, String);

/// The ordering or fence of `site` passed through the selector.
fn edit(text: &str, selector: &str, Placed { id, site, .. }: &Placed) -> Edit {
    let old = &text[site.range.clone()];
    let new = match old.split_once('(') {
        Some((fence, order)) if site.is_fence => {
            let order = order.trim_end_matches(')');
            format!("{{ if let Some(order) = {selector}::fence({id}, {order}) {{ {fence}(order) }} }}")
        }
        _ => format!("{selector}::ordering({id}, {old})"),
    };
    (site.range.clone(), *id, new)
}

/// `text` in which the body at each place chooses between itself and the mutated ones for it. The
/// `edits`, in order, are made outside of the mutated ones.
fn plant(text: &str, selector: &str, changed: &[(Range<usize>, u32, String)], edits: &[Edit]) -> Planted {
    let mut choices = BTreeMap::<usize, (usize, Vec<(u32, &str)>)>::new();
    for (place, id, body) in changed {
        choices.entry(place.start).or_insert((place.end, Vec::new())).1.push((*id, body));
    }
    let (mut planted, mut at) = (Planted::default(), 0);
    for (start, (end, bodies)) in choices {
        planted.add_edited(text, at..start, edits);
        planted.text.push('{');
        for (id, body) in bodies {
            planted.text += &format!(" if {selector}::is({id}) ");
            planted.add(id, body);
            planted.text += " else";
        }
        planted.text.push(' ');
        planted.add_edited(text, start..end, edits);
        planted.text += " }";
        at = end;
    }
    planted.add_edited(text, at..text.len(), edits);
    planted
}

impl Planted {
    /// Adds text that is there for the mutant `id` only.
    fn add(&mut self, id: u32, text: &str) {
        let from = self.text.len();
        self.text += text;
        self.bodies.push((from..self.text.len(), id));
    }

    fn add_edited(&mut self, text: &str, range: Range<usize>, edits: &[Edit]) {
        let mut at = range.start;
        for (place, id, new) in edits.iter().filter(|(place, ..)| range.contains(&place.start)) {
            self.text += &text[at..place.start];
            self.add(*id, new);
            at = place.end;
        }
        self.text += &text[at..range.end];
    }
}

#[cfg(test)]
#[expect(dead_code, reason = "only the copy of the workspace calls it")]
#[path = "selector.rs"]
mod selector;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::orderings::{self, Constants};
    use crate::mutants::spec::PLANTED;

    const TEXT: &str = "use x;\nfn a() { 1 }\nconst fn b() { 2 }\nfn c() { 3 }\n";

    fn changed(from: &str, to: &str) -> Result<Vec<(Range<usize>, String)>, String> {
        assert_eq!(TEXT.matches(from).count(), 1);
        changes(TEXT, &TEXT.replace(from, to))
    }

    #[test]
    fn a_body_chooses_between_itself_and_each_mutant_of_it() {
        let all: Vec<_> = [(7, "1", "one"), (8, "3", "three"), (9, "1", "uno")]
            .into_iter()
            .flat_map(|(id, from, to)| {
                changed(from, to).unwrap().into_iter().map(move |(at, body)| (at, id, body))
            })
            .collect();
        let planted = plant(TEXT, "s", &all, &[]);
        let expected = "use x;\nfn a() { if s::is(7) { one } else if s::is(9) { uno } else { 1 } }\n\
                        const fn b() { 2 }\nfn c() { if s::is(8) { three } else { 3 } }\n";
        assert_eq!(planted.text, expected);
        let bodies: Vec<_> = planted.bodies.into_iter().map(|(at, id)| (&planted.text[at], id)).collect();
        assert_eq!(bodies, [("{ one }", 7), ("{ uno }", 9), ("{ three }", 8)]);
    }

    #[test]
    fn an_ordering_passes_the_selector_wherever_no_mutant_has_its_own_body() {
        let text = "fn a() { x(Acquire); y::fence(SeqCst) }\nfn b() { x(Release) }";
        let (sites, _) = orderings::find(text, &Constants::new()).unwrap();
        let placed =
            |(id, site)| Placed { id, site, file: "f.rs".into(), package: "p".into(), code: String::new() };
        let edits: Vec<_> = (1..).zip(sites).map(placed).map(|site| edit(text, "s", &site)).collect();
        let body = (7..39, 9, "{ m(Acquire) }".to_owned());
        assert_eq!(&text[body.0.clone()], "{ x(Acquire); y::fence(SeqCst) }");
        let planted = plant(text, "s", &[body], &edits);
        let expected = "fn a() { if s::is(9) { m(Acquire) } else { x(s::ordering(1, Acquire)); \
                        { if let Some(order) = s::fence(2, SeqCst) { y::fence(order) } } } }\n\
                        fn b() { x(s::ordering(3, Release)) }";
        assert_eq!(planted.text, expected);
        let owned: Vec<_> = planted.bodies.iter().map(|(at, id)| (*id, &planted.text[at.clone()])).collect();
        assert_eq!(owned[1], (1, "s::ordering(1, Acquire)"));
        assert_eq!(owned.len(), 4);
    }

    #[test]
    fn the_selector_weakens_and_never_strengthens() {
        use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
        let weakened = super::selector::weakened;
        assert_eq!((weakened(AcqRel, b'a'), weakened(AcqRel, b'r')), (Acquire, Release));
        assert_eq!((weakened(SeqCst, b'q'), weakened(AcqRel, b'x')), (AcqRel, Relaxed));
        assert_eq!((weakened(Release, b'a'), weakened(Relaxed, b'r')), (Release, Relaxed));
    }

    #[test]
    fn a_mutant_may_change_two_functions_but_nothing_beside_them() {
        assert_eq!(
            changed(" }\nconst fn b() { 2 }\nfn c() {", "; }\nconst fn b() { 2 }\nfn c() {;").unwrap().len(),
            2
        );
        for (from, to) in [("use x;", "use y;"), ("fn a()", "fn a(x: u8)"), ("1 }", "1 } fn d() {}")] {
            let why = changed(from, to).unwrap_err();
            assert_eq!(why, "it changes what is not in the body of a function", "{to}");
        }
        assert_eq!(changed("2", "two").unwrap_err(), "it changes a `const fn`");
        assert!(changed("1", "{").unwrap_err().starts_with("its tokens cannot be read"));
    }

    #[test]
    fn the_selector_reads_a_number_and_a_letter() {
        assert_eq!(super::selector::parse(b""), 0);
        assert_eq!(super::selector::parse(b"4294967295"), u64::from(u32::MAX) << 8);
        assert_eq!(super::selector::parse(b"12:x"), 12 << 8 | u64::from(b'x'));
    }

    #[test]
    fn code_names_the_selector_of_its_crate_or_of_core() {
        let workspace = Workspace::load().unwrap();
        let named = |file: &str| selector(&workspace, file);
        assert_eq!(named("crates/core/src/lock/condvar/raw.rs").unwrap(), "crate::__mutant");
        assert_eq!(named("crates/core/tests/time.rs").unwrap(), "::ulocks_core::__mutant");
        assert_eq!(named("crates/checker/vm/src/clock.rs").unwrap(), "crate::__mutant");
        assert_eq!(named("crates/checker/cost/src/units.rs").unwrap(), "::ulocks_vm::__mutant");
        assert_eq!(named("crates/locks/unfair/src/barging/raw.rs").unwrap(), "::ulocks_core::__mutant");
        assert_eq!(named("crates/testkit/src/model.rs").unwrap(), "::ulocks_core::__mutant");
        assert_eq!(named("xtask/src/main.rs"), None);
        assert_eq!(named("fuzz/fuzz_targets/x.rs"), None);
    }

    #[test]
    fn the_mutants_of_this_workspace_are_planted_at_once() {
        let workspace = Workspace::load().unwrap();
        let plan = Plan::new(&workspace, &PLANTED, &[], BTreeMap::new()).unwrap();
        let raw = &plan.files["crates/locks/unfair/src/barging/raw.rs"];
        assert!(raw.text.contains("{ if ::ulocks_core::__mutant::is("));
        assert!(plan.files["crates/core/src/lib.rs"].text.ends_with("pub mod __mutant;\n"));
        assert!(plan.files.contains_key("crates/core/src/__mutant.rs"));
        assert!(plan.alone.len() * 4 < PLANTED.len(), "{:?}", plan.alone);
        let (body, id) = &raw.bodies[0];
        assert_eq!(plan.owner("crates/locks/unfair/src/barging/raw.rs", body.start + 1), Some(*id));
        assert_eq!(plan.owner("crates/locks/unfair/src/barging/raw.rs", 0), None);
    }
}
