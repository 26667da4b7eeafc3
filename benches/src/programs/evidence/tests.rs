use super::*;
use crate::programs::{condvar, psrw};
use crate::report::fixture;

/// A folder of its own, which is gone afterwards.
fn page_of(name: &str, files: &[(&str, String)]) -> (String, String) {
    let folder = std::env::temp_dir().join(format!("ulocks-evidence-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (file, text) in files {
        std::fs::write(folder.join(file), text).unwrap();
    }
    let page = folder.join("index.html");
    write(std::slice::from_ref(&folder), &page).unwrap();
    let read = |end| std::fs::read_to_string(page.with_extension(end)).unwrap();
    let both = (read("html"), read("md"));
    std::fs::remove_dir_all(&folder).unwrap();
    both
}

fn condvar_record(schema: &str) -> String {
    let record = condvar::Record { schema: schema.into(), ..condvar::Record::of(vec![], vec![]) };
    serde_json::to_string(&record).unwrap()
}

#[test]
fn a_program_without_a_record_has_a_row_and_its_command() {
    let (html, markdown) = page_of("none", &[]);
    for source in SOURCES {
        let name = format!("<a href=\"#{0}\">{0}</a>", source.name);
        let row = format!("<td>{name}</td><td>not run</td><td>none</td><td>{}</td>", source.command);
        assert!(html.contains(&format!("<h2 id=\"{}\">", source.name)));
        assert!(html.contains(&row), "{row}");
        assert!(markdown.contains(&format!("| {} | not run | none |", source.name)), "{markdown}");
    }
    assert_eq!(html.matches("Not run yet").count(), SOURCES.len());
}

#[test]
fn a_record_is_shown_as_its_program_prints_it() {
    let report = fixture::plain(5);
    let (html, markdown) = page_of("scaling", &[("scaling.json", report.to_json())]);
    let table = report::tables(&report);
    assert!(markdown.contains(table.trim_matches('\n')), "{markdown}");
    assert!(html.contains(&report::svg::escape(table.trim_matches('\n'))));
    assert!(markdown.contains(&report.machine.date));
    assert!(!markdown.contains("| scaling | not run"));
    assert!(markdown.contains("| psrw | not run"));
}

#[test]
fn records_of_a_harness_are_read_by_their_schema() {
    let files = [
        ("one.json", condvar_record(Condvar::SCHEMA)),
        ("two.json", condvar_record("ulocks-condvar/0")),
        ("three.json", condvar_record("something-else/1")),
        ("four.json", "{}".into()),
    ];
    let (_, markdown) = page_of("condvar", &files);
    assert!(markdown.contains("one.json, "), "{markdown}");
    assert!(markdown.contains("two.json is not shown: the record is `ulocks-condvar/0`"), "{markdown}");
    assert!(!markdown.contains("three.json") && !markdown.contains("four.json"), "{markdown}");
}

#[test]
fn a_damaged_record_says_what_is_wrong() {
    let damaged = format!("{{\"schema\": \"{}\"}}", psrw::Psrw::SCHEMA);
    let (html, _) = page_of("damaged", &[("psrw.json", damaged)]);
    assert!(html.contains("psrw.json is not shown: missing field"), "{html}");
}

#[test]
fn the_page_fetches_nothing() {
    let (html, _) = page_of("closed", &[("scaling.json", fixture::plain(5).to_json())]);
    assert!(html.contains("default-src 'none'"));
    for part in ["<script", "<link", "<img", "<iframe", "src=", "url(", "@import"] {
        assert!(!html.contains(part), "{part}");
    }
    assert_eq!(html.matches("href=").count(), html.matches("href=\"#").count());
}

#[test]
fn of_the_records_of_a_program_the_newest_is_open() {
    let dated = |date: &str| {
        let mut record = fixture::plain(5);
        record.machine.date = date.into();
        record.to_json()
    };
    let files = [("a.json", dated("2026-01-02T00:00:00Z")), ("b.json", dated("2026-01-03T00:00:00Z"))];
    let (html, _) = page_of("newest", &files);
    let open = html.find("<details name=\"scaling\" open><summary>b.json").expect("b is open");
    let closed = html.find("<details name=\"scaling\"><summary>a.json").expect("a is closed");
    assert!(open < closed);
    // The lines of each record have their own looks, and the drawings are inside of it.
    let classes: Vec<&str> =
        html.match_indices("<div class=\"plots r").map(|(at, _)| &html[at + 18..][..4]).collect();
    assert_eq!(classes.len(), 2);
    assert_ne!(classes[0], classes[1]);
    assert!(html.matches("<svg").count() >= 6);
}

#[test]
fn predictions_are_on_the_page() {
    let predicted = r#"{"schema": "ulocks-predicted/1", "machine": "machine large", "load": "30 ns", "tables": "predicted: 7"}"#;
    let (_, markdown) = page_of("predicted", &[("predicted.json", predicted.into())]);
    assert!(markdown.contains("| predicted | predicted | a model |"), "{markdown}");
    assert!(markdown.contains("machine large\n\n```text\n30 ns\n\npredicted: 7\n"), "{markdown}");
}

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
fn the_page_of_a_run_is_well_formed_and_has_its_plots() {
    let two_modes = fixture::filled(4, |_, _, round| if round == 1 { 1e6 } else { 1e5 });
    for report in [fixture::plain(1), fixture::plain(7), two_modes] {
        let (page, _) = page_of("formed", &[("scaling.json", report.to_json())]);
        check(&page).unwrap_or_else(|e| panic!("{e}\n{page}"));
        assert!(!page.contains("NaN") && !page.contains("inf\""));
        assert_eq!(page.matches("<figure>").count(), 3 * report.workloads().len());
        let figure = page.split("<figure>").nth(1).unwrap().split("</figure>").next().unwrap();
        assert_eq!(figure.matches("class=\"line\"").count(), report.locks.len());
        assert!(report.rounds() < 2 || page.contains("&lt;ours&gt; &amp; co"));
    }
}
