//! On which CPU each worker runs, and where these CPUs are.
//!
//! Scattered workers are dealt round-robin to an order of CPUs. The next CPU is in the next node,
//! and that of another package; in a core that has no worker yet, as long as there is one in any
//! node; siblings come last. A *node* is a NUMA node; where packages share a node, it is a package.
//!
//! Only CPUs of the process's affinity mask are used; where they are comes from sysfs.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Where workers run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Pin {
    /// Wherever the scheduler likes
    None,
    /// As far apart as possible
    #[default]
    Scatter,
}

impl Pin {
    /// As the command line has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Scatter => "scatter",
        }
    }
}

/// The CPUs this process may use.
pub fn allowed() -> Result<Vec<usize>> {
    // SAFETY: all-zero is a valid cpu_set_t.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is writable and its true size is passed; 0 means the calling thread.
    let rc = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) };
    ensure!(rc == 0, "sched_getaffinity: {}", std::io::Error::last_os_error());
    // SAFETY: every index is below CPU_SETSIZE.
    Ok((0..libc::CPU_SETSIZE as usize).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) }).collect())
}

/// The order in which workers are dealt to CPUs; empty for [`Pin::None`]. Worker `i` runs on entry
/// `i % len`.
pub fn order(pin: Pin) -> Result<Vec<usize>> {
    match pin {
        Pin::None => Ok(Vec::new()),
        Pin::Scatter => Ok(scattered(&read(&sysfs, &allowed()?))),
    }
}

/// Binds the calling thread to `cpu`.
pub fn bind(cpu: usize) -> Result<()> {
    ensure!(cpu < libc::CPU_SETSIZE as usize, "CPU {cpu} is beyond what an affinity mask can name");
    // SAFETY: all-zero is a valid cpu_set_t.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the index was checked above.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: the set is initialised and its true size is passed; 0 means the calling thread.
    let rc = unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) };
    ensure!(rc == 0, "cannot run on CPU {cpu}: {}", std::io::Error::last_os_error());
    Ok(())
}

/// How many packages, nodes, cores and threads the CPUs online are, if the kernel tells.
pub(super) fn topology() -> Option<String> {
    Some(summary(&read(&sysfs, &list(&sysfs("cpu/online")?))))
}

/// A CPU and its place in the machine. A core and a package are named by their first CPU: the
/// kernel's own numbers of cores repeat in another die and in another package.
#[derive(Clone, Copy, Debug)]
struct Cpu {
    id: usize,
    core: usize,
    /// The memory that is near. A node may be a part of a package (sub-NUMA clustering).
    node: usize,
    package: usize,
}

fn scattered(cpus: &[Cpu]) -> Vec<usize> {
    // How many different ones come before that of `cpu`, among those that share `group` with it.
    let rank = |cpu: &Cpu, which: fn(&Cpu) -> usize, group: fn(&Cpu) -> [usize; 2]| {
        let before = cpus.iter().filter(|other| group(other) == group(cpu) && which(other) < which(cpu));
        before.map(which).collect::<BTreeSet<_>>().len()
    };
    let place = |cpu: &&Cpu| {
        let sibling = rank(cpu, |cpu| cpu.id, |cpu| [cpu.core, cpu.core]);
        let core = rank(cpu, |cpu| cpu.core, |cpu| [cpu.package, cpu.node]);
        let node = rank(cpu, |cpu| cpu.node, |cpu| [cpu.package, cpu.package]);
        [sibling, core, node, cpu.package, cpu.id]
    };
    let mut all: Vec<&Cpu> = cpus.iter().collect();
    all.sort_by_key(place);
    all.into_iter().map(|cpu| cpu.id).collect()
}

fn summary(cpus: &[Cpu]) -> String {
    let distinct = |which: fn(&Cpu) -> usize| cpus.iter().map(which).collect::<BTreeSet<_>>();
    let cores = distinct(|cpu| cpu.core);
    let threads = |core: &usize| cpus.iter().filter(|cpu| cpu.core == *core).count();
    let count = |n: usize, one: &str| format!("{n} {one}{}", if n == 1 { "" } else { "s" });
    let packages = count(distinct(|cpu| cpu.package).len(), "package");
    let nodes = count(distinct(|cpu| cpu.node).len(), "NUMA node");
    let threads = count(cores.iter().map(threads).max().unwrap_or(0), "thread");
    format!("{packages}, {nodes}, {} of {threads}", count(cores.len(), "core"))
}

/// What a file below this folder says.
fn sysfs(path: &str) -> Option<String> {
    std::fs::read_to_string(format!("/sys/devices/system/{path}")).ok()
}

/// The CPUs with these ids, as the files have them. Where a file is missing (a sandbox, a kernel
/// that knows no nodes), a CPU is a core of its own, and all are in one node and one package.
fn read(file: &dyn Fn(&str) -> Option<String>, ids: &[usize]) -> Vec<Cpu> {
    let list = |path: String| list(&file(&path).unwrap_or_default());
    let nodes: Vec<_> = list("node/online".into())
        .into_iter()
        .map(|node| (node, list(format!("node/node{node}/cpulist"))))
        .collect();
    let place = |&id: &usize| {
        let first =
            |name, unknown| list(format!("cpu/cpu{id}/topology/{name}")).first().copied().unwrap_or(unknown);
        let node = nodes.iter().find(|(_, cpus)| cpus.contains(&id)).map_or(0, |&(node, _)| node);
        Cpu { id, core: first("thread_siblings_list", id), node, package: first("core_siblings_list", 0) }
    };
    ids.iter().map(place).collect()
}

/// The kernel's form of a list: `0-3,8,10-11`, or nothing.
fn list(text: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        Some(from.parse().ok()?..=to.parse().ok()?)
    };
    text.trim().split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two packages of two nodes (sub-NUMA clustering), each of two cores with two siblings. The
    /// numbers are Linux's: siblings in the upper half. Another node is memory alone.
    fn clustered(path: &str) -> Option<String> {
        let id = |path: &str| path.trim_matches(|c: char| !c.is_ascii_digit()).parse::<usize>().ok();
        let half = |first: usize, width| {
            format!("{first}-{},{}-{}\n", first + width - 1, first + 8, first + 7 + width)
        };
        Some(match path.rsplit_once('/')? {
            ("node", "online") => "0-4\n".into(),
            (node, "cpulist") => {
                id(node).filter(|&node| node < 4).map_or("\n".into(), |node| half(2 * node, 2))
            }
            (cpu, "thread_siblings_list") => format!("{},{}\n", id(cpu)? % 8, id(cpu)? % 8 + 8),
            (cpu, "core_siblings_list") => half(id(cpu)? % 8 / 4 * 4, 4),
            _ => return None,
        })
    }

    #[test]
    fn packages_nodes_and_cores_are_told_apart() {
        let cpus = read(&clustered, &Vec::from_iter(0..16));
        assert_eq!(summary(&cpus), "2 packages, 4 NUMA nodes, 8 cores of 2 threads");
        // Nodes 0 and 1 are of the first package, 2 and 3 of the second.
        assert_eq!(scattered(&cpus), [0, 4, 2, 6, 1, 5, 3, 7, 8, 12, 10, 14, 9, 13, 11, 15]);
        let unknown = read(&|_| None, &[0, 1, 5]);
        assert_eq!(summary(&unknown), "1 package, 1 NUMA node, 3 cores of 1 thread");
        assert_eq!(list("0-3,8,10-11\n"), [0, 1, 2, 3, 8, 10, 11]);
        assert!(list("\n").is_empty() && list("0-x").is_empty());
    }

    #[test]
    fn the_next_cpu_is_as_far_as_possible() {
        // Two packages of two cores with two siblings each, which share a node.
        let cpu = |id| Cpu { id, core: id % 4, node: 0, package: id % 4 / 2 };
        let mut cpus: Vec<Cpu> = (0..8).map(cpu).collect();
        assert_eq!(scattered(&cpus), [0, 2, 1, 3, 4, 6, 5, 7]);
        cpus.retain(|cpu| ![0, 3].contains(&cpu.id));
        assert_eq!(scattered(&cpus), [4, 2, 1, 7, 6, 5], "the mask has a hole");
        let unequal = |id| Cpu { id, core: id, node: id / 4, package: id / 4 * 4 };
        assert_eq!(scattered(&Vec::from_iter((0..5).map(unequal))), [0, 4, 1, 2, 3]);
    }

    #[test]
    fn binding_moves_this_thread() {
        assert!(order(Pin::None).unwrap().is_empty() && bind(usize::MAX).is_err());
        let order = order(Pin::Scatter).unwrap();
        let (all, last) = (allowed().unwrap(), *order.last().unwrap());
        assert_eq!(BTreeSet::from_iter(order), BTreeSet::from_iter(all));
        let bound = std::thread::spawn(move || bind(last).and_then(|()| allowed()));
        assert_eq!(bound.join().unwrap().unwrap(), [last]);
    }
}
