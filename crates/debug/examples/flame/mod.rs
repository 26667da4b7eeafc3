//! A flame graph of folded stacks, as an SVG without scripts.
//!
//! A row is a level of the stacks, the first one at the top. A frame is as wide as the time of all
//! stacks that begin with it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

const WIDTH: f64 = 1200.0;
const ROW: usize = 24;
/// The width of a character of the font.
const CHARACTER: f64 = 7.3;
const COLOURS: [&str; 4] = ["#dde", "#fd9", "#fb8", "#f98"];

#[derive(Default)]
struct Frame {
    nanos: u64,
    above: BTreeMap<String, Frame>,
}

impl Frame {
    fn depth(&self) -> usize {
        1 + self.above.values().map(Frame::depth).max().unwrap_or(0)
    }
}

/// Draws lines `frame;frame;frame nanoseconds`, below a frame for all that is called `title`.
pub fn svg(title: &str, folded: &str) -> String {
    let mut all = Frame::default();
    for line in folded.lines() {
        let (stack, nanos) = line.rsplit_once(' ').expect("a line has a number");
        let nanos: u64 = nanos.parse().expect("nanoseconds");
        let mut frame = &mut all;
        frame.nanos += nanos;
        for name in stack.split(';') {
            frame = frame.above.entry(name.to_owned()).or_default();
            frame.nanos += nanos;
        }
    }
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {}\" font-family=\"monospace\" \
         font-size=\"12\">\n",
        all.depth() * ROW
    );
    draw(&mut out, title, &all, 0, 0.0, WIDTH / all.nanos.max(1) as f64);
    out + "</svg>\n"
}

/// Draws a frame at the level `row` from `x` on, and those above it.
fn draw(out: &mut String, name: &str, frame: &Frame, row: usize, x: f64, scale: f64) {
    let width = frame.nanos as f64 * scale;
    let name = name.replace('&', "&amp;").replace('<', "&lt;");
    let time = Duration::from_micros(frame.nanos / 1000);
    let label = format!("{name}, {time:?}");
    // Of a path the last name, and of what does not fit the beginning.
    let words = label.split(' ').map(|word| word.rsplit('/').next().unwrap_or(word));
    let text: String =
        words.collect::<Vec<_>>().join(" ").chars().take((width / CHARACTER) as usize).collect();
    let (y, colour) = (row * ROW, COLOURS[row % COLOURS.len()]);
    writeln!(
        out,
        "<g><title>{label}</title><rect x=\"{x:.1}\" y=\"{y}\" width=\"{width:.1}\" height=\"{}\" \
         fill=\"{colour}\" stroke=\"#fff\"/><text x=\"{:.1}\" y=\"{}\" fill=\"#222\">{text}</text></g>",
        ROW - 1,
        x + 4.0,
        y + 16
    )
    .expect("a string takes all");
    let mut x = x;
    for (name, above) in &frame.above {
        draw(out, name, above, row + 1, x, scale);
        x += above.nanos as f64 * scale;
    }
}
