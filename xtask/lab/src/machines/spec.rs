//! What a virtual machine has: processor, kernel, CPUs, C library, and what goes on beside the
//! tests.

use anyhow::{Context, bail};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::path::Path;

/// The list of machines.
const LIST: &str = include_str!("machines.toml");
/// The end of the name of a kernel for PREEMPT_RT.
const RT: &str = "-rt";

/// A processor, with the names that Debian, Rust and QEMU give it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arch {
    /// As Rust and `uname` name it.
    pub name: &'static str,
    /// Rust's targets, with GNU's C library and with musl.
    pub targets: (&'static str, &'static str),
    /// Debian's architecture, whose kernel is booted.
    pub debian: &'static str,
    /// QEMU's emulator, and the package that has it.
    pub qemu: (&'static str, &'static str),
    /// The model of the machine and of the processor.
    pub model: &'static [&'static str],
    /// The name of the serial port.
    pub console: &'static str,
    /// QEMU's emulator of single programs.
    pub user: &'static str,
    /// The prefix of the GNU tools, and the package that has them.
    pub gnu: (&'static str, &'static str),
}

/// All that a machine can have.
#[rustfmt::skip]
pub static ARCHES: [Arch; 2] = [
    Arch { name: "x86_64", targets: ("x86_64-unknown-linux-gnu", "x86_64-unknown-linux-musl"), debian: "amd64", qemu: ("qemu-system-x86_64", "qemu-system-x86"), model: &["-machine", "q35", "-cpu", "max"], console: "ttyS0", user: "qemu-x86_64", gnu: ("x86_64-linux-gnu", "gcc") },
    Arch { name: "aarch64", targets: ("aarch64-unknown-linux-gnu", "aarch64-unknown-linux-musl"), debian: "arm64", qemu: ("qemu-system-aarch64", "qemu-system-arm"), model: &["-machine", "virt,gic-version=3", "-cpu", "max,pauth-impdef=on"], console: "ttyAMA0", user: "qemu-aarch64", gnu: ("aarch64-linux-gnu", "gcc-aarch64-linux-gnu") },
];

impl Arch {
    /// Whether programs for it run on this machine without an emulator.
    pub fn is_host(&self) -> bool {
        self.name == std::env::consts::ARCH
    }

    /// Rust's name of the target.
    pub fn target(&self, libc: Libc) -> &'static str {
        if libc == Libc::Musl { self.targets.1 } else { self.targets.0 }
    }
}

/// The C library of the test programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Libc {
    /// That of this machine.
    #[default]
    Gnu,
    /// That of the suite that the kernel is from, which must be as new as that of this machine.
    Suite,
    /// That of the Rust toolchain, in the programs themselves.
    Musl,
}

/// What goes on in the machine while the tests run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Under {
    /// Nothing else.
    #[default]
    Nothing,
    /// The last CPU is taken offline and put back, again and again.
    Offline,
    /// All tests are in a control group that has half a CPU.
    HalfCpu,
    /// Each test is under the seccomp profile of Docker 19.03.
    DockerOld,
    /// Each test is under the seccomp profile of Docker 29.
    DockerNew,
}

impl Under {
    /// Its name in the list and in the guest.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Offline => "offline",
            Self::HalfCpu => "half-cpu",
            Self::DockerOld => "docker-old",
            Self::DockerNew => "docker-new",
        }
    }
}

/// A virtual machine, as `machines.toml` describes it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// The processor.
    #[serde(default, deserialize_with = "arch")]
    arch: Option<&'static Arch>,
    /// The suite of Debian whose kernel is booted, with `-rt` for PREEMPT_RT.
    pub kernel: String,
    /// How many CPUs it has.
    pub cpus: u32,
    /// How many NUMA nodes the CPUs are on.
    #[serde(default = "one")]
    pub nodes: u32,
    /// Whether two CPUs share a core.
    #[serde(default)]
    pub smt: bool,
    /// The C library.
    #[serde(default)]
    pub libc: Libc,
    /// What goes on beside the tests.
    #[serde(default)]
    pub under: Under,
}

fn one() -> u32 {
    1
}

fn arch<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'static Arch>, D::Error> {
    let name = String::deserialize(deserializer)?;
    let known = ARCHES.iter().find(|arch| arch.name == name);
    known.map(Some).ok_or_else(|| D::Error::custom(format!("{name}: no such processor")))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    machine: Vec<Machine>,
}

impl Machine {
    /// All machines of the list.
    pub fn all() -> anyhow::Result<Vec<Self>> {
        Ok(toml::from_str::<List>(LIST).context("machines.toml")?.machine)
    }

    /// The machines whose names contain one of `only`, or all.
    pub fn chosen(only: &[String]) -> anyhow::Result<Vec<Self>> {
        let mut machines = Self::all()?;
        let is_asked = |text: &String| machines.iter().any(|machine| machine.to_string().contains(text));
        if let Some(only) = only.iter().find(|only| !is_asked(only)) {
            bail!("--only {only}: no machine of machines.toml has that in its name");
        }
        machines
            .retain(|machine| only.is_empty() || only.iter().any(|only| machine.to_string().contains(only)));
        Ok(machines)
    }

    /// Its processor.
    pub fn arch(&self) -> &'static Arch {
        self.arch.unwrap_or(&ARCHES[0])
    }

    /// The suite that the kernel is from.
    pub fn suite(&self) -> &str {
        self.kernel.strip_suffix(RT).unwrap_or(&self.kernel)
    }

    /// Whether the kernel is built for PREEMPT_RT.
    pub fn is_rt(&self) -> bool {
        self.kernel.ends_with(RT)
    }

    /// The command that runs it alone.
    pub fn command(&self) -> String {
        format!("cargo lab machines --only '{self}'")
    }

    /// The name of its files.
    pub fn file(&self) -> String {
        self.to_string().chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect()
    }

    /// What runs a program of this machine, beside its kernel.
    pub fn launch(&self) -> Vec<String> {
        let mut words = vec![self.arch().user.to_owned()];
        if self.libc != Libc::Musl {
            words.extend(["-L".into(), format!("/usr/{}", self.arch().gnu.0)]);
        }
        words
    }

    /// How much memory it gets, in MiB: the programs stay in memory.
    pub fn memory(&self) -> u32 {
        2048 + 32 * self.cpus
    }

    /// QEMU's options, except for the accelerator.
    pub fn qemu(&self, kernel: &Path, image: &Path) -> Vec<String> {
        let mut options: Vec<String> = self.arch().model.iter().map(|&option| option.into()).collect();
        let mut add = |values: &[&str]| options.extend(values.iter().map(|&value| value.into()));
        let threads = if self.smt { 2 } else { 1 };
        let sockets = self.nodes;
        let cores = self.cpus / sockets / threads;
        let smp = format!("{},sockets={sockets},cores={cores},threads={threads}", self.cpus);
        add(&["-smp", &smp, "-m", &format!("{}M", self.memory())]);
        for node in (0..self.nodes).filter(|_| self.nodes > 1) {
            let (each, size) = (self.cpus / self.nodes, self.memory() / self.nodes);
            add(&["-object", &format!("memory-backend-ram,id=m{node},size={size}M")]);
            let (first, last) = (node * each, (node + 1) * each - 1);
            add(&["-numa", &format!("node,nodeid={node},memdev=m{node},cpus={first}-{last}")]);
        }
        add(&["-nodefaults", "-display", "none", "-serial", "stdio", "-no-reboot"]);
        add(&["-kernel", &kernel.to_string_lossy(), "-initrd", &image.to_string_lossy()]);
        add(&["-append", &format!("console={} quiet panic=-1", self.arch().console)]);
        options
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} CPU", self.arch().name, self.kernel, self.cpus)?;
        f.write_str(if self.cpus == 1 { "" } else { "s" })?;
        if self.nodes > 1 {
            write!(f, " {} nodes", self.nodes)?;
        }
        f.write_str(if self.smt { " SMT" } else { "" })?;
        f.write_str(match self.libc {
            Libc::Gnu => "",
            Libc::Suite => " with its glibc",
            Libc::Musl => " musl",
        })?;
        match self.under {
            Under::Nothing => Ok(()),
            Under::Offline => f.write_str(" a CPU goes offline"),
            Under::HalfCpu => f.write_str(" half a CPU's time"),
            Under::DockerOld => f.write_str(" under Docker's old profile"),
            Under::DockerNew => f.write_str(" under Docker's new profile"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_what_differs_between_machines() {
        let all = Machine::all().unwrap();
        for suite in ["bullseye", "bookworm", "trixie", "sid"] {
            assert!(all.iter().any(|machine| machine.suite() == suite), "{suite}");
        }
        for cpus in [1, 3, 64] {
            assert!(all.iter().any(|machine| machine.cpus == cpus), "{cpus}");
        }
        assert!(all.iter().any(Machine::is_rt) && all.iter().any(|machine| machine.nodes == 2));
        for machine in &all {
            let Machine { cpus, nodes, smt, under, .. } = machine;
            assert!((1..256).contains(cpus) && cpus % (nodes * if *smt { 2 } else { 1 }) == 0, "{machine}");
            assert!(*under != Under::Offline || *cpus > 1, "{machine}");
            assert_eq!(Machine::chosen(&[machine.to_string()]).unwrap().first(), Some(machine));
        }
    }

    #[test]
    fn machines_are_chosen_by_parts_of_their_names() {
        let chosen = |only: &[&str]| {
            let only: Vec<_> = only.iter().map(|&only| only.to_owned()).collect();
            Machine::chosen(&only).map(|all| all.len()).map_err(|error| error.to_string())
        };
        assert_eq!(chosen(&["goes"]), Ok(1));
        assert_eq!(chosen(&["goes", "bullseye"]), Ok(2));
        assert!(chosen(&["nowhere"]).unwrap_err().starts_with("--only nowhere: no machine"));
        assert!(toml::from_str::<Machine>("kernel = 'sid'\ncpus = 1\narch = 'sparc'").is_err());
    }

    #[test]
    fn two_nodes_share_cpus_and_memory() {
        let qemu = |text: &str| {
            let machine: Machine = toml::from_str(text).unwrap();
            machine.qemu(Path::new("k"), Path::new("i")).join(" ")
        };
        let options = qemu("kernel = 'sid'\ncpus = 64\nnodes = 2\nsmt = true");
        assert!(options.contains("-smp 64,sockets=2,cores=16,threads=2 -m 4096M"), "{options}");
        assert!(options.contains("memory-backend-ram,id=m1,size=2048M"), "{options}");
        assert!(options.contains("nodeid=1,memdev=m1,cpus=32-63"), "{options}");
        let options = qemu("kernel = 'sid'\ncpus = 4");
        assert!(!options.contains("numa") && options.contains("console=ttyS0"), "{options}");
    }
}
