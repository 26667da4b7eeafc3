//! Charts as SVG: lines over an axis, and spans in rows. Both are as wide as a phone shows them,
//! and grow with the page. Colours and line styles come from the style sheet, by class.

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

/// What an axis shows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Axis {
    /// Values, from zero.
    Linear,
    /// Values, logarithmic.
    Log,
    /// Ratios, logarithmic, with a line at 1.
    Ratios,
}

/// A value of a line.
pub struct Mark {
    /// Its place on the axis.
    pub x: f64,
    /// The value.
    pub value: f64,
    /// The ends of its interval, or the two modes.
    pub ends: (f64, f64),
    /// Whether there are two modes instead of one value.
    pub two_modes: bool,
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
    kind: Axis,
    values: (f64, f64),
    places: (f64, f64),
}

impl Scale {
    fn new(kind: Axis, values: impl Iterator<Item = f64>, places: (f64, f64)) -> Self {
        let values = values.chain((kind == Axis::Ratios).then_some(1.0));
        let known = values.filter(|value| value.is_finite() && (kind == Axis::Linear || *value > 0.0));
        let (low, high) = known.fold((f64::INFINITY, 0.0_f64), |(low, high), v| (low.min(v), high.max(v)));
        let values = match kind {
            _ if high <= 0.0 => (0.5, 1.0),
            Axis::Linear => (0.0, high * 1.06),
            Axis::Log | Axis::Ratios => (low / 1.15, high * 1.15),
        };
        Self { kind, values, places }
    }

    fn at(&self, value: f64) -> f64 {
        let (low, high) = self.values;
        let part = match self.kind {
            Axis::Linear => (value - low) / (high - low),
            Axis::Log | Axis::Ratios => (value.max(low).ln() - low.ln()) / (high.ln() - low.ln()),
        };
        self.places.0 + (self.places.1 - self.places.0) * part.clamp(0.0, 1.0)
    }

    /// The ticks, their places and the classes of their lines.
    fn grid(&self) -> impl Iterator<Item = (f64, f64, &'static str)> {
        let class = |tick| if self.kind == Axis::Ratios && tick == 1.0 { "one" } else { "grid" };
        self.ticks().into_iter().map(move |tick| (tick, self.at(tick), class(tick)))
    }

    fn ticks(&self) -> Vec<f64> {
        let (low, high) = self.values;
        let decades = (high / low).log10();
        if self.kind == Axis::Linear || decades < 0.9 {
            let least = (high - low) / 4.0;
            let power = 10_f64.powf(least.log10().floor());
            let round = [1.0, 2.0, 5.0, 10.0].map(|m| m * power);
            let step = round.into_iter().find(|&step| step >= least).unwrap_or(least);
            let first = (low / step).ceil() as i64;
            return (first..first + 20).map(|i| i as f64 * step).take_while(|&v| v <= high).collect();
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

/// A drawing while it grows.
struct Svg(String);

impl Svg {
    fn new(bottom: f64) -> Self {
        Self(format!("<svg viewBox=\"0 0 {WIDTH} {}\" role=\"img\">", bottom + BOTTOM))
    }

    fn path(&mut self, class: &str, d: String) {
        self.0 += &format!("<path class=\"{class}\" d=\"{d}\"/>");
    }

    fn dot(&mut self, class: &str, x: f64, y: f64) {
        self.0 += &format!("<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"/>");
    }

    fn text(&mut self, class: &str, anchor: &str, (x, y): (f64, f64), text: &str) {
        let place = format!("text-anchor=\"{anchor}\" x=\"{x:.1}\" y=\"{y:.1}\"");
        self.0 += &format!("<text class=\"{class}\" {place}>{}</text>", escape(text));
    }

    /// What stands below the chart: labels, as far as they do not touch, and what they count.
    fn below(&mut self, y: f64, labels: impl Iterator<Item = (f64, String)>, axis: &str) {
        let mut free = 0.0;
        for (x, label) in labels {
            let half = text_width(&label) / 2.0;
            if x - half >= free && x + half <= WIDTH {
                self.text("tick", "middle", (x, y), &label);
                free = x + half + 5.0;
            }
        }
        self.text("tick", "middle", (WIDTH / 2.0, y + 16.0), axis);
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

/// Lines over places that lie at even distances. A dotted line stands at the number of CPUs.
pub fn lines(axis: &str, cpus: f64, kind: Axis, unit: fn(f64) -> String, series: &[Series]) -> String {
    let marks = || series.iter().flat_map(|series| &series.marks);
    let mut xs: Vec<f64> = marks().map(|mark| mark.x).collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    let values = marks().flat_map(|m| if m.two_modes { [m.ends.0, m.ends.1] } else { [m.value; 2] });
    let bottom = f64::max(HEIGHT, ROW * series.len() as f64 + BOTTOM + TOP) - BOTTOM;
    let y = Scale::new(kind, values, (bottom, TOP));
    let left = y.ticks().into_iter().map(|tick| 8.0 + text_width(&short(unit(tick)))).fold(8.0, f64::max);
    let names = series.iter().map(|series| text_width(&series.name)).fold(0.0, f64::max);
    let right = WIDTH - 14.0 - names;
    let x = |value: f64| {
        let at = xs.iter().position(|&x| x == value).unwrap_or(0) as f64;
        left + 10.0 + (right - left - 20.0) * if xs.len() > 1 { at / (xs.len() - 1) as f64 } else { 0.5 }
    };
    let mut svg = Svg::new(bottom);
    for (tick, at, class) in y.grid() {
        svg.path(class, format!("M{left:.1} {at:.1}H{right:.1}"));
        svg.text("tick", "end", (left - 4.0, at + 4.0), &short(unit(tick)));
    }
    let mut below = axis.to_owned();
    if xs.contains(&cpus) {
        svg.path("cpus", format!("M{:.1} {TOP}V{bottom}", x(cpus)));
        below += &format!("; dotted: {cpus}, the CPUs");
    }
    svg.below(bottom + 15.0, xs.iter().map(|&value| (x(value), value.to_string())), &below);
    for Series { name, class, marks } in series {
        svg.0 += &format!("<g class=\"s {class}\">");
        let places = marks.iter().map(|mark| format!("{:.1} {:.1}", x(mark.x), y.at(mark.value)));
        svg.path("line", format!("M{}", places.collect::<Vec<_>>().join("L")));
        for &Mark { x: at, value, ends: (low, high), two_modes } in marks {
            let (class, say) = if two_modes { ("hollow", "two modes: ") } else { ("dot", "") };
            let say = format!("{}, {at}: {} ({say}{} to {})", name, unit(value), unit(low), unit(high));
            svg.0 += &format!("<g><title>{}</title>", escape(&say));
            svg.path("whisker", format!("M{:.1} {:.1}V{:.1}", x(at), y.at(low), y.at(high)));
            let dots = if two_modes { vec![low, high] } else { vec![value] };
            dots.into_iter().for_each(|dot| svg.dot(class, x(at), y.at(dot)));
            svg.0 += "</g>";
        }
        svg.0 += "</g>";
    }
    let ends = series.iter().filter_map(|series| Some((series, series.marks.last()?)));
    let mut ends: Vec<_> = ends.map(|(series, mark)| (y.at(mark.value), x(mark.x) + 4.0, series)).collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let places = apart(&ends.iter().map(|end| end.0).collect::<Vec<_>>(), bottom);
    for ((at, from, Series { name, class, .. }), place) in ends.into_iter().zip(places) {
        svg.0 += &format!("<g class=\"s {class}\">");
        svg.path("lead", format!("M{from:.1} {at:.1}L{:.1} {place:.1}", right + 6.0));
        svg.text("name", "start", (right + 9.0, place + 4.0), name);
        svg.0 += "</g>";
    }
    svg.0 + "</svg>"
}

/// Spans in rows; a bar reaches from 1 to each ratio.
pub fn spans(axis: &str, kind: Axis, unit: fn(f64) -> String, rows: &[Span]) -> String {
    let of_subjects = || rows.iter().filter(|row| !row.class.is_empty());
    let values = of_subjects().flat_map(|row| [Some(row.ends.0), Some(row.ends.1), Some(row.at), row.bound]);
    let left = of_subjects().map(|row| 8.0 + text_width(&row.name)).fold(8.0, f64::max);
    let x = Scale::new(kind, values.flatten(), (left + 4.0, WIDTH - 8.0));
    let bottom = TOP + ROW * rows.len() as f64 + 4.0;
    let mut svg = Svg::new(bottom);
    x.grid().for_each(|(_, at, class)| svg.path(class, format!("M{at:.1} {TOP}V{bottom}")));
    svg.below(bottom + 14.0, x.grid().map(|(tick, at, _)| (at, short(unit(tick)))), axis);
    for (nth, Span { name, class, ends, at, ticks, bound }) in rows.iter().enumerate() {
        let y = TOP + ROW * (nth as f64 + 0.5);
        if class.is_empty() {
            svg.text("head", "start", (2.0, y + 4.0), name);
            continue;
        }
        svg.0 += &format!("<g class=\"s {class}\"><title>{}: {}</title>", escape(name), unit(*at));
        svg.text("name", "end", (left, y + 4.0), name);
        if kind == Axis::Ratios {
            svg.path("bar", format!("M{:.1} {y}H{:.1}", x.at(1.0), x.at(*at)));
        }
        svg.path("span", format!("M{:.1} {y}H{:.1}", x.at(ends.0), x.at(ends.1)));
        ticks.iter().for_each(|tick| svg.path("span", format!("M{:.1} {}v8", x.at(*tick), y - 4.0)));
        if let Some(bound) = bound {
            svg.path("bound", format!("M{:.1} {}v{ROW}", x.at(*bound), y - ROW / 2.0));
        }
        svg.dot("dot", x.at(*at), y);
        svg.0 += "</g>";
    }
    svg.0 + "</svg>"
}
