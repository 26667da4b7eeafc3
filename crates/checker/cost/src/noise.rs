//! What a host does to a virtual machine: it takes a CPU away for a while, and a CPU that was idle
//! takes its time to wake up.
//!
//! Without noise a lock stays in the mode it is in, and a convoy that one late thread begins is
//! never seen.

use super::units::{Ps, ps};
use serde::{Deserialize, Serialize};

/// The noise of a machine; times in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Noise {
    /// From the end of one theft of a CPU to the next theft, in the mean. What runs there waits
    /// meanwhile.
    pub stolen_every: f64,
    /// How long a theft takes.
    pub stolen: Vec<Odds>,
    /// How much later than `kernel.wake_latency` a thread runs on a CPU that was idle, by how long
    /// that was; the first is for the shortest time, which is 0.
    pub late: Vec<Late>,
}

/// A time, and in which share of cases it is that.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Odds {
    /// From 0 to 1; those of a list make 1.
    pub share: f64,
    /// Nanoseconds.
    pub time: f64,
}

/// How late threads run on a CPU that was idle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Late {
    /// It was idle for so long, or longer.
    pub idle: f64,
    /// So much later.
    pub by: Vec<Odds>,
}

impl Noise {
    /// What is wrong with it, if anything is.
    pub(super) fn fault(&self) -> Option<String> {
        const LONG: f64 = 1e7;
        if !(1_000.0..=1e12).contains(&self.stolen_every) {
            return Some(format!("stolen_every is {}; it must be 1000 to 1e12", self.stolen_every));
        }
        let first = self.late.first().map(|late| late.idle);
        if first != Some(0.0) || !self.late.is_sorted_by(|one, next| one.idle < next.idle) {
            return Some("the idle times of late must begin with 0, and rise".into());
        }
        let lists = self.late.iter().map(|late| &late.by).chain([&self.stolen]);
        for list in lists {
            let sum: f64 = list.iter().map(|odds| odds.share).sum();
            let fit = list.iter().all(|odds| odds.share >= 0.0 && (0.0..=LONG).contains(&odds.time));
            if !fit || (sum - 1.0).abs() > 1e-6 {
                return Some(format!("shares must make 1, not {sum}, and times be 0 to {LONG}"));
            }
        }
        None
    }
}

/// The noise of a run.
#[derive(Debug)]
pub(super) struct Disturbance {
    noise: Noise,
    cpus: Vec<Disturbed>,
}

/// One CPU.
#[derive(Clone, Copy, Debug, Default)]
struct Disturbed {
    /// When it is stolen next, and how often it was.
    next: Ps,
    thefts: u64,
    idle_from: Ps,
}

impl Disturbance {
    pub(super) fn new(noise: Noise, cpus: usize) -> Self {
        let mut this = Self { noise, cpus: vec![Disturbed::default(); cpus] };
        (0..cpus).for_each(|cpu| this.cpus[cpu].next = this.gap(cpu));
        this
    }

    /// A number that depends on the CPU and its thefts only.
    fn dice(&self, cpu: usize) -> u64 {
        mixed(self.cpus[cpu].thefts + 1 + ((cpu as u64) << 32))
    }

    /// Until the next theft: from nothing to twice the mean.
    fn gap(&self, cpu: usize) -> Ps {
        ps(self.noise.stolen_every * 2.0 * part(self.dice(cpu)))
    }

    /// When a thread of `cpu` is done that is busy from `now` on, and would be until `time`.
    pub(super) fn delayed(&mut self, cpu: usize, now: Ps, mut time: Ps) -> Ps {
        while self.cpus[cpu].next <= time {
            let begin = self.cpus[cpu].next;
            let end = begin + chosen(&self.noise.stolen, mixed(self.dice(cpu)));
            time += end.saturating_sub(begin.max(now));
            self.cpus[cpu].thefts += 1;
            self.cpus[cpu].next = end + self.gap(cpu);
        }
        time
    }

    pub(super) fn idles(&mut self, cpu: usize, now: Ps) {
        self.cpus[cpu].idle_from = now;
    }

    /// How much later a thread runs on `cpu`, which is idle; `dice` is anything.
    pub(super) fn late(&self, cpu: usize, now: Ps, dice: u64) -> Ps {
        let idle = now.saturating_sub(self.cpus[cpu].idle_from);
        let late = self.noise.late.iter().rfind(|late| ps(late.idle) <= idle);
        late.map_or(0, |late| chosen(&late.by, mixed(dice)))
    }
}

fn chosen(list: &[Odds], dice: u64) -> Ps {
    let mut left = part(dice);
    let found = list.iter().find(|odds| {
        left -= odds.share;
        left < 0.0
    });
    found.or(list.last()).map_or(0, |odds| ps(odds.time))
}

/// From 0 to 1.
fn part(dice: u64) -> f64 {
    (dice >> 11) as f64 / (1_u64 << 53) as f64
}

fn mixed(number: u64) -> u64 {
    let x = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ x >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^ x >> 29
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise() -> Noise {
        let sure = |time| vec![Odds { share: 1.0, time }];
        Noise {
            stolen_every: 1e6,
            stolen: vec![Odds { share: 0.75, time: 1e3 }, Odds { share: 0.25, time: 5e3 }],
            late: vec![Late { idle: 0.0, by: sure(0.0) }, Late { idle: 1e5, by: sure(2e4) }],
        }
    }

    #[test]
    fn a_cpu_is_stolen_as_often_and_for_as_long_as_said() {
        let mut run = Disturbance::new(noise(), 2);
        let (mut now, mut lost) = (0, 0);
        for _ in 0..10_000_000 {
            let next = run.delayed(1, now, now + 1_000_000);
            lost += next - now - 1_000_000;
            now = next;
        }
        let (every, mean) = (now / run.cpus[1].thefts, lost / run.cpus[1].thefts);
        assert!((990_000_000..1_010_000_000).contains(&every), "every {every} ps");
        assert!((1_950_000..2_050_000).contains(&mean), "for {mean} ps");
        assert_eq!(run.cpus[0].thefts, 0);
    }

    #[test]
    fn a_thread_is_late_where_the_cpu_was_idle_for_long() {
        let mut run = Disturbance::new(noise(), 1);
        run.idles(0, 7);
        assert_eq!([8, 100_000_006, 100_000_007].map(|now| run.late(0, now, 3)), [0, 0, 20_000_000]);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let fault = |change: &dyn Fn(&mut Noise)| {
            let mut noise = noise();
            change(&mut noise);
            noise.fault().unwrap_or_default()
        };
        assert_eq!(fault(&|_| {}), "");
        assert!(fault(&|noise| noise.stolen_every = 0.0).contains("stolen_every is 0"));
        assert!(fault(&|noise| noise.late[0].idle = 1.0).contains("begin with 0"));
        assert!(fault(&|noise| noise.stolen[0].share = 0.5).contains("not 0.75"));
        assert!(fault(&|noise| noise.late[1].by[0].time = -1.0).contains("times be 0"));
    }
}
