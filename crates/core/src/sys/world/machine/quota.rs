//! The quota of CPU time that the cgroups of the process give it (cgroup v2, `cpu.max`).
//!
//! A lock calls this, perhaps that of the allocator, or one in a signal handler. So nothing is
//! allocated, and the calls are plain system calls, at which glibc cancels no thread.

use super::syscall::checked;

/// A path or a file that is longer counts as unreadable.
const LONGEST: usize = 4096;

/// How many CPUs the quota is the time of, rounded down, but at least 1. `None` without a quota, or
/// where none can be read.
pub(super) fn cpus() -> Option<u32> {
    let mut groups = [0; LONGEST];
    let groups = read(b"/proc/self/cgroup\0", &mut groups)?;
    least(own(groups)?, |path| {
        let mut limit = [0; 64];
        read(path, &mut limit).and_then(parse)
    })
}

/// The path of the cgroup, in the text of `/proc/self/cgroup`.
fn own(groups: &[u8]) -> Option<&[u8]> {
    groups.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"0::"))
}

/// The least quota of the cgroup at `path` and of those above it. `read` gets the path of a
/// `cpu.max`, with a zero at its end.
fn least(mut path: &[u8], mut read: impl FnMut(&[u8]) -> Option<u32>) -> Option<u32> {
    let mut least = None;
    // At the root there is no such file, unless it is that of a cgroup namespace.
    loop {
        path = path.strip_suffix(b"/").unwrap_or(path);
        let mut name = [0; LONGEST];
        let mut length = 0;
        for part in [&b"/sys/fs/cgroup"[..], path, b"/cpu.max\0"] {
            name.get_mut(length..length + part.len())?.copy_from_slice(part);
            length += part.len();
        }
        let here = read(&name[..length]);
        least = least.into_iter().chain(here).min();
        let Some(end) = path.iter().rposition(|&byte| byte == b'/') else { return least };
        path = &path[..end];
    }
}

/// The quota in a `cpu.max`: `max PERIOD`, or `TIME PERIOD`.
fn parse(limit: &[u8]) -> Option<u32> {
    let mut numbers = limit
        .split(|byte| byte.is_ascii_whitespace())
        .map(|word| core::str::from_utf8(word).ok().and_then(|word| word.parse::<u64>().ok()));
    let (time, period) = (numbers.next()??, numbers.next()??);
    let cpus = time.checked_div(period)?.max(1);
    u32::try_from(cpus).ok()
}

/// What stands in the file at `path`, which ends with a zero: all of it.
fn read<'a>(path: &[u8], into: &'a mut [u8]) -> Option<&'a [u8]> {
    assert_eq!(path.last(), Some(&0), "the kernel reads a path up to a zero");
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    // SAFETY: the path ends with a zero, and both are borrowed for the call.
    let open = || unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags) };
    let file = checked(open).ok()?;
    // SAFETY: the kernel writes `into` alone, which is borrowed for the call, and not past its end.
    let fill = || unsafe { libc::syscall(libc::SYS_read, file, into.as_mut_ptr(), into.len()) };
    let length = checked(fill);
    // SAFETY: the descriptor was opened above, and is used no more.
    _ = checked(|| unsafe { libc::syscall(libc::SYS_close, file) });
    into.get(..length.ok()? as usize).filter(|text| text.len() < LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_whole_cpus() {
        assert_eq!(parse(b"max 100000\n"), None);
        assert_eq!(parse(b"250000 100000\n"), Some(2));
        assert_eq!(parse(b"10000 100000\n"), Some(1));
        for nothing in [&b""[..], b"100000", b"100000 0", b"x 1", b"18446744073709551615 1", b"\xff 1"] {
            assert_eq!(parse(nothing), None);
        }
    }

    #[test]
    fn the_least_quota_on_the_way_up_counts() {
        let groups = b"3:cpuset:/x\n0::/a/b\n";
        let mut asked = Vec::new();
        let found = least(own(groups).unwrap(), |path| {
            asked.push(String::from_utf8(path.to_vec()).unwrap());
            [Some(8), Some(2), None][asked.len() - 1]
        });
        assert_eq!(found, Some(2));
        let paths = ["/a/b", "/a", ""].map(|path| format!("/sys/fs/cgroup{path}/cpu.max\0"));
        assert_eq!(asked, paths);
        assert_eq!(own(b"1:cpu:/\n"), None);
    }

    #[test]
    fn the_root_is_asked_once() {
        let mut asked = 0;
        least(b"/", |_| {
            asked += 1;
            None
        });
        assert_eq!(asked, 1);
        assert_eq!(least(&[b'/'; LONGEST], |_| Some(1)), None);
    }

    #[test]
    fn a_file_is_read_whole_or_not_at_all() {
        let mut text = [0; LONGEST];
        assert!(read(b"/proc/self/cgroup\0", &mut text).is_some());
        assert_eq!(read(b"/no/such/file\0", &mut text), None);
        assert_eq!(read(b"/proc/self/exe\0", &mut text), None, "it is longer");
    }
}
