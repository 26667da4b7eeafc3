//! The directory of a region: values by name and type, on the protocol of [`table`](super::table).

use super::DirectoryError;
use super::entry::{Contents, Kind, MOST_ALIGN, Text};
use super::table::{Fresh, Table, Wanted};
use super::type_name::type_name;
use crate::safe::{SharedSafe, layout, named};
use crate::slots::Member;
use std::fmt;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use ulocks_core::sync::UnsafeCell;

/// Values by name, in a region: programs that know a name and a type find each other's locks, and
/// share no struct. At most `ENTRIES` names, and `BYTES` bytes of values.
///
/// It is the root of a region, or a field of the root. A value is anything that is [`SharedSafe`]:
/// a lock, or a struct of locks. Each has a name of 1 to 64 bytes. The first thread that asks for a
/// name creates its value, all zero. The value stays for as long as the region exists. It is never
/// removed: a process may use it at any time, and if one is killed, it cannot say that it does not.
///
/// # Resets
/// When a process attaches to a region alone, the locks of the directory are reset as those of the
/// root are: what a dead process left locked is unlocked, and the data stays. A directory does not
/// know its types, so each value is reset when a thread asks for it for the first time after that.
/// Until then no thread has a reference to it. [`find_or_create_with`](Self::find_or_create_with)
/// calls a function at that moment, for example to release the permits of a semaphore again.
///
/// # Errors
/// [`DirectoryError`] lists them. Two programs that ask for one name with types of different
/// layouts get an error, and neither uses the value of the other.
///
/// # Blocking
/// Each call but [`entries`](Self::entries) acquires a robust mutex of the directory and looks at
/// each entry. So find a lock once, and keep the reference.
///
/// # Panics
/// If the member is not of the directory's region, or is that of the process's parent.
///
/// # Process-shared
/// That is what it is for. A process that is killed at any moment leaves each name with its value,
/// or without one.
///
/// # Signals and forks
/// A signal handler must not use it. A child of fork joins by itself.
///
/// # Examples
/// ```
/// use ulocks_core::Shared;
/// use ulocks_shm::{Directory, DirectoryError, Mutex, Region};
/// use ulocks_unfair::BargingMutexWith;
///
/// // 32 names, and 8 kibibytes.
/// let region = Region::<Directory<32, 8192>>::options().anonymous()?;
/// let total = region.with_member(|me| {
///     let jobs = region.find_or_create::<Mutex<[u8; 100]>>(me, "jobs")?;
///     jobs.lock(me).expect("no holder has died")[7] = 1;
///     region.find_or_create::<BargingMutexWith<u64, Shared>>(me, "total")
/// })??;
/// *total.lock() += 1; // a value is the region's, also when the thread does not take part
///
/// // Another program finds them.
/// region.with_member(|me| {
///     let found = region.find::<BargingMutexWith<u64, Shared>>(me, "total")?;
///     assert_eq!(*found.lock(), 1);
///     let wrong = region.find::<BargingMutexWith<i32, Shared>>(me, "total");
///     assert!(matches!(wrong, Err(DirectoryError::WrongType { .. })));
///     Ok::<_, DirectoryError>(())
/// })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[repr(C)]
pub struct Directory<const ENTRIES: usize, const BYTES: usize> {
    table: Table<ENTRIES>,
    arena: Arena<BYTES>,
}

/// Where the values are.
#[repr(C, align(64))]
struct Arena<const BYTES: usize>(UnsafeCell<[MaybeUninit<u8>; BYTES]>);

const _: () = assert!(align_of::<Arena<1>>() as u64 == MOST_ALIGN);

// SAFETY: the bytes are accessed as values that are `Sync`, or under the directory lock before
// another thread has a reference to the value.
unsafe impl<const BYTES: usize> Sync for Arena<BYTES> {}

/// An entry of a [`Directory`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Named {
    /// The name.
    pub name: String,
    /// The type, as the program that created the value calls it: for people.
    pub kind: String,
    /// How many bytes the value has.
    pub size: u64,
}

impl From<Contents> for Named {
    fn from(contents: Contents) -> Self {
        let text = |text: Text| text.read().unwrap_or_default();
        Self { name: text(contents.name), kind: text(contents.kind.name), size: contents.kind.size }
    }
}

impl Kind {
    fn of<T: SharedSafe>() -> Self {
        const { assert!(align_of::<T>() as u64 <= MOST_ALIGN, "the alignment of a value is at most 64") };
        let (size, align) = (size_of::<T>() as u64, align_of::<T>() as u32);
        let identity = layout(&[T::LAYOUT, size, u64::from(align)]);
        Self { identity, size, align, shown_as: T::SHOWN_AS, name: type_name::<T>() }
    }
}

impl<const ENTRIES: usize, const BYTES: usize> Directory<ENTRIES, BYTES> {
    /// The value of `name`.
    ///
    /// # Errors
    /// [`NotFound`](DirectoryError::NotFound) if there is none;
    /// [`TooFewSlots`](DirectoryError::TooFewSlots) as for a new value.
    pub fn find<T: SharedSafe>(&self, me: &Member<'_>, name: &str) -> Result<&T, DirectoryError> {
        self.locate(me, name, false, |_, _| {})
    }

    /// The value of `name`, which is all zero if it is new.
    ///
    /// # Errors
    /// [`Full`](DirectoryError::Full) or [`NoRoom`](DirectoryError::NoRoom) if it is to be created
    /// and the directory is too small. [`TooFewSlots`](DirectoryError::TooFewSlots) if a lock in it
    /// has no room for all participants of the region.
    pub fn find_or_create<T: SharedSafe>(&self, me: &Member<'_>, name: &str) -> Result<&T, DirectoryError> {
        self.locate(me, name, true, |_, _| {})
    }

    /// The value of `name`. Before another thread gets it, `prepare` is called with it: when it is
    /// new, and when a thread asks for it for the first time after a reset. The thread has the
    /// directory lock meanwhile. If `prepare` panics, or the process is killed, a new value is
    /// zeroed, an old one reset, and prepared by the next thread that asks for it.
    ///
    /// All programs that use the name should prepare it alike: any of them may be the first. A
    /// child of a `fork` in `prepare` panics when it returns from it, and changes nothing.
    ///
    /// # Errors
    /// As [`find_or_create`](Self::find_or_create). [`Lock`](DirectoryError::Lock) if `prepare`
    /// uses the directory with `me`. With another member it waits for ever.
    ///
    /// # Examples
    /// ```
    /// use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    /// use ulocks_shm::{Directory, Region};
    ///
    /// let region = Region::<Directory<8, 1024>>::options().anonymous()?;
    /// // Four disks are idle, in each epoch anew.
    /// let prepare = |idle: &AtomicU32, _| idle.store(4, Relaxed);
    /// let idle = region.with_member(|me| region.find_or_create_with(me, "idle", prepare))??;
    /// assert_eq!(idle.load(Relaxed), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn find_or_create_with<T: SharedSafe>(
        &self,
        me: &Member<'_>,
        name: &str,
        prepare: impl FnOnce(&T, Fresh),
    ) -> Result<&T, DirectoryError> {
        self.locate(me, name, true, prepare)
    }

    /// The place of the `size` bytes of `name`, aligned to 64, which are all zero if they are new.
    /// A reset keeps them.
    ///
    /// They are for data under a lock of another name, in a program that has no type for it.
    ///
    /// # Errors
    /// As [`find_or_create`](Self::find_or_create). Another size is another type.
    ///
    /// # Examples
    /// ```
    /// use ulocks_shm::{Directory, Region};
    ///
    /// let region = Region::<Directory<8, 1024>>::options().anonymous()?;
    /// let place = region.with_member(|me| region.find_or_create_bytes(me, "limits", 100))??;
    /// // SAFETY: a hundred bytes, and no other thread uses them.
    /// assert_eq!(unsafe { place.read() }, 0);
    /// assert!(region.with_member(|me| region.find_or_create_bytes(me, "limits", 99))?.is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn find_or_create_bytes(
        &self,
        me: &Member<'_>,
        name: &str,
        size: usize,
    ) -> Result<NonNull<u8>, DirectoryError> {
        let identity = named("bytes", &[size as u64, MOST_ALIGN]);
        let text = Text::new("bytes").expect("five bytes");
        let kind = Kind { identity, size: size as u64, align: MOST_ALIGN as u32, shown_as: 0, name: text };
        let prepared = |offset, fresh| {
            if fresh == Fresh::Created {
                // SAFETY: the place is in the arena with its size, and this thread has it alone:
                // invariant 3.
                unsafe { self.bytes(offset).write_bytes(0, size) };
            }
        };
        let offset = self.place(me, name, true, kind, prepared)?;
        Ok(NonNull::new(self.bytes(offset)).expect("a place in the arena"))
    }

    /// What the directory has, without its lock. It ends at the first entry that is damaged.
    pub fn entries(&self) -> impl Iterator<Item = Result<Named, DirectoryError>> + '_ {
        self.table.list(BYTES as u64).map(|contents| contents.map(Named::from))
    }

    fn locate<T: SharedSafe>(
        &self,
        me: &Member<'_>,
        name: &str,
        create: bool,
        prepare: impl FnOnce(&T, Fresh),
    ) -> Result<&T, DirectoryError> {
        let (participants, slots) = (me.slots().len(), T::LEAST_SLOTS);
        if participants > slots {
            return Err(DirectoryError::TooFewSlots { participants, slots });
        }
        let prepared = |offset, fresh| {
            let value = self.value::<T>(offset);
            match fresh {
                // SAFETY: the place is in the arena, and this thread has it alone: invariant 3.
                Fresh::Created => unsafe { value.write_bytes(0, 1) },
                // SAFETY: as above, by invariant 2; it is aligned.
                Fresh::Reset => unsafe { T::reset_locks(value) },
            }
            // SAFETY: the same. Each bit pattern is a `T`.
            prepare(unsafe { &*value }, fresh);
            // The child of a fork in `prepare` returns from it, too.
            me.check_process();
        };
        let offset = self.place(me, name, create, Kind::of::<T>(), prepared)?;
        // SAFETY: the place is in the arena, aligned for `T`, and no other value's: invariant 1. It
        // is prepared, each bit pattern is a `T`, and it changes through atomics and guards only.
        // The arena lives as long as `self`.
        Ok(unsafe { &*self.value::<T>(offset) })
    }

    /// The offset of the value of `name`.
    fn place(
        &self,
        me: &Member<'_>,
        name: &str,
        create: bool,
        kind: Kind,
        prepared: impl FnOnce(u64, Fresh),
    ) -> Result<u64, DirectoryError> {
        me.check_region(self);
        let text = Text::new(name).filter(|_| !name.is_empty());
        let name = text.ok_or(DirectoryError::Name { bytes: name.len() })?;
        let wanted = Wanted { name, kind };
        // SAFETY: the directory is in the member's region, and all members of that have one table
        // of slots.
        unsafe { self.table.locate(me, &wanted, BYTES as u64, create, prepared) }
    }

    fn bytes(&self, offset: u64) -> *mut u8 {
        let offset = usize::try_from(offset).expect("the arena is larger");
        assert!(offset <= BYTES, "outside of the arena");
        self.arena.0.with_mut(|arena| arena.cast::<u8>().wrapping_add(offset))
    }

    /// The place at `offset`, which the table has checked for a `T`.
    fn value<T>(&self, offset: u64) -> *mut T {
        let offset = usize::try_from(offset).expect("the arena is larger");
        assert!(offset.checked_add(size_of::<T>()).is_some_and(|end| end <= BYTES), "outside of the arena");
        let value = self.arena.0.with_mut(|arena| arena.cast::<u8>().wrapping_add(offset).cast::<T>());
        assert!(value.is_aligned(), "the table has checked the alignment");
        value
    }
}

impl<const ENTRIES: usize, const BYTES: usize> fmt::Debug for Directory<ENTRIES, BYTES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.entries()).finish()
    }
}

// SAFETY: the words of the table are atomics, and each of their values is checked before it is
// used; all zero has no entries. The bytes of the arena are values that are `SharedSafe`. It is
// `repr(C)`, has no address and no `Drop`. The hash has its shape, and `FORMAT` its meaning.
unsafe impl<const ENTRIES: usize, const BYTES: usize> SharedSafe for Directory<ENTRIES, BYTES> {
    const LAYOUT: u64 = named("Directory", &[FORMAT, ENTRIES as u64, BYTES as u64, size_of::<Self>() as u64]);

    unsafe fn reset_locks(this: *mut Self) {
        // SAFETY: the caller's promise: a valid place that no other thread accesses.
        let table = unsafe { &(*this).table };
        table.reset();
    }
}

/// The version of the words of an entry.
const FORMAT: u64 = 1;
