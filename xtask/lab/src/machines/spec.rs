//! What a virtual machine has: processor, kernel, CPUs, C library, and what goes on beside the
//! tests.

use crate::flags::Machines;
use anyhow::{Context, bail, ensure};
use std::fmt;
use std::path::Path;

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

/// All that a machine can have. 32-bit programs run on the 64-bit kernel.
#[rustfmt::skip]
pub static ARCHES: [Arch; 4] = [
    Arch { name: "x86_64", targets: ("x86_64-unknown-linux-gnu", "x86_64-unknown-linux-musl"), debian: "amd64", qemu: ("qemu-system-x86_64", "qemu-system-x86"), model: &["-machine", "q35", "-cpu", "max"], console: "ttyS0", user: "qemu-x86_64", gnu: ("x86_64-linux-gnu", "gcc") },
    Arch { name: "aarch64", targets: ("aarch64-unknown-linux-gnu", "aarch64-unknown-linux-musl"), debian: "arm64", qemu: ("qemu-system-aarch64", "qemu-system-arm"), model: &["-machine", "virt,gic-version=3", "-cpu", "max,pauth-impdef=on"], console: "ttyAMA0", user: "qemu-aarch64", gnu: ("aarch64-linux-gnu", "gcc-aarch64-linux-gnu") },
    Arch { name: "riscv64", targets: ("riscv64gc-unknown-linux-gnu", "riscv64gc-unknown-linux-musl"), debian: "riscv64", qemu: ("qemu-system-riscv64", "qemu-system-misc"), model: &["-machine", "virt", "-cpu", "rv64"], console: "ttyS0", user: "qemu-riscv64", gnu: ("riscv64-linux-gnu", "gcc-riscv64-linux-gnu") },
    Arch { name: "i686", targets: ("i686-unknown-linux-gnu", "i686-unknown-linux-musl"), debian: "amd64", qemu: ("qemu-system-x86_64", "qemu-system-x86"), model: &["-machine", "q35", "-cpu", "max"], console: "ttyS0", user: "qemu-i386", gnu: ("i686-linux-gnu", "gcc-i686-linux-gnu") },
];

impl Arch {
    fn named(name: &str) -> anyhow::Result<&'static Self> {
        ARCHES.iter().find(|arch| arch.name == name).with_context(|| {
            let known: Vec<_> = ARCHES.iter().map(|arch| arch.name).collect();
            format!("--arch {name}: no such processor; there are: {}", known.join(", "))
        })
    }

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Libc {
    /// That of this machine.
    Gnu,
    /// That of the suite that the kernel is from, which must be as new as that of this machine.
    Suite,
    /// That of the Rust toolchain, in the programs themselves.
    Musl,
}

impl Libc {
    const ALL: [Self; 3] = [Self::Gnu, Self::Suite, Self::Musl];

    /// Its name in the command line.
    fn name(self) -> &'static str {
        match self {
            Self::Gnu => "gnu",
            Self::Suite => "suite",
            Self::Musl => "musl",
        }
    }
}

/// What goes on in the machine while the tests run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Under {
    /// Nothing else.
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
    pub const ALL: [Self; 5] =
        [Self::Nothing, Self::Offline, Self::HalfCpu, Self::DockerOld, Self::DockerNew];

    /// Its name in the command line and in the guest.
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

/// A virtual machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// The processor.
    pub arch: &'static Arch,
    /// The suite of Debian whose kernel is booted.
    pub suite: String,
    /// What the kernel is built for.
    pub flavour: Flavour,
    /// How many CPUs it has.
    pub cpus: u32,
    /// How many NUMA nodes the CPUs are on.
    pub nodes: u32,
    /// Whether two CPUs share a core.
    pub smt: bool,
    /// The C library.
    pub libc: Libc,
    /// What goes on beside the tests.
    pub under: Under,
    /// What runs on it.
    pub runs: Runs,
}

/// What a kernel is built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// As Debian builds it.
    Plain,
    /// PREEMPT_RT, as Debian builds it.
    Rt,
}

impl Flavour {
    const ALL: [Self; 2] = [Self::Rt, Self::Plain];

    /// What its name adds to that of the suite.
    fn suffix(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Rt => "-rt",
        }
    }
}

/// What a machine runs, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Runs {
    /// The native tests, under a kernel of its own.
    Tests,
    /// `cargo bench -- --quick`, under a kernel of its own.
    Benches,
    /// The native tests under the kernel of this machine. QEMU translates single programs.
    Programs,
}

/// The newest kernels.
const NEWEST: &str = "sid";
const MOST_CPUS: u32 = 255;

impl Default for Machine {
    fn default() -> Self {
        let suite = NEWEST.to_owned();
        let (arch, libc, under, runs) = (&ARCHES[0], Libc::Gnu, Under::Nothing, Runs::Tests);
        let flavour = Flavour::Plain;
        Self { arch, suite, flavour, cpus: 4, nodes: 1, smt: false, libc, under, runs }
    }
}

impl Machine {
    /// The machines of `cargo lab machines` without options.
    pub fn standard() -> Vec<Self> {
        let with = |suite: &str, cpus| Self { suite: suite.into(), cpus, ..Self::default() };
        vec![
            Self { libc: Libc::Suite, ..with(NEWEST, 4) },
            with("bullseye", 2),
            with("bookworm", 3),
            Self { smt: true, ..with("trixie", 4) },
            Self { flavour: Flavour::Rt, ..with("trixie", 4) },
            with(NEWEST, 1),
            Self { under: Under::Offline, ..with(NEWEST, 4) },
            Self { under: Under::HalfCpu, ..with(NEWEST, 2) },
            Self { arch: &ARCHES[1], ..with("trixie", 2) },
            Self { libc: Libc::Musl, ..with("trixie", 2) },
            Self { arch: &ARCHES[3], ..with(NEWEST, 2) },
            Self { libc: Libc::Musl, under: Under::DockerOld, ..with("bookworm", 2) },
            Self { under: Under::DockerNew, ..with(NEWEST, 2) },
            Self { nodes: 2, smt: true, ..with(NEWEST, 64) },
            Self { nodes: 2, smt: true, runs: Runs::Benches, ..with(NEWEST, 64) },
            Self { arch: &ARCHES[1], runs: Runs::Programs, ..Self::default() },
        ]
    }

    /// The machines that `flags` ask for: one, or the standard list.
    pub fn chosen(flags: &Machines) -> anyhow::Result<Vec<Self>> {
        let options = flags.kernel.is_some() || flags.arch.is_some() || flags.cpus.is_some();
        let switches = flags.nodes.is_some() || flags.smt || flags.libc.is_some() || flags.under.is_some();
        let runs = flags.bench || flags.user;
        let machines = if options || switches || runs { vec![Self::one(flags)?] } else { Self::standard() };
        let is_asked = |text: &String| machines.iter().any(|machine| machine.to_string().contains(text));
        if let Some(only) = flags.only.iter().find(|only| !is_asked(only)) {
            bail!("--only {only}: no machine of the list has that in its name");
        }
        let is_chosen = |machine: &Self| {
            let name = machine.to_string();
            flags.only.is_empty() || flags.only.iter().any(|only| name.contains(only))
        };
        Ok(machines.into_iter().filter(is_chosen).collect())
    }

    fn one(flags: &Machines) -> anyhow::Result<Self> {
        let kernel = flags.kernel.as_deref().unwrap_or(NEWEST);
        let known = Flavour::ALL.into_iter().find(|known| kernel.ends_with(known.suffix()));
        let flavour = known.unwrap_or(Flavour::Plain);
        let suite = kernel.strip_suffix(flavour.suffix()).unwrap_or(kernel);
        let is_word = !suite.is_empty() && suite.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        ensure!(is_word, "--kernel {kernel}: give a suite of Debian, as bookworm, trixie-rt or sid");
        let arch = Arch::named(flags.arch.as_deref().unwrap_or("x86_64"))?;
        let (cpus, nodes) = (flags.cpus.unwrap_or(4), flags.nodes.unwrap_or(1));
        ensure!((1..=MOST_CPUS).contains(&cpus), "--cpus {cpus}: give 1 to {MOST_CPUS}");
        ensure!(nodes >= 1 && cpus % nodes == 0, "--nodes {nodes}: give a divisor of the CPUs, {cpus}");
        ensure!(!flags.smt || cpus % (2 * nodes) == 0, "--smt: each node needs an even number of CPUs");
        let libc = flags.libc.as_deref().unwrap_or("gnu");
        let libc = Libc::ALL.into_iter().find(|known| known.name() == libc).with_context(|| {
            format!("--libc {libc}: no such library; there are: {}", Libc::ALL.map(Libc::name).join(", "))
        })?;
        let under = flags.under.as_deref().unwrap_or("nothing");
        let under = Under::ALL.into_iter().find(|known| known.name() == under).with_context(|| {
            format!("--under {under}: no such load; there are: {}", Under::ALL.map(Under::name).join(", "))
        })?;
        ensure!(under != Under::Offline || cpus > 1, "--under offline: give at least 2 CPUs");
        let is_docker = matches!(under, Under::DockerOld | Under::DockerNew);
        ensure!(!is_docker || arch.name == "x86_64", "--under {}: --arch x86_64 only", under.name());
        let machine = Self {
            arch,
            suite: suite.into(),
            flavour,
            cpus,
            nodes,
            smt: flags.smt,
            libc,
            under,
            ..Self::default()
        };
        match (flags.bench, flags.user) {
            (false, false) => Ok(machine),
            (true, false) => Ok(Self { runs: Runs::Benches, ..machine }),
            (false, true) => {
                let machine = Self { runs: Runs::Programs, ..machine };
                let plain = Self { arch, libc, runs: Runs::Programs, ..Self::default() };
                ensure!(machine == plain, "--user: only --arch and --libc go with it");
                Ok(machine)
            }
            (true, true) => bail!("--bench needs a kernel of its own: leave out --user"),
        }
    }

    /// The kernel's name in the command line.
    pub fn kernel(&self) -> String {
        format!("{}{}", self.suite, self.flavour.suffix())
    }

    /// The options of `cargo lab machines` that give this machine alone.
    pub fn options(&self) -> String {
        if self.runs == Runs::Programs {
            let libc = format!(" --libc {}", self.libc.name());
            return format!(
                "--arch {} --user{}",
                self.arch.name,
                if self.libc == Libc::Gnu { "" } else { &libc }
            );
        }
        let mut text = format!("--arch {} --kernel {} --cpus {}", self.arch.name, self.kernel(), self.cpus);
        if self.nodes > 1 {
            text += &format!(" --nodes {}", self.nodes);
        }
        if self.smt {
            text += " --smt";
        }
        if self.libc != Libc::Gnu {
            text += &format!(" --libc {}", self.libc.name());
        }
        if self.under != Under::Nothing {
            text += &format!(" --under {}", self.under.name());
        }
        if self.runs == Runs::Benches {
            text += " --bench";
        }
        text
    }

    /// The name of its files.
    pub fn file(&self) -> String {
        self.to_string().chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect()
    }

    /// What runs a program of this machine, beside its kernel.
    pub fn launch(&self) -> Vec<String> {
        let mut words = vec![self.arch.user.to_owned()];
        if self.libc != Libc::Musl {
            words.extend(["-L".into(), format!("/usr/{}", self.arch.gnu.0)]);
        }
        words
    }

    /// How much memory it gets, in MiB: the programs stay in memory.
    pub fn memory(&self) -> u32 {
        2048 + 32 * self.cpus
    }

    /// QEMU's options, except for the accelerator.
    pub fn qemu(&self, kernel: &Path, image: &Path) -> Vec<String> {
        let mut options: Vec<String> = self.arch.model.iter().map(|&option| option.into()).collect();
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
        add(&["-append", &format!("console={} quiet panic=-1", self.arch.console)]);
        options
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.runs == Runs::Programs {
            write!(f, "{} programs on this kernel", self.arch.name)?;
        } else {
            write!(f, "{} {} {} CPU", self.arch.name, self.kernel(), self.cpus)?;
            f.write_str(if self.cpus == 1 { "" } else { "s" })?;
        }
        if self.nodes > 1 {
            write!(f, " {} nodes", self.nodes)?;
        }
        f.write_str(if self.smt { " SMT" } else { "" })?;
        f.write_str(match self.libc {
            Libc::Gnu => "",
            Libc::Suite => " with its glibc",
            Libc::Musl => " musl",
        })?;
        f.write_str(if self.runs == Runs::Benches { " benches" } else { "" })?;
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
    use crate::flags::{Lab, LabCmd};

    fn chosen(line: &str) -> Result<Vec<Machine>, String> {
        let line = format!("machines {line}");
        let lab = Lab::from_vec(line.split_whitespace().map(Into::into).collect()).unwrap();
        let LabCmd::Machines(flags) = lab.subcommand else { panic!("not a machines command") };
        Machine::chosen(&flags).map_err(|error| error.to_string())
    }

    #[test]
    fn the_standard_list_has_what_differs_between_machines() {
        let all = chosen("").unwrap();
        assert!(all.len() >= 8);
        for suite in ["bullseye", "bookworm", "trixie", "sid"] {
            assert!(all.iter().any(|machine| machine.suite == suite), "{suite}");
        }
        for cpus in [1, 3, 64] {
            assert!(all.iter().any(|machine| machine.cpus == cpus), "{cpus}");
        }
        assert!(
            all.iter().any(|machine| machine.flavour == Flavour::Rt)
                && all.iter().any(|machine| machine.nodes == 2)
        );
        // Each is what its own options give, so a line of the table can be repeated.
        for machine in &all {
            assert_eq!(chosen(&machine.options()), Ok(vec![machine.clone()]));
        }
    }

    #[test]
    fn options_give_one_machine_and_wrong_ones_are_refused_with_the_right_ones() {
        let one = chosen("--arch aarch64 --kernel bookworm-rt --cpus 6 --nodes 3 --smt").unwrap();
        assert_eq!(one[0].to_string(), "aarch64 bookworm-rt 6 CPUs 3 nodes SMT");
        assert_eq!(
            chosen("--only nowhere").unwrap_err(),
            "--only nowhere: no machine of the list has that in its name"
        );
        assert_eq!(chosen("--only goes").map(|all| all.len()), Ok(1));
        assert_eq!(chosen("--only goes --only bullseye").map(|all| all.len()), Ok(2));
        let refused = |line: &str, says: &str| {
            let error = chosen(line).unwrap_err();
            assert!(error.contains(says), "{line}: {error}");
        };
        refused("--arch sparc", "x86_64, aarch64, riscv64, i686");
        refused("--cpus 0", "1 to 255");
        refused("--cpus 3 --nodes 2", "divisor");
        refused("--cpus 3 --smt", "even");
        refused("--cpus 1 --under offline", "at least 2");
        refused("--libc b", "gnu, suite, musl");
        refused("--under water", "offline, half-cpu, docker-old");
        refused("--kernel ../x", "suite");
        refused("--arch aarch64 --under docker-new", "x86_64 only");
        refused("--user --cpus 2", "only --arch and --libc");
        refused("--user --bench", "leave out --user");
    }

    #[test]
    fn two_nodes_share_cpus_and_memory() {
        let machine = Machine { cpus: 64, nodes: 2, smt: true, ..Machine::default() };
        let options = machine.qemu(Path::new("k"), Path::new("i")).join(" ");
        assert!(options.contains("-smp 64,sockets=2,cores=16,threads=2 -m 4096M"), "{options}");
        assert!(options.contains("memory-backend-ram,id=m1,size=2048M"), "{options}");
        assert!(options.contains("nodeid=1,memdev=m1,cpus=32-63"), "{options}");
        let options = Machine::default().qemu(Path::new("k"), Path::new("i")).join(" ");
        assert!(!options.contains("numa") && options.contains("console=ttyS0"), "{options}");
    }
}
