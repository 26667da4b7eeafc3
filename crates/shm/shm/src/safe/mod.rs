//! [`SharedSafe`]: what may be in a region.

mod containers;
mod locks;

use core::marker::PhantomData;
use core::mem::{MaybeUninit, offset_of};
use ulocks_core::sync::{
    AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicU8, AtomicU16, AtomicU32, AtomicU64,
};

/// A type whose values processes may share: at any address, and whatever is in the memory.
///
/// The numbers and atomics whose size is in their names, floats, bytes that need not be
/// initialised, arrays, tuples of up to four, `PhantomData`, and the locks of the family with the
/// policy `Shared` implement it. For a struct of such fields, `#[derive(SharedSafe)]` does.
///
/// # Safety
/// An implementor promises all of this, of itself and so of its fields:
/// - Each bit pattern is a valid value. So there is no `bool`, `char`, enum, `NonZero`, reference.
/// - All-zero bytes are its initial state: a lock is unlocked, and no thread waits for it.
/// - It contains no pointer, reference, address, index into memory that is not shared, file
///   descriptor, process or thread id that would mean another in another process.
/// - It has a fixed layout: `#[repr(C)]` or `#[repr(transparent)]`. It contains no `usize` or
///   `isize`, whose size depends on the machine.
/// - Neither it nor a field has a `Drop` that does anything: the memory outlives each process.
/// - It changes only through atomics, or through a guard of a lock in the same value.
/// - If [`LAYOUT`](Self::LAYOUT) is the same in two programs, so is the meaning of each byte.
/// - [`reset_locks`](Self::reset_locks) writes inside of the value only, and leaves all of its
///   locks unlocked.
///
/// # Process-shared
/// That is what it is for. The size and the layout hash are a part of the identity of a region.
///
/// # Examples
/// ```
/// use ulocks_core::Shared;
/// use ulocks_shm::{Region, SharedSafe};
/// use ulocks_unfair::BargingMutexWith;
///
/// #[derive(SharedSafe)]
/// #[repr(C)]
/// struct Account {
///     balance: BargingMutexWith<i64, Shared>,
///     history: BargingMutexWith<[i64; 12], Shared>,
/// }
///
/// let bank = Region::<[Account; 100]>::options().anonymous()?;
/// *bank[7].balance.lock() -= 5;
/// # Ok::<(), ulocks_shm::RegionError>(())
/// ```
///
/// Without the derive:
/// ```
/// # use ulocks_core::Shared;
/// # use ulocks_shm::{SharedSafe, layout};
/// # use ulocks_unfair::BargingMutexWith;
/// #[repr(transparent)]
/// struct Total(BargingMutexWith<u64, Shared>);
///
/// // SAFETY: it is one field, which promises all of it.
/// unsafe impl SharedSafe for Total {
///     const LAYOUT: u64 = layout(&[<BargingMutexWith<u64, Shared>>::LAYOUT]);
///     const LEAST_SLOTS: usize = <BargingMutexWith<u64, Shared>>::LEAST_SLOTS;
///
///     unsafe fn reset_locks(this: *mut Self) {
///         // SAFETY: the caller's promise; the field is at the same place.
///         unsafe { SharedSafe::reset_locks(&raw mut (*this).0) };
///     }
/// }
/// # ulocks_shm::Region::<Total>::options().anonymous().expect("a region");
/// ```
///
/// What does not compile:
/// ```compile_fail,E0277
/// # fn check<T: ulocks_shm::SharedSafe>() {}
/// check::<ulocks_unfair::BargingMutex<u64>>(); // its waiters are of one process
/// ```
/// ```compile_fail,E0277
/// # fn check<T: ulocks_shm::SharedSafe>() {}
/// check::<*const u64>();
/// ```
/// ```compile_fail,E0277
/// # fn check<T: ulocks_shm::SharedSafe>() {}
/// check::<&'static u64>();
/// ```
/// ```compile_fail,E0277
/// # fn check<T: ulocks_shm::SharedSafe>() {}
/// check::<bool>();
/// ```
/// ```compile_fail,E0277
/// # fn check<T: ulocks_shm::SharedSafe>() {}
/// check::<usize>();
/// ```
/// ```compile_fail,E0277
/// # fn check<T: ulocks_shm::SharedSafe>() {}
/// check::<ulocks_unfair::BargingMutexWith<bool, ulocks_core::Shared>>(); // the data is in the region too
/// ```
/// Nor do structs that the derive refuses:
/// ```compile_fail,E0277
/// #[derive(ulocks_shm::SharedSafe)]
/// #[repr(C)]
/// struct Flags {
///     ready: bool, // a peer may write 2
/// }
/// ```
/// ```compile_fail
/// #[derive(ulocks_shm::SharedSafe)]
/// struct Pair(u32, u64); // no `repr(C)`
/// ```
/// ```compile_fail
/// #[derive(ulocks_shm::SharedSafe)]
/// #[repr(u8)]
/// enum Stage {
///     Idle,
///     Busy,
/// }
/// ```
/// ```compile_fail,E0119
/// #[derive(ulocks_shm::SharedSafe)]
/// #[repr(C)]
/// struct Cleaned(u32);
///
/// impl Drop for Cleaned {
///     fn drop(&mut self) {}
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be in a region that processes share",
    label = "not `SharedSafe`",
    note = "a region has numbers, atomics, arrays, locks with the policy `Shared`, and structs of them \
            with `#[repr(C)]` and `#[derive(SharedSafe)]`",
    note = "it has no pointer, reference, `bool`, `char`, enum, `usize`, or lock with the policy `Private`"
)]
pub unsafe trait SharedSafe: Sync + Sized + 'static {
    /// A hash of the layout: the same in two programs only if the type means the same in both.
    /// [`layout`] makes one.
    const LAYOUT: u64;

    /// How many participants a region of it may have: the least number of `SLOTS` of a lock in it.
    ///
    /// The default is for a type without a lock that has `SLOTS`. A type with fields has
    /// [`least_slots`] of theirs: else the 65th participant is refused by its lock, and not the
    /// region when it is created.
    const LEAST_SLOTS: usize = usize::MAX;

    /// Which lock it is, for a tool that shows its holder: a number of `ulocks_shm::inspect`, or 0.
    #[doc(hidden)]
    const SHOWN_AS: u32 = 0;

    /// Unlocks all locks of the value, and keeps what they protect.
    ///
    /// # Safety
    /// `this` is a valid place for a `Self`, whose bytes may be anything, and no other thread or
    /// process accesses it. No reference into it and no guard of its locks is used afterwards.
    unsafe fn reset_locks(this: *mut Self) {
        let _ = this;
    }
}

/// A hash of `parts`, in this order: FNV-1a, for [`SharedSafe::LAYOUT`].
#[must_use]
pub const fn layout(parts: &[u64]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut index = 0;
    while index < parts.len() {
        let bytes = parts[index].to_le_bytes();
        let mut byte = 0;
        while byte < bytes.len() {
            hash = (hash ^ bytes[byte] as u64).wrapping_mul(0x0100_0000_01b3);
            byte += 1;
        }
        index += 1;
    }
    hash
}

/// The least of `parts`, for [`SharedSafe::LEAST_SLOTS`].
#[must_use]
pub const fn least_slots(parts: &[usize]) -> usize {
    let mut least = usize::MAX;
    let mut index = 0;
    while index < parts.len() {
        if parts[index] < least {
            least = parts[index];
        }
        index += 1;
    }
    least
}

/// The hash of a type that is known by `name` alone, for all programs.
pub(crate) const fn named(name: &str, parts: &[u64]) -> u64 {
    let name = name.as_bytes();
    let mut hash = layout(parts);
    let mut index = 0;
    while index < name.len() {
        hash = layout(&[hash, name[index] as u64]);
        index += 1;
    }
    hash
}

/// Numbers, and atomics of them.
macro_rules! numbers {
    ($($number:ty),+ $(,)?) => {$(
        // SAFETY: each bit pattern is a number and zero is one; its size is in its name; it has no
        // lock. A bare number changes through a guard only, since there is no `&mut` to it.
        unsafe impl SharedSafe for $number {
            const LAYOUT: u64 = named(stringify!($number), &[]);
        }
    )+};
}

numbers!(u8, u16, u32, u64, u128, i8, i16, i32, i64, i128, f32, f64);
numbers!(AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicI8, AtomicI16, AtomicI32, AtomicI64);
numbers!(MaybeUninit<u8>);

// SAFETY: no bytes.
unsafe impl SharedSafe for () {
    const LAYOUT: u64 = named("()", &[]);
}

// SAFETY: no bytes, whatever it is a type of.
unsafe impl<T: Sync + 'static> SharedSafe for PhantomData<T> {
    const LAYOUT: u64 = named("PhantomData", &[]);
}

/// Tuples: where their fields are is the compiler's choice, and a part of the hash.
macro_rules! tuples {
    ($($field:ident $index:tt),+) => {
        // SAFETY: fields that promise all of it. Two programs that place them otherwise have other
        // hashes; nothing is between them that has a meaning.
        unsafe impl<$($field: SharedSafe),+> SharedSafe for ($($field,)+) {
            const LAYOUT: u64 = named(
                "(,)",
                &[size_of::<Self>() as u64 $(, $field::LAYOUT, offset_of!(Self, $index) as u64)+],
            );
            const LEAST_SLOTS: usize = least_slots(&[$($field::LEAST_SLOTS),+]);

            unsafe fn reset_locks(this: *mut Self) {
                // SAFETY: the caller's promise; each field is at its place.
                $(unsafe { SharedSafe::reset_locks(&raw mut (*this).$index) };)+
            }
        }
    };
}

tuples!(A 0);
tuples!(A 0, B 1);
tuples!(A 0, B 1, C 2);
tuples!(A 0, B 1, C 2, D 3);

// SAFETY: elements one after the other, each of which promises all of it.
unsafe impl<T: SharedSafe, const N: usize> SharedSafe for [T; N] {
    const LAYOUT: u64 = named("[]", &[T::LAYOUT, size_of::<T>() as u64, N as u64]);
    const LEAST_SLOTS: usize = T::LEAST_SLOTS;

    unsafe fn reset_locks(this: *mut Self) {
        for index in 0..N {
            // SAFETY: an element of the array, for which the caller has promised.
            unsafe { T::reset_locks(this.cast::<T>().add(index)) };
        }
    }
}
