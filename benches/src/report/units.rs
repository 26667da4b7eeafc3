//! Numbers as people read them: three significant digits and a unit.

use crate::engine::figures::Unit;
use crate::statistics::rounds::{Estimate, Ratio};
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

/// Operations per second.
pub fn rate(per_s: f64) -> String {
    match per_s {
        v if v >= 999.5e6 => format!("{}G", digits(v / 1e9)),
        v if v >= 999.5e3 => format!("{}M", digits(v / 1e6)),
        v if v >= 999.5 => format!("{}k", digits(v / 1e3)),
        v => digits(v),
    }
}

/// A time given in nanoseconds.
pub fn time(ns: f64) -> String {
    match ns {
        v if v >= 999.5e6 => format!("{}s", digits(v / 1e9)),
        v if v >= 999.5e3 => format!("{}ms", digits(v / 1e6)),
        v if v >= 999.5 => format!("{}us", digits(v / 1e3)),
        v => format!("{}ns", digits(v)),
    }
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
    if percent < 10.0 && percent.fract() != 0.0 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}

/// `1.02 [0.99 1.05]`; a range over two modes stands in braces.
pub fn ratio(ratio: Option<Ratio>) -> String {
    let Some(ratio) = ratio else { return "-".into() };
    let estimate = Estimate { value: ratio.value, interval: ratio.interval };
    match (estimate.interval, ratio.two_modes) {
        (Some((low, high)), false) => format!("{} [{} {}]", fixed(estimate.value), fixed(low), fixed(high)),
        (Some((low, high)), true) => format!("{{{} .. {}}}", fixed(low), fixed(high)),
        (None, _) => format!("{} [?]", fixed(estimate.value)),
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
pub fn times(times: Times) -> String {
    let short = |ns: u64| if ns < 1000 && ns > 0 { None } else { Some(ns as f64 / 1e3) };
    match (short(times.hold_ns), short(times.think_ns)) {
        (Some(hold), Some(think)) => format!("({hold}, {think}) us"),
        _ => format!("({}, {}) ns", times.hold_ns, times.think_ns),
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
        let known = Ratio { value: 1.0, interval: Some((0.9, 1.1)), rounds: 7, two_modes: false };
        assert_eq!(ratio(Some(known)), "1.00 [0.90 1.10]");
        assert_eq!(ratio(Some(Ratio { interval: None, ..known })), "1.00 [?]");
        assert_eq!(ratio(Some(Ratio { two_modes: true, ..known })), "{0.90 .. 1.10}");
        assert_eq!(ratio(None), "-");
    }
}
