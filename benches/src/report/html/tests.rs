use super::*;
use crate::report::fixture::{empty, filled, plain};

/// Reads XML as far as this page needs it: every tag is closed in order, attributes are quoted,
/// text is escaped.
fn check(page: &str) -> Result<usize, String> {
    let (mut open, mut elements, mut rest) = (Vec::new(), 0, page);
    while let Some(start) = rest.find('<') {
        let text = &rest[..start];
        let entity = |t: &str| {
            t.split('&').skip(1).all(|e| {
                e.find(';').is_some_and(|end| e[..end].chars().all(|c| c.is_alphanumeric() || c == '#'))
            })
        };
        if text.contains('>') && open.last() != Some(&"style") || !entity(text) {
            return Err(format!("unescaped text {text:?}"));
        }
        let end = rest[start..].find('>').ok_or("a tag without an end")? + start;
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if tag.starts_with('!') {
            continue;
        }
        if let Some(name) = tag.strip_prefix('/') {
            match open.pop() {
                Some(top) if top == name => continue,
                top => return Err(format!("</{name}> closes {top:?}")),
            }
        }
        elements += 1;
        if tag.matches('"').count() % 2 != 0 || tag.contains('<') {
            return Err(format!("damaged tag <{tag}>"));
        }
        if !tag.ends_with('/') {
            open.push(tag.split_whitespace().next().unwrap_or(tag));
        }
    }
    if open.is_empty() { Ok(elements) } else { Err(format!("never closed: {open:?}")) }
}

#[test]
fn the_checker_finds_damage() {
    assert_eq!(check("<a><b x=\"1\"/>t &amp; u</a>"), Ok(2));
    for damaged in ["<a>", "<a></b>", "<a>&</a>", "<a>x > y</a>", "<a x=\"1></a>"] {
        assert!(check(damaged).is_err(), "{damaged}");
    }
}

#[test]
fn the_page_is_well_formed_and_needs_nothing_else() {
    let two_modes = filled(4, |_, _, round| if round == 1 { 1e6 } else { 1e5 });
    for report in [empty(), plain(1), plain(7), two_modes] {
        let page = render(&report);
        check(&page).unwrap_or_else(|e| panic!("{e}\n{page}"));
        for foreign in ["http", "src=", "url(", "@import", "<script", "<link", "NaN", "inf"] {
            assert!(!page.contains(foreign), "{foreign}");
        }
    }
}

#[test]
fn a_workload_has_three_plots_with_all_locks() {
    let report = plain(7);
    let page = render(&report);
    assert_eq!(page.matches("<figure>").count(), 3 * report.workloads().len());
    let figure = page.split("<figure>").nth(1).unwrap().split("</figure>").next().unwrap();
    for lock in &report.locks {
        assert!(figure.contains(&format!(">{}</text>", lock.name)), "{figure}");
    }
    assert_eq!(figure.matches("class=\"line\"").count(), report.locks.len());
    assert_eq!(figure.matches("class=\"band\"").count(), report.locks.len());
    assert!(page.contains("&lt;ours&gt; &amp; co"));
}

#[test]
fn the_cpu_count_is_marked_where_it_lies_on_the_axis() {
    let mut report = plain(3);
    report.machine.cpus_allowed = 2;
    assert!(render(&report).contains(">2 CPUs</text>"));
    report.machine.cpus_allowed = 64;
    assert!(!render(&report).contains("class=\"cpus\""));
}

#[test]
fn figures_come_from_the_trials_alone() {
    let mut report = plain(5);
    let page = render(&report);
    report.summary = super::super::Summary::default();
    assert!(render(&report) == page, "not the same page");
}

#[test]
fn limits_are_on_the_page() {
    let mut report = plain(3);
    report.mode = super::super::Mode::Quick;
    assert!(render(&report).contains("This is a quick look"));
}

#[test]
fn no_two_locks_look_alike() {
    let mut report = empty();
    report.locks = crate::subjects::locks::Entry::all()
        .iter()
        .filter(|entry| !entry.metered)
        .map(|entry| {
            let kind = if !entry.excludes {
                Kind::Baseline
            } else if entry.family {
                Kind::Family
            } else {
                Kind::Peer
            };
            Lock { name: entry.name.into(), kind, about: entry.about.into() }
        })
        .collect();
    let mut seen = std::collections::HashMap::new();
    for (lock, (day, dashes, night)) in report.locks.iter().zip(looks_in(&report)) {
        for look in [(day, dashes), (night, dashes)] {
            let other = seen.insert(look, &lock.name).filter(|other| *other != &lock.name);
            assert_eq!(other, None, "{} looks like it", lock.name);
        }
    }
    assert!(report.locks.len() > 30);
}

#[test]
fn the_page_begins_with_the_answer() {
    let page = render(&plain(7));
    let (answer, table) = (page.find("THE ANSWER").unwrap(), page.find("<table>").unwrap());
    assert!(answer < table);
}
