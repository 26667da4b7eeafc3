//! What `/proc` says about a process that takes part: for people, since numbers are used again.

use std::fs;

/// A process that has a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its name.
    pub name: String,
    /// For how many seconds its thread has run.
    pub seconds: Option<u64>,
}

impl Process {
    /// The process `id` with this thread, if it maps the file with the number `inode`.
    ///
    /// The number of a slot is that in the namespace of its process. So a process of another
    /// namespace is not found here, or another process is, which does not map the file.
    pub(super) fn find(id: u32, thread: u32, inode: u64) -> Result<Self, &'static str> {
        let task = format!("/proc/{id}/task/{thread}");
        let name = fs::read_to_string(format!("{task}/comm"));
        let name = name.map_err(|_| "no such process here: it may be in another namespace")?;
        match fs::read_to_string(format!("/proc/{id}/maps")) {
            Ok(maps) if !maps.lines().any(|line| maps_inode(line, inode)) => {
                Err("the process of that number does not map the file: it may be in another namespace")
            }
            // Without the permission nothing speaks against it.
            _ => Ok(Self { name: name.trim_end().to_string(), seconds: age(&task) }),
        }
    }
}

/// Whether a line of `/proc/PID/maps` is of the file with the number `inode`.
fn maps_inode(line: &str, inode: u64) -> bool {
    line.split_ascii_whitespace().nth(4).is_some_and(|number| number.parse() == Ok(inode))
}

/// How many seconds ago the thread began.
fn age(task: &str) -> Option<u64> {
    let stat = fs::read_to_string(format!("{task}/stat")).ok()?;
    // The name is in brackets, and may contain anything.
    let begun: u64 = stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()?;
    // SAFETY: no preconditions.
    let ticks = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).ok().filter(|&ticks| ticks > 0)?;
    let uptime = fs::read_to_string("/proc/uptime").ok()?;
    let uptime: u64 = uptime.split('.').next()?.parse().ok()?;
    Some(uptime.saturating_sub(begun / ticks))
}
