//! What `/proc` says about a process that takes part: for people, since numbers are used again.

use std::{fs, io};

/// A process that has a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its name.
    pub name: String,
    /// For how many seconds its thread has run.
    pub seconds: Option<u64>,
    /// Whether it maps the file. If not, the permissions did not let this be seen, and it may be
    /// another process, whose number in this namespace is that of the slot's in its own.
    pub is_verified: bool,
}

/// A file, by the numbers of its device and of itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileNumber {
    pub device: u64,
    pub inode: u64,
}

impl Process {
    /// The process `id` with this thread, if it maps `file`.
    ///
    /// The number of a slot is that in the namespace of its process. So a process of another
    /// namespace is not found here, or another process is, which does not map the file.
    pub(super) fn find(id: u32, thread: u32, file: FileNumber) -> Result<Self, &'static str> {
        let task = format!("/proc/{id}/task/{thread}");
        let name = text(&format!("{task}/comm"));
        let name = name.map_err(|_| "no such process here: it may be in another namespace")?;
        let is_verified = match text(&format!("/proc/{id}/maps")) {
            Ok(maps) => maps
                .lines()
                .filter_map(|line| maps_file(line, file))
                .reduce(|one, other| one || other)
                .ok_or("the process of that number does not map the file: it may be in another namespace")?,
            Err(_) => false,
        };
        Ok(Self { name: name.trim_end().to_string(), seconds: age(&task), is_verified })
    }
}

/// What is in a file of `/proc`. The name of a thread, and that of a file, are any bytes: the
/// kernel cuts the first one off after 15 of them.
fn text(path: &str) -> io::Result<String> {
    fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Whether a line of `/proc/PID/maps` is of `file`; `None` if it is of a file with another number.
/// Some file systems show another device there than elsewhere, so that a file of another device may
/// be this one.
fn maps_file(line: &str, file: FileNumber) -> Option<bool> {
    let mut fields = line.split_ascii_whitespace().skip(3);
    let (device, inode) = (fields.next()?, fields.next()?);
    if inode.parse() != Ok(file.inode) {
        return None;
    }
    let (major, minor) = device.split_once(':')?;
    let number = |text| u32::from_str_radix(text, 16).ok();
    Some((number(major)?, number(minor)?) == (libc::major(file.device), libc::minor(file.device)))
}

/// How many seconds ago the thread began.
fn age(task: &str) -> Option<u64> {
    let stat = text(&format!("{task}/stat")).ok()?;
    // The name is in brackets, and may contain anything.
    let begun: u64 = stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()?;
    // SAFETY: no preconditions.
    let ticks = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).ok().filter(|&ticks| ticks > 0)?;
    let uptime = fs::read_to_string("/proc/uptime").ok()?;
    let uptime: u64 = uptime.split('.').next()?.parse().ok()?;
    Some(uptime.saturating_sub(begun / ticks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_is_of_the_file_only_if_the_device_is_the_same() {
        let file = FileNumber { device: libc::makedev(0, 0x1b), inode: 77 };
        let line = |device: &str, inode| format!("7f00-7f01 rw-s 00000000 {device} {inode}    /dev/shm/x y");
        assert_eq!(maps_file(&line("00:1b", 77), file), Some(true));
        assert_eq!(maps_file(&line("fe:1b", 77), file), Some(false), "not verified");
        assert_eq!(maps_file(&line("00:1b", 78), file), None);
        assert_eq!(maps_file("7f00-7f01 rw-p", file), None);
    }
}
