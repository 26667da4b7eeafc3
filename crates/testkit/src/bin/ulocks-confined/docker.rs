//! Docker's seccomp profiles, old and new, as filters of system calls.
//!
//! A profile is a list of calls that are allowed. What is not in the list is refused: with `EPERM`,
//! and by newer versions of runc with `ENOSYS` if the call is newer than all calls of the list. The
//! numbers below are what remains of x86-64's calls up to Linux 7.2, in a container without further
//! capabilities. Conditions on arguments are left out: both profiles allow `clone` without new name
//! spaces, and `personality` and `socket` for some arguments.
//!
//! | profile | from |
//! |---|---|
//! | [`OLD`] | Docker 19.03: `profiles/seccomp/default.json` of moby at aa6a9891b09c (March 2020) |
//! | [`NEW`] | Docker 29: `default.json` of `github.com/moby/profiles/seccomp` v0.3.0 |

use std::io;
use std::ops::RangeInclusive;
use ulocks_testkit::refusal::install;

/// The last number there is.
const MAX: u32 = u32::MAX;

/// A profile: the calls that it refuses, with the error.
pub struct Profile {
    /// Its name in command lines.
    pub name: &'static str,
    refused: &'static [(RangeInclusive<u32>, libc::c_int)],
}

/// What both refuse: calls that administer a machine.
macro_rules! profile {
    ($name:literal: $($range:expr => $errno:ident),*) => {
        Profile {
            name: $name,
            refused: &[
                (103..=103, libc::EPERM), // syslog
                (134..=134, libc::EPERM), // uselib
                (136..=136, libc::EPERM), // ustat
                (139..=139, libc::EPERM), // sysfs
                (153..=153, libc::EPERM), // vhangup
                (155..=156, libc::EPERM), // pivot_root, _sysctl
                (163..=185, libc::EPERM), // acct, settimeofday, mount, .. , security
                (212..=212, libc::EPERM), // lookup_dcookie
                (227..=227, libc::EPERM), // clock_settime
                (236..=239, libc::EPERM), // vserver, mbind, set_mempolicy, get_mempolicy
                (246..=246, libc::EPERM), // kexec_load
                (248..=250, libc::EPERM), // add_key, request_key, keyctl
                (256..=256, libc::EPERM), // migrate_pages
                (272..=272, libc::EPERM), // unshare
                (279..=279, libc::EPERM), // move_pages
                (298..=298, libc::EPERM), // perf_event_open
                (300..=300, libc::EPERM), // fanotify_init
                (304..=304, libc::EPERM), // open_by_handle_at
                (308..=308, libc::EPERM), // setns
                (312..=313, libc::EPERM), // kcmp, finit_module
                (320..=321, libc::EPERM), // kexec_file_load, bpf
                (323..=323, libc::EPERM), // userfaultfd
                $(($range, libc::$errno)),*
            ],
        }
    };
}

/// Docker 19.03.
pub const OLD: Profile = profile! { "docker-old":
    303..=303 => EPERM, // name_to_handle_at
    305..=305 => EPERM, // clock_adjtime
    310..=311 => EPERM, // process_vm_readv, process_vm_writev
    324..=324 => EPERM, // membarrier
    329..=331 => EPERM, // pkey_mprotect, pkey_alloc, pkey_free
    334..=MAX => EPERM  // rseq, pidfd_open, clone3, futex_waitv, and all that came later
};

/// Docker 29.
pub const NEW: Profile = profile! { "docker-new":
    425..=433 => EPERM,  // io_uring_setup, open_tree, .. , fspick
    435..=435 => ENOSYS, // clone3
    438..=438 => EPERM,  // pidfd_getfd
    440..=440 => EPERM,  // process_madvise
    442..=443 => EPERM,  // mount_setattr, quotactl_fd
    450..=450 => EPERM,  // set_mempolicy_home_node
    459..=461 => EPERM,  // lsm_get_self_attr, lsm_set_self_attr, lsm_list_modules
    467..=MAX => ENOSYS  // what came after the newest call of the list
};

/// The calls that the family makes, or the C library for it, that a profile might refuse.
const OURS: [(&str, libc::c_long); 12] = [
    ("clone3", libc::SYS_clone3),
    ("futex", libc::SYS_futex),
    ("futex_waitv", libc::SYS_futex_waitv),
    ("get_robust_list", libc::SYS_get_robust_list),
    ("membarrier", libc::SYS_membarrier),
    ("prctl", libc::SYS_prctl),
    ("process_vm_readv", libc::SYS_process_vm_readv),
    ("rseq", libc::SYS_rseq),
    ("rt_tgsigqueueinfo", libc::SYS_rt_tgsigqueueinfo),
    ("sched_getaffinity", libc::SYS_sched_getaffinity),
    ("set_robust_list", libc::SYS_set_robust_list),
    ("tgkill", libc::SYS_tgkill),
];

impl Profile {
    /// The profile called `name`.
    pub fn named(name: &str) -> Option<&'static Self> {
        [&OLD, &NEW].into_iter().find(|profile| profile.name == name)
    }

    /// The calling thread, and what it starts from here on, is under the profile.
    pub fn confine(&self) {
        const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
        const AT_LEAST: u16 = 0x35; // BPF_JMP | BPF_JGE | BPF_K
        const ABOVE: u16 = 0x25; // BPF_JMP | BPF_JGT | BPF_K
        const ANSWER: u16 = 0x06; // BPF_RET | BPF_K
        const NUMBER_AT: u32 = 0;
        const ERRNO: u32 = 0x0005_0000;
        const ALLOW: u32 = 0x7fff_0000;

        let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
        let mut program = vec![step(LOAD, 0, 0, NUMBER_AT)];
        for (range, errno) in self.refused {
            program.push(step(AT_LEAST, 0, 2, *range.start()));
            program.push(step(ABOVE, 1, 0, *range.end()));
            program.push(step(ANSWER, 0, 0, ERRNO | *errno as u32));
        }
        program.push(step(ANSWER, 0, 0, ALLOW));
        install(program);
    }
}

/// Which of the family's calls the kernel refuses to the calling thread. Each is tried with
/// arguments that no call accepts.
pub fn refused() -> Vec<&'static str> {
    let is_refused = |number: libc::c_long| {
        // To an unknown command a futex answers `ENOSYS`; to a known one, that there is no memory.
        let second = if number == libc::SYS_futex { i64::from(libc::FUTEX_WAKE) } else { -1 };
        // SAFETY: no call of the list accepts these arguments, so none does anything: there is no
        // process, thread, command or size of that number, and no memory at that address.
        let done = unsafe { libc::syscall(number, -1_i64, second, -1_i64, -1_i64, -1_i64, -1_i64) };
        let error = io::Error::last_os_error().raw_os_error();
        done == -1 && matches!(error, Some(libc::EPERM | libc::ENOSYS))
    };
    OURS.into_iter().filter(|&(_, number)| is_refused(number)).map(|(name, _)| name).collect()
}
