//! What a report says about the machine it was made on. A number without it cannot be compared with
//! another.

use super::pinning;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::read_to_string;
use std::path::Path;
use std::time::SystemTime;

/// The machine and the moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The CPU's name for itself.
    pub cpu_model: String,
    /// CPUs online.
    pub cpus_online: usize,
    /// CPUs this process may use.
    pub cpus_allowed: usize,
    /// The time of so many whole CPUs is what its cgroups let it have, if that is less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<usize>,
    /// Packages, NUMA nodes, cores and siblings of the CPUs online, where the kernel tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<String>,
    /// Frequency governor of the first CPU, where there is one and it may be read.
    pub governor: Option<String>,
    /// Kernel release.
    pub kernel: String,
    /// C library and version.
    pub libc: String,
    /// The compiler that built this.
    pub rustc: String,
    /// Whether the kernel runs on a hypervisor: wake-ups are dear, and neighbours invisible.
    pub hypervisor: bool,
    /// Load over 1, 5 and 15 minutes.
    pub load_average: [f64; 3],
    /// UTC, ISO 8601.
    pub date: String,
}

impl Machine {
    /// With how many CPUs to plan: those allowed, or fewer if a quota gives the time of fewer.
    pub fn cpus(&self) -> usize {
        self.quota.unwrap_or(self.cpus_allowed)
    }

    /// What a reader must know of the figures if QEMU translates the machine's instructions.
    pub fn translated(&self) -> Option<String> {
        let is_translated = self.cpu_model.contains("QEMU TCG");
        is_translated.then(|| {
            "QEMU translates this machine's instructions. It shows that the programs end, and what the \
             locks do there; no figure means anything."
                .into()
        })
    }
}

/// Describes this machine at this moment. What cannot be read is called unknown.
pub fn describe() -> Machine {
    let cpuinfo = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpus_allowed = pinning::allowed().map_or(1, |cpus| cpus.len());
    // It asks the cgroups as well.
    let available = std::thread::available_parallelism().map_or(cpus_allowed, usize::from);
    let mut load_average = [0.0; 3];
    // SAFETY: there is room for three numbers.
    unsafe { libc::getloadavg(load_average.as_mut_ptr(), 3) };
    Machine {
        cpu_model: cpu_model(&cpuinfo),
        // SAFETY: no pointers are involved.
        cpus_online: unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }.max(1) as usize,
        cpus_allowed,
        quota: Some(available).filter(|quota| *quota < cpus_allowed),
        topology: pinning::topology(),
        governor: line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        kernel: line("/proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".into()),
        libc: libc_version(),
        rustc: env!("ULOCKS_BENCHES_RUSTC").to_owned(),
        hypervisor: hypervisor(&cpuinfo),
        load_average,
        date: date(SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs())),
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} CPUs", self.cpu_model, self.cpus_online)?;
        if self.cpus_allowed != self.cpus_online {
            write!(f, " ({} allowed)", self.cpus_allowed)?;
        }
        if let Some(quota) = self.quota {
            write!(f, ", quota of {quota} CPUs")?;
        }
        if let Some(topology) = &self.topology {
            write!(f, ", {topology}")?;
        }
        if self.hypervisor {
            f.write_str(", virtual")?;
        }
        if let Some(governor) = &self.governor {
            write!(f, ", governor {governor}")?;
        }
        let [load, ..] = self.load_average;
        write!(f, ", Linux {}, {}, {}, load {load:.2}, {}", self.kernel, self.libc, self.rustc, self.date)
    }
}

fn line(path: &str) -> Option<String> {
    read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn cpu_model(cpuinfo: &str) -> String {
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    // Not every architecture gives a name.
    model.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}

fn hypervisor(cpuinfo: &str) -> bool {
    let flagged = cpuinfo.lines().find(|line| line.starts_with("flags"));
    flagged.is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"))
        || Path::new("/sys/hypervisor/type").exists()
}

fn libc_version() -> String {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: glibc returns a static C string.
        let version = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
        format!("glibc {}", version.to_string_lossy())
    }
    // musl has no function that tells its version.
    #[cfg(not(target_env = "gnu"))]
    "musl".into()
}

/// Seconds since 1970 as UTC.
fn date(seconds: u64) -> String {
    let time = seconds as _;
    // SAFETY: all-zero is a valid tm.
    let mut tm: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both point to values of this function.
    unsafe { libc::gmtime_r(&time, &mut tm) };
    let (year, month, day) = (tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", tm.tm_hour, tm.tm_min, tm.tm_sec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_files_of_the_kernel() {
        let cpuinfo =
            "processor\t: 0\nmodel name\t: Pentium III (Coppermine)\nflags\t\t: fpu hypervisor sse\n";
        assert_eq!(cpu_model(cpuinfo), "Pentium III (Coppermine)");
        assert!(hypervisor(cpuinfo));
        assert_eq!(cpu_model(""), std::env::consts::ARCH);
        let model = |name: &str| Machine { cpu_model: name.into(), ..describe() };
        assert!(model("QEMU TCG CPU version 2.5+").translated().is_some());
        assert!(model("QEMU Virtual CPU version 2.5+").translated().is_none());
        assert_eq!(date(1_014_739_749), "2002-02-26T16:09:09Z");
    }

    #[test]
    fn describes_this_machine() {
        let machine = describe();
        assert!((1..=machine.cpus_allowed).contains(&machine.cpus()));
        let limited = Machine { cpus_online: 8, cpus_allowed: 4, quota: Some(2), ..describe() };
        assert!(
            limited.cpus() == 2 && limited.to_string().contains("(4 allowed), quota of 2 CPUs, "),
            "{limited}"
        );
        assert!((1..=machine.cpus_online).contains(&machine.cpus_allowed));
        assert!(machine.rustc.starts_with("rustc 1."), "{}", machine.rustc);
        assert!(machine.to_string().contains(&format!("Linux {}, ", machine.kernel)));
        let json = serde_json::to_string(&machine).unwrap();
        assert_eq!(serde_json::from_str::<Machine>(&json).unwrap(), machine);
    }
}
