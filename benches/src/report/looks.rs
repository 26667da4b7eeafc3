//! The looks of lines: a subject keeps its colour and dashes on all charts of a page, and no two
//! subjects of a chart look alike.

use crate::engine::cell::{Kind, Subject};
use std::fmt::Write;

/// A line's look: colour in the light scheme, colour in the dark scheme, dashes.
pub type Look = (&'static str, &'static str, &'static str);

/// The family's looks, then those of peers, then that of no lock at all.
pub const LOOKS: [Look; 13] = [
    ("#e10000", "#ff4b0f", "none"),
    ("#965a00", "#ffb40f", "none"),
    ("#008700", "#00ff3c", "none"),
    ("#d20087", "#ff2d87", "none"),
    ("#5a0f78", "#ffb4f0", "none"),
    ("#2d3c00", "#e1ff00", "none"),
    ("#0069ff", "#1e87ff", "6 3"),
    ("#007878", "#00ffc3", "2 2"),
    ("#c300e1", "#f000ff", "9 3 2 3"),
    ("#0069b4", "#00a5c3", "3 3"),
    ("#4b2d3c", "#c3785a", "12 3"),
    ("#0000ff", "#69962d", "5 2 1 2"),
    ("#646c76", "#98a1ab", "1 4"),
];
/// Looks of the family, and of peers.
pub const EACH: usize = 6;

/// The subjects of a page that have a look, in the order in which they came.
#[derive(Default)]
pub struct Looks([Vec<String>; 2]);

impl Looks {
    /// The classes of subjects that stand in one chart, at most [`EACH`] of the family and as many
    /// peers.
    pub fn classes(&mut self, subjects: &[&Subject]) -> Vec<String> {
        let mut taken = [false; LOOKS.len()];
        let mut class = |Subject { name, kind, .. }: &&Subject| {
            if *kind == Kind::Baseline {
                return format!("c{}", 2 * EACH);
            }
            let (known, first) = (&mut self.0[*kind as usize], *kind as usize * EACH);
            let at = known.iter().position(|known| known == name).unwrap_or(known.len());
            if at == known.len() {
                known.push(name.clone());
            }
            let free = (at..at + EACH).map(|at| first + at % EACH).find(|&look| !taken[look]);
            let look = free.unwrap_or(first + at % EACH);
            taken[look] = true;
            format!("c{look}")
        };
        subjects.iter().map(&mut class).collect()
    }
}

/// The style of all looks.
pub fn style() -> String {
    let (mut light, mut dark) = (String::new(), String::new());
    for (at, (day, night, dashes)) in LOOKS.iter().enumerate() {
        let width = if at < EACH { 2.6 } else { 1.6 };
        writeln!(light, ".c{at} {{ --c: {day}; --d: {dashes}; --w: {width} }}").unwrap();
        writeln!(dark, "  .c{at} {{ --c: {night} }}").unwrap();
    }
    format!("{light}@media (prefers-color-scheme: dark) {{\n{dark}}}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How different two colours look, by the measure of 1976: the distance in the space L*a*b*.
    fn distance(one: &str, two: &str) -> f64 {
        let [one, two] = [one, two].map(lab);
        one.iter().zip(two).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
    }

    fn lab(colour: &str) -> [f64; 3] {
        let channel = |at: usize| {
            let part = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
            if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        };
        let (r, g, b) = (channel(1), channel(3), channel(5));
        let curve = |t: f64| if t > 0.008_856 { t.cbrt() } else { 7.787 * t + 16.0 / 116.0 };
        let x = curve((0.4125 * r + 0.3576 * g + 0.1804 * b) / 0.9505);
        let y = curve(0.2127 * r + 0.7152 * g + 0.0722 * b);
        let z = curve((0.0193 * r + 0.1192 * g + 0.9503 * b) / 1.0888);
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    #[test]
    fn no_two_looks_are_alike_by_day_and_by_night() {
        assert!((distance("#ffffff", "#000000") - 100.0).abs() < 0.1);
        for (at, one) in LOOKS.iter().enumerate() {
            for two in &LOOKS[at + 1..] {
                let (day, night) = (distance(one.0, two.0), distance(one.1, two.1));
                assert!(day >= 25.0 && night >= 25.0, "{one:?} {two:?}: {day:.0} {night:.0}");
            }
        }
    }

    #[test]
    fn a_subject_keeps_its_look_unless_two_of_a_chart_would_be_alike() {
        let all: Vec<Subject> = (0..8)
            .map(|n| Subject { name: format!("lock{n}"), kind: Kind::Family, about: String::new() })
            .collect();
        let mut looks = Looks::default();
        assert_eq!(looks.classes(&all[..6].iter().collect::<Vec<_>>()), ["c0", "c1", "c2", "c3", "c4", "c5"]);
        assert_eq!(looks.classes(&[&all[1], &all[3]]), ["c1", "c3"]);
        assert_eq!(looks.classes(&[&all[0], &all[6]]), ["c0", "c1"]);
    }
}
