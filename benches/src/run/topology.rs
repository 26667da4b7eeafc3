//! Where the CPUs of this machine are: in which core, NUMA node and package. Read from sysfs.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::fs::{read_dir, read_to_string};
use std::path::Path;

/// Where the kernel describes its devices.
pub(super) const SYSFS: &str = "/sys/devices/system";

/// A CPU and its place in the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cpu {
    /// The kernel's number of it.
    pub id: usize,
    /// The socket.
    pub package: usize,
    /// The memory that is near. A node may be a part of a package (sub-NUMA clustering).
    pub node: usize,
    /// Die and core. Numbers of cores may repeat in another die and in another package.
    pub core: (usize, usize),
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
        let folder = Path::new(SYSFS);
        let online = list(read_to_string(folder.join("cpu/online")).ok()?.trim())?;
        Some(Self::of(&read(folder, &online).ok()?))
    }

    pub(super) fn of(cpus: &[Cpu]) -> Self {
        let nodes: BTreeSet<_> = cpus.iter().map(|cpu| cpu.node).collect();
        let packages: BTreeSet<_> = cpus.iter().map(|cpu| cpu.package).collect();
        let cores: BTreeSet<_> = cpus.iter().map(|cpu| (cpu.package, cpu.core)).collect();
        let threads = |core| cpus.iter().filter(|cpu| (cpu.package, cpu.core) == core).count();
        Self {
            nodes: nodes.len(),
            packages: packages.len(),
            cores: cores.len(),
            siblings: cores.iter().map(|&core| threads(core)).max().unwrap_or(0),
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |n: usize, one: &str| format!("{n} {one}{}", if n == 1 { "" } else { "s" });
        let Self { nodes, packages, cores, siblings } = *self;
        write!(
            f,
            "{}, {}, {} of {}",
            count(packages, "package"),
            count(nodes, "NUMA node"),
            count(cores, "core"),
            count(siblings, "thread")
        )
    }
}

/// The CPUs with these ids. `sysfs` is [`SYSFS`], or a copy of it.
///
/// The ids are those that a thread can run on, so none of them is offline.
pub(super) fn read(sysfs: &Path, ids: &[usize]) -> Result<Vec<Cpu>> {
    let nodes = nodes(&sysfs.join("node"))?;
    let node_of = |id| nodes.iter().find(|(_, cpus)| cpus.contains(&id)).map_or(0, |&(node, _)| node);
    ids.iter()
        .map(|&id| {
            let folder = sysfs.join(format!("cpu/cpu{id}/topology"));
            let node = node_of(id);
            // A kernel without this folder (a sandbox) still has CPUs: each counts as a core of its
            // own.
            if !folder.exists() {
                return Ok(Cpu { id, package: 0, node, core: (0, id) });
            }
            let number = |name: &str| number(&folder.join(name));
            let die = if folder.join("die_id").exists() { number("die_id")? } else { 0 };
            Ok(Cpu { id, package: number("physical_package_id")?, node, core: (die, number("core_id")?) })
        })
        .collect()
}

/// The NUMA nodes and their CPUs; none where the kernel knows no nodes. A node may be memory
/// without CPUs.
fn nodes(folder: &Path) -> Result<Vec<(usize, Vec<usize>)>> {
    let Ok(entries) = read_dir(folder) else { return Ok(Vec::new()) };
    let mut nodes = Vec::new();
    for entry in entries {
        let entry = entry.with_context(|| format!("cannot read {}", folder.display()))?;
        let name = entry.file_name();
        let node = name.to_str().and_then(|name| name.strip_prefix("node")?.parse().ok());
        let Some(node) = node else { continue };
        let path = entry.path().join("cpulist");
        let text = read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let cpus =
            list(text.trim()).with_context(|| format!("{} is no list of CPUs: {text}", path.display()))?;
        nodes.push((node, cpus));
    }
    nodes.sort();
    Ok(nodes)
}

/// Parses the kernel's form of a list: `0-3,8,10-11`, or nothing.
fn list(text: &str) -> Option<Vec<usize>> {
    let mut all = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to): (usize, usize) = (from.parse().ok()?, to.parse().ok()?);
        all.extend(from..=to);
    }
    Some(all)
}

fn number(path: &Path) -> Result<usize> {
    let text = read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    // Some virtual machines say -1 for "unknown".
    Ok(text.trim().parse().unwrap_or(0))
}

#[cfg(test)]
pub(super) mod tests;
