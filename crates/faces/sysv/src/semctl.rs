//! `semctl`.

use crate::array::{Array, attach};
use crate::config::{self, Config};
use crate::op::Change;
use crate::section::{Actor, Section};
use crate::sys::{self, Answer, File};
use crate::word::MOST;
use crate::{access, process, registry, sleep, undo, user};
use core::mem::MaybeUninit;
use ulocks_core::sync::Ordering::Relaxed;

const GETPID: i32 = 11;
const GETVAL: i32 = 12;
const GETALL: i32 = 13;
const GETNCNT: i32 = 14;
const GETZCNT: i32 = 15;
const SETVAL: i32 = 16;
const SETALL: i32 = 17;
const SEM_STAT: i32 = 18;
const SEM_INFO: i32 = 19;
const SEM_STAT_ANY: i32 = 20;

/// `struct ipc_perm`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Perm {
    /// The key.
    pub key: u32,
    /// The owner's user.
    pub uid: u32,
    /// The owner's group.
    pub gid: u32,
    /// The maker's user.
    pub cuid: u32,
    /// The maker's group.
    pub cgid: u32,
    /// Access bits.
    pub mode: u32,
    /// The sequence number of the id.
    pub sequence: u16,
    padding: u16,
    padding2: u32,
    reserved: [u64; 2],
}

/// `struct semid_ds`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Status {
    /// Owner and access.
    pub perm: Perm,
    /// When an operation was last performed.
    pub otime: i64,
    #[cfg(target_arch = "x86_64")]
    reserved: u64,
    /// When the array was last made or set.
    pub ctime: i64,
    #[cfg(target_arch = "x86_64")]
    reserved2: u64,
    /// How many semaphores.
    pub nsems: u64,
    reserved3: [u64; 2],
}

/// `struct seminfo`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Info([i32; 10]);

/// `semctl`; `arg` is the union's eight bytes.
///
/// # Errors
/// As the kernel's, in its order. EIO if the array's file is damaged.
///
/// # Safety
/// If the command takes a pointer, `arg` is one that is valid, unless the process is in strict
/// mode.
pub unsafe fn semctl(id: i32, num: i32, command: i32, arg: usize) -> Answer {
    let Some(config) = config::get()? else {
        let a = [id as usize, num as usize, command as usize, arg, 0, 0];
        // SAFETY: the caller's promise, which the kernel checks.
        return unsafe { sys::call(libc::SYS_semctl, a) }.map(|answer| answer as i32);
    };
    if id < 0 {
        return Err(libc::EINVAL);
    }
    process::number();
    let _ = sleep::end_interrupted();
    let place = core::ptr::with_exposed_provenance_mut::<u8>(arg);
    // SAFETY: the caller's promise, in each of the calls.
    unsafe {
        match command {
            libc::IPC_INFO | SEM_INFO => info(&config, command, place.cast()),
            libc::IPC_STAT | SEM_STAT | SEM_STAT_ANY => {
                let (status, answer) = stat(id, command)?;
                user::write(place.cast(), status)?;
                Ok(answer)
            }
            SETVAL => set_value(id, num, arg as i32),
            GETVAL | GETPID | GETNCNT | GETZCNT => get_one(id, num, command),
            GETALL => get_all(id, place.cast()),
            SETALL => set_all(id, place.cast()),
            libc::IPC_SET => {
                let status = user::read(place.cast::<Status>())?;
                set_access(id, &status)
            }
            libc::IPC_RMID => remove(id),
            _ => Err(libc::EINVAL),
        }
    }
}

/// # Safety
/// As [`semctl`].
unsafe fn info(config: &Config, command: i32, place: *mut Info) -> Answer {
    let registry = registry::get()?;
    let (arrays, semaphores) = registry.used();
    let (usz, aem) = if command == SEM_INFO { (arrays as i32, semaphores as i32) } else { (20, MOST) };
    let (mns, opm) = (config.semmns as i32, config.semopm as i32);
    let info = Info([mns, config.semmni as i32, mns, mns, config.semmsl as i32, opm, opm, usz, MOST, aem]);
    // SAFETY: the caller's promise.
    unsafe { user::write(place, info) }?;
    Ok(registry.high().saturating_sub(1) as i32)
}

/// What IPC_STAT, SEM_STAT or SEM_STAT_ANY say, and their answer.
///
/// # Errors
/// As the kernel's; ENOSYS if a setting of the environment is bad.
pub fn stat(id: i32, command: i32) -> Answer<(Status, i32)> {
    config::get()?.ok_or(libc::ENOSYS)?;
    let is_index = command != libc::IPC_STAT;
    let id = if is_index {
        registry::get()?.at(id as usize % registry::ARRAYS).ok_or(libc::EINVAL)?.0
    } else {
        id as u32
    };
    let array = attach(id)?;
    if command != SEM_STAT_ANY && !access::allows(array, access::READ) {
        return array.unless_blank(Err(libc::EACCES));
    }
    if undo::has_suspects(array) {
        Section::enter(array)?.leave(); // What the dead owe.
    }
    let head = array.head();
    let perm = Perm {
        key: head.key.load(Relaxed),
        uid: head.uid.load(Relaxed),
        gid: head.gid.load(Relaxed),
        cuid: head.cuid.load(Relaxed),
        cgid: head.cgid.load(Relaxed),
        mode: head.mode.load(Relaxed),
        sequence: (id as usize / registry::ARRAYS) as u16,
        padding: 0,
        padding2: 0,
        reserved: [0; 2],
    };
    let status = Status {
        perm,
        otime: head.otime.load(Relaxed) as i64,
        #[cfg(target_arch = "x86_64")]
        reserved: 0,
        ctime: head.ctime.load(Relaxed) as i64,
        #[cfg(target_arch = "x86_64")]
        reserved2: 0,
        nsems: array.nsems.into(),
        reserved3: [0; 2],
    };
    array.unless_blank(Ok((status, if is_index { id as i32 } else { 0 })))
}

/// The array, and whether `num` is one of its semaphores.
fn find(id: i32, num: i32) -> Answer<(&'static Array, Option<u32>)> {
    let array = attach(id as u32)?;
    Ok((array, u32::try_from(num).ok().filter(|&num| num < array.nsems)))
}

fn get_one(id: i32, num: i32, command: i32) -> Answer {
    let (array, num) = find(id, num)?;
    if !access::allows(array, access::READ) {
        return array.unless_blank(Err(libc::EACCES));
    }
    let num = num.ok_or(libc::EINVAL)?;
    let word = array.look(num);
    match command {
        GETVAL if word.is_plain() => return array.unless_blank(Ok(word.value())),
        GETPID if word.is_plain() => return array.unless_blank(Ok(word.process() as i32)),
        _ => {}
    }
    let mut section = Section::enter(array)?;
    let word = array.load(num);
    let answer = match command {
        GETVAL => word.value(),
        GETPID => word.process() as i32,
        command => section.count(num, command == GETZCNT),
    };
    section.leave();
    array.unless_lost(Ok(answer))
}

/// Values of all semaphores, on their way between the caller and the array. The caller's memory may
/// be slow or bad, so it is not touched under the lock.
struct Values {
    few: [MaybeUninit<u16>; Self::FEW],
    /// A mapping, for an array with more than a small stack should hold.
    many: Option<(*mut u8, usize)>,
    len: usize,
}

impl Values {
    const FEW: usize = 256;

    fn new(len: usize) -> Answer<Self> {
        let bytes = (2 * len).next_multiple_of(4_096);
        let many = if len > Self::FEW { Some((sys::anonymous(bytes)?, bytes)) } else { None };
        Ok(Self { few: [MaybeUninit::zeroed(); Self::FEW], many, len })
    }

    fn all(&mut self) -> &mut [MaybeUninit<u16>] {
        match self.many {
            // SAFETY: the mapping is this object's, and has room for that many.
            Some((from, _)) => unsafe { core::slice::from_raw_parts_mut(from.cast(), self.len) },
            None => &mut self.few[..self.len],
        }
    }

    fn get(&mut self, num: usize) -> u16 {
        // SAFETY: each value was zero in the beginning.
        self.all().get(num).map_or(0, |value| unsafe { value.assume_init() })
    }
}

impl Drop for Values {
    fn drop(&mut self) {
        if let Some((from, bytes)) = self.many {
            // SAFETY: the mapping is this object's.
            unsafe { sys::unmap(from, bytes) };
        }
    }
}

/// # Safety
/// As [`semctl`].
unsafe fn get_all(id: i32, place: *mut u16) -> Answer {
    let array = attach(id as u32)?;
    if !access::allows(array, access::READ) {
        return array.unless_blank(Err(libc::EACCES));
    }
    let mut values = Values::new(array.nsems as usize)?;
    let section = Section::enter(array)?;
    section.mark_all(true);
    for (num, value) in values.all().iter_mut().enumerate() {
        value.write(array.load(num as u32).value() as u16);
    }
    section.mark_all(false);
    section.leave();
    array.unless_lost(Ok(()))?;
    // SAFETY: the caller's promise for `place`; all values were written.
    unsafe { user::write_all(place, values.all()) }?;
    Ok(0)
}

/// # Safety
/// As [`semctl`].
unsafe fn set_all(id: i32, place: *const u16) -> Answer {
    let array = attach(id as u32)?;
    if !access::allows(array, access::WRITE) {
        return array.unless_blank(Err(libc::EACCES));
    }
    let mut values = Values::new(array.nsems as usize)?;
    // SAFETY: the caller's promise.
    unsafe { user::read_all(place, values.all()) }?;
    if (0..values.len).any(|num| i32::from(values.get(num)) > MOST) {
        return Err(libc::ERANGE);
    }
    let mut section = Section::enter(array)?;
    section.mark_all(true);
    for num in 0..values.len {
        set_entry(array, num, num, values.get(num));
    }
    set(&mut section, values.len);
    section.mark_all(false);
    section.leave();
    array.unless_lost(Ok(0))
}

fn set_value(id: i32, num: i32, value: i32) -> Answer {
    if !(0..=MOST).contains(&value) {
        return Err(libc::ERANGE);
    }
    let (array, num) = match find(id, num) {
        Err(libc::EACCES) => {
            let nsems = registry::get()?.semaphores_of(id as u32).ok_or(libc::EINVAL)?;
            return Err(if num < 0 || num as u32 >= nsems { libc::EINVAL } else { libc::EACCES });
        }
        answer => answer?,
    };
    let num = num.ok_or(libc::EINVAL)?;
    if !access::allows(array, access::WRITE) {
        return array.unless_blank(Err(libc::EACCES));
    }
    let mut section = Section::enter(array)?;
    section.mark_one(num);
    set_entry(array, 0, num as usize, value as u16);
    set(&mut section, 1);
    section.unmark_one(num);
    section.leave();
    array.unless_lost(Ok(0))
}

fn set_entry(array: &Array, at: usize, num: usize, value: u16) {
    if let Some(entry) = array.entry(at) {
        entry.store(Change { num: num as u16, value, adjustment: None }.pack(), Relaxed);
    }
}

/// Sets what the first entries of the journal say.
fn set(section: &mut Section, entries: usize) {
    section.commit(entries, Actor { process: process::number(), row: None, slot: None, sets: true });
    section.array.head().ctime.store(sys::seconds(), Relaxed);
    if section.settle(None) {
        section.touch();
    }
}

/// An array that the caller may administer.
fn administered(id: i32) -> Answer<&'static Array> {
    match attach(id as u32) {
        Err(libc::EACCES) => Err(libc::EPERM),
        Ok(array) if !access::may_administer(array) => array.unless_blank(Err(libc::EPERM)),
        answer => answer,
    }
}

fn set_access(id: i32, status: &Status) -> Answer {
    let array = administered(id)?;
    if status.perm.uid == u32::MAX || status.perm.gid == u32::MAX {
        return Err(libc::EINVAL);
    }
    let section = Section::enter(array)?;
    let head = array.head();
    head.uid.store(status.perm.uid, Relaxed);
    head.gid.store(status.perm.gid, Relaxed);
    let mode = head.mode.load(Relaxed) & !0o777 | status.perm.mode & 0o777;
    head.mode.store(mode, Relaxed);
    head.ctime.store(sys::seconds(), Relaxed);
    // Thirty bits of it are compared. 0 is what a blank mapping has.
    let next = head.access.load(Relaxed).wrapping_add(1) & 0x3fff_ffff;
    head.access.store(next.max(1), Relaxed);
    section.leave();
    if let Ok(file) = File::open(&config::path_of(id as u32), libc::O_RDWR, 0) {
        let _ = file.set_mode(access::file_mode(array)); // Another user's file stays as it is.
    }
    Ok(0)
}

fn remove(id: i32) -> Answer {
    let array = match administered(id) {
        Err(libc::EIO) => return discard(id),
        answer => answer?,
    };
    let mut section = Section::enter(array)?;
    section.end();
    section.leave();
    registry::drop_name(id as u32)?;
    array.forget();
    Ok(0)
}

/// Removes an array whose file is damaged: the file's owner can.
fn discard(id: i32) -> Answer {
    sys::unlink(&config::path_of(id as u32)).map_err(|_| libc::EPERM)?;
    registry::drop_name(id as u32)?;
    Ok(0)
}

const _: () = assert!(size_of::<Perm>() == 48 && size_of::<Info>() == 40);
#[cfg(target_arch = "x86_64")]
const _: () = assert!(size_of::<Status>() == 104);
#[cfg(target_arch = "aarch64")]
const _: () = assert!(size_of::<Status>() == 88);
