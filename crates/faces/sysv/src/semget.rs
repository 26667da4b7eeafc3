//! `semget`.

use crate::array::{self, New};
use crate::config;
use crate::registry::{self, Section};
use crate::sys::{self, Answer};
use crate::{access, process};

/// `semget`.
///
/// # Errors
/// As the kernel's, in its order. EIO if the directory is damaged.
pub fn semget(key: i32, nsems: i32, flags: i32) -> Answer {
    let Some(config) = config::get()? else {
        let a = [key as usize, nsems as usize, flags as usize, 0, 0, 0];
        // SAFETY: the call takes no pointers.
        return unsafe { sys::call(libc::SYS_semget, a) }.map(|answer| answer as i32);
    };
    let nsems = u32::try_from(nsems).map_err(|_| libc::EINVAL)?;
    if nsems > config.semmsl {
        return Err(libc::EINVAL);
    }
    process::number();
    let section = registry::get()?.enter()?;
    let answer = locked(&section, &config, key, nsems, flags);
    section.leave();
    answer.map(|id| id as i32)
}

fn locked(section: &Section, config: &config::Config, key: i32, nsems: u32, flags: i32) -> Answer<u32> {
    while let Some(id) = section.find(key as u32).filter(|_| key != libc::IPC_PRIVATE) {
        let has = section.registry.semaphores_of(id).unwrap_or(0);
        let array = match array::open(id) {
            Err(libc::EINVAL) => {
                section.remove(id); // Invariant 3 of the registry.
                continue;
            }
            answer => answer,
        };
        if flags & libc::IPC_CREAT != 0 && flags & libc::IPC_EXCL != 0 {
            return Err(libc::EEXIST);
        }
        if nsems > has {
            return Err(libc::EINVAL);
        }
        return match array {
            Err(libc::EACCES) if flags & 0o777 == 0 => Ok(id), // No rights are asked for.
            Err(error) => Err(error),
            Ok(array) if access::allows(array, flags as u32) => Ok(id),
            Ok(_) => Err(libc::EACCES),
        };
    }
    section.registry.check()?; // In a registry that was lost, no key is found.
    if key != libc::IPC_PRIVATE && flags & libc::IPC_CREAT == 0 {
        return Err(libc::ENOENT);
    }
    if nsems == 0 {
        return Err(libc::EINVAL);
    }
    let (arrays, semaphores) = section.registry.used();
    if semaphores + u64::from(nsems) > u64::from(config.semmns) || arrays >= config.semmni {
        return Err(libc::ENOSPC);
    }
    let id = section.fresh()?;
    array::make(New {
        id,
        key: key as u32,
        nsems,
        waiters: config.waiters,
        mode: flags as u32 & 0o777,
        uid: access::user(),
        gid: access::group(),
    })?;
    section.add(id, key as u32, nsems);
    Ok(id)
}
