//! Which CPUs there are, which are near to each other, and how to stay on one.

use std::collections::BTreeMap;
use std::fs::read_to_string;
use std::io;
use ulocks_vm_cost::Topology;

/// The CPUs this process may use, one per core, in the order in which the model numbers them.
#[derive(Debug)]
pub struct Cpus {
    pub list: Vec<usize>,
    pub topology: Topology,
    /// What the numbers of the topology leave out.
    pub remark: String,
}

/// What a file of the kernel's topology says about a CPU.
fn fact(cpu: usize, file: &str) -> Option<String> {
    let text = read_to_string(format!("/sys/devices/system/cpu/cpu{cpu}/{file}")).ok()?;
    Some(text.trim().to_owned())
}

pub fn allowed() -> io::Result<Vec<usize>> {
    // SAFETY: a set of CPUs is plain bits.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes at most the size that it is told.
    if unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the numbers are within the set.
    Ok((0..libc::CPU_SETSIZE as usize).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) }).collect())
}

impl Cpus {
    pub fn find() -> io::Result<Self> {
        // One CPU per core, by package and last-level cache. A machine that says nothing is one
        // complex.
        let mut packages: BTreeMap<String, BTreeMap<String, Vec<usize>>> = BTreeMap::new();
        let (mut siblings, mut all) = (Vec::new(), 0);
        for cpu in allowed()? {
            all += 1;
            let core = fact(cpu, "topology/thread_siblings_list").unwrap_or_else(|| cpu.to_string());
            if siblings.contains(&core) {
                continue;
            }
            siblings.push(core);
            let package = fact(cpu, "topology/physical_package_id").unwrap_or_default();
            let cache = fact(cpu, "cache/index3/shared_cpu_list").unwrap_or_default();
            packages.entry(package).or_default().entry(cache).or_default().push(cpu);
        }
        // The model is regular: as many of each as all have.
        let sockets = packages.len();
        let complexes = packages.values().map(BTreeMap::len).min().unwrap_or(0);
        let cpus = packages.values().flat_map(BTreeMap::values).map(Vec::len).min().unwrap_or(0);
        let list: Vec<_> = packages
            .values()
            .flat_map(|caches| {
                caches.values().take(complexes).flat_map(|group| group.iter().take(cpus).copied())
            })
            .collect();
        let remark = format!("from sysfs; {} of {all} allowed CPUs, one per core", list.len());
        Ok(Self { list, topology: Topology { sockets, complexes, cpus }, remark })
    }

    /// Two CPUs of one complex, of two complexes of one socket, and of two sockets.
    pub fn pairs(&self) -> [Option<(usize, usize)>; 3] {
        let Topology { sockets, complexes, cpus } = self.topology;
        let pair = |exists: bool, other: usize| exists.then(|| (self.list[0], self.list[other]));
        [pair(cpus > 1, 1), pair(complexes > 1, cpus), pair(sockets > 1, cpus * complexes)]
    }
}

/// Lets a thread that the caller wakes wait until the caller sleeps, and the other way round.
pub fn never_preempt() {
    // SAFETY: plain numbers, and the kernel reads the structure.
    let rc = unsafe {
        let parameters: libc::sched_param = std::mem::zeroed();
        libc::sched_setscheduler(0, libc::SCHED_BATCH, &parameters)
    };
    assert_eq!(rc, 0, "cannot become a batch thread: {}", io::Error::last_os_error());
}

/// Keeps the calling thread on `cpu`.
pub fn pin(cpu: usize) {
    pin_to(&[cpu]);
}

/// Keeps the calling thread on some of the CPUs.
pub fn pin_to(cpus: &[usize]) {
    // SAFETY: as in `allowed`; the kernel reads the set.
    let rc = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        cpus.iter().for_each(|&cpu| libc::CPU_SET(cpu, &mut set));
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set)
    };
    assert_eq!(rc, 0, "cannot stay on CPUs {cpus:?}: {}", io::Error::last_os_error());
}
