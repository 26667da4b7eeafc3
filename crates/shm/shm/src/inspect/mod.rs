//! What is in a region, for the program `ulocks-region`: read from the file, without the types of
//! the root. It takes no part in the locks, and a region that is used changes while it is read. So
//! what it says is a look at each word, for people, and no snapshot.

mod directory;
mod locks;
mod process;
mod slots;

pub use directory::{FoundDirectory, FoundName};
pub use locks::{FoundLock, Health, Holder, Waiters};
pub(crate) use process::FileNumber;
pub use process::Process;
pub use slots::{FoundSlot, Life};

pub(crate) use locks::{CONDVAR, RWLOCK, shown_array, shown_mutex, shown_parameter};

use crate::region::RegionError;
use crate::region::untyped::Untyped;
use std::path::Path;

/// What is in a region.
#[derive(Debug)]
pub struct Report {
    /// The version of the format.
    pub version: u64,
    /// The hash of the root's layout.
    pub identity: u64,
    /// How many bytes it has.
    pub size: u64,
    /// How many slots.
    pub participants: u32,
    /// Where the root is, and its size.
    pub root: (u64, u64),
    /// How often it was created or reset.
    pub epoch: u64,
    /// A hash of the id of the boot in which that was.
    pub boot: u64,
    /// Whether the machine has not booted since; `None` if this cannot be told.
    pub is_of_this_boot: Option<bool>,
    /// Whether a reset was cut off, or goes on.
    pub is_resetting: bool,
    /// Whether processes are attached, or a process resets.
    pub is_attached: bool,
    /// What is wrong with the epoch or the state.
    pub unsound: Option<RegionError>,
    /// The slots that are not free.
    pub slots: Vec<FoundSlot>,
    /// The directories in the root.
    pub directories: Vec<FoundDirectory>,
}

impl Report {
    /// Whether a part is damaged: what is not said of a lock is not counted.
    pub fn is_damaged(&self) -> bool {
        self.unsound.is_some() || self.directories.iter().any(FoundDirectory::is_damaged)
    }
}

/// Looks at the region in the file at `path`.
///
/// # Errors
/// If it is none, or damaged.
pub fn look(path: &Path) -> Result<Report, RegionError> {
    let region = Untyped::look(path)?;
    let (is_of_this_boot, is_attached) = (region.is_of_this_boot(), region.is_attached()?);
    // In a container the id of the boot may be another; attached processes run now.
    let may_live = is_attached || is_of_this_boot != Some(false);
    let slots = slots::Slots::read(&region)?;
    Ok(Report {
        version: region.version(),
        identity: region.identity(),
        size: region.size(),
        participants: region.slots(),
        root: region.root(),
        epoch: region.epoch(),
        boot: region.boot(),
        is_of_this_boot,
        is_resetting: region.is_resetting(),
        is_attached,
        unsound: region.unsound(),
        directories: directory::find(&region, &slots)?,
        slots: slots.found(may_live.then_some(region.number()?)),
    })
}

/// What a repair has done.
#[derive(Debug)]
pub struct Repaired {
    /// The epoch that it began.
    pub epoch: u64,
    /// How many slots were not free.
    pub slots: usize,
    /// How many directories were reset.
    pub directories: usize,
    /// What was wrong with the epoch or the state.
    pub unsound: Option<RegionError>,
    /// What is damaged, and stays so.
    pub damage: Vec<String>,
}

/// Frees all slots of the region in the file at `path`, unlocks its directories, and begins the
/// next epoch.
///
/// A file whose creator has died before the region was done is made empty, and the result is
/// `None`.
///
/// # Errors
/// If it is no region, is damaged beyond that, or if processes are attached.
pub fn repair(path: &Path) -> Result<Option<Repaired>, RegionError> {
    let Some(region) = Untyped::alone(path)? else { return Ok(None) };
    let slots = slots::Slots::read(&region)?;
    let found = directory::find(&region, &slots)?;
    let changes = found.iter().flat_map(FoundDirectory::reset).collect();
    let epoch = region.repair(changes)?;
    Ok(Some(Repaired {
        epoch,
        slots: slots.found(None).len(),
        directories: found.len(),
        unsound: region.unsound(),
        damage: found.into_iter().filter_map(|directory| directory.damage).collect(),
    }))
}

/// The word at `offset` of `bytes`, or zero behind their end.
fn word(bytes: &[u8], offset: usize) -> u32 {
    let word = bytes.get(offset..).and_then(<[u8]>::first_chunk);
    word.map_or(0, |word| u32::from_ne_bytes(*word))
}

/// The same of eight bytes.
fn long(bytes: &[u8], offset: usize) -> u64 {
    let word = bytes.get(offset..).and_then(<[u8]>::first_chunk);
    word.map_or(0, |word| u64::from_ne_bytes(*word))
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use crate::{Directory, Region};
    use std::fs;
    use std::os::unix::fs::FileExt;
    use ulocks_core::Shared;
    use ulocks_unfair::BargingMutexWith;

    type Names = Directory<2, 64>;

    /// A region that was left with a lock of its directory held.
    fn left(path: &Path) {
        let region = Region::<Names>::options().create(path, 0o600).expect("a region");
        let found =
            region.with_member(|me| region.find_or_create::<BargingMutexWith<u64, Shared>>(me, "lock"));
        let lock = found.expect("a slot").expect("room");
        std::mem::forget(lock.lock());
    }

    /// The program dies after each of the steps of a repair. The next one opens the region as after
    /// a reset that was cut off.
    #[test]
    fn a_repair_may_die_after_each_step() {
        let path = std::env::temp_dir().join(format!("ulocks-repair-{}", std::process::id()));
        for died_after in 0.. {
            let _ = fs::remove_file(&path);
            left(&path);
            let region = Untyped::alone(&path).expect("a file").expect("a region");
            let found = directory::find(&region, &slots::Slots::read(&region).expect("slots"));
            let found = found.expect("a directory");
            let (_, steps) = region.steps(1, found.iter().flat_map(FoundDirectory::reset).collect());
            drop(region);
            let file = fs::OpenOptions::new().write(true).open(&path).expect("the file");
            for (offset, bytes) in steps.iter().take(died_after) {
                file.write_all_at(bytes, *offset).expect("it is writable");
            }
            let region = Region::<Names>::options().open(&path);
            let region = region.unwrap_or_else(|error| panic!("after {died_after} steps: {error}"));
            let found = region.with_member(|me| region.find::<BargingMutexWith<u64, Shared>>(me, "lock"));
            let lock = found.expect("a slot").expect("it is kept");
            assert!(!lock.is_locked(), "after {died_after} steps");
            if died_after == steps.len() {
                break;
            }
        }
        let _ = fs::remove_file(&path);
    }
}
