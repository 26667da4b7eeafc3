//! A story as a page that one can send: a lane for each thread, and an arrow from each store to the
//! reads of it by other threads.
//!
//! The page needs nothing but itself: no script, no font, no picture from elsewhere. It follows the
//! reader's choice of light or dark. All text of the model is escaped.

use super::Failure;
use super::story::{Line, Said, Story, place_of};
use core::fmt;
use core::fmt::Write as _;
use core::panic::Location;
use std::collections::HashMap;
use std::env;

/// Of the picture, in pixels.
const LANE: usize = 300;
const ROW: usize = 40;
const LEFT: usize = 56;
const TOP: usize = 56;
/// Characters of a step that a lane has room for; the whole text is shown where the pointer is.
const SHORT: usize = 38;

const STYLE: &str = "\
:root { color-scheme: light dark; --text: #1c1c1c; --back: #ffffff; --lane: #c9c9c9; --box: #f1f3f5; \
--edge: #8a8f98; --reads: #0b62c4; --old: #b3261e; --faint: #5f6570; }
@media (prefers-color-scheme: dark) { :root { --text: #e8e8e8; --back: #16181c; --lane: #4a4e57; \
--box: #24272d; --edge: #7c828e; --reads: #6cb0ff; --old: #ff8a80; --faint: #a2a8b4; } }
body { font: 15px/1.45 system-ui, sans-serif; color: var(--text); background: var(--back); margin: 24px; }
h1 { font-size: 20px; } h2 { font-size: 17px; } pre, code, text { font-family: ui-monospace, monospace; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; }
.picture { overflow-x: auto; }
svg { display: block; } svg text { font-size: 11px; fill: var(--text); } svg .head { font-size: 13px; font-weight: 600; }
.lane { stroke: var(--lane); } .step { fill: var(--box); stroke: var(--edge); } svg .faint { fill: var(--faint); }
.arrow { fill: none; stroke: var(--reads); stroke-width: 1.5; } .old { stroke: var(--old); stroke-dasharray: 5 3; }
.tip { fill: var(--reads); } .tip-old { fill: var(--old); } .worst { stroke: var(--old); stroke-width: 2; }
";

/// The story as a picture; a part of a page.
#[derive(Clone)]
pub(super) struct Picture(pub(super) String);

impl fmt::Debug for Picture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Picture(..)")
    }
}

impl Failure {
    /// The failure as an HTML page of its own: a lane for each thread, and an arrow from each store
    /// to the reads of it by other threads. It needs no other file, and has no script.
    #[must_use]
    pub fn html(&self) -> String {
        let execution = format!("At execution {} ({}).", self.execution, self.config);
        page(&self.verdict.to_string(), &execution, &self.replay, &self.picture.0)
    }

    /// Writes the page to the directory that `ULOCKS_VM_HTML` names, if there is one, under the
    /// name of the exploration that was begun at `at`. Where it is.
    pub(super) fn publish(&self, at: &Location<'_>) -> Option<String> {
        let directory = env::var_os("ULOCKS_VM_HTML")?;
        let name = place_of(at).replace(['/', ':', '\\'], "-");
        let path = std::path::Path::new(&directory).join(format!("{name}.html"));
        let written = std::fs::create_dir_all(&directory).and_then(|()| std::fs::write(&path, self.html()));
        Some(match written {
            Ok(()) => format!("as a page: {}", path.display()),
            Err(error) => format!("ULOCKS_VM_HTML={}: {error}", directory.display()),
        })
    }
}

/// `text` where it cannot be mistaken for a part of the page.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // Not allowed in a page, and in no message that is meant to be read.
            c if c.is_control() && c != '\n' && c != '\t' => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

/// The picture of a story, and where its words come from.
pub(super) fn picture(story: &Story) -> String {
    let places = story.places();
    let (left_out, lines) = story.told();
    let threads = lines.iter().map(|line| line.thread + 1).max().unwrap_or(0);
    let (width, height) = (LEFT + threads * LANE, TOP + lines.len() * ROW + 8);
    let mut page = String::new();
    if left_out > 0 {
        let _ = writeln!(page, "<p>{left_out} steps before these are left out.</p>");
    }
    let _ = writeln!(
        page,
        "<div class=\"picture\"><svg role=\"img\" aria-label=\"the steps of each thread\" width=\"{width}\" \
         height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n<defs>{}{}</defs>",
        tip("tip"),
        tip("tip-old")
    );
    for thread in 0..threads {
        let x = lane(thread);
        let _ = writeln!(
            page,
            "<text class=\"head\" x=\"{x}\" y=\"24\">thread {thread}</text>\
             <line class=\"lane\" x1=\"{x}\" y1=\"36\" x2=\"{x}\" y2=\"{height}\"/>"
        );
    }
    for (row, line) in lines.iter().enumerate() {
        let (text, place) = (story.text(line, &places), line.at.map_or_else(String::new, |at| places.of(at)));
        step(&mut page, row, line, &text, &place);
    }
    page.push_str(&arrows(&lines));
    page.push_str("</svg></div>\n<h2>Words</h2>\n<ul>\n");
    for origin in story.origins(&places) {
        let _ = writeln!(page, "<li>{}</li>", escape(&origin));
    }
    page.push_str("</ul>\n");
    page
}

/// The whole page, around a picture.
fn page(verdict: &str, execution: &str, replay: &str, picture: &str) -> String {
    let title = escape(verdict.lines().next().unwrap_or_default());
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<h1>What went wrong</h1>\n<pre>{}</pre>\n<p>{}</p>\n\
         <p>An arrow leads from a store to a read of it by another thread. A dashed one is a read of a \
         value that is not the newest.</p>\n{picture}<h2>To repeat it</h2>\n\
         <pre>ULOCKS_VM_REPLAY={}</pre>\n</body>\n</html>\n",
        escape(verdict),
        escape(execution),
        escape(replay),
    )
}

fn lane(thread: usize) -> usize {
    LEFT + thread * LANE
}

fn middle(row: usize) -> usize {
    TOP + row * ROW + ROW / 2
}

fn tip(class: &str) -> String {
    format!(
        "<marker id=\"{class}\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" \
         orient=\"auto\"><path class=\"{class}\" d=\"M0 0 L8 4 L0 8 z\"/></marker>"
    )
}

fn step(page: &mut String, row: usize, line: &Line, text: &str, place: &str) {
    let (x, y) = (lane(line.thread), middle(row));
    let short: String = match text.char_indices().nth(SHORT) {
        Some((index, _)) => format!("{}\u{2026}", &text[..index]),
        None => text.to_owned(),
    };
    let worst = if line.at.is_none() { " worst" } else { "" };
    let _ = writeln!(
        page,
        "<g><title>{}</title><rect class=\"step{worst}\" x=\"{x}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"4\"/>\
         <text class=\"faint\" x=\"4\" y=\"{}\">{}</text><text x=\"{}\" y=\"{}\">{}</text>\
         <text class=\"faint\" x=\"{}\" y=\"{}\">{}</text></g>",
        escape(&format!("{text}\n{place}")),
        y - ROW / 2 + 2,
        LANE - 24,
        ROW - 4,
        y + 4,
        line.step,
        x + 6,
        y - 3,
        escape(&short),
        x + 6,
        y + 11,
        escape(place),
    );
}

/// What was read from whom, where the store is among the steps.
fn arrows(lines: &[&Line]) -> String {
    let mut writers = HashMap::new();
    let mut arrows = String::new();
    for (row, line) in lines.iter().enumerate() {
        if let Said::Load { seen, .. } | Said::Update { seen, .. } = &line.said
            && let Some(&(from, writer)) = writers.get(&seen.message)
            && writer != line.thread
        {
            let (class, tip) = if seen.newer > 0 { ("arrow old", "tip-old") } else { ("arrow", "tip") };
            // From the side of one box that is towards the other, to that box.
            let right = lane(writer) < lane(line.thread);
            let (x1, x2) = match right {
                true => (lane(writer) + LANE - 24, lane(line.thread)),
                false => (lane(writer), lane(line.thread) + LANE - 24),
            };
            let (y1, y2, half) = (middle(from), middle(row), x1.midpoint(x2));
            let _ = writeln!(
                arrows,
                "<path class=\"{class}\" marker-end=\"url(#{tip})\" d=\"M{x1} {y1} C{half} {y1} {half} {y2} {x2} {y2}\"/>"
            );
        }
        if let Said::Store { message, .. } | Said::Update { after: Some((message, _)), .. } = &line.said {
            writers.insert(*message, (row, line.thread));
        }
    }
    arrows
}
