//! A region whose root this program does not know: what it says, and its repair. All of it is by
//! reading and writing the file, not by a mapping: a file that shrinks meanwhile is an error, and
//! no SIGBUS.

use super::error::RegionError;
use super::file::{self, Kind};
use super::header::{self, Plan, READY, RESETTING, WORDS, at};
use super::unfinished;
use crate::inspect::FileNumber;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// An offset of the region, and what is written there.
pub(crate) type Write = (u64, Vec<u8>);

/// A file that has the header of a region.
#[derive(Debug)]
pub(crate) struct Untyped {
    file: File,
    plan: Plan,
    words: [u64; WORDS],
}

impl Untyped {
    /// Opens the file at `path` for reading.
    pub fn look(path: &Path) -> Result<Self, RegionError> {
        // A pipe must not stop the caller.
        let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
        let file = opened.map_err(|source| match source.raw_os_error() {
            Some(libc::EACCES) => RegionError::Io { step: "open the file for reading", source },
            _ => RegionError::of("open the file")(source),
        })?;
        Self::of(file)
    }

    /// Opens the file at `path` for a repair, alone. `None` if its creator has died: then it is
    /// empty now, for the next creator.
    pub fn alone(path: &Path) -> Result<Option<Self>, RegionError> {
        let file = file::open(path, None)?;
        if !file.metadata().map_err(RegionError::of("examine the file"))?.is_file() {
            return Err(RegionError::NotRegular);
        }
        if !file::try_lock(&file, Kind::Exclusive)? {
            return Err(RegionError::InUse);
        }
        let len = file.metadata().map_err(RegionError::of("examine the file"))?.len();
        if len != 0 && unfinished::is_left_untyped(&file, len)? {
            file.set_len(0).map_err(RegionError::of("empty the file"))?;
            return Ok(None);
        }
        Self::of(file).map(Some)
    }

    fn of(file: File) -> Result<Self, RegionError> {
        let metadata = file.metadata().map_err(RegionError::of("examine the file"))?;
        if !metadata.is_file() {
            return Err(RegionError::NotRegular);
        }
        if metadata.len() == 0 || unfinished::is_left_untyped(&file, metadata.len())? {
            return Err(RegionError::HalfInitialised);
        }
        let words = super::options::read(&file, metadata.len())?;
        let plan = header::check_untyped(&words, metadata.len())?;
        Ok(Self { file, plan, words })
    }

    /// What is wrong with the words that a reset writes.
    pub fn unsound(&self) -> Option<RegionError> {
        header::check_epoch(&self.words).err()
    }

    /// Whether its root is being reset or prepared, or a process died while it did that.
    pub fn is_resetting(&self) -> bool {
        self.words[at::STATE] != READY && self.unsound().is_none()
    }

    pub fn version(&self) -> u64 {
        self.words[at::VERSION]
    }

    pub fn identity(&self) -> u64 {
        self.words[at::IDENTITY]
    }

    pub fn epoch(&self) -> u64 {
        self.words[at::EPOCH]
    }

    pub fn boot(&self) -> u64 {
        self.words[at::BOOT]
    }

    /// Whether the machine has not booted since; `None` if one of the two boots is not known.
    pub fn is_of_this_boot(&self) -> Option<bool> {
        let (boot, then) = (file::boot(), self.words[at::BOOT]);
        (boot != 0 && then != 0).then_some(boot == then)
    }

    pub fn is_attached(&self) -> Result<bool, RegionError> {
        file::is_locked(&self.file)
    }

    pub fn size(&self) -> u64 {
        self.plan.size
    }

    /// The number of slots.
    pub fn slots(&self) -> u32 {
        self.plan.slots
    }

    /// Where the root is, and its size.
    pub fn root(&self) -> (u64, u64) {
        (self.plan.root, self.words[at::ROOT_SIZE])
    }

    /// The numbers of the file.
    pub fn number(&self) -> Result<FileNumber, RegionError> {
        let file = self.file.metadata().map_err(RegionError::of("examine the file"))?;
        Ok(FileNumber { device: file.dev(), inode: file.ino() })
    }

    /// Where bytes that may not be zero are, at or behind `offset`; `None` if there are none.
    pub fn next_data(&self, offset: u64) -> Result<Option<u64>, RegionError> {
        file::next_data(&self.file, offset)
    }

    /// The bytes of the slots.
    pub fn slot_bytes(&self) -> Result<Vec<u8>, RegionError> {
        self.bytes(header::SLOTS_OFFSET, u64::from(self.plan.slots) * header::SLOT_SIZE)
    }

    /// So many bytes at `offset`, which are in the region.
    pub fn bytes(&self, offset: u64, len: u64) -> Result<Vec<u8>, RegionError> {
        let mut bytes = vec![0; usize::try_from(len).map_err(|_| RegionError::Corrupt { what: "a size" })?];
        self.file.read_exact_at(&mut bytes, offset).map_err(RegionError::of("read the region"))?;
        Ok(bytes)
    }

    /// Makes all slots as new, writes `changes`, and begins the next epoch, which it returns. The
    /// caller is alone.
    pub fn repair(&self, changes: Vec<Write>) -> Result<u64, RegionError> {
        let (epoch, steps) = self.steps(file::boot(), changes);
        for (offset, bytes) in steps {
            self.file.write_all_at(&bytes, offset).map_err(RegionError::of("write the region"))?;
        }
        Ok(epoch)
    }

    /// The next epoch, and what a repair writes, in the order of a reset: if the process dies after
    /// any of the steps, the region is in the state of a reset that was cut off.
    pub fn steps(&self, boot: u64, changes: Vec<Write>) -> (u64, Vec<Write>) {
        let word = |at: usize, value: u64| (at as u64 * 8, value.to_ne_bytes().to_vec());
        // If the two words of the epoch differ, one of them is damaged: past both.
        let epoch = match self.unsound() {
            None => self.words[at::EPOCH],
            Some(_) => self.words[at::EPOCH].max(!self.words[at::NOT_EPOCH]),
        };
        let epoch = epoch.wrapping_add(1);
        let slots = u64::from(self.plan.slots) * header::SLOT_SIZE;
        let slots = vec![0; usize::try_from(slots).expect("at most 4096 slots")];
        let mut steps = vec![word(at::STATE, RESETTING), (header::SLOTS_OFFSET, slots)];
        steps.extend(changes);
        steps.extend([
            word(at::EPOCH, epoch),
            word(at::NOT_EPOCH, !epoch),
            word(at::BOOT, boot),
            word(at::STATE, READY),
        ]);
        (epoch, steps)
    }
}
