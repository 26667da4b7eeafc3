//! Where the CPUs of this machine are: in which core, NUMA node and package. Read from sysfs.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// A CPU and its place in the machine. A core and a package are named by their first CPU: the
/// kernel's own numbers of cores repeat in another die and in another package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cpu {
    pub id: usize,
    pub core: usize,
    /// The memory that is near. A node may be a part of a package (sub-NUMA clustering).
    pub node: usize,
    /// The socket.
    pub package: usize,
}

impl Cpu {
    /// The package and the node: all of a package, or that part of it that has memory of its own. A
    /// machine that shares one node among its packages has a domain for each package.
    pub fn domain(&self) -> (usize, usize) {
        (self.package, self.node)
    }
}

/// How many there are of everything; counted over the CPUs that are online.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// NUMA nodes that have CPUs.
    pub nodes: usize,
    /// Sockets.
    pub packages: usize,
    /// Cores of all packages.
    pub cores: usize,
    /// Hardware threads of the core that has most of them.
    pub siblings: usize,
}

impl Counts {
    /// Of this machine; none if the kernel does not tell.
    pub fn of_this_machine() -> Option<Self> {
        Some(Self::of(&read(&sysfs, &list(&sysfs("cpu/online")?)?)))
    }

    pub(super) fn of(cpus: &[Cpu]) -> Self {
        let distinct = |what: fn(&Cpu) -> usize| cpus.iter().map(what).collect::<BTreeSet<_>>();
        let cores = distinct(|cpu| cpu.core);
        let threads = |core: &usize| cpus.iter().filter(|cpu| cpu.core == *core).count();
        Self {
            nodes: distinct(|cpu| cpu.node).len(),
            packages: distinct(|cpu| cpu.package).len(),
            siblings: cores.iter().map(threads).max().unwrap_or(0),
            cores: cores.len(),
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |n: usize, one: &str| format!("{n} {one}{}", if n == 1 { "" } else { "s" });
        let (packages, nodes) = (count(self.packages, "package"), count(self.nodes, "NUMA node"));
        let (cores, threads) = (count(self.cores, "core"), count(self.siblings, "thread"));
        write!(f, "{packages}, {nodes}, {cores} of {threads}")
    }
}

/// What a file below this folder says.
pub(super) fn sysfs(path: &str) -> Option<String> {
    std::fs::read_to_string(format!("/sys/devices/system/{path}")).ok()
}

/// The CPUs with these ids, as the files have them. Where a file is missing (a sandbox, a kernel
/// that knows no nodes), a CPU is a core of its own, and all are in one node and one package.
pub(super) fn read(file: &dyn Fn(&str) -> Option<String>, ids: &[usize]) -> Vec<Cpu> {
    let list = |path: String| file(&path).and_then(|text| list(&text)).unwrap_or_default();
    // A node may be memory without CPUs.
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

/// Parses the kernel's form of a list: `0-3,8,10-11`, or nothing.
fn list(text: &str) -> Option<Vec<usize>> {
    let mut all = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to): (usize, usize) = (from.parse().ok()?, to.parse().ok()?);
        all.extend(from..=to);
    }
    Some(all)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Two packages of two nodes (sub-NUMA clustering), each of two cores with two siblings. The
    /// numbers are Linux's: siblings in the upper half. Another node is memory alone.
    pub fn clustered(path: &str) -> Option<String> {
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
    fn nodes_may_be_parts_of_packages() {
        let cpus = read(&clustered, &Vec::from_iter(0..16));
        assert_eq!(Counts::of(&cpus).to_string(), "2 packages, 4 NUMA nodes, 8 cores of 2 threads");
        assert_eq!((cpus[3].domain(), cpus[11].domain(), cpus[12].domain()), ((0, 1), (0, 1), (4, 2)));
        assert_eq!(cpus[3].core, cpus[11].core);
    }

    #[test]
    fn a_machine_that_tells_nothing_has_a_core_for_each_cpu() {
        let cpus = read(&|_| None, &[0, 1, 5]);
        assert_eq!(Counts::of(&cpus), Counts { nodes: 1, packages: 1, cores: 3, siblings: 1 });
        assert_eq!(list("0-3,8,10-11\n"), Some(vec![0, 1, 2, 3, 8, 10, 11]));
        assert_eq!([list("\n"), list("0-x")], [Some(vec![]), None]);
    }
}
