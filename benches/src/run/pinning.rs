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
use anyhow::{Result, bail, ensure};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;
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
    /// All of them.
    const ALL: [Self; 4] = [Self::None, Self::Compact, Self::Scatter, Self::Node];
}

impl FromStr for Pin {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> Result<Self> {
        match Self::ALL.into_iter().find(|pin| pin.to_string() == name) {
            Some(pin) => Ok(pin),
            None => bail!(
                "unknown pinning '{name}'; allowed: {}",
                Self::ALL.map(|pin| pin.to_string()).join(", ")
            ),
        }
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Compact => "compact",
            Self::Scatter => "scatter",
            Self::Node => "node",
        })
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
    if pin == Pin::None {
        return Ok(Vec::new());
    }
    Ok(arrange(pin, topology::read(Path::new(topology::SYSFS), &allowed()?)?))
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

fn arrange(pin: Pin, mut cpus: Vec<Cpu>) -> Vec<usize> {
    cpus.sort_by_key(|cpu| (cpu.domain(), cpu.core, cpu.id));
    let ranks = cpus.iter().map(|cpu| Rank::of(cpu, &cpus));
    let mut ranked: Vec<_> = ranks.zip(&cpus).collect();
    ranked.sort_by_key(|&(Rank { node, core, sibling }, cpu)| match pin {
        Pin::None | Pin::Compact => (0, 0, 0, cpu.domain(), core, sibling),
        Pin::Node => (0, 0, 0, cpu.domain(), sibling, core),
        Pin::Scatter => (sibling, core, node, cpu.domain(), 0, 0),
    });
    ranked.into_iter().map(|(_, cpu)| cpu.id).collect()
}

/// The place of a CPU among its equals, from 0.
struct Rank {
    /// Of its node in the package.
    node: usize,
    /// Of its core in the node.
    core: usize,
    /// Of itself in the core.
    sibling: usize,
}

impl Rank {
    /// `cpus` are in the order of their domains, cores and ids.
    fn of(cpu: &Cpu, cpus: &[Cpu]) -> Self {
        let mut nodes: Vec<_> = cpus.iter().filter(|o| o.package == cpu.package).map(|o| o.node).collect();
        nodes.dedup();
        let in_domain = || cpus.iter().filter(|other| other.domain() == cpu.domain());
        let mut cores: Vec<_> = in_domain().map(|other| other.core).collect();
        cores.dedup();
        Self {
            node: nodes.iter().position(|&node| node == cpu.node).unwrap_or(0),
            core: cores.iter().position(|&core| core == cpu.core).unwrap_or(0),
            sibling: in_domain().filter(|other| other.core == cpu.core && other.id < cpu.id).count(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::topology::tests::{Sysfs, clustered};
    use super::*;

    /// Two packages of two cores with two siblings each, numbered as Linux does: siblings in the
    /// upper half.
    fn two_by_two_by_two() -> Vec<Cpu> {
        let cpu = |id| Cpu { id, package: id % 4 / 2, node: id % 4 / 2, core: (0, id % 2) };
        (0..8).map(cpu).collect()
    }

    #[test]
    fn compact_fills_a_core_first() {
        assert_eq!(arrange(Pin::Compact, two_by_two_by_two()), [0, 4, 1, 5, 2, 6, 3, 7]);
    }

    #[test]
    fn node_fills_a_node_first_and_takes_its_siblings_last() {
        assert_eq!(arrange(Pin::Node, two_by_two_by_two()), [0, 1, 4, 5, 2, 3, 6, 7]);
    }

    #[test]
    fn scatter_alternates_packages_and_takes_siblings_last() {
        assert_eq!(arrange(Pin::Scatter, two_by_two_by_two()), [0, 2, 1, 3, 4, 6, 5, 7]);
    }

    /// CPUs 0 to 3 and 8 to 11 are the first package: 0, 1, 8, 9 its first node.
    #[test]
    fn clusters_of_a_package_are_nodes() {
        let order = |pin| arrange(pin, clustered(&format!("order-{pin}")));
        assert_eq!(order(Pin::Compact), [0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15]);
        assert_eq!(order(Pin::Node), [0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15]);
        // The nodes are 0 and 1 of the first package, 2 and 3 of the second: in turn 0, 2, 1, 3.
        assert_eq!(order(Pin::Scatter), [0, 4, 2, 6, 1, 5, 3, 7, 8, 12, 10, 14, 9, 13, 11, 15]);
    }

    #[test]
    fn packages_that_share_a_node_are_told_apart() {
        let one_node: Vec<Cpu> = two_by_two_by_two().into_iter().map(|cpu| Cpu { node: 0, ..cpu }).collect();
        for pin in [Pin::Compact, Pin::Node, Pin::Scatter] {
            assert_eq!(arrange(pin, one_node.clone()), arrange(pin, two_by_two_by_two()), "{pin}");
        }
    }

    #[test]
    fn nodes_of_unequal_size_end_one_after_the_other() {
        let mut sysfs = Sysfs::new("unequal").node(0, "0-3").node(1, "4").node(2, "");
        for id in 0..5 {
            sysfs = sysfs.cpu(id, id / 4, id % 4);
        }
        let order = |pin| arrange(pin, sysfs.read(&[0, 1, 2, 3, 4]));
        assert_eq!(order(Pin::Scatter), [0, 4, 1, 2, 3]);
        assert_eq!(order(Pin::Node), [0, 1, 2, 3, 4]);
        assert_eq!(order(Pin::Compact), order(Pin::Node));
    }

    #[test]
    fn every_order_copes_with_a_hole_in_the_mask() {
        let order = |pin| {
            let cpus = two_by_two_by_two().into_iter().filter(|cpu| cpu.id != 0 && cpu.id != 3);
            arrange(pin, cpus.collect())
        };
        assert_eq!(order(Pin::Scatter), [4, 2, 1, 7, 6, 5]);
        assert_eq!(order(Pin::Compact), [4, 1, 5, 2, 6, 7]);
        assert_eq!(order(Pin::Node), [4, 1, 5, 2, 7, 6]);
    }

    #[test]
    fn names_round_trip_and_a_wrong_one_is_explained() {
        for pin in Pin::ALL {
            assert_eq!(pin.to_string().parse::<Pin>().unwrap(), pin);
        }
        let error = "near".parse::<Pin>().unwrap_err().to_string();
        assert_eq!(error, "unknown pinning 'near'; allowed: none, compact, scatter, node");
    }

    #[test]
    fn binding_moves_this_thread() {
        for pin in [Pin::Compact, Pin::Node, Pin::Scatter] {
            assert_eq!(order(pin).unwrap().len(), allowed().unwrap().len());
        }
        let last = *order(Pin::Compact).unwrap().last().unwrap();
        std::thread::spawn(move || {
            bind(last).unwrap();
            assert_eq!(allowed().unwrap(), [last]);
        })
        .join()
        .unwrap();
        assert!(order(Pin::None).unwrap().is_empty());
        assert!(bind(usize::MAX).is_err());
    }
}
