//! Numbers as people read them: three significant digits and a unit.

use crate::engine::figures::Unit;
use crate::statistics::rounds::Ratio;
use crate::workloads::Times;

/// Three significant digits, no exponent between 0.001 and 1000.
pub fn digits(value: f64) -> String {
    match value {
        0.0 => "0".into(),
        v if v >= 99.95 => format!("{v:.0}"),
        v if v >= 9.995 => format!("{v:.1}"),
        v if v >= 0.9995 => format!("{v:.2}"),
        v if v >= 0.000_95 => format!("{v:.3}"),
        v => format!("{v:.0e}"),
    }
}

/// Three digits, in thousands as often as there is a suffix for it.
fn with_suffix(mut value: f64, suffixes: [&str; 4]) -> String {
    let last = suffixes.len() - 1;
    let mut at = 0;
    while value >= 999.5 && at < last {
        (value, at) = (value / 1e3, at + 1);
    }
    digits(value) + suffixes[at]
}

/// Operations per second.
pub fn rate(per_s: f64) -> String {
    with_suffix(per_s, ["", "k", "M", "G"])
}

/// A time given in nanoseconds.
pub fn time(ns: f64) -> String {
    with_suffix(ns, ["ns", "us", "ms", "s"])
}

/// How figures of a unit are written.
pub fn of(unit: Unit) -> fn(f64) -> String {
    match unit {
        Unit::PerSecond => rate,
        Unit::Nanoseconds => time,
        Unit::Number => fixed,
        Unit::Share => share,
    }
}

/// A part of a whole in per cent.
pub fn share(part: f64) -> String {
    let percent = 100.0 * part;
    let decimals = usize::from(percent < 10.0 && percent.fract() != 0.0);
    format!("{percent:.decimals$} %")
}

/// `1.02 [0.99 1.05]`; a range over two modes stands alone, in braces.
pub fn ratio(ratio: Option<Ratio>) -> String {
    let Some(Ratio { value, interval, is_range, .. }) = ratio else { return "-".into() };
    let value = fixed(value);
    match interval.map(|(low, high)| (fixed(low), fixed(high))) {
        Some((low, high)) if is_range => format!("{{{low} .. {high}}}"),
        Some((low, high)) => format!("{value} [{low} {high}]"),
        None => format!("{value} [?]"),
    }
}

/// Two decimals for what lies around 1.
pub fn fixed(value: f64) -> String {
    match value {
        v if v >= 99.5 => format!("{v:.0}"),
        v if v >= 9.95 => format!("{v:.1}"),
        v if v >= 0.095 => format!("{v:.2}"),
        v => digits(v),
    }
}

/// `(3, 7) us`: inside and outside.
pub fn times(Times { hold_ns, think_ns }: Times) -> String {
    match [hold_ns, think_ns].map(|ns| ns as f64 / 1e3) {
        _ if [hold_ns, think_ns].iter().any(|ns| (1..1000).contains(ns)) => {
            format!("({hold_ns}, {think_ns}) ns")
        }
        [hold, think] => format!("({hold}, {think}) us"),
    }
}

/// `3:07`.
pub fn clock(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    format!("{}:{:02}", whole / 60, whole % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_a_unit() {
        let rates = [0.0, 7.0, 999.4, 999.6, 45_678.0, 999_600.0, 1.234e9].map(rate);
        assert_eq!(rates, ["0", "7.00", "999", "1.00k", "45.7k", "1.00M", "1.23G"]);
        let times = [9.3, 40.0, 999.7, 1_234_567.0, 2.5e9].map(time);
        assert_eq!(times, ["9.30ns", "40.0ns", "1.00us", "1.23ms", "2.50s"]);
        assert_eq!([0.12, 0.0123, 0.000_01].map(digits), ["0.120", "0.012", "1e-5"]);
        assert_eq!([0.0, 0.004, 0.05, 0.563].map(share), ["0 %", "0.4 %", "5 %", "56 %"]);
        assert_eq!([0.4, 61.0, 600.0].map(clock), ["0:00", "1:01", "10:00"]);
    }

    #[test]
    fn a_ratio_always_shows_what_is_not_known() {
        let known = Ratio { value: 1.0, interval: Some((0.9, 1.1)), rounds: 7, is_range: false };
        assert_eq!(ratio(Some(known)), "1.00 [0.90 1.10]");
        assert_eq!(ratio(Some(Ratio { interval: None, ..known })), "1.00 [?]");
        assert_eq!(ratio(Some(Ratio { is_range: true, ..known })), "{0.90 .. 1.10}");
        assert_eq!(ratio(None), "-");
    }
}
