//! The table of the arrays that the process has mapped, and their files.

use super::{Array, LOST};
use crate::arena;
use crate::config::path_of;
use crate::layout::{Header, Layout, MAGIC, NONE, PROCESSES, Sleeper, VERSION};
use crate::registry::{self, ARRAYS};
use crate::section::Section;
use crate::sys::{self, Answer, File};
use core::mem::offset_of;
use core::ptr::null_mut;
use ulocks_core::sync::AtomicPtr;
use ulocks_core::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// The array that was mapped last, and through `next` all others.
static ALL: AtomicPtr<Array> = AtomicPtr::new(null_mut());
static TABLE: [AtomicPtr<Array>; ARRAYS] = [const { AtomicPtr::new(null_mut()) }; ARRAYS];

/// The array with this id, if the process has mapped it.
#[inline]
pub fn mapped(id: u32) -> Option<&'static Array> {
    let array = TABLE[id as usize % ARRAYS].load(Acquire);
    if array.is_null() {
        return None;
    }
    // SAFETY: what the table points to lives for ever.
    Some(unsafe { &*array }).filter(|array| array.id == id)
}

/// All arrays that the process has mapped, also those that are removed.
pub fn all_mapped() -> impl Iterator<Item = &'static Array> {
    // SAFETY: arrays live for ever.
    let first = unsafe { ALL.load(Acquire).as_ref() };
    // SAFETY: as above.
    core::iter::successors(first, |array| unsafe { array.next.load(Acquire).as_ref() })
}

/// Makes the array blank that has `address` in its mapping, from that page on, for it has lost its
/// file there. Whether there is such an array.
pub fn lose(address: usize) -> bool {
    let has_address = |array: &&Array| {
        let start = array.base as usize;
        (start..start + array.layout.bytes).contains(&address)
    };
    let Some(array) = all_mapped().find(has_address) else { return false };
    let first = array.contents.swap(LOST, AcqRel) != LOST;
    let entry = &TABLE[array.id as usize % ARRAYS];
    let me = core::ptr::from_ref(array).cast_mut();
    let _ = entry.compare_exchange(me, null_mut(), AcqRel, Acquire); // Invariant 3.
    let is_blank = array.blank_from(address - array.base as usize).is_ok();
    if first && is_blank {
        complain(array.id);
    }
    is_blank
}

/// The array with this id. No lock is held.
///
/// # Errors
/// EINVAL if there is none; EIO if its file is damaged; what the kernel says if that cannot be
/// opened.
pub fn attach(id: u32) -> Answer<&'static Array> {
    let answer = open(id);
    if answer.is_err() {
        if let Some(array) = mapped(id) {
            array.finish_removal();
        }
        if matches!(answer, Err(libc::EINVAL)) {
            registry::drop_name(id)?; // Invariant 3 of the registry.
        }
    }
    answer
}

/// As [`attach`], also under the registry's lock. A removal is left as it is found.
///
/// # Errors
/// As [`attach`].
pub fn open(id: u32) -> Answer<&'static Array> {
    if let Some(array) = mapped(id) {
        return if array.is_gone() { Err(array.why_gone()) } else { Ok(array) };
    }
    let file = File::open(&path_of(id), libc::O_RDWR, 0).map_err(|error| match error {
        libc::ENOENT | libc::ELOOP => libc::EINVAL,
        libc::EPERM => libc::EACCES,
        error => error,
    })?;
    let stat = file.stat()?;
    // The file may become shorter at any time, so it is not looked at through a mapping.
    let mut head = [0; 64];
    let has_head = stat.st_mode & libc::S_IFMT == libc::S_IFREG && file.read(&mut head)? == head.len();
    let field = |at: usize| u32::from_ne_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let (nsems, slots) =
        (field(offset_of!(Header, nsems)) as usize, field(offset_of!(Header, slots)) as usize);
    let is_ours = has_head
        && head.starts_with(&MAGIC.to_ne_bytes())
        && field(offset_of!(Header, version)) == VERSION
        && field(offset_of!(Header, id)) == id
        && field(offset_of!(Header, processes)) as usize == PROCESSES
        && (1..=ARRAYS).contains(&nsems)
        && (1..=ARRAYS).contains(&slots);
    let is_removed = field(offset_of!(Header, removed)) != 0;
    let layout = Layout::new(nsems.max(1), slots.max(1));
    if !is_ours || stat.st_size as usize != layout.bytes {
        complain(id);
        return Err(libc::EIO);
    }
    if is_removed {
        return Err(libc::EINVAL);
    }
    publish(id, &file, layout, || Ok(registry::get()?.semaphores_of(id).is_some()))
}

/// Says that the file of an array cannot be used.
fn complain(id: u32) {
    let path = path_of(id);
    let end = path.iter().position(|&byte| byte == 0).unwrap_or(0);
    sys::complain(&[&path[..end], b" is damaged or of another version; `ulocks-ipcrm -s` removes it"]);
}

/// Maps the whole file and puts it into the table. `has_index` says whether the index is this
/// array's: invariant 4.
fn publish(
    id: u32,
    file: &File,
    layout: Layout,
    has_index: impl Fn() -> Answer<bool>,
) -> Answer<&'static Array> {
    let place = arena::take::<Array>()?;
    let base = file.map(layout.bytes)?;
    // SAFETY: the mapping stays.
    let array = unsafe { Array::of_mapping(id, base, layout) };
    // SAFETY: the arena has just given the place to this thread alone.
    unsafe { place.write(array) };
    // SAFETY: what was just written lives for ever.
    let array = unsafe { &*place };
    let mut last = ALL.load(Acquire);
    loop {
        array.next.store(last, Relaxed);
        match ALL.compare_exchange(last, place, AcqRel, Acquire) {
            Ok(_) => break,
            Err(now) => last = now,
        }
    }
    let entry = &TABLE[id as usize % ARRAYS];
    loop {
        let known = entry.load(Acquire);
        // SAFETY: what the table points to lives for ever.
        let before = unsafe { known.as_ref() };
        let answer = match before {
            Some(first) if first.id == id => Some(Ok(first)),
            Some(_) => match has_index() {
                Ok(true) => None,
                Ok(false) => Some(Err(libc::EINVAL)), // It is removed.
                Err(error) => Some(Err(error)),
            },
            None => None,
        };
        if let Some(answer) = answer {
            array.blank(); // Without it, the unused mapping keeps the file.
            return answer;
        }
        if entry.compare_exchange(known, place, AcqRel, Acquire).is_ok() {
            if let Some(before) = before {
                before.retire();
            }
            return Ok(array);
        }
    }
}

/// What a new array begins with.
#[derive(Clone, Copy, Debug)]
pub struct New {
    /// The id.
    pub id: u32,
    /// The key.
    pub key: u32,
    /// How many semaphores.
    pub nsems: u32,
    /// How many sets can sleep.
    pub waiters: u32,
    /// Access bits.
    pub mode: u32,
    /// The maker's user.
    pub uid: u32,
    /// The maker's group.
    pub gid: u32,
}

/// Makes the file of an array. What has its name is the remains of one that was never complete.
pub fn make(new: New) -> Answer<&'static Array> {
    let path = path_of(new.id);
    let file = File::make(&path)?;
    let layout = Layout::new(new.nsems as usize, new.waiters as usize);
    let complete = || -> Answer<&'static Array> {
        file.allocate(layout.sleepers)?;
        file.set_len(layout.bytes)?;
        let array = publish(new.id, &file, layout, || Ok(true))?;
        let head = array.head();
        head.version.store(VERSION, Relaxed);
        head.id.store(new.id, Relaxed);
        head.nsems.store(new.nsems, Relaxed);
        head.slots.store(new.waiters, Relaxed);
        head.processes.store(PROCESSES as u32, Relaxed);
        head.key.store(new.key, Relaxed);
        for (place, value) in [(&head.uid, new.uid), (&head.cuid, new.uid)] {
            place.store(value, Relaxed);
        }
        for (place, value) in [(&head.gid, new.gid), (&head.cgid, new.gid)] {
            place.store(value, Relaxed);
        }
        head.mode.store(new.mode, Relaxed);
        head.access.store(1, Relaxed);
        head.ctime.store(sys::seconds(), Relaxed);
        head.journal.row.store(NONE, Relaxed);
        head.magic.store(MAGIC, Release);
        file.set_mode(crate::access::file_mode(array))?;
        Ok(array)
    };
    complete().inspect_err(|_| {
        let _ = sys::unlink(&path);
    })
}

impl Array {
    /// Takes memory for a sleeper.
    pub fn populate_sleeper(&self, slot: usize, nsops: usize) -> Answer<()> {
        let sleeper = self.sleeper(slot).ok_or(libc::ENOMEM)?;
        sys::populate(core::ptr::from_ref(sleeper).cast(), size_of::<Sleeper>())?;
        let first = self.operation(slot, 0).ok_or(libc::ENOMEM)?;
        if nsops > 1 {
            sys::populate(core::ptr::from_ref(first).cast(), 8 * nsops)?;
        }
        Ok(())
    }

    /// Takes memory for a row.
    pub fn populate_row(&self, process: usize) -> Answer<()> {
        let row = self.row(process).ok_or(libc::ENOMEM)?;
        sys::populate(core::ptr::from_ref(row).cast(), self.layout.row)
    }

    /// Completes the removal of an array whose remover may have died on the way, and forgets it.
    fn finish_removal(&'static self) {
        match Section::enter(self) {
            Ok(section) => section.leave(), // It is not removed.
            Err(_) => self.forget(),
        }
    }

    /// Takes a removed array out of the table, and gives its memory back.
    pub fn forget(&self) {
        let me = core::ptr::from_ref(self).cast_mut();
        let entry = &TABLE[self.id as usize % ARRAYS];
        if entry.compare_exchange(me, null_mut(), AcqRel, Acquire).is_ok() {
            self.retire();
        }
    }

    /// Makes the whole mapping blank. Without memory for that it stays marked as removed.
    pub(super) fn blank(&self) {
        if self.blank_from(0).is_ok() {
            // SAFETY: the range is blank now, and no user is left that writes what another reads.
            unsafe { sys::unlock(self.base, self.layout.bytes) };
        }
    }

    /// Makes the mapping blank from the page of its byte `first` on: invariants 1 and 3. Two
    /// threads may come here, one after a failed (hold): the second changes nothing.
    fn blank_from(&self, first: usize) -> Answer<()> {
        // SAFETY: the range is this array's. All-zero parts are valid, and the first page or
        // `contents` says that it is gone.
        unsafe { sys::blank(self.base, self.layout.bytes, first) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::{NO_WAIT, Op};
    use crate::{perform, process, semctl, semget};

    const GETVAL: i32 = 12;

    /// The thread that opens stands still between its checks and the table.
    #[test]
    fn a_thread_that_opens_or_uses_a_removed_array_is_told_so() {
        let folder = std::env::temp_dir().join(format!("ulocks-mapping-{}", std::process::id()));
        // SAFETY: no other test of this binary uses the environment.
        unsafe { std::env::set_var("ULOCKS_SYSV_DIR", &folder) };
        let make = || semget(libc::IPC_PRIVATE, 1, 0o600).unwrap() as u32;
        let call = |id: u32, command| {
            // SAFETY: the commands take no pointer.
            unsafe { semctl(id as i32, 0, command, 0) }
        };

        let removed = make();
        let layout = mapped(removed).unwrap().layout;
        let file = File::open(&path_of(removed), libc::O_RDWR, 0).unwrap();
        call(removed, libc::IPC_RMID).unwrap();
        let next = make();
        assert_eq!(removed as usize % ARRAYS, next as usize % ARRAYS, "an index is used again");
        let array = mapped(next).unwrap(); // Of a thread that is about to post.
        let has_index = || Ok(registry::get()?.semaphores_of(removed).is_some());
        let opened = publish(removed, &file, layout, has_index).map(|array| array.id);
        let posted = perform::single(array, process::number(), Op { num: 0, op: 1, flags: 0 });
        assert_eq!(posted, Some(Ok(0)));
        assert_eq!(call(next, GETVAL), Ok(1), "the post was made in memory that nobody sees");
        assert_eq!(opened, Err(libc::EINVAL));

        // The next array of an index takes the place of a removed one that is still there.
        call(next, libc::IPC_RMID).unwrap();
        let entry = &TABLE[next as usize % ARRAYS];
        entry.store(core::ptr::from_ref(array).cast_mut(), Release);
        let last = make();
        assert_eq!((mapped(next).is_none(), call(last, GETVAL)), (true, Ok(0)));
        call(last, libc::IPC_RMID).unwrap();

        // A thread that has found an array stands still before it looks at the word, which is 1.
        let one = make();
        let array = mapped(one).unwrap();
        let operates = |op, flags| perform::single(array, process::number(), Op { num: 0, op, flags });
        assert_eq!(operates(1, 0), Some(Ok(0)));
        call(one, libc::IPC_RMID).unwrap();
        assert_eq!(operates(0, 0), Some(Err(libc::EINVAL)), "it found a zero that was never there");
        assert_eq!(operates(-1, NO_WAIT), Some(Err(libc::EINVAL)), "it was told that it would wait");
        assert_eq!(operates(1, 0), Some(Ok(0)), "as if it were made just before the removal");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
