//! A line plot as an SVG fragment: thread counts, or other counts, on a logarithmic axis, a mark at
//! the CPU count, one line with a band for each lock, names at the right end. Colours and line
//! styles come from the page's style sheet, by class.

use std::fmt::Write;

const WIDTH: f64 = 520.0;
const HEIGHT: f64 = 340.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 122.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 38.0;
/// Distance of two names at the right end.
const LINE: f64 = 13.0;

/// A plot to draw.
pub struct Plot<'a> {
    /// What is plotted; also the title for screen readers.
    pub title: String,
    /// What is counted on the horizontal axis.
    pub axis: &'static str,
    /// Thread counts, ascending.
    pub threads: &'a [u32],
    /// Where to draw the mark; 0 for none.
    pub cpus: u32,
    /// Whether the vertical axis is logarithmic.
    pub log: bool,
    /// How a value is written.
    pub unit: fn(f64) -> String,
    /// The lines.
    pub series: Vec<Series<'a>>,
}

/// One lock's line.
pub struct Series<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its class in the style sheet.
    pub class: String,
    /// Its values by ascending thread count; a count without a value is left out.
    pub points: Vec<Mark>,
}

/// One value.
pub struct Mark {
    /// Thread count.
    pub threads: u32,
    /// The value.
    pub value: f64,
    /// The ends of its interval.
    pub band: (f64, f64),
    /// Two modes instead of one value.
    pub modes: Option<(f64, f64)>,
}

/// Escapes text for XML.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

struct Axes {
    threads: (f64, f64),
    values: (f64, f64),
    log: bool,
}

impl Axes {
    fn of(plot: &Plot) -> Self {
        let ends = (plot.threads.first().copied().unwrap_or(1), plot.threads.last().copied().unwrap_or(1));
        let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
        for mark in plot.series.iter().flat_map(|s| &s.points) {
            let (a, b) = mark.modes.unwrap_or((mark.value, mark.value));
            (low, high) = (low.min(a), high.max(b));
            // A band of few rounds may be huge; it is clipped rather than allowed to flatten
            // everything else.
            if mark.band.1 < 1.5 * mark.value && !plot.log {
                high = high.max(mark.band.1);
            }
        }
        if !low.is_finite() || high <= 0.0 {
            (low, high) = (0.5, 1.0);
        }
        let values = if plot.log { (low.max(1e-9) / 1.3, high * 1.3) } else { (0.0, high * 1.06) };
        Self { threads: (f64::from(ends.0).log2(), f64::from(ends.1).log2()), values, log: plot.log }
    }

    fn x(&self, threads: u32) -> f64 {
        let (low, high) = self.threads;
        let span = WIDTH - LEFT - RIGHT - 16.0;
        if high <= low {
            return LEFT + 8.0 + span / 2.0;
        }
        LEFT + 8.0 + span * (f64::from(threads.max(1)).log2() - low) / (high - low)
    }

    fn y(&self, value: f64) -> f64 {
        let (low, high) = self.values;
        let part = if self.log {
            (value.max(low).ln() - low.ln()) / (high.ln() - low.ln())
        } else {
            (value - low) / (high - low)
        };
        HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * part.clamp(0.0, 1.0)
    }

    fn ticks(&self) -> Vec<f64> {
        let (low, high) = self.values;
        if !self.log {
            let raw = (high - low) / 5.0;
            let power = 10_f64.powf(raw.log10().floor());
            let step =
                [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|&s| s >= raw).unwrap_or(raw);
            return (0..).map(|i| f64::from(i) * step).take_while(|&v| v <= high).collect();
        }
        let decades = (high / low).log10();
        let steps: &[f64] = match decades {
            d if d < 1.5 => &[1.0, 2.0, 5.0],
            d if d < 3.0 => &[1.0, 3.0],
            _ => &[1.0],
        };
        (low.log10().floor() as i32..=high.log10().ceil() as i32)
            .flat_map(|e| steps.iter().map(move |m| m * 10_f64.powi(e)))
            .filter(|v| (low..=high).contains(v))
            .collect()
    }
}

/// Draws a plot.
pub fn draw(plot: &Plot) -> String {
    let axes = Axes::of(plot);
    let mut svg = String::new();
    let title = escape(&plot.title);
    write!(svg, "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\">").unwrap();
    write!(svg, "<text class=\"title\" x=\"{LEFT}\" y=\"16\">{title}</text>").unwrap();
    frame(&mut svg, plot, &axes);
    for (index, series) in plot.series.iter().enumerate() {
        // Two modes of several locks stand side by side.
        let aside = 2.4 * (index as f64 - (plot.series.len() - 1) as f64 / 2.0);
        line(&mut svg, plot, &axes, series, aside);
    }
    names(&mut svg, plot, &axes);
    svg.push_str("</svg>");
    svg
}

fn frame(svg: &mut String, plot: &Plot, axes: &Axes) {
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    svg.push_str("<g class=\"axis\">");
    for value in axes.ticks() {
        let y = axes.y(value);
        write!(svg, "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{right}\"/>").unwrap();
        let label = escape(&short((plot.unit)(value)));
        write!(svg, "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>", LEFT - 6.0, y + 4.0)
            .unwrap();
    }
    let mut free = f64::NEG_INFINITY;
    for &threads in plot.threads {
        let x = axes.x(threads);
        write!(svg, "<path class=\"grid\" d=\"M{x:.1} {bottom}v5\"/>").unwrap();
        let room = 5.0 + 4.0 * threads.to_string().len() as f64;
        if x - room >= free {
            write!(svg, "<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{threads}</text>", bottom + 17.0)
                .unwrap();
            free = x + room;
        }
    }
    let middle = (LEFT + right) / 2.0;
    write!(svg, "<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{}</text>", HEIGHT - 5.0, plot.axis)
        .unwrap();
    let ends = (plot.threads.first().copied().unwrap_or(1), plot.threads.last().copied().unwrap_or(1));
    if (ends.0..=ends.1).contains(&plot.cpus) {
        let x = axes.x(plot.cpus);
        write!(svg, "<path class=\"cpus\" d=\"M{x:.1} {TOP}V{bottom}\"/>").unwrap();
        let plural = if plot.cpus == 1 { "CPU" } else { "CPUs" };
        write!(
            svg,
            "<text class=\"cpus\" x=\"{:.1}\" y=\"{}\">{} {plural}</text>",
            x + 4.0,
            TOP + 10.0,
            plot.cpus
        )
        .unwrap();
    }
    svg.push_str("</g>");
}

/// A tick's label without digits that say nothing.
fn short(label: String) -> String {
    let end = label.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(label.len());
    let (number, unit) = label.split_at(end);
    let number =
        if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number };
    format!("{number}{unit}")
}

fn line(svg: &mut String, plot: &Plot, axes: &Axes, series: &Series, aside: f64) {
    write!(svg, "<g class=\"s {}\">", series.class).unwrap();
    let upper = series.points.iter().map(|m| (axes.x(m.threads), axes.y(m.band.1)));
    let lower = series.points.iter().rev().map(|m| (axes.x(m.threads), axes.y(m.band.0)));
    let outline: Vec<String> = upper.chain(lower).map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    if series.points.len() > 1 {
        write!(svg, "<polygon class=\"band\" points=\"{}\"/>", outline.join(" ")).unwrap();
        let path: Vec<String> = series
            .points
            .iter()
            .map(|m| format!("{:.1},{:.1}", axes.x(m.threads), axes.y(m.value)))
            .collect();
        write!(svg, "<polyline class=\"line\" points=\"{}\"/>", path.join(" ")).unwrap();
    }
    for mark in &series.points {
        let x = axes.x(mark.threads);
        let who = format!("{}, {} {}", escape(series.name), mark.threads, plot.axis);
        if let Some((slow, fast)) = mark.modes {
            let (x, a, b) = (x + aside, axes.y(slow), axes.y(fast));
            let say = escape(&format!("two modes, {} and {}", (plot.unit)(slow), (plot.unit)(fast)));
            write!(
                svg,
                "<g><title>{who}: {say}</title><path class=\"line modes\" d=\"M{x:.1} {a:.1}V{b:.1}\"/>"
            )
            .unwrap();
            for y in [a, b] {
                write!(svg, "<circle class=\"hollow\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\"/>").unwrap();
            }
            svg.push_str("</g>");
            continue;
        }
        let unit = plot.unit;
        let say = escape(&format!("{} ({} to {})", unit(mark.value), unit(mark.band.0), unit(mark.band.1)));
        let y = axes.y(mark.value);
        write!(
            svg,
            "<circle class=\"dot\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"><title>{who}: {say}</title></circle>"
        )
        .unwrap();
    }
    svg.push_str("</g>");
}

/// Names at the right end, pushed apart so that none covers another.
fn names(svg: &mut String, plot: &Plot, axes: &Axes) {
    let mut ends: Vec<(f64, f64, &Series)> = plot
        .series
        .iter()
        .filter_map(|s| s.points.last().map(|m| (axes.x(m.threads), axes.y(m.value), s)))
        .collect();
    ends.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut places: Vec<f64> = Vec::with_capacity(ends.len());
    for (_, y, _) in &ends {
        places.push(places.last().map_or(*y, |last| y.max(last + LINE)));
    }
    let mut limit = HEIGHT - BOTTOM + 4.0;
    for place in places.iter_mut().rev() {
        *place = place.min(limit);
        limit = *place - LINE;
    }
    let x = WIDTH - RIGHT + 12.0;
    for ((from, y, series), place) in ends.into_iter().zip(places) {
        write!(
            svg,
            "<g class=\"s {}\"><path class=\"lead\" d=\"M{:.1} {y:.1}L{:.1} {place:.1}\"/>\
             <text class=\"name\" x=\"{x}\" y=\"{:.1}\">{}</text></g>",
            series.class,
            from + 5.0,
            x - 3.0,
            place + 4.0,
            escape(series.name)
        )
        .unwrap();
    }
}
