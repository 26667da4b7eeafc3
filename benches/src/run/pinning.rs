//! On which CPU each worker runs.
//!
//! Workers are dealt round-robin to an order of CPUs. `Compact` fills one core with its SMT
//! siblings, then the next core of the package, then the next package; `Scatter` takes one CPU of
//! every package in turn, then the next core of each, and siblings last. Only CPUs of the process's
//! affinity mask are used; the topology comes from sysfs.

use anyhow::{Context, Result, bail, ensure};
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
}

impl FromStr for Pin {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "none" => Ok(Self::None),
            "compact" => Ok(Self::Compact),
            "scatter" => Ok(Self::Scatter),
            _ => bail!("unknown pinning '{name}'; allowed: none, compact, scatter"),
        }
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Compact => "compact",
            Self::Scatter => "scatter",
        })
    }
}

/// A CPU and its place in the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cpu {
    id: usize,
    package: usize,
    core: usize,
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
    let cpus = topology(&allowed()?)?;
    Ok(arrange(pin, cpus))
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

fn topology(ids: &[usize]) -> Result<Vec<Cpu>> {
    ids.iter()
        .map(|&id| {
            let folder = format!("/sys/devices/system/cpu/cpu{id}/topology");
            // A kernel without this folder (a sandbox) still has CPUs: each counts as a core of its
            // own.
            if !Path::new(&folder).exists() {
                return Ok(Cpu { id, package: 0, core: id });
            }
            Ok(Cpu {
                id,
                package: number(&format!("{folder}/physical_package_id"))?,
                core: number(&format!("{folder}/core_id"))?,
            })
        })
        .collect()
}

fn number(path: &str) -> Result<usize> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
    // Some virtual machines say -1 for "unknown".
    Ok(text.trim().parse().unwrap_or(0))
}

fn arrange(pin: Pin, mut cpus: Vec<Cpu>) -> Vec<usize> {
    cpus.sort_by_key(|cpu| (cpu.package, cpu.core, cpu.id));
    if pin == Pin::Scatter {
        // Rank of a CPU among the siblings of its core, and of its core in its package.
        let keys: Vec<_> = cpus
            .iter()
            .map(|cpu| {
                let siblings = cpus
                    .iter()
                    .filter(|o| (o.package, o.core) == (cpu.package, cpu.core) && o.id < cpu.id)
                    .count();
                let mut cores: Vec<_> =
                    cpus.iter().filter(|o| o.package == cpu.package).map(|o| o.core).collect();
                cores.dedup();
                let core = cores.iter().position(|&core| core == cpu.core).unwrap_or(0);
                (siblings, core, cpu.package, cpu.id)
            })
            .collect();
        let mut ranked: Vec<_> = keys.into_iter().zip(cpus).collect();
        ranked.sort_by_key(|(key, _)| *key);
        return ranked.into_iter().map(|(_, cpu)| cpu.id).collect();
    }
    cpus.into_iter().map(|cpu| cpu.id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two packages of two cores with two siblings each, numbered as Linux does: siblings in the
    /// upper half.
    fn two_by_two_by_two() -> Vec<Cpu> {
        (0..8).map(|id| Cpu { id, package: id % 4 / 2, core: id % 2 }).collect()
    }

    #[test]
    fn compact_fills_a_core_first() {
        assert_eq!(arrange(Pin::Compact, two_by_two_by_two()), [0, 4, 1, 5, 2, 6, 3, 7]);
    }

    #[test]
    fn scatter_alternates_packages_and_takes_siblings_last() {
        assert_eq!(arrange(Pin::Scatter, two_by_two_by_two()), [0, 2, 1, 3, 4, 6, 5, 7]);
    }

    #[test]
    fn scatter_copes_with_a_hole_in_the_mask() {
        let cpus = two_by_two_by_two().into_iter().filter(|cpu| cpu.id != 0 && cpu.id != 3).collect();
        assert_eq!(arrange(Pin::Scatter, cpus), [4, 2, 1, 7, 6, 5]);
    }

    #[test]
    fn names_round_trip_and_a_wrong_one_is_explained() {
        for pin in [Pin::None, Pin::Compact, Pin::Scatter] {
            assert_eq!(pin.to_string().parse::<Pin>().unwrap(), pin);
        }
        let error = "near".parse::<Pin>().unwrap_err().to_string();
        assert_eq!(error, "unknown pinning 'near'; allowed: none, compact, scatter");
    }

    #[test]
    fn binding_moves_this_thread() {
        let cpus = order(Pin::Compact).unwrap();
        assert_eq!(cpus.len(), allowed().unwrap().len());
        let last = *cpus.last().unwrap();
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
