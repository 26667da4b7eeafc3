//! The atomic types. Each is as large as the machine's own, and its bytes belong to the engine.

use crate::engine::{self, At, Update, Width, Word};
use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::panic::{Location, RefUnwindSafe};
use core::ptr::NonNull;
use core::sync::atomic::Ordering;

/// A fence, as `core::sync::atomic::fence`.
///
/// # Panics
/// If `order` is `Relaxed`.
#[track_caller]
pub fn fence(order: Ordering) {
    assert!(order != Ordering::Relaxed, "there is no such thing as a relaxed fence");
    let at = Location::caller();
    engine::with(|engine| engine.fence(order, at));
}

/// A value as the engine keeps it.
trait Value: Copy {
    fn to_bits(self) -> u64;
    fn from_bits(bits: u64) -> Self;
}

macro_rules! integer_value {
    ($($int:ident)*) => {$(
        impl Value for $int {
            fn to_bits(self) -> u64 {
                self as u64
            }
            fn from_bits(bits: u64) -> Self {
                bits as Self
            }
        }
    )*};
}
integer_value!(u8 u16 u32 u64 usize);

macro_rules! signed_value {
    ($($int:ident as $bits:ident)*) => {$(
        impl Value for $int {
            fn to_bits(self) -> u64 {
                self as $bits as u64
            }
            fn from_bits(bits: u64) -> Self {
                bits as Self
            }
        }
    )*};
}
signed_value!(i8 as u8 i16 as u16 i32 as u32 i64 as u64 isize as usize);

impl Value for bool {
    fn to_bits(self) -> u64 {
        self.into()
    }
    fn from_bits(bits: u64) -> Self {
        bits != 0
    }
}

impl<T> Value for *mut T {
    fn to_bits(self) -> u64 {
        self.expose_provenance() as u64
    }
    fn from_bits(bits: u64) -> Self {
        core::ptr::with_exposed_provenance_mut(bits as usize)
    }
}

macro_rules! atomic {
    ($(#[$doc:meta])* $name:ident $(<$param:ident>)?, $value:ty, $bytes:ty, $width:ident) => {
        $(#[$doc])*
        #[repr(transparent)]
        pub struct $name $(<$param>)? {
            bytes: UnsafeCell<$bytes>,
            value: PhantomData<$value>,
        }

        // SAFETY: all threads of a run are on one OS thread, and the bytes are touched by the
        // engine of that run only, never across a switch.
        unsafe impl $(<$param>)? Sync for $name $(<$param>)? {}
        // SAFETY: as above.
        unsafe impl $(<$param>)? Send for $name $(<$param>)? {}

        // As the atomics of std: a panic leaves no atomic half changed.
        impl $(<$param>)? RefUnwindSafe for $name $(<$param>)? {}

        impl $(<$param>)? $name $(<$param>)? {
            /// An atomic that holds `value`. A thread that uses it must have learnt of it in an
            /// ordered way.
            #[track_caller]
            #[must_use]
            pub fn new(value: $value) -> Self {
                Self::new_at(value, Location::caller())
            }

            pub(super) fn new_at(value: $value, at: At) -> Self {
                let bytes = engine::with(|engine| engine.create(value.to_bits(), Width::$width, at));
                Self { bytes: UnsafeCell::new(bytes as $bytes), value: PhantomData }
            }

            /// The same atomic. Stories call it `label`; else they call it what the source does.
            #[must_use]
            pub fn named(self, label: &str) -> Self {
                engine::with(|engine| engine.name(self.word(), label));
                self
            }

            #[doc(hidden)]
            pub fn word(&self) -> Word {
                Word::new(NonNull::from(&self.bytes).cast(), Width::$width)
            }

            /// Reads the value.
            #[track_caller]
            pub fn load(&self, order: Ordering) -> $value {
                assert!(
                    !matches!(order, Ordering::Release | Ordering::AcqRel),
                    "a load cannot be {order:?}"
                );
                let at = Location::caller();
                <$value>::from_bits(engine::with(|engine| engine.load(self.word(), order, at)))
            }

            /// Writes `value`.
            #[track_caller]
            pub fn store(&self, value: $value, order: Ordering) {
                assert!(
                    !matches!(order, Ordering::Acquire | Ordering::AcqRel),
                    "a store cannot be {order:?}"
                );
                let at = Location::caller();
                engine::with(|engine| engine.store(self.word(), value.to_bits(), order, at));
            }

            /// Writes `value` and returns the one before.
            #[track_caller]
            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                self.modify("swap", order, move |_| value)
            }

            /// Writes `new` if the value is `current`, and returns the value before.
            ///
            /// # Errors
            /// The value, if it is another.
            #[track_caller]
            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.exchange("compare_exchange", false, current, new, success, failure)
            }

            /// As `compare_exchange`; may fail although the value is `current`.
            ///
            /// # Errors
            /// The value, if nothing was written.
            #[track_caller]
            pub fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.exchange("compare_exchange_weak", true, current, new, success, failure)
            }

            /// Replaces the value by `f` of it until that succeeds or `f` returns `None`.
            ///
            /// # Errors
            /// The value for which `f` returned `None`.
            #[track_caller]
            pub fn fetch_update(
                &self,
                set_order: Ordering,
                fetch_order: Ordering,
                mut f: impl FnMut($value) -> Option<$value>,
            ) -> Result<$value, $value> {
                let mut seen = self.load(fetch_order);
                while let Some(next) = f(seen) {
                    match self.compare_exchange_weak(seen, next, set_order, fetch_order) {
                        Ok(before) => return Ok(before),
                        Err(other) => seen = other,
                    }
                }
                Err(seen)
            }

            /// Replaces the value by `f` of it. Returns the value before.
            #[track_caller]
            pub fn update(
                &self,
                set_order: Ordering,
                fetch_order: Ordering,
                mut f: impl FnMut($value) -> $value,
            ) -> $value {
                match self.fetch_update(set_order, fetch_order, |value| Some(f(value))) {
                    Ok(before) | Err(before) => before,
                }
            }

            /// As [`fetch_update`](Self::fetch_update), by its newer name.
            ///
            /// # Errors
            /// The value for which `f` returned `None`.
            #[track_caller]
            pub fn try_update(
                &self,
                set_order: Ordering,
                fetch_order: Ordering,
                f: impl FnMut($value) -> Option<$value>,
            ) -> Result<$value, $value> {
                self.fetch_update(set_order, fetch_order, f)
            }

            /// The value, to read and to change as plain data: an access that is not ordered with
            /// this is a data race. What was known of the atomic ends, as if it were dropped, and
            /// it begins anew with what `f` leaves.
            #[track_caller]
            pub fn with_mut<R>(&mut self, f: impl FnOnce(&mut $value) -> R) -> R {
                let at = Location::caller();
                let mut value =
                    <$value>::from_bits(engine::with(|engine| engine.alone(self.word(), true, at)));
                let result = f(&mut value);
                engine::with(|engine| engine.retire(self.word()));
                let bytes = engine::with(|engine| engine.create(value.to_bits(), Width::$width, at));
                *self.bytes.get_mut() = bytes as $bytes;
                result
            }

            /// Reads the value as plain data: a write that is not ordered with this is a data race.
            ///
            /// # Safety
            /// No other thread writes the atomic meanwhile. (That one does is reported.)
            #[track_caller]
            #[must_use]
            pub unsafe fn unsync_load(&self) -> $value {
                let at = Location::caller();
                <$value>::from_bits(engine::with(|engine| engine.alone(self.word(), false, at)))
            }

            /// The value, out of the atomic, as plain data.
            #[track_caller]
            #[must_use]
            pub fn into_inner(self) -> $value {
                // SAFETY: the caller owns the atomic, so that no other thread writes it meanwhile.
                unsafe { self.unsync_load() }
            }

            #[track_caller]
            fn modify(
                &self,
                name: &'static str,
                order: Ordering,
                change: impl Fn($value) -> $value,
            ) -> $value {
                let change = |bits| Some(change(<$value>::from_bits(bits)).to_bits());
                let update = Update { name, success: order, failure: order, weak: false, change: &change };
                let at = Location::caller();
                let (Ok(before) | Err(before)) =
                    engine::with(|engine| engine.update(self.word(), &update, at));
                <$value>::from_bits(before)
            }

            #[track_caller]
            fn exchange(
                &self,
                name: &'static str,
                weak: bool,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                assert!(
                    !matches!(failure, Ordering::Release | Ordering::AcqRel),
                    "a failing exchange cannot be {failure:?}"
                );
                let change = |bits| (bits == current.to_bits()).then(|| new.to_bits());
                let update = Update { name, success, failure, weak, change: &change };
                let at = Location::caller();
                engine::with(|engine| engine.update(self.word(), &update, at))
                    .map(<$value>::from_bits)
                    .map_err(<$value>::from_bits)
            }
        }

        impl $(<$param>)? Drop for $name $(<$param>)? {
            fn drop(&mut self) {
                if engine::is_installed() {
                    engine::with(|engine| engine.retire(self.word()));
                }
            }
        }

        impl $(<$param>)? fmt::Debug for $name $(<$param>)? {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                <$value>::from_bits(engine::with(|engine| engine.peek(self.word()))).fmt(f)
            }
        }
    };
}

macro_rules! arithmetic {
    ($name:ident, $value:ty) => {
        impl $name {
            /// Adds, wrapping around; returns the value before.
            #[track_caller]
            pub fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                self.modify("fetch_add", order, move |before| before.wrapping_add(value))
            }

            /// Subtracts, wrapping around; returns the value before.
            #[track_caller]
            pub fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                self.modify("fetch_sub", order, move |before| before.wrapping_sub(value))
            }

            /// The larger of the two; returns the value before.
            #[track_caller]
            pub fn fetch_max(&self, value: $value, order: Ordering) -> $value {
                self.modify("fetch_max", order, move |before| before.max(value))
            }

            /// The smaller of the two; returns the value before.
            #[track_caller]
            pub fn fetch_min(&self, value: $value, order: Ordering) -> $value {
                self.modify("fetch_min", order, move |before| before.min(value))
            }
        }

        impl From<$value> for $name {
            #[track_caller]
            fn from(value: $value) -> Self {
                Self::new(value)
            }
        }
    };
}

macro_rules! bitwise {
    ($name:ident, $value:ty) => {
        impl $name {
            /// Bitwise and; returns the value before.
            #[track_caller]
            pub fn fetch_and(&self, value: $value, order: Ordering) -> $value {
                self.modify("fetch_and", order, move |before| before & value)
            }

            /// Bitwise or; returns the value before.
            #[track_caller]
            pub fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                self.modify("fetch_or", order, move |before| before | value)
            }

            /// Bitwise exclusive or; returns the value before.
            #[track_caller]
            pub fn fetch_xor(&self, value: $value, order: Ordering) -> $value {
                self.modify("fetch_xor", order, move |before| before ^ value)
            }

            /// Bitwise and, negated; returns the value before.
            #[track_caller]
            pub fn fetch_nand(&self, value: $value, order: Ordering) -> $value {
                self.modify("fetch_nand", order, move |before| !(before & value))
            }
        }

        impl Default for $name {
            #[track_caller]
            fn default() -> Self {
                Self::new(<$value>::default())
            }
        }
    };
}

atomic!(/// As `core::sync::atomic::AtomicBool`.
    AtomicBool, bool, u8, W8);
atomic!(/// As `core::sync::atomic::AtomicU8`.
    AtomicU8, u8, u8, W8);
atomic!(/// As `core::sync::atomic::AtomicI8`.
    AtomicI8, i8, u8, W8);
atomic!(/// As `core::sync::atomic::AtomicU16`.
    AtomicU16, u16, u16, W16);
atomic!(/// As `core::sync::atomic::AtomicI16`.
    AtomicI16, i16, u16, W16);
atomic!(/// As `core::sync::atomic::AtomicI32`.
    AtomicI32, i32, u32, W32);
atomic!(/// As `core::sync::atomic::AtomicI64`.
    AtomicI64, i64, u64, W64);
atomic!(/// As `core::sync::atomic::AtomicIsize`.
    AtomicIsize, isize, u64, W64);
atomic!(/// As `core::sync::atomic::AtomicU32`.
    AtomicU32, u32, u32, W32);
atomic!(/// As `core::sync::atomic::AtomicU64`.
    AtomicU64, u64, u64, W64);
atomic!(/// As `core::sync::atomic::AtomicUsize`.
    AtomicUsize, usize, u64, W64);
atomic!(/// As `core::sync::atomic::AtomicPtr`.
    AtomicPtr<T>, *mut T, u64, W64);

macro_rules! integers {
    ($($name:ident $value:ident,)*) => {$(
        arithmetic!($name, $value);
        bitwise!($name, $value);
    )*};
}
integers!(
    AtomicU8 u8, AtomicU16 u16, AtomicU32 u32, AtomicU64 u64, AtomicUsize usize,
    AtomicI8 i8, AtomicI16 i16, AtomicI32 i32, AtomicI64 i64, AtomicIsize isize,
);
bitwise!(AtomicBool, bool);

impl<T> AtomicPtr<T> {
    /// Bitwise or of the address; returns the value before.
    #[track_caller]
    pub fn fetch_or(&self, value: usize, order: Ordering) -> *mut T {
        self.modify("fetch_or", order, move |before| before.map_addr(|address| address | value))
    }
}

impl<T> Default for AtomicPtr<T> {
    #[track_caller]
    fn default() -> Self {
        Self::new(core::ptr::null_mut())
    }
}

impl From<bool> for AtomicBool {
    #[track_caller]
    fn from(value: bool) -> Self {
        Self::new(value)
    }
}

impl<T> From<*mut T> for AtomicPtr<T> {
    #[track_caller]
    fn from(value: *mut T) -> Self {
        Self::new(value)
    }
}
