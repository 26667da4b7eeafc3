//! A story as a page: it is well-formed, has every step, and takes no text of the model for its
//! own.

use crate::{failure, shared};
use std::process::Command;
use ulocks_vm::explore::{Config, Failure, explore, note};
use ulocks_vm::sync::AtomicU32;
use ulocks_vm::sync::Ordering::{Acquire, Relaxed, Release};

const NASTY: &str = "</title><script>alert('x')</script>&\"";

/// Both threads may read 0, as old values or not; the words have names that are markup.
fn nasty() {
    let [a, b] = shared((AtomicU32::new(0).named(NASTY), AtomicU32::new(0).named("b & <b>"))).threads([
        |(a, b)| {
            a.store(1, Release);
            note(|| format!("a note: {NASTY}"));
            b.load(Acquire)
        },
        |(a, b)| {
            b.store(1, Release);
            a.load(Acquire)
        },
    ]);
    assert!(a + b > 0, "both read 0: {NASTY}");
}

/// One thread reads what the other has stored, and then the panic.
fn passed_on() {
    shared((AtomicU32::new(0), AtomicU32::new(0))).threads([
        |(data, flag)| {
            data.store(1, Relaxed);
            flag.store(1, Relaxed);
        },
        |(data, flag)| {
            if flag.load(Relaxed) == 1 {
                assert_eq!(data.load(Relaxed), 1, "the data is old");
            }
        },
    ]);
}

/// Checks that elements open and close in order, that attributes are quoted, and that entities are
/// known ones. Returns the text between tags.
fn parse(page: &str) -> String {
    let mut open: Vec<&str> = Vec::new();
    let mut text = String::new();
    let mut rest = page.strip_prefix("<!DOCTYPE html>").expect("an HTML page");
    while let Some(start) = rest.find('<') {
        text.push_str(&rest[..start]);
        let end = start + rest[start..].find('>').expect("a tag ends");
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "near {}", &rest[..rest.len().min(80)]);
            continue;
        }
        let name = tag.split_whitespace().next().expect("a name").trim_end_matches('/');
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric()), "{tag}");
        assert_ne!(name, "script");
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        if !tag.ends_with('/') && name != "meta" {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?} is open");
    for entity in text.split('&').skip(1) {
        let name = entity.split(';').next().unwrap_or_default();
        assert!(["amp", "lt", "gt", "quot", "#39"].contains(&name), "&{name}");
    }
    text
}

fn unescaped(text: &str) -> String {
    [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")]
        .iter()
        .fold(text.to_owned(), |text, (entity, character)| text.replace(entity, character))
}

fn check(found: &Failure) {
    let page = found.html();
    let text = unescaped(&parse(&page));
    // Each line of the story is a step with its whole text, or says where a word is from.
    for line in found.story.lines().filter(|line| !line.is_empty()) {
        let words: Vec<_> = line.split("  ").map(str::trim).filter(|word| !word.is_empty()).collect();
        assert!(text.contains(words.last().expect("a text")), "{line} is not in {text}");
    }
    let steps = found.story.lines().filter(|line| line.contains("  thread ")).count();
    assert_eq!(page.matches("<g>").count(), steps, "{found}");
    assert!(text.contains(&found.verdict.to_string()) && text.contains(&found.replay), "{text}");
    for other in ["http:", "https:", "src=", "href=", "@import", "<script"] {
        assert!(!page.contains(other), "the page needs {other}");
    }
    assert!(page.contains("prefers-color-scheme: dark"));
}

#[test]
fn a_page_has_every_step_and_no_markup_of_the_model() {
    let found = failure(&Config::exhaustive(), nasty);
    assert!(found.story.contains(NASTY), "{found}");
    check(&found);
    check(&failure(&Config::exhaustive(), passed_on));
    check(&failure(&Config::sampled(1_000), passed_on));
}

#[test]
fn an_arrow_leads_from_a_store_to_its_read_by_another_thread() {
    let found = failure(&Config::exhaustive(), passed_on);
    let page = found.html();
    // The flag is read from the other thread; the data is as it was at first.
    assert_eq!(page.matches("<path class=\"arrow\"").count(), 1, "{found}");
    assert_eq!(page.matches("<path class=\"arrow old\"").count(), 0, "{found}");
    let found = failure(&Config::exhaustive(), || {
        shared(AtomicU32::new(0)).threads([
            |word| {
                word.store(1, Relaxed);
                word.store(2, Relaxed);
            },
            |word| assert!(word.load(Relaxed) != 1),
        ]);
    });
    let page = found.html();
    let stale = found.story.contains("1 write behind");
    assert_eq!(page.matches("<path class=\"arrow old\"").count(), usize::from(stale), "{found}");
    assert_eq!(page.matches("<path class=\"arrow\"").count(), usize::from(!stale), "{found}");
}

/// What the test of the environment runs in a process of its own.
#[test]
fn in_an_environment() {
    if std::env::var_os("ULOCKS_VM_HTML").is_some() {
        explore(Config::exhaustive(), passed_on);
    }
}

#[test]
fn a_failed_exploration_writes_its_page_where_the_environment_says() {
    let directory = std::env::temp_dir().join(format!("ulocks-pages-{}", std::process::id()));
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "pages::in_an_environment", "--nocapture"]);
    let output = command.env("ULOCKS_VM_HTML", &directory).output().unwrap();
    assert!(!output.status.success(), "{output:?}");
    let pages: Vec<_> = std::fs::read_dir(&directory).unwrap().map(|page| page.unwrap().path()).collect();
    let [page] = pages.as_slice() else { panic!("{pages:?}") };
    assert!(String::from_utf8_lossy(&output.stderr).contains(&format!("as a page: {}", page.display())));
    assert!(page.file_name().unwrap().to_str().unwrap().contains("pages.rs-"), "{page:?}");
    assert!(parse(&std::fs::read_to_string(page).unwrap()).contains("the data is old"));
    std::fs::remove_dir_all(&directory).unwrap();
}
