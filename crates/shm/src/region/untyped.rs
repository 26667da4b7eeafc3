//! A region whose root this program does not know: what it says, and its repair. All of it is by
//! reading and writing the file, not by a mapping: a file that shrinks meanwhile is an error, and
//! no SIGBUS.

use super::error::RegionError;
use super::file::{self, Kind};
use super::header::{self, Plan, READY, RESETTING, WORDS, at};
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

    /// Opens the file at `path` for a repair, alone.
    pub fn alone(path: &Path) -> Result<Self, RegionError> {
        let file = file::open(path, None)?;
        if !file.metadata().map_err(RegionError::of("examine the file"))?.is_file() {
            return Err(RegionError::NotRegular);
        }
        if !file::try_lock(&file, Kind::Exclusive)? {
            return Err(RegionError::InUse);
        }
        Self::of(file)
    }

    fn of(file: File) -> Result<Self, RegionError> {
        let metadata = file.metadata().map_err(RegionError::of("examine the file"))?;
        if !metadata.is_file() {
            return Err(RegionError::NotRegular);
        }
        if metadata.len() == 0 {
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

    pub fn is_resetting(&self) -> bool {
        self.words[at::STATE] == RESETTING
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

    pub fn is_of_this_boot(&self) -> Result<bool, RegionError> {
        file::boot().map(|boot| boot == self.words[at::BOOT])
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

    /// The number of the file in its file system.
    pub fn inode(&self) -> Result<u64, RegionError> {
        self.file.metadata().map(|file| file.ino()).map_err(RegionError::of("examine the file"))
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
        let (epoch, steps) = self.steps(file::boot()?, changes);
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
