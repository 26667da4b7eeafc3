//! The page has none of these faults, and each is found where it is planted.

use super::super::fixture::{ROW, plain};
use super::super::svg::{SIZE, WIDTH, text_width};
use super::*;
use std::collections::BTreeMap;

/// The room of text at 1280 and at 400 pixels.
const ROOM: [f64; 2] = [1116.0, 380.0];

/// What stands between `start` and `end`, each time.
fn between<'a>(text: &'a str, start: &str, end: &str) -> Vec<&'a str> {
    text.split(start).skip(1).map(|rest| rest.split(end).next().unwrap_or(rest)).collect()
}

fn attribute<'a>(tag: &'a str, name: &str) -> &'a str {
    between(tag, &format!("{name}=\""), "\"").first().copied().unwrap_or("")
}

fn plain_text(html: &str) -> String {
    let text: String = html.split('<').map(|part| part.split_once('>').map_or(part, |tag| tag.1)).collect();
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}

/// What is wrong with a page, a line each: its kind, and where.
fn faults(page: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for svg in between(page, "<svg ", "</svg>") {
        chart_faults(svg, &mut faults);
    }
    for plots in between(page, "<div class=\"plots\">", "</div>") {
        let (all, wide) = (plots.matches("<figure").count(), plots.matches("class=\"wide\"").count());
        if (all + wide) % 2 != 0 || wide > 1 {
            faults.push(format!("empty: {all} charts in two columns, {wide} of them wide"));
        }
    }
    for section in between(page, "<section ", "</section>") {
        if !section.contains("<svg ") {
            faults.push(format!("missing: no chart in {}", attribute(section, "id")));
        }
    }
    for table in between(page, "<table ", "</table>") {
        let width = |row: &&str| -> f64 {
            let cells = row.split("</td>").map(plain_text).filter(|cell| !cell.is_empty());
            cells.map(|cell| 1.12 * text_width(&cell) + 15.0).sum()
        };
        let widest = between(table, "<tr", "</tr>").iter().skip(1).map(width).fold(0.0, f64::max);
        if widest > ROOM[0] {
            faults.push(format!("overflow: a table of {widest:.0} px"));
        }
    }
    let main = between(page, "<main>", "</main>").concat();
    for word in main.split('<').filter_map(|part| part.split_once('>')).flat_map(|tag| tag.1.split(' ')) {
        if 1.4 * text_width(word) > ROOM[1] {
            faults.push(format!("overflow: {word}"));
        }
    }
    let planted = [
        ("overflow", &["min-width: 4", "<pre", "overflow-x"][..]),
        ("fetches", &["<script", " src=", "<link", "@import", "url("]),
    ];
    for (kind, words) in planted {
        let found = words.iter().filter(|word| page.contains(**word));
        faults.extend(found.map(|word| format!("{kind}: {word}")));
    }
    faults
}

fn chart_faults(svg: &str, faults: &mut Vec<String>) {
    let number = |text: &str| text.parse::<f64>().unwrap_or(f64::NAN);
    let height = number(attribute(svg, "viewBox").rsplit(' ').next().unwrap_or(""));
    let mut boxes: Vec<(f64, f64, f64, &str)> = Vec::new();
    for text in between(svg, "<text ", "</text>") {
        let (x, y) = (number(attribute(text, "x")), number(attribute(text, "y")));
        let label = text.split_once('>').map_or("", |tag| tag.1);
        let width = text_width(&plain_text(&format!("<{text}")));
        let left = match attribute(text, "text-anchor") {
            "end" => x - width,
            "middle" => x - width / 2.0,
            _ => x,
        };
        let right = left + width;
        if !(left >= -1.0 && right <= WIDTH + 1.0 && y >= SIZE - 2.0 && y <= height - 1.0) {
            faults.push(format!("cut: {label} from {left:.0} to {right:.0} at {y:.0} of {height:.0}"));
        }
        let touches = |(l, w, at, _): &&(f64, f64, f64, &str)| {
            left < l + w && *l < right && (y - at).abs() < SIZE - 1.0
        };
        faults.extend(boxes.iter().find(touches).map(|other| format!("cut: {label} covers {}", other.3)));
        boxes.push((left, width, y, label));
    }
    // No two looks are alike: their own test says so.
    let mut seen = BTreeMap::new();
    for series in svg.split("<g class=\"s c").skip(1) {
        let look = series.split('"').next();
        let Some(name) = between(series, "class=\"name\"", "</text>").pop() else { continue };
        let name = name.rsplit('>').next();
        if let Some(other) = seen.insert(look, name).filter(|other| *other != name) {
            faults.push(format!("alike: {name:?} and {other:?}"));
        }
    }
}

fn page(records: Vec<Record>) -> String {
    let files = records.iter().map(|record| vec![record.row.clone(), "2026-11-26".into()]).collect();
    html(&[Place { name: "here".into(), records, before: vec![plain(7)], files }], &[ROW], true)
}

#[test]
fn the_page_has_no_fault() {
    let mut rows = plain(7);
    // Cells without an axis, with labels that are longer than a chart is wide.
    rows.cells.iter_mut().for_each(|cell| {
        cell.x = None;
        cell.label = format!("{} with a condition that takes many words to say, and more", cell.label);
    });
    let page = [rows, plain(7)].map(|record| page(vec![record]));
    assert_eq!(page.each_ref().map(|page| faults(page)), [[""; 0]; 2]);
    let places =
        ["THE ANSWER", "<svg", "Solid lines", "<section", "40 figures: 0 better", "Runs", "its own report"];
    let found = places.map(|what| page[1].find(what).unwrap_or_else(|| panic!("no {what}")));
    assert!(found.is_sorted(), "the answer stands first and the runs last: {found:?}");
}

#[test]
fn each_planted_fault_is_found() {
    let good = page(vec![plain(7)]);
    let drawn = between(&good, "<section ", "<details>")[0].split_once("<div class=\"plots\">").unwrap().1;
    let svg = format!("<svg {}</svg>", between(&good, "<svg ", "</svg>")[0]);
    let planted: [(&str, String); 9] = [
        ("cut", good.replace(">greedy</text>", ">a name that leaves the chart</text>")),
        ("cut", good.replacen("y=\"", "y=\"-", 400)),
        ("cut", good.replace(">usync</text>", ">usync</text><text x=\"380\" y=\"240\">16 CPUs of it</text>")),
        ("empty", good.replace(" class=\"wide\"", "")),
        ("alike", good.replace("s c1\"", "s c0\"")),
        ("overflow", good.replace("1 threads", &"an entry of a table ".repeat(9))),
        ("overflow", good.replace("svg { display: block;", "svg { min-width: 400px;")),
        ("missing", good.replace(drawn, "")),
        ("fetches", good.replace(&svg, "<img src=\"a.png\"/>")),
    ];
    for (kind, page) in planted {
        let found = faults(&page);
        assert!(page != good && found.iter().any(|fault| fault.starts_with(kind)), "{kind}: {found:?}");
    }
}

#[test]
fn a_folder_has_a_page_of_its_newest_complete_records() {
    let folder = std::env::temp_dir().join(format!("ulocks-page-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let mut cut = plain(1);
    (cut.ended, cut.machine.date) = (Ended::Interrupted, "2099-01-01".into());
    for (name, record) in
        [("scaling", &plain(3)), ("scaling.before", &plain(2)), ("scaling-interrupted", &cut)]
    {
        fs::write(folder.join(format!("{name}.json")), serde_json::to_string(record).unwrap()).unwrap();
    }
    fs::write(folder.join("other.json"), "{}").unwrap();
    let page = fs::read_to_string(write(&folder).unwrap()).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    assert!(page.contains("4 CPUs, 3 rounds") && !page.contains("No answer"), "{page}");
    assert!(page.contains("1 rounds, interrupted") && page.contains("not shown: "), "{page}");
}

#[test]
fn the_page_of_the_kept_records_has_no_fault() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("results");
    let page = std::env::temp_dir().join(format!("ulocks-page-{}.html", std::process::id()));
    write_to(&[folder], &page).unwrap();
    let text = fs::read_to_string(&page).unwrap();
    fs::remove_file(&page).unwrap();
    assert_eq!(faults(&text), [""; 0]);
    assert!(text.matches("<svg ").count() > 50 && text.matches("THE ANSWER").count() == 2);
}
