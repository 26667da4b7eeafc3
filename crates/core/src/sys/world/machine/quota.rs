//! The quota of CPU time that the cgroups of the process give it (cgroup v2, `cpu.max`).
//!
//! A lock calls this, perhaps that of the allocator, or one in a signal handler. So nothing is
//! allocated, and the calls are plain system calls, at which glibc cancels no thread. The stack of
//! the caller may be a small one. So files are read in pieces, and all that is on the stack is less
//! than 700 bytes.

use super::syscall::checked;

/// The room for the name of a file. One that is longer counts as unreadable.
const LONGEST: usize = 512;

/// How much of a file is read at once: the whole of a `cpu.max`.
const PIECE: usize = 64;

/// How many CPUs the quota is the time of, rounded down, but at least 1. `None` without a quota, or
/// where none can be read.
#[inline(never)]
pub(super) fn cpus() -> Option<u32> {
    let mut search = Search::new();
    read(b"/proc/self/cgroup\0", |text| search.goes_on(text))?;
    search.found()?.least(|file| {
        let mut quota = None;
        read(file, |text| {
            quota = Some(text).filter(|text| text.len() < PIECE).and_then(parse);
            false
        })?;
        quota
    })
}

/// The directory of a cgroup.
struct Path {
    bytes: [u8; LONGEST],
    length: usize,
}

impl Path {
    const ROOT: &[u8] = b"/sys/fs/cgroup";
    const FILE: &[u8] = b"/cpu.max\0";

    fn root() -> Self {
        let mut bytes = [0; LONGEST];
        bytes[..Self::ROOT.len()].copy_from_slice(Self::ROOT);
        Self { bytes, length: Self::ROOT.len() }
    }

    /// Whether it fits.
    fn push(&mut self, byte: u8) -> bool {
        let fits = self.length + Self::FILE.len() < LONGEST;
        if fits {
            self.bytes[self.length] = byte;
            self.length += 1;
        }
        fits
    }

    /// The least quota of this cgroup and of those above it. `read` gets the name of a `cpu.max`,
    /// with a zero at its end.
    fn least(&mut self, mut read: impl FnMut(&[u8]) -> Option<u32>) -> Option<u32> {
        let mut least = None;
        // At the root there is no such file, unless it is that of a cgroup namespace.
        loop {
            if self.bytes[..self.length].ends_with(b"/") {
                self.length -= 1;
            }
            let end = self.length + Self::FILE.len();
            self.bytes[self.length..end].copy_from_slice(Self::FILE);
            let here = read(&self.bytes[..end]);
            least = least.into_iter().chain(here).min();
            let own = &self.bytes[Self::ROOT.len()..self.length];
            let Some(end) = own.iter().rposition(|&byte| byte == b'/') else { return least };
            self.length = Self::ROOT.len() + end;
        }
    }
}

/// The search for the path of the cgroup, in the text of `/proc/self/cgroup`.
struct Search {
    path: Path,
    fits: bool,
    /// How many bytes of the line are those of [`PREFIX`](Self::PREFIX), or [`OTHER`](Self::OTHER).
    matched: usize,
}

impl Search {
    const PREFIX: &[u8] = b"0::";
    const WHOLE: usize = Self::PREFIX.len();
    const OTHER: usize = usize::MAX;

    fn new() -> Self {
        Self { path: Path::root(), fits: true, matched: 0 }
    }

    /// Whether it needs more of the text than this next piece.
    fn goes_on(&mut self, text: &[u8]) -> bool {
        for &byte in text {
            match (byte, self.matched) {
                (b'\n', Self::WHOLE) => return false,
                (b'\n', _) => self.matched = 0,
                (_, Self::WHOLE) => self.fits &= self.path.push(byte),
                (_, matched) if Self::PREFIX.get(matched) == Some(&byte) => self.matched += 1,
                _ => self.matched = Self::OTHER,
            }
        }
        true
    }

    fn found(&mut self) -> Option<&mut Path> {
        (self.matched == Self::WHOLE && self.fits).then_some(&mut self.path)
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

/// Reads the file whose name is `path`, which ends with a zero, piece by piece: while `goes_on`.
/// `None` if it cannot be read.
fn read(path: &[u8], mut goes_on: impl FnMut(&[u8]) -> bool) -> Option<()> {
    assert_eq!(path.last(), Some(&0), "the kernel reads a path up to a zero");
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    // SAFETY: the path ends with a zero, and both are borrowed for the call.
    let open = || unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags) };
    let file = checked(open).ok()?;
    let mut piece = [0_u8; PIECE];
    let length = loop {
        // SAFETY: the kernel writes `piece` alone, which is borrowed for the call, and not past its
        // end.
        let fill = || unsafe { libc::syscall(libc::SYS_read, file, piece.as_mut_ptr(), piece.len()) };
        let length = checked(fill);
        match length {
            Ok(1..) if goes_on(&piece[..length.unwrap_or(0) as usize]) => {}
            _ => break length,
        }
    };
    // SAFETY: the descriptor was opened above, and is used no more.
    _ = checked(|| unsafe { libc::syscall(libc::SYS_close, file) });
    length.ok().map(drop)
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

    /// After this text, which comes in pieces of `length`.
    fn search(text: &[u8], length: usize) -> Search {
        let mut search = Search::new();
        _ = text.chunks(length).all(|piece| search.goes_on(piece));
        search
    }

    #[test]
    fn the_least_quota_on_the_way_up_counts() {
        for length in 1..=PIECE {
            let mut asked = Vec::new();
            let groups = b"3:cpuset:/x\n10::/y\n0:x:/z\n0::/a/b\n4::/c\n";
            let found = search(groups, length).found().unwrap().least(|path| {
                asked.push(String::from_utf8(path.to_vec()).unwrap());
                [Some(8), Some(2), None][asked.len() - 1]
            });
            assert_eq!(found, Some(2));
            let paths = ["/a/b", "/a", ""].map(|path| format!("/sys/fs/cgroup{path}/cpu.max\0"));
            assert_eq!(asked, paths);
            assert!(search(b"1:cpu:/\n", length).found().is_none());
        }
    }

    #[test]
    fn the_root_is_asked_once() {
        let mut asked = 0;
        search(b"0::/", 1).found().unwrap().least(|_| {
            asked += 1;
            None
        });
        assert_eq!(asked, 1);
    }

    #[test]
    fn a_name_is_used_whole_or_not_at_all() {
        let line = |length| [&b"0::"[..], &[b'/'; LONGEST][..length]].concat();
        let longest = LONGEST - Path::ROOT.len() - Path::FILE.len();
        let mut last = 0;
        search(&line(longest), 9).found().unwrap().least(|name| {
            last = last.max(name.len());
            None
        });
        assert_eq!(last, LONGEST - 1, "a slash at the end is left out");
        assert!(search(&line(longest + 1), 9).found().is_none());
    }

    #[test]
    fn a_file_is_read_to_its_end() {
        let length = |path| {
            let mut length = 0;
            let read = read(path, |text| {
                length += text.len();
                true
            });
            read.map(|()| length)
        };
        assert_eq!(length(b"/proc/self/cgroup\0"), Some(std::fs::read("/proc/self/cgroup").unwrap().len()));
        assert_eq!(length(b"/no/such/file\0"), None);
        assert_eq!(length(b"/proc\0"), None, "it is a directory");
    }
}
