//! The parameters of a machine, and the file they are kept in.
//!
//! A file is JSON: the workspace already reads and writes it, outcomes are JSON too, and a file can
//! be cut out of an outcome that carries it. Every time is in nanoseconds. A file has no default
//! for any number, since a forgotten latency would be a wrong prediction that no test sees; it may
//! say for each where it comes from (`sources`), and it must say whether the numbers were measured
//! or guessed (`origin`).

use super::noise::Noise;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// The most CPUs a machine can have.
pub const MOST_CPUS: usize = 1024;

/// A machine that lock code can be costed on.
///
/// `Display` prints every parameter, one a line, with its source: print it with every figure that
/// was made on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// What to call it.
    pub name: String,
    /// Where the numbers come from on the whole.
    pub origin: Origin,
    /// How many CPUs there are, and which are near to each other.
    pub topology: Topology,
    /// What an access to memory costs.
    pub memory: Memory,
    /// What the kernel's operations cost.
    pub kernel: Kernel,
    /// How CPUs are shared.
    pub scheduler: Scheduler,
    /// What its host does to it, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<Noise>,
    /// Where single numbers come from, by name (`memory.hit`).
    #[serde(default)]
    pub sources: BTreeMap<String, String>,
}

/// Where the numbers of a machine come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// From a calibration. What it could not measure is marked in [`Machine::sources`].
    Measured,
    /// From literature, documentation, or a guess.
    Guessed,
}

/// How many CPUs there are, and which are near to each other: CPUs are numbered through core
/// complexes, and these through sockets. A core is one CPU, whatever hardware threads it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topology {
    /// Sockets of the machine.
    pub sockets: usize,
    /// Core complexes (CPUs around one last-level cache) of a socket.
    pub complexes: usize,
    /// Cores of a core complex.
    pub cpus: usize,
}

impl Topology {
    /// CPUs of the machine.
    #[must_use]
    pub fn total(&self) -> usize {
        self.sockets.saturating_mul(self.complexes).saturating_mul(self.cpus)
    }

    /// The socket of a CPU.
    #[must_use]
    pub fn socket_of(&self, cpu: usize) -> usize {
        cpu / (self.complexes * self.cpus)
    }
}

/// What an access to memory costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// A load or store that hits the own cache.
    pub hit: f64,
    /// What a read-modify-write costs beyond a hit.
    pub rmw: f64,
    /// A sequentially consistent fence.
    pub fence: f64,
    /// A line from, or an invalidation by, a CPU of the same core complex.
    pub same_complex: f64,
    /// The same between core complexes of one socket.
    pub same_socket: f64,
    /// The same between sockets.
    pub cross_socket: f64,
    /// A line that no cache holds.
    pub memory: f64,
    /// How long a line that is being read by one CPU cannot be served to the next.
    pub read_occupancy: f64,
    /// The part of a transfer, from 0 to 1, in which the request is on its way and the owner still
    /// has the line.
    pub request_share: f64,
    /// Whether a read takes a modified line over from its owner, which is left without, as some
    /// machines do because a write is likely to follow. Otherwise both share it, as in the
    /// textbook.
    pub migratory: bool,
    /// Whether a store lets the work behind it go on while its line is fetched.
    pub store_buffer: bool,
    /// One pause of a busy-wait.
    pub pause: f64,
    /// A look at the clock.
    pub clock_read: f64,
}

/// What the kernel's operations cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kernel {
    /// A futex call that finds nothing to do: a wake-up of no thread, a wait on a word that has
    /// changed.
    pub futex: f64,
    /// How long a futex call keeps its queue to itself.
    pub queue: f64,
    /// Per sleeper that a wake-up or a requeue passes over or takes.
    pub walk: f64,
    /// What it costs a thread to go to sleep, beyond `futex`.
    pub block: f64,
    /// What it costs the caller to wake one thread.
    pub wake: f64,
    /// What it costs the caller beyond `wake` if the thread's CPU is idle and has to be
    /// interrupted.
    pub interrupt: f64,
    /// From the wake-up until the thread runs on a CPU that was idle.
    pub wake_latency: f64,
    /// How much later than asked for a timeout expires.
    pub timer_slack: f64,
    /// What it costs the caller to start a thread.
    pub spawn: f64,
}

/// How CPUs are shared.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scheduler {
    /// How long a thread may keep a CPU for which another thread waits.
    pub slice: f64,
    /// Whether a thread that wakes up, finds no idle CPU, and has had less CPU time than the one
    /// that runs where it ran last, takes its place at once. Otherwise it waits for its turn.
    pub wake_preemption: bool,
    /// From one thread of a CPU to the next.
    pub context_switch: f64,
    /// Added to a context switch if the thread ran on another CPU before.
    pub migration: f64,
}

/// Why a file is not a machine.
#[derive(Debug)]
pub struct BadMachine(String);

impl fmt::Display for BadMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadMachine {}

impl Machine {
    /// A guess at a server of two sockets with 128 cores each, in core complexes of eight, for
    /// examples and tests. It is `machines/many-core.json` of this crate, which says of each number
    /// where it comes from: most guesses, and none from a calibration.
    #[must_use]
    pub fn example() -> Self {
        Self::from_json(include_str!("../machines/many-core.json"))
            .expect("a machine that ships with this crate")
    }

    /// The example with as many of its sockets as it takes to have `cpus`.
    ///
    /// # Panics
    /// If `cpus` exceeds [`MOST_CPUS`].
    #[must_use]
    pub fn example_with(cpus: usize) -> Self {
        assert!(cpus <= MOST_CPUS, "{cpus} CPUs: the cost model has room for {MOST_CPUS}");
        let mut machine = Self::example();
        let Topology { sockets, complexes, cpus: complex } = &mut machine.topology;
        *sockets = cpus.div_ceil(*complexes * *complex).max(*sockets);
        let socket = *complexes * *complex;
        machine.name = format!("a guess at {sockets} sockets of {socket} cores, complexes of {complex}");
        machine
    }

    /// Reads a machine from a file.
    ///
    /// # Errors
    /// If the file cannot be read or is not a machine; the message names the file, the line or
    /// parameter, and what is allowed.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, BadMachine> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path)
            .map_err(|error| BadMachine(format!("{}: cannot be read: {error}", path.display())))?;
        Self::from_json(&text).map_err(|BadMachine(why)| BadMachine(format!("{}: {why}", path.display())))
    }

    /// Reads a machine from JSON text.
    ///
    /// # Errors
    /// If the text is not a machine.
    pub fn from_json(text: &str) -> Result<Self, BadMachine> {
        let machine: Self = serde_json::from_str(text).map_err(|error| BadMachine(error.to_string()))?;
        machine.check()?;
        Ok(machine)
    }

    /// The machine as JSON text, to be read by [`from_json`](Self::from_json).
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a machine of numbers and strings") + "\n"
    }

    /// Whether every parameter is in its range.
    ///
    /// # Errors
    /// Names the first that is not, and what is allowed.
    pub fn check(&self) -> Result<(), BadMachine> {
        let Topology { sockets, complexes, cpus } = self.topology;
        let counts = [("sockets", sockets), ("complexes", complexes), ("cpus", cpus)];
        for (name, count) in counts {
            if count == 0 {
                return Err(BadMachine(format!("topology.{name} is 0; it must be at least 1")));
            }
        }
        let total = self.topology.total();
        if total > MOST_CPUS {
            return Err(BadMachine(format!("the topology has {total} CPUs; it may have up to {MOST_CPUS}")));
        }
        for (name, value, least, most) in self.numbers() {
            if !(least..=most).contains(&value) {
                return Err(BadMachine(format!(
                    "{name} is {value}; it must be a number from {least} to {most}"
                )));
            }
        }
        let m = &self.memory;
        if !(m.hit <= m.same_complex && m.same_complex <= m.same_socket && m.same_socket <= m.cross_socket) {
            return Err(BadMachine(
                "memory.hit, same_complex, same_socket and cross_socket must not fall in this order".into(),
            ));
        }
        if m.read_occupancy > m.same_complex {
            return Err(BadMachine(format!(
                "memory.read_occupancy is {}; it must not exceed memory.same_complex, {}",
                m.read_occupancy, m.same_complex
            )));
        }
        if let Some(fault) = self.noise.as_ref().and_then(Noise::fault) {
            return Err(BadMachine(format!("noise: {fault}")));
        }
        for name in self.sources.keys() {
            let known = self.numbers().iter().any(|number| number.0 == name)
                || self.switches().iter().any(|switch| switch.0 == name)
                || name == "topology"
                || name == "noise";
            if !known {
                return Err(BadMachine(format!("sources names `{name}`, which is no parameter")));
            }
        }
        Ok(())
    }

    /// All numbers: name, value, least and greatest.
    fn numbers(&self) -> Vec<(&'static str, f64, f64, f64)> {
        const SHORT: f64 = 1e6; // a millisecond: what no access and no call reaches
        const LONG: f64 = 1e10; // ten seconds
        let (m, k, s) = (&self.memory, &self.kernel, &self.scheduler);
        vec![
            ("memory.hit", m.hit, 0.01, SHORT),
            ("memory.rmw", m.rmw, 0.0, SHORT),
            ("memory.fence", m.fence, 0.0, SHORT),
            ("memory.same_complex", m.same_complex, 0.01, SHORT),
            ("memory.same_socket", m.same_socket, 0.01, SHORT),
            ("memory.cross_socket", m.cross_socket, 0.01, SHORT),
            ("memory.memory", m.memory, 0.01, SHORT),
            ("memory.read_occupancy", m.read_occupancy, 0.0, SHORT),
            ("memory.request_share", m.request_share, 0.0, 1.0),
            ("memory.pause", m.pause, 0.1, SHORT),
            ("memory.clock_read", m.clock_read, 0.0, SHORT),
            ("kernel.futex", k.futex, 0.0, SHORT),
            ("kernel.queue", k.queue, 0.0, SHORT),
            ("kernel.walk", k.walk, 0.0, SHORT),
            ("kernel.block", k.block, 0.0, SHORT),
            ("kernel.wake", k.wake, 0.0, SHORT),
            ("kernel.interrupt", k.interrupt, 0.0, SHORT),
            ("kernel.wake_latency", k.wake_latency, 0.0, SHORT),
            ("kernel.timer_slack", k.timer_slack, 0.0, LONG),
            ("kernel.spawn", k.spawn, 0.0, SHORT),
            ("scheduler.slice", s.slice, 1_000.0, LONG),
            ("scheduler.context_switch", s.context_switch, 0.0, SHORT),
            ("scheduler.migration", s.migration, 0.0, SHORT),
        ]
    }

    /// All that is or is not so.
    fn switches(&self) -> [(&'static str, bool); 3] {
        [
            ("memory.migratory", self.memory.migratory),
            ("memory.store_buffer", self.memory.store_buffer),
            ("scheduler.wake_preemption", self.scheduler.wake_preemption),
        ]
    }

    /// How far apart two CPUs are.
    pub(super) fn distance(&self, one: usize, other: usize) -> Distance {
        let complex = self.topology.cpus;
        let socket = complex * self.topology.complexes;
        if one / complex == other / complex {
            Distance::Complex
        } else if one / socket == other / socket {
            Distance::Socket
        } else {
            Distance::Machine
        }
    }
}

/// The smallest part of the machine that holds two CPUs; nearer is less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Distance {
    Complex,
    Socket,
    Machine,
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origin = match self.origin {
            Origin::Measured => "measured, except where a source says otherwise",
            Origin::Guessed => "GUESSED: not measured on any machine",
        };
        writeln!(f, "machine {}: parameters {origin}; times in ns", self.name)?;
        let source = |name: &str| match self.sources.get(name) {
            Some(source) => format!("  # {source}"),
            None => String::new(),
        };
        let Topology { sockets, complexes, cpus } = self.topology;
        writeln!(
            f,
            "  topology {sockets} sockets x {complexes} complexes x {cpus} cores{}",
            source("topology")
        )?;
        for (name, value, ..) in self.numbers() {
            writeln!(f, "  {name:<26} {value:>12}{}", source(name))?;
        }
        for (name, value) in self.switches() {
            writeln!(f, "  {name:<26} {value:>12}{}", source(name))?;
        }
        self.noise.as_ref().map_or(Ok(()), |noise| writeln!(f, "  noise {noise:?}{}", source("noise")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_survives_its_file() {
        let machine = Machine::example();
        assert_eq!(Machine::from_json(&machine.to_json()).unwrap(), machine);
    }

    #[test]
    fn display_names_every_parameter() {
        let machine = Machine::example();
        let text = machine.to_string();
        for (name, ..) in machine.numbers() {
            assert!(text.contains(name), "{name} is missing in:\n{text}");
        }
        assert!(text.contains("GUESSED"));
    }

    /// Every number of the file is one that `check` looks at.
    #[test]
    fn no_number_is_unchecked() {
        let json: serde_json::Value = serde_json::from_str(&Machine::example().to_json()).unwrap();
        let numbers: usize = ["memory", "kernel", "scheduler"]
            .iter()
            .map(|part| json[part].as_object().unwrap().values().filter(|value| value.is_number()).count())
            .sum();
        assert_eq!(Machine::example().numbers().len(), numbers);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let error = |change: &dyn Fn(&mut Machine)| {
            let mut machine = Machine::example();
            change(&mut machine);
            machine.check().unwrap_err().to_string()
        };
        assert_eq!(
            error(&|machine| machine.memory.hit = -1.0),
            "memory.hit is -1; it must be a number from 0.01 to 1000000"
        );
        assert!(error(&|machine| machine.memory.rmw = f64::NAN).contains("memory.rmw is NaN"));
        assert!(error(&|machine| machine.topology.cpus = 0).contains("topology.cpus is 0"));
        assert!(error(&|machine| machine.topology.sockets = 99).contains("up to 1024"));
        assert!(error(&|machine| machine.memory.same_socket = 1e5).contains("must not fall"));
        assert!(
            error(&|machine| drop(machine.sources.insert("memory.hot".into(), String::new())))
                .contains("`memory.hot`, which is no parameter")
        );
    }

    #[test]
    fn a_wrong_file_is_named_with_the_place() {
        let error = Machine::load("/nonexistent/machine.json").unwrap_err().to_string();
        assert!(error.starts_with("/nonexistent/machine.json: cannot be read"), "{error}");
        let text = Machine::example().to_json().replace("\"hit\"", "\"hot\"");
        let error = Machine::from_json(&text).unwrap_err().to_string();
        assert!(error.contains("unknown field `hot`") && error.contains("line"), "{error}");
        let text = Machine::example().to_json().replace("\"hit\": 0.3,", "");
        let error = Machine::from_json(&text).unwrap_err().to_string();
        assert!(error.contains("missing field `hit`"), "{error}");
        let text = Machine::example().to_json().replace("\"cpus\"", "\"threads\": 2, \"cpus\"");
        let error = Machine::from_json(&text).unwrap_err().to_string();
        assert!(error.contains("unknown field `threads`"), "{error}");
    }

    #[test]
    fn every_machine_of_the_crate_is_one_and_says_where_it_is_from() {
        let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/machines")).unwrap();
        let files: Vec<_> = files
            .map(|file| file.unwrap().path())
            .filter(|file| file.extension() == Some("json".as_ref()))
            .collect();
        assert!(!files.is_empty());
        for file in files {
            let machine = Machine::load(&file).unwrap();
            for (name, ..) in machine.numbers() {
                assert!(machine.sources.contains_key(name), "{}: {name} has no source", file.display());
            }
            assert_eq!(machine.noise.is_some(), machine.sources.contains_key("noise"), "{}", file.display());
        }
    }

    #[test]
    fn cpus_are_numbered_socket_by_socket() {
        let topology = Topology { sockets: 2, complexes: 2, cpus: 4 };
        assert_eq!(topology.total(), 16);
        assert_eq!([0, 7, 8, 15].map(|cpu| topology.socket_of(cpu)), [0, 0, 1, 1]);
    }

    #[test]
    fn near_is_the_same_complex() {
        let machine = Machine::example();
        assert_eq!(machine.distance(0, 7), Distance::Complex);
        assert_eq!(machine.distance(7, 8), Distance::Socket);
        assert_eq!(machine.distance(127, 128), Distance::Machine);
    }
}
