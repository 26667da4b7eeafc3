//! The profile as text: a table for people, and folded stacks for flame graphs.

use crate::{LockLine, PairLine, Profile, SiteLine};
use core::fmt;
use core::time::Duration;

/// A time with three digits and its unit.
struct Short(Duration);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos() as f64;
        let (value, unit) = match nanos {
            0.0..1e3 => return f.pad(&format!("{nanos} ns")),
            // What would be rounded to 1000 is one of the next unit.
            1e3..999.5e3 => (nanos / 1e3, "us"),
            999.5e3..999.5e6 => (nanos / 1e6, "ms"),
            _ => (nanos / 1e9, "s"),
        };
        let digits = match value {
            0.0..9.995 => 2,
            9.995..99.95 => 1,
            _ => 0,
        };
        f.pad(&format!("{value:.digits$} {unit}"))
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "the locks in {}, by the time that threads waited for them", Short(self.ran))?;
        writeln!(
            f,
            "{:>10} {:>10} {:>9} {:>9} {:>9} {:>9}  class",
            "acquired", "contended", "waited", "longest", "held", "longest"
        )?;
        for LockLine { lock, sums, waited_longest_at, held_longest_at } in &self.classes {
            writeln!(
                f,
                "{:>10} {:>10} {:>9} {:>9} {:>9} {:>9}  {lock}",
                sums.acquired,
                sums.contended,
                Short(sums.waited),
                Short(sums.longest_wait),
                Short(sums.held),
                Short(sums.longest_hold),
            )?;
            if let Some(place) = waited_longest_at {
                writeln!(f, "{:>63}waited longest at {place}", "")?;
            }
            if let Some(place) = held_longest_at {
                writeln!(f, "{:>63}held longest from {place}", "")?;
            }
        }
        if !self.pairs.is_empty() {
            writeln!(f, "who made whom wait\n{:>10} {:>9}  waiter, and holder", "waits", "waited")?;
        }
        for pair @ PairLine { waits, waited, .. } in &self.pairs {
            let [waiter, holder] = pair.places();
            writeln!(f, "{waits:>10} {:>9}  {waiter} for {holder}", Short(*waited))?;
        }
        Ok(())
    }
}

/// A frame of a folded stack: no `;`, which ends a frame, and no end of a line.
fn frame(text: &str) -> String {
    text.replace(';', ",").replace(['\n', '\r'], " ")
}

impl SiteLine {
    /// The thread as a frame.
    pub(crate) fn thread_frame(&self) -> String {
        if self.thread.is_empty() { "(unnamed)".to_owned() } else { frame(&self.thread) }
    }

    /// The class as a frame.
    pub(crate) fn class_frame(&self) -> String {
        frame(&self.lock.to_string().replace('`', ""))
    }
}

impl PairLine {
    /// The places of the waiter and of the holder.
    fn places(&self) -> [String; 2] {
        let none = match self.is_plain {
            true => "(a plain lock: its holder is not recorded)",
            false => "(no holder seen)",
        };
        let holder = self.holder.map_or_else(|| none.to_owned(), ToString::to_string);
        [self.waiter.to_string(), holder]
    }
}

impl Profile {
    /// Who made whom wait, as folded stacks: a line `class;holder;waiter nanoseconds` for each
    /// pair.
    pub fn folded_pairs(&self) -> String {
        let line = |pair: &PairLine| {
            let [waiter, holder] = pair.places().map(|place| frame(&place));
            let class = frame(&pair.lock.to_string().replace('`', ""));
            format!("{class};{holder};{waiter} {}\n", pair.waited.as_nanos())
        };
        self.pairs.iter().map(line).collect()
    }

    /// The waits as folded stacks: a line `thread;class;place nanoseconds` for each place.
    ///
    /// `flamegraph.pl`, inferno and speedscope read this format.
    pub fn folded_waits(&self) -> String {
        self.folded(|site| site.sums.waited)
    }

    /// The holds as folded stacks, in the form of [`folded_waits`](Self::folded_waits).
    pub fn folded_holds(&self) -> String {
        self.folded(|site| site.sums.held)
    }

    fn folded(&self, time: impl Fn(&SiteLine) -> Duration) -> String {
        let mut text = String::new();
        for site in &self.sites {
            let nanos = time(site).as_nanos();
            if nanos > 0 {
                let (thread, class, at) = (site.thread_frame(), site.class_frame(), site.at.to_string());
                text += &format!("{thread};{class};{} {nanos}\n", frame(&at));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_three_digits() {
        let shown = |nanos| Short(Duration::from_nanos(nanos)).to_string();
        let expected = [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1.00 us"),
            (9_996, "10.0 us"),
            (123_456, "123 us"),
            (999_499, "999 us"),
            (999_500, "1.00 ms"),
            (1_500_000, "1.50 ms"),
            (999_499_999, "999 ms"),
            (999_600_000, "1.00 s"),
            (99_960_000_000, "100 s"),
        ];
        for (nanos, text) in expected {
            assert_eq!(shown(nanos), text);
        }
        assert_eq!(format!("{:>9}", Short(Duration::from_nanos(5))), "     5 ns");
    }

    #[test]
    fn a_frame_ends_nowhere_inside() {
        assert_eq!(frame("a;b\nc d"), "a,b c d");
    }
}
