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
        let row = format!("<td>{}</td><td>not run</td><td>none</td><td>{}</td>", source.name, source.command);
        assert!(html.contains(&row), "{row}");
        assert!(markdown.contains(&format!("| {} | not run | none |", source.name)), "{markdown}");
    }
    assert_eq!(html.matches("Not run yet").count(), SOURCES.len());
    assert!(html.contains("not measured yet"), "nothing of the load of 2005");
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
    for part in ["<script", "<link", "<img", "<iframe", "src=", "href=", "url(", "@import"] {
        assert!(!html.contains(part), "{part}");
    }
}

#[test]
fn each_mail_names_programs_and_sections_that_exist() {
    for mail in mails::MAILS {
        let known = |name: &str| SOURCES.iter().any(|source| source.name == name);
        assert!(mail.programs.iter().all(|name| known(name)), "{}", mail.title);
        assert!(mail.programs.is_empty() == mail.missing.is_some(), "{}", mail.title);
        let says = |heading| mails::today(heading).len() > 40;
        assert!(mail.heading.is_none_or(says), "{}", mail.title);
        let columns = mail.then.first().map_or(0, |header| header.len());
        assert!(mail.then.iter().all(|row| row.len() == columns), "{}", mail.title);
    }
}
