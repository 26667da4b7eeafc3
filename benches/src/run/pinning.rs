//! On which CPU each worker runs.
//!
//! Workers are dealt round-robin to an order of CPUs. In each of these orders a *node* is a NUMA
//! node; where packages share a node, it is a package.
//!
//! | pinning | the next CPU is |
//! |---|---|
//! | `compact` | the next sibling of this core; then the next core of this node; then the next node of this package; then the next package |
//! | `node` | the next core of this node, one CPU of each; then their siblings; then the next node of this package; then the next package |
//! | `scatter` | in the next node, and that of another package; a core that has no worker yet, as long as there is one in any node; then siblings |
//!
//! So `node` and `compact` go to the same nodes in the same order, and differ inside a node: eight
//! workers on a node of eight cores with two siblings have a core each under `node`, and four cores
//! under `compact`. Without siblings the two are the same.
//!
//! Only CPUs of the process's affinity mask are used; the [`topology`] comes from sysfs.

use super::topology::{self, Cpu};
use anyhow::{Context, Error, Result, ensure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// Where workers run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pin {
    /// Wherever the scheduler likes.
    None,
    /// Neighbours first.
    Compact,
    /// As far apart as possible.
    #[default]
    Scatter,
    /// One node after the other, in each of them cores before siblings.
    Node,
}

impl Pin {
    /// All of them, in the order of their declaration.
    const ALL: [(Self, &str); 4] =
        [(Self::None, "none"), (Self::Compact, "compact"), (Self::Scatter, "scatter"), (Self::Node, "node")];
}

impl FromStr for Pin {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let known = Self::ALL.iter().find(|pin| pin.1 == name);
        let allowed = Self::ALL.map(|pin| pin.1).join(", ");
        Ok(known.with_context(|| format!("unknown pinning '{name}'; allowed: {allowed}"))?.0)
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ALL[*self as usize].1)
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
        _ => Ok(arrange(pin, &topology::read(&topology::sysfs, &allowed()?))),
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

fn arrange(pin: Pin, cpus: &[Cpu]) -> Vec<usize> {
    let mut ids: Vec<_> = cpus.iter().map(|cpu| (place(pin, cpu, cpus), cpu.id)).collect();
    ids.sort_unstable();
    ids.into_iter().map(|(_, id)| id).collect()
}

/// What comes first has the lower place.
fn place(pin: Pin, cpu: &Cpu, cpus: &[Cpu]) -> (usize, usize, usize, (usize, usize)) {
    /// How many different ones come before `mine`.
    fn rank(mine: usize, all: impl Iterator<Item = usize>) -> usize {
        all.filter(|&other| other < mine).collect::<BTreeSet<_>>().len()
    }
    let in_domain = || cpus.iter().filter(|other| other.domain() == cpu.domain());
    let sibling = rank(cpu.id, in_domain().filter(|other| other.core == cpu.core).map(|other| other.id));
    let core = rank(cpu.core, in_domain().map(|other| other.core));
    let in_package = cpus.iter().filter(|other| other.package == cpu.package);
    match pin {
        Pin::None | Pin::Compact => (cpu.package, cpu.node, core, (sibling, 0)),
        Pin::Node => (cpu.package, cpu.node, sibling, (core, 0)),
        Pin::Scatter => (sibling, core, rank(cpu.node, in_package.map(|other| other.node)), cpu.domain()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::topology::tests::clustered;
    use super::*;

    const PINS: [Pin; 3] = [Pin::Compact, Pin::Node, Pin::Scatter];

    /// Two packages of two cores with two siblings each, numbered as Linux does: siblings in the
    /// upper half.
    fn two_by_two_by_two() -> Vec<Cpu> {
        let cpu = |id| Cpu { id, core: id % 4, node: id % 4 / 2, package: id % 4 / 2 };
        (0..8).map(cpu).collect()
    }

    fn orders(cpus: &[Cpu]) -> [Vec<usize>; 3] {
        PINS.map(|pin| arrange(pin, cpus))
    }

    #[test]
    fn compact_fills_cores_node_fills_nodes_and_scatter_spreads() {
        let expected = [[0, 4, 1, 5, 2, 6, 3, 7], [0, 1, 4, 5, 2, 3, 6, 7], [0, 2, 1, 3, 4, 6, 5, 7]];
        let mut cpus = two_by_two_by_two();
        assert_eq!(orders(&cpus), expected);
        cpus.iter_mut().for_each(|cpu| cpu.node = 0);
        assert_eq!(orders(&cpus), expected, "packages that share a node are told apart");
        cpus.retain(|cpu| ![0, 3].contains(&cpu.id));
        let expected = [[4, 1, 5, 2, 6, 7], [4, 1, 5, 2, 7, 6], [4, 2, 1, 7, 6, 5]];
        assert_eq!(orders(&cpus), expected, "the mask has a hole");
        let unequal = |id| Cpu { id, core: id, node: id / 4, package: id / 4 * 4 };
        let expected = [[0, 1, 2, 3, 4], [0, 1, 2, 3, 4], [0, 4, 1, 2, 3]];
        assert_eq!(orders(&Vec::from_iter((0..5).map(unequal))), expected);
    }

    /// CPUs 0 to 3 and 8 to 11 are the first package: 0, 1, 8, 9 its first node. Nodes 0 and 1 are
    /// of the first package, 2 and 3 of the second: scattered they are 0, 2, 1, 3.
    #[test]
    fn clusters_of_a_package_are_nodes() {
        let expected = [
            [0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15],
            [0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15],
            [0, 4, 2, 6, 1, 5, 3, 7, 8, 12, 10, 14, 9, 13, 11, 15],
        ];
        assert_eq!(orders(&topology::read(&clustered, &Vec::from_iter(0..16))), expected);
    }

    #[test]
    fn names_round_trip_and_a_wrong_one_is_explained() {
        for (pin, name) in Pin::ALL {
            assert_eq!((pin.to_string().as_str(), name.parse().unwrap()), (name, pin));
        }
        let error = "near".parse::<Pin>().unwrap_err().to_string();
        assert_eq!(error, "unknown pinning 'near'; allowed: none, compact, scatter, node");
    }

    #[test]
    fn binding_moves_this_thread() {
        for pin in PINS {
            assert_eq!(order(pin).unwrap().len(), allowed().unwrap().len());
        }
        assert!(order(Pin::None).unwrap().is_empty() && bind(usize::MAX).is_err());
        let last = *order(Pin::Compact).unwrap().last().unwrap();
        let bound = std::thread::spawn(move || bind(last).and_then(|()| allowed()));
        assert_eq!(bound.join().unwrap().unwrap(), [last]);
    }
}
