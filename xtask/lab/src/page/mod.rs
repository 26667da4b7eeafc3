//! `cargo lab page`: opens the pages of the benches in a browser without a window, and measures
//! them.
//!
//! The pages are drawn from records of the repository. Each is opened at two widths, light and
//! dark, in a frame of the width: a window cannot be narrower than some 500 pixels. `measure.js`
//! reports elements that are wider than the page, labels that overlap or leave their chart, empty
//! places between charts, sections without a chart, lines of two locks that look alike, text of
//! little contrast, and requests. A page with one fault of each kind shows that it does.

use anyhow::{Context, bail};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use xshell::{Shell, cmd};
use xtask::steps::Steps;
use xtask::tools;
use xtask::workspace::Workspace;

const WIDTHS: [u32; 2] = [1280, 400];
/// The schemes, and what the browser calls them.
const SCHEMES: [(&str, u32); 2] = [("dark", 0), ("light", 1)];
/// The kinds of findings, each of which the page of faults has.
const KINDS: [&str; 8] = ["alike", "contrast", "cut", "empty", "fetches", "missing", "overlap", "wide"];

pub fn run(shell: &Shell, workspace: &Workspace, steps: &mut Steps) -> anyhow::Result<()> {
    tools::need("chromium", "apt-get install chromium", &["chromium", "--version"])?;
    let dir = workspace.target().join("ulocks-page");
    fs::create_dir_all(&dir)?;
    let record = newest_record(&workspace.root.join("benches/results"))?;
    let (one, index) = (dir.join("record.html"), dir.join("index.html"));
    let report = ["run", "--quiet", "--package", "ulocks-benches", "--bin", "ulocks-report", "--"];
    steps.run("page of a record", cmd!(shell, "cargo {report...} {record} --output {one}"), &[])?;
    steps.run("index", cmd!(shell, "cargo {report...} index benches/results --output {index}"), &[])?;

    let faults = dir.join("faults.html");
    fs::write(&faults, include_str!("faults.html"))?;
    steps.check("the browser finds planted faults", "cargo lab page", || {
        let found = findings(&faults, WIDTHS[0], SCHEMES[1], &dir)?;
        let kinds: BTreeSet<&str> = found.iter().filter_map(|line| line.split(':').next()).collect();
        found.iter().for_each(|finding| eprintln!("    {finding}"));
        Ok(kinds == BTreeSet::from(KINDS))
    })?;
    for page in [&one, &index] {
        for width in WIDTHS {
            for scheme in SCHEMES {
                let name = page.file_name().unwrap_or_default().to_string_lossy();
                let step = format!("{name}, {width} px, {}", scheme.0);
                steps.check(&step, "cargo lab page", || {
                    let found = findings(page, width, scheme, &dir)?;
                    found.iter().for_each(|finding| eprintln!("    {finding}"));
                    Ok(found.is_empty())
                })?;
            }
        }
    }
    Ok(())
}

/// The last file of records, by name: names begin with the day.
fn newest_record(dir: &Path) -> anyhow::Result<PathBuf> {
    let paths = fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    let paths = paths.filter_map(|entry| Some(entry.ok()?.path()));
    let records = paths.filter(|path| path.extension().is_some_and(|end| end == "json"));
    records.max().with_context(|| format!("no records in {}", dir.display()))
}

/// Opens a page in a frame of `width` pixels, and measures it.
fn findings(page: &Path, width: u32, scheme: (&str, u32), dir: &Path) -> anyhow::Result<Vec<String>> {
    let text = fs::read_to_string(page)?;
    let frame = dir.join("frame.html");
    fs::write(&frame, framed(&text, width))?;
    let profile = dir.join("profile");
    _ = fs::remove_dir_all(&profile);
    let output = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"])
        .args([
            "--disable-component-update",
            "--disable-sync",
            "--no-first-run",
            "--virtual-time-budget=3000",
        ])
        .arg(format!("--blink-settings=preferredColorScheme={}", scheme.1))
        .arg(format!("--window-size={},2000", width + 100))
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg("--dump-dom")
        .arg(format!("file://{}", frame.display()))
        .output()
        .context("cannot run chromium")?;
    parse(&String::from_utf8_lossy(&output.stdout), scheme.0)
}

/// A page around the page, with the script that measures it.
fn framed(page: &str, width: u32) -> String {
    let page = page.replace('&', "&amp;").replace('"', "&quot;");
    format!(
        "<!DOCTYPE html><meta charset=\"utf-8\"><pre id=\"found\"></pre>\
         <iframe id=\"frame\" style=\"width: {width}px; height: 1500px; border: 0\" srcdoc=\"{page}\"></iframe>\
         <script>{}</script>",
        include_str!("measure.js")
    )
}

/// The findings in what the browser printed.
fn parse(dom: &str, scheme: &str) -> anyhow::Result<Vec<String>> {
    let found = dom.split("<pre id=\"found\">").nth(1).and_then(|rest| rest.split("</pre>").next());
    let found = found.context("the browser did not open the page")?;
    let text = found.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    let lines: Vec<&str> = text.lines().collect();
    match lines.as_slice() {
        ["begin", seen, findings @ .., "end"] if *seen == scheme => {
            Ok(findings.iter().map(|finding| (*finding).to_owned()).collect())
        }
        ["begin", seen, .., "end"] => bail!("the browser shows the page {seen}, not {scheme}"),
        _ => bail!("the page was not measured:\n{text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_read_from_what_the_browser_prints() {
        let dom = "<html><pre id=\"found\">begin\ndark\nwide: div &lt;a&gt;\nend</pre></html>";
        assert_eq!(parse(dom, "dark").unwrap(), ["wide: div <a>"]);
        assert!(parse(dom, "light").unwrap_err().to_string().contains("dark, not light"));
        let unmeasured = "<pre id=\"found\"></pre>";
        assert!(parse(unmeasured, "dark").unwrap_err().to_string().contains("not measured"));
        assert!(parse("", "dark").unwrap_err().to_string().contains("did not open"));
    }

    #[test]
    fn a_page_is_quoted_in_its_frame() {
        let framed = framed("<p class=\"a\">&lt;</p>", 400);
        assert!(framed.contains("srcdoc=\"<p class=&quot;a&quot;>&amp;lt;</p>\""), "{framed}");
        assert!(framed.contains("width: 400px"));
    }
}
