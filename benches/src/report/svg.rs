//! Charts as SVG: lines over an axis, and spans in rows. Both are as wide as a phone shows them,
//! and grow with the page. Colours and line styles come from the style sheet, by class.

use std::fmt::Write;

/// The width of a chart in its own units.
pub const WIDTH: f64 = 400.0;
/// The height of letters, and of a row of text.
pub const SIZE: f64 = 11.0;
const ROW: f64 = 15.0;
const HEIGHT: f64 = 250.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 38.0;

/// Escapes text for XML.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// How wide a text is at most, in the widest of the fonts that the page asks for.
pub fn text_width(text: &str) -> f64 {
    let of = |letter: char| match letter {
        'i' | 'j' | 'l' | '.' | ',' | ':' | '|' | '\'' | ' ' | 'I' | '(' | ')' | '/' | '-' => 0.40,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 1.0,
        'A'..='Z' => 0.74,
        _ => 0.64,
    };
    SIZE * text.chars().map(of).sum::<f64>()
}

/// A value of a line.
#[derive(Clone, Debug)]
pub struct Mark {
    /// Its place on the axis.
    pub x: f64,
    /// The value.
    pub value: f64,
    /// The ends of its interval.
    pub band: (f64, f64),
    /// Two modes instead of one value.
    pub modes: Option<(f64, f64)>,
}

/// The line of a subject.
pub struct Series {
    /// Its name.
    pub name: String,
    /// Its class in the style sheet.
    pub class: String,
    /// Its values by ascending place.
    pub marks: Vec<Mark>,
}

/// A row of a chart of spans.
#[derive(Clone, Debug, Default)]
pub struct Span {
    /// A subject's name; or, without a class, what the rows below have in common.
    pub name: String,
    /// Its class in the style sheet.
    pub class: String,
    /// Whether a bar reaches from 1 to the value.
    pub is_ratio: bool,
    /// The ends.
    pub ends: (f64, f64),
    /// The value.
    pub at: f64,
    /// Places between the ends.
    pub ticks: Vec<f64>,
    /// What the span is held against.
    pub bound: Option<f64>,
}

/// A scale from values to places.
struct Scale {
    values: (f64, f64),
    places: (f64, f64),
    log: bool,
}

impl Scale {
    fn new(values: impl Iterator<Item = f64>, places: (f64, f64), log: bool) -> Self {
        let known = values.filter(|value| value.is_finite() && (!log || *value > 0.0));
        let (low, high) = known.fold((f64::INFINITY, 0.0_f64), |(low, high), v| (low.min(v), high.max(v)));
        let values = match (low.is_finite() && high > 0.0, log) {
            (false, _) => (0.5, 1.0),
            (true, true) => (low / 1.15, high * 1.15),
            (true, false) => (0.0, high * 1.06),
        };
        Self { values, places, log }
    }

    fn at(&self, value: f64) -> f64 {
        let (low, high) = self.values;
        let part = match self.log {
            true => (value.max(low).ln() - low.ln()) / (high.ln() - low.ln()),
            false => (value - low) / (high - low),
        };
        self.places.0 + (self.places.1 - self.places.0) * part.clamp(0.0, 1.0)
    }

    fn ticks(&self) -> Vec<f64> {
        let (low, high) = self.values;
        let steps = |count: f64| {
            let raw = (high - low) / count;
            let power = 10_f64.powf(raw.log10().floor());
            let step =
                [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|&s| s >= raw).unwrap_or(raw);
            let first = (low / step).ceil() as i64;
            (first..first + 20).map(|i| i as f64 * step).take_while(|&v| v <= high).collect()
        };
        let decades = (high / low).log10();
        if !self.log || decades < 0.9 {
            return steps(4.0);
        }
        let each: &[f64] = match decades {
            d if d < 2.0 => &[1.0, 2.0, 5.0],
            d if d < 3.0 => &[1.0, 3.0],
            _ => &[1.0],
        };
        let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
        let powers = powers.step_by(if decades > 6.0 { 2 } else { 1 });
        powers
            .flat_map(|power| each.iter().map(move |m| m * 10_f64.powi(power)))
            .filter(|value| (low..=high).contains(value))
            .collect()
    }
}

/// A tick's label without digits that say nothing.
fn short(label: String) -> String {
    let end = label.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(label.len());
    let (number, unit) = label.split_at(end);
    let number =
        if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number };
    format!("{number}{unit}")
}

fn text(svg: &mut String, class: &str, anchor: &str, (x, y): (f64, f64), text: &str) {
    write!(
        svg,
        "<text class=\"{class}\" text-anchor=\"{anchor}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>",
        escape(text)
    )
    .unwrap();
}

/// Labels along a horizontal axis, as far as they do not touch.
fn along(svg: &mut String, y: f64, labels: impl Iterator<Item = (f64, String)>) {
    let mut free = 0.0;
    for (x, label) in labels {
        let half = text_width(&label) / 2.0;
        if x - half >= free && x + half <= WIDTH {
            text(svg, "tick", "middle", (x, y), &label);
            free = x + half + 5.0;
        }
    }
}

/// Places of names, pushed apart so that none covers another, and none leaves the chart.
fn apart(wanted: &[f64], limit: f64) -> Vec<f64> {
    let mut places: Vec<f64> = Vec::with_capacity(wanted.len());
    for &y in wanted {
        places.push(places.last().map_or(y, |last: &f64| y.max(last + ROW)));
    }
    let mut limit = limit;
    for place in places.iter_mut().rev() {
        *place = place.min(limit);
        limit = *place - ROW;
    }
    places
}

/// What stands on the vertical axis.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Axis {
    /// Values, from zero.
    Linear,
    /// Values, logarithmic.
    Log,
    /// Ratios, logarithmic, with a line at 1.
    Ratios,
}

/// Lines over places that lie at even distances. A dotted line stands at the number of CPUs.
pub fn lines(axis: &str, cpus: f64, kind: Axis, unit: fn(f64) -> String, series: &[Series]) -> String {
    let (log, ratios) = (kind != Axis::Linear, kind == Axis::Ratios);
    let marks = || series.iter().flat_map(|series| &series.marks);
    let mut xs: Vec<f64> = marks().map(|mark| mark.x).collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    let values = marks().flat_map(|mark| mark.modes.map_or([mark.value; 2], |(slow, fast)| [slow, fast]));
    let bottom = f64::max(HEIGHT, ROW * series.len() as f64 + BOTTOM + TOP) - BOTTOM;
    let y = Scale::new(values.chain(ratios.then_some(1.0)), (bottom, TOP), log);
    let widest = |widths: &mut dyn Iterator<Item = f64>| widths.fold(0.0, f64::max);
    let left = 8.0 + widest(&mut y.ticks().into_iter().map(|tick| text_width(&short(unit(tick)))));
    let right = WIDTH - 14.0 - widest(&mut series.iter().map(|series| text_width(&series.name)));
    let x = |value: f64| {
        let at = xs.iter().position(|&x| x == value).unwrap_or(0) as f64;
        left + 10.0 + (right - left - 20.0) * if xs.len() > 1 { at / (xs.len() - 1) as f64 } else { 0.5 }
    };
    let mut svg = format!("<svg viewBox=\"0 0 {WIDTH} {}\" role=\"img\">", bottom + BOTTOM);
    for tick in y.ticks() {
        let class = if ratios && tick == 1.0 { "one" } else { "grid" };
        write!(svg, "<path class=\"{class}\" d=\"M{left:.1} {:.1}H{right:.1}\"/>", y.at(tick)).unwrap();
        text(&mut svg, "tick", "end", (left - 4.0, y.at(tick) + 4.0), &short(unit(tick)));
    }
    if xs.contains(&cpus) {
        write!(svg, "<path class=\"cpus\" d=\"M{:.1} {TOP}V{bottom}\"/>", x(cpus)).unwrap();
    }
    along(&mut svg, bottom + 15.0, xs.iter().map(|&value| (x(value), value.to_string())));
    let at_cpus = if xs.contains(&cpus) { format!("{axis}; dotted: {cpus}, the CPUs") } else { axis.into() };
    text(&mut svg, "tick", "middle", (WIDTH / 2.0, bottom + 31.0), &at_cpus);
    for Series { name, class, marks } in series {
        write!(svg, "<g class=\"s {class}\">").unwrap();
        let places = marks.iter().map(|mark| format!("{:.1} {:.1}", x(mark.x), y.at(mark.value)));
        write!(svg, "<path class=\"line\" d=\"M{}\"/>", places.collect::<Vec<_>>().join("L")).unwrap();
        for Mark { x: at, value, band: (low, high), modes } in marks {
            let (cx, name) = (x(*at), escape(name));
            let (ends, dots, say) = match modes {
                Some((slow, fast)) => ((*slow, *fast), vec![*slow, *fast], "two modes"),
                None => ((*low, *high), vec![*value], "95 %"),
            };
            let say = format!("{name}, {at}: {} ({say}: {} to {})", unit(*value), unit(ends.0), unit(ends.1));
            let (a, b) = (y.at(ends.0), y.at(ends.1));
            write!(svg, "<g><title>{say}</title><path class=\"whisker\" d=\"M{cx:.1} {a:.1}V{b:.1}\"/>")
                .unwrap();
            let class = if modes.is_some() { "hollow" } else { "dot" };
            for dot in dots {
                write!(svg, "<circle class=\"{class}\" cx=\"{cx:.1}\" cy=\"{:.1}\" r=\"3\"/>", y.at(dot))
                    .unwrap();
            }
            svg.push_str("</g>");
        }
        svg.push_str("</g>");
    }
    let mut ends: Vec<(f64, f64, &Series)> = series
        .iter()
        .filter_map(|series| series.marks.last().map(|mark| (y.at(mark.value), x(mark.x), series)))
        .collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let places = apart(&ends.iter().map(|end| end.0).collect::<Vec<_>>(), bottom);
    for ((at, from, series), place) in ends.into_iter().zip(places) {
        write!(svg, "<g class=\"s {}\">", series.class).unwrap();
        let (from, to) = (from + 4.0, right + 6.0);
        write!(svg, "<path class=\"lead\" d=\"M{from:.1} {at:.1}L{to:.1} {place:.1}\"/>").unwrap();
        text(&mut svg, "name", "start", (right + 9.0, place + 4.0), &series.name);
        svg.push_str("</g>");
    }
    svg + "</svg>"
}

/// Spans in rows on a logarithmic axis.
pub fn spans(axis: &str, unit: fn(f64) -> String, rows: &[Span]) -> String {
    let of_subjects = || rows.iter().filter(|row| !row.class.is_empty());
    let ratios = rows.iter().any(|row| row.is_ratio);
    let values = of_subjects().flat_map(|row| [Some(row.ends.0), Some(row.ends.1), Some(row.at), row.bound]);
    let left = of_subjects().map(|row| 8.0 + text_width(&row.name)).fold(8.0, f64::max);
    let x = Scale::new(values.flatten().chain(ratios.then_some(1.0)), (left + 4.0, WIDTH - 8.0), true);
    let bottom = TOP + ROW * rows.len() as f64 + 4.0;
    let mut svg = format!("<svg viewBox=\"0 0 {WIDTH} {}\" role=\"img\">", bottom + BOTTOM);
    for tick in x.ticks() {
        let class = if ratios && tick == 1.0 { "one" } else { "grid" };
        write!(svg, "<path class=\"{class}\" d=\"M{:.1} {TOP}V{bottom}\"/>", x.at(tick)).unwrap();
    }
    along(&mut svg, bottom + 14.0, x.ticks().into_iter().map(|tick| (x.at(tick), short(unit(tick)))));
    text(&mut svg, "tick", "middle", (WIDTH / 2.0, bottom + 30.0), axis);
    for (nth, Span { name, class, is_ratio, ends, at, ticks, bound }) in rows.iter().enumerate() {
        let y = TOP + ROW * (nth as f64 + 0.5);
        if class.is_empty() {
            text(&mut svg, "head", "start", (2.0, y + 4.0), name);
            continue;
        }
        write!(svg, "<g class=\"s {class}\"><title>{}: {}</title>", escape(name), unit(*at)).unwrap();
        text(&mut svg, "name", "end", (left, y + 4.0), name);
        let mut path = |class: &str, d: String| write!(svg, "<path class=\"{class}\" d=\"{d}\"/>").unwrap();
        if *is_ratio {
            path("bar", format!("M{:.1} {y}H{:.1}", x.at(1.0), x.at(*at)));
        }
        path("span", format!("M{:.1} {y}H{:.1}", x.at(ends.0), x.at(ends.1)));
        ticks.iter().for_each(|tick| path("span", format!("M{:.1} {}v8", x.at(*tick), y - 4.0)));
        bound.iter().for_each(|bound| path("bound", format!("M{:.1} {}v{ROW}", x.at(*bound), y - ROW / 2.0)));
        write!(svg, "<circle class=\"dot\" cx=\"{:.1}\" cy=\"{y}\" r=\"3\"/></g>", x.at(*at)).unwrap();
    }
    svg + "</svg>"
}
