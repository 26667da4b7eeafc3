//! What a checked lock knows of itself, in two words: its class and number, and the thread that has
//! it alone.
//!
//! # The words
//! | `origin`, by its two lowest bits | state | set by |
//! |---|---|---|
//! | 0 | not acquired yet: null, or the line of `new` | the constructor |
//! | `NAMED` | not acquired yet: the class | the constructor |
//! | `CALLED` | not acquired yet: the call of `Default` or `From` | the constructor |
//! | `KNOWN` | the number of the class, and that of the lock | the first acquisition |
//!
//! | `alone`, by its lowest bit | state | set by |
//! |---|---|---|
//! | `DATA` | never acquired alone: the type of the data | the constructor |
//! | 0 | null, or the record of the thread that has the lock alone | acquisitions and releases |
//!
//! All-zero memory is a lock of which nothing is known.
//!
//! # Invariants
//! 1. `origin` turns to `KNOWN` once, and stays. Of two threads that acquire at once, the first one
//!    at the word says what the lock is.
//! 2. `alone` loses the type of the data after `origin` was set: (know) orders the two. So a thread
//!    that finds no type, and finds `origin` not `KNOWN`, knows that there is none. Also by (know)
//!    a thread that follows `alone` sees the record (`locks/lock.rs`).
//! 3. The numbers move with the lock, and no number is given twice.

#[cfg(checking)]
use crate::rules::order;
use crate::seen::access::Access;
use crate::seen::asked::Asked;
use crate::seen::class::{Call, Class, Data, How, Node, Origin, node, resolve};
use crate::seen::report::Place;
use crate::seen::thread::Record;
use core::any::type_name;
use core::panic::Location;
use core::ptr;
use ulocks_core::sync::{
    AtomicPtr, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use ulocks_core::{const_fn, sync_static};

const TAG: usize = 3;
const NAMED: usize = 1;
const KNOWN: usize = 2;
const CALLED: usize = 3;
/// Where the number of the class and that of the lock begin.
const CLASS_AT: u32 = 2;
const NUMBER_AT: u32 = 24;

const DATA: usize = 1;

sync_static! {
    static NUMBERS: AtomicUsize = AtomicUsize::new(1);
}

/// The class and the number of a lock, and the thread that has it alone.
#[derive(Debug)]
pub(crate) struct Identity {
    origin: AtomicPtr<()>,
    alone: AtomicPtr<()>,
}

impl Identity {
    const_fn! {
        pub fn new(origin: Origin) -> Self {
            let how = match origin.how {
                How::Unknown => ptr::null(),
                How::Made(place) => ptr::from_ref(place).cast(),
                How::Named(class) => ptr::from_ref(class).cast::<()>().wrapping_byte_add(NAMED),
                How::Called(call) => ptr::from_ref(call).cast::<()>().wrapping_byte_add(CALLED),
            };
            let data = match origin.data {
                Some(data) => ptr::from_ref(data).cast::<()>().wrapping_byte_add(DATA),
                None => ptr::null(),
            };
            Self { origin: AtomicPtr::new(how.cast_mut()), alone: AtomicPtr::new(data.cast_mut()) }
        }
    }

    /// The class and the number, if the lock was ever acquired.
    #[inline(always)]
    pub fn known(&self) -> Option<(&'static Node, u64)> {
        let word = self.origin.load(Acquire).addr(); // (know)
        (word & TAG == KNOWN).then(|| {
            let id = word >> CLASS_AT & ((1 << (NUMBER_AT - CLASS_AT)) - 1);
            (node(id), (word >> NUMBER_AT) as u64)
        })
    }

    /// The class, if the lock was ever acquired.
    #[inline]
    pub fn known_class(&self) -> Option<&'static Node> {
        Some(self.known()?.0)
    }

    /// The number; 0 if the lock was never acquired.
    #[inline]
    pub fn instance(&self) -> u64 {
        self.known().map_or(0, |known| known.1)
    }

    /// The class of this lock, whose type is `L`, and its number.
    #[inline(always)]
    pub fn find<L: ?Sized>(&self, at: Place) -> (&'static Node, u64) {
        match self.known() {
            Some(known) => known,
            None => self.find_first(at, type_name::<L>()),
        }
    }

    #[cold]
    fn find_first(&self, at: Place, type_name: &'static str) -> (&'static Node, u64) {
        let data = self.alone.load(Acquire); // (know)
        let word = self.origin.load(Relaxed);
        if word.addr() & TAG == KNOWN {
            return self.known().expect("it is known");
        }
        let origin = word.wrapping_byte_sub(word.addr() & TAG);
        // SAFETY: `new` has made the word of a reference of this type, or null.
        let how = unsafe {
            match word.addr() & TAG {
                _ if origin.is_null() => How::Unknown,
                NAMED => How::Named(&*origin.cast::<Class>()),
                CALLED => How::Called(&*origin.cast::<Call>()),
                _ => How::Made(&*origin.cast::<Location<'static>>()),
            }
        };
        // SAFETY: `new` has made such a word of a reference of this type.
        let data =
            (data.addr() & DATA != 0).then(|| unsafe { &*data.wrapping_byte_sub(DATA).cast::<Data>() });
        let class = resolve(Origin { how, data }, at, type_name);
        let number = NUMBERS.fetch_add(1, Relaxed);
        let known = number << NUMBER_AT | (class.id() as usize) << CLASS_AT | KNOWN;
        let known = ptr::without_provenance_mut(known);
        // A failure says that another thread was first. (know)
        let _ = self.origin.compare_exchange(word, known, Release, Relaxed);
        self.known().expect("it is known")
    }

    /// What a thread asks for that asks for this lock, of type `L`, at `lock`.
    #[inline(always)]
    pub fn asked<L: ?Sized>(&self, lock: usize, access: Access, subclass: u8, at: Place) -> Asked {
        let (class, instance) = self.find::<L>(at);
        Asked { lock, class, access, subclass, instance, at }
    }

    /// The thread that has the lock alone, or null.
    #[inline(always)]
    pub fn alone(&self) -> *const Record {
        let word = self.alone.load(Relaxed);
        if word.addr() & DATA == 0 { word.cast() } else { ptr::null() }
    }

    /// Whether the thread of that record has the lock alone.
    #[inline(always)]
    pub fn is_alone(&self, record: &Record) -> bool {
        // No address of a record has the bit.
        self.alone.load(Relaxed).addr() == ptr::from_ref(record).addr()
    }

    /// `false` if no thread has the lock alone, and mostly then.
    #[inline(always)]
    pub fn may_be_alone(&self) -> bool {
        !self.alone.load(Relaxed).is_null()
    }

    /// The thread of `record` has the lock alone from now on; none if it is null.
    #[inline(always)]
    pub fn set_alone(&self, record: *const Record) {
        self.alone.store(record.cast_mut().cast(), Release); // (know)
    }
}

/// A dropped lock has no order any more.
#[cfg(checking)]
impl Drop for Identity {
    #[inline]
    fn drop(&mut self) {
        if let Some((_, number)) = self.known() {
            order::dropped(number);
        }
    }
}
