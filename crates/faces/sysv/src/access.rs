//! Which process may do what: user, group and access bits of an array, as the kernel's `ipcperms`.
//!
//! The check is made in the process that asks. So it is *advisory*: a process that can open the
//! file can write to it. The file's access bits let in the processes that the array lets in for
//! reading or writing, for every operation needs to write to the file.

use crate::array::Array;
use crate::process;
use crate::sys;
use ulocks_core::sync::Ordering::{Acquire, Relaxed};

/// Permission to read, as in the lowest three bits of a mode.
pub const READ: u32 = 0o444;
/// Permission to alter.
pub const WRITE: u32 = 0o222;

const CAP_IPC_OWNER: u32 = 15;
const CAP_SYS_ADMIN: u32 = 21;

/// The effective user of the caller.
pub fn user() -> u32 {
    // SAFETY: the call takes nothing and cannot fail.
    unsafe { sys::raw(libc::SYS_geteuid, [0; 6]) as u32 }
}

/// The effective group of the caller.
pub fn group() -> u32 {
    // SAFETY: the call takes nothing and cannot fail.
    unsafe { sys::raw(libc::SYS_getegid, [0; 6]) as u32 }
}

fn is_member(group: u32) -> bool {
    if self::group() == group {
        return true;
    }
    let mut groups = [0_u32; 1_024];
    // SAFETY: the list is borrowed, with its length. A thread in more groups gets an error.
    let len =
        unsafe { sys::call(libc::SYS_getgroups, [groups.len(), groups.as_mut_ptr() as usize, 0, 0, 0, 0]) };
    len.is_ok_and(|len| groups[..len.min(groups.len())].contains(&group))
}

/// Whether the thread has a capability.
fn has(capability: u32) -> bool {
    const VERSION_3: u32 = 0x2008_0522;
    let header = [VERSION_3, 0_u32];
    let mut sets = [0_u32; 6];
    let a = [header.as_ptr() as usize, sets.as_mut_ptr() as usize, 0, 0, 0, 0];
    // SAFETY: both places have the size of the structures of version 3; 0 is the calling thread.
    let answer = unsafe { sys::call(libc::SYS_capget, a) };
    answer.is_ok() && sets[0] & 1 << capability != 0
}

/// Whether the array lets the caller do this: bits as in a mode, of any class.
pub fn allows(array: &Array, wanted: u32) -> bool {
    let head = array.head();
    let wanted = (wanted >> 6 | wanted >> 3 | wanted) & 0o7;
    let mode = head.mode.load(Relaxed);
    let granted = if is_owner(array) {
        mode >> 6
    } else if is_member(head.cgid.load(Relaxed)) || is_member(head.gid.load(Relaxed)) {
        mode >> 3
    } else {
        mode
    };
    wanted & !granted == 0 || has(CAP_IPC_OWNER)
}

fn is_owner(array: &Array) -> bool {
    let (head, user) = (array.head(), user());
    user == head.uid.load(Relaxed) || user == head.cuid.load(Relaxed)
}

/// Whether the caller may remove the array or change its access.
pub fn may_administer(array: &Array) -> bool {
    is_owner(array) || has(CAP_SYS_ADMIN)
}

/// What a grant of [`Array::granted`] looks like for now: bit 0 is to read, bit 1 to alter.
#[inline]
fn grant_now(array: &Array, process: u32) -> u64 {
    u64::from(process) << 32 | u64::from(array.head().access.load(Relaxed) << 2)
}

/// Whether [`allows`] has said so before, in this process, since the last change of access.
#[inline]
pub fn is_granted(array: &Array, process: u32, alters: bool) -> bool {
    let bit = if alters { 2 } else { 1 };
    let granted = array.granted.load(Relaxed);
    granted & !3 == grant_now(array, process) && granted & bit != 0
}

/// [`allows`], remembered for operations.
pub fn check(array: &Array, alters: bool) -> bool {
    let process = process::number();
    if is_granted(array, process, alters) && !crate::config::is_strict() {
        return true;
    }
    let now = grant_now(array, process);
    if !allows(array, if alters { WRITE } else { READ }) {
        return false;
    }
    let before = array.granted.load(Relaxed);
    let kept = if before & !3 == now { before & 3 } else { 0 };
    array.granted.store(now | kept | if alters { 2 } else { 1 }, Relaxed);
    true
}

/// The access bits of the file of an array.
pub fn file_mode(array: &Array) -> u32 {
    const OWNER: u32 = 0o600;
    const ALL: u32 = 0o666;
    let head = array.head();
    let is_moved = head.uid.load(Acquire) != head.cuid.load(Acquire)
        || head.gid.load(Acquire) != head.cgid.load(Acquire);
    if is_moved {
        return ALL; // The file cannot have two owners.
    }
    let mode = head.mode.load(Relaxed);
    [(0o060, 0o060), (0o006, 0o006)]
        .into_iter()
        .filter(|(class, _)| mode & class != 0)
        .fold(OWNER, |all, (_, bits)| all | bits)
}
