//! What a report says about the machine it was made on. A number without it cannot be compared with
//! another.

use super::pinning;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::read_to_string;
use std::path::{Path, PathBuf};
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
    /// The time of so many CPUs is all that its cgroups let it have, if they limit that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<f64>,
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
        self.quota.map_or(self.cpus_allowed, |quota| self.cpus_allowed.min(quota.ceil() as usize)).max(1)
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
    let mut load_average = [0.0; 3];
    // SAFETY: there is room for three numbers.
    unsafe { libc::getloadavg(load_average.as_mut_ptr(), 3) };
    Machine {
        cpu_model: cpu_model(&cpuinfo),
        // SAFETY: no pointers are involved.
        cpus_online: unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }.max(1) as usize,
        cpus_allowed: pinning::allowed().map_or(1, |cpus| cpus.len()),
        quota: quota(&|path| read_to_string(path).ok()),
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
            write!(f, ", quota of {} CPUs", (quota * 100.0).round() / 100.0)?;
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

/// The smallest limit of the groups that this process is in, and of those above them. In a
/// container the folder of its group may be out of sight; the topmost one, which is there, is its
/// own then.
fn quota(file: &dyn Fn(&str) -> Option<String>) -> Option<f64> {
    let groups = file("/proc/self/cgroup")?;
    let group = |line: &str| line.splitn(3, ':').nth(2).map(PathBuf::from);
    let all: Vec<_> = groups.lines().filter_map(group).collect();
    let folders = all.iter().flat_map(|group| group.ancestors()).map(|folder| folder.to_string_lossy());
    let limits = folders.flat_map(|folder| {
        let folder = folder.trim_end_matches('/');
        let old = ["cpu.cfs_quota_us", "cpu.cfs_period_us"];
        let [quota, period] = old.map(|name| file(&format!("/sys/fs/cgroup/cpu{folder}/{name}")));
        let old = quota.zip(period).map(|(quota, period)| format!("{quota} {period}"));
        [file(&format!("/sys/fs/cgroup{folder}/cpu.max")), old]
    });
    let cpus = |text: String| {
        let mut numbers = text.split_whitespace().map(str::parse::<f64>);
        // No limit is "max" in the new files, and -1 in the old ones.
        let (quota, period) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        (quota > 0.0 && period > 0.0).then(|| quota / period)
    };
    limits.flatten().filter_map(cpus).min_by(f64::total_cmp)
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
    fn quotas_of_both_kinds_and_of_groups_above_are_found() {
        let quota_of = |files: &[(&str, &str)]| {
            quota(&|path| files.iter().find(|file| file.0 == path).map(|file| file.1.to_owned()))
        };
        let new = ("/proc/self/cgroup", "0::/a/b\n");
        assert_eq!(quota_of(&[new, ("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n")]), None);
        let both = [
            ("/sys/fs/cgroup/a/b/cpu.max", "300000 100000\n"),
            ("/sys/fs/cgroup/a/cpu.max", "150000 100000"),
        ];
        assert_eq!(quota_of(&[&[new][..], &both].concat()), Some(1.5));
        let old = ("/proc/self/cgroup", "4:memory:/x\n1:cpu,cpuacct:/x\n0::/\n");
        let period = ("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
        for (quota, cpus) in [("-1\n", None), ("50000\n", Some(0.5))] {
            assert_eq!(quota_of(&[old, period, ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", quota)]), cpus);
        }
        let machine = |quota| Machine { cpus_allowed: 4, quota, ..describe() };
        assert_eq!([None, Some(0.5), Some(1.5), Some(9.0)].map(|quota| machine(quota).cpus()), [4, 1, 2, 4]);
        assert!(machine(Some(1.5)).to_string().contains("quota of 1.5 CPUs,"));
    }

    #[test]
    fn describes_this_machine() {
        let machine = describe();
        assert!((1..=machine.cpus_online).contains(&machine.cpus_allowed));
        assert!(machine.rustc.starts_with("rustc 1."), "{}", machine.rustc);
        assert!(machine.to_string().contains(&format!("Linux {}, ", machine.kernel)));
        let json = serde_json::to_string(&machine).unwrap();
        assert_eq!(serde_json::from_str::<Machine>(&json).unwrap(), machine);
    }
}
