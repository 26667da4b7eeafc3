//! Classes of locks: what the order of locks is about.
//!
//! The locks that one line makes are a class, as in the kernel's lockdep. So an inversion between
//! two classes is found although the two locks of the first thread and the two of the second were
//! never the same. A class is never freed. There are as many as there are lines that make locks.

use crate::seen::access::Access;
use crate::seen::report::{LockName, Place};
use crate::seen::signal::{forget, keep};
use core::panic::Location;
use core::ptr::{self, NonNull};
use ulocks_core::sync::{
    AtomicPtr, AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};
use ulocks_core::{each, sync_static};

/// A named class of locks, for locks that are made at many places, or that are nested by level.
///
/// Without it, the locks that one line makes are a class.
///
/// # Examples
/// ```
/// use ulocks_debug::{Class, Mutex};
///
/// static ACCOUNTS: Class = Class::new("accounts");
///
/// let account = Mutex::new_in(&ACCOUNTS, 10);
/// assert_eq!(account.name(), "accounts");
/// ```
#[derive(Debug)]
pub struct Class {
    name: &'static str,
    place: Place,
}

impl Class {
    /// A class of its own. Declare it as a `static`.
    #[track_caller]
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self { name, place: Location::caller() }
    }

    pub(crate) const fn place(&self) -> Place {
        self.place
    }
}

/// What a lock knows about its class from its making: the line of its constructor, or a named
/// class.
///
/// All-zero memory is a lock too, so all-zero bytes are an origin. `None` of a reference is all
/// zero, which the language promises. An enum promises no such value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    made: Option<Place>,
    named: Option<&'static Class>,
}

impl Origin {
    /// Nothing is known: `INIT` made the lock, or it is zeroed memory. Its class is the line that
    /// acquires it first, together with the type of the lock.
    pub const UNKNOWN: Self = Self { made: None, named: None };

    pub const fn made(place: Place) -> Self {
        Self { made: Some(place), named: None }
    }

    pub const fn named(class: &'static Class) -> Self {
        Self { made: None, named: Some(class) }
    }
}

/// A class in use.
pub(crate) struct Node {
    id: u32,
    /// By subclass.
    hashes: [u64; SUBCLASSES as usize],
    name: &'static str,
    place: Place,
    uses: crate::seen::signal::Uses,
    next: AtomicPtr<Node>,
}

/// How many subclasses a class has.
pub(crate) const SUBCLASSES: u8 = 8;

impl Node {
    /// The number of a class and subclass in the graph of the order.
    #[inline]
    pub fn vertex(&self, subclass: u8) -> u32 {
        self.id * u32::from(SUBCLASSES) + u32::from(subclass)
    }

    /// A hash of a class, a subclass and an access that is as good as random.
    #[inline]
    pub fn hash(&self, subclass: u8, access: Access) -> u64 {
        self.hashes[usize::from(subclass % SUBCLASSES)].rotate_left(7 * access.code())
    }

    pub fn name(&self) -> &'static str {
        self.name
    }

    #[inline(always)]
    pub fn uses(&self) -> &crate::seen::signal::Uses {
        &self.uses
    }

    pub fn place(&self) -> Place {
        self.place
    }

    pub fn lock_name(&self, address: usize, subclass: u8, access: Access) -> LockName {
        LockName { name: self.name.to_owned(), made: Some(self.place), address, subclass, access }
    }
}

/// The finalizer of splitmix64.
#[inline]
pub(crate) fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// How many lists there are. In a model, classes meet in one.
const COUNT: usize = if cfg!(modelled) { 1 } else { 1024 };

sync_static! {
    /// Lists of classes by a hash of their place. A class is put at the head of its list and stays.
    static LISTS: [AtomicPtr<Node>; COUNT] = each!(AtomicPtr::new(ptr::null_mut()); COUNT);
    static IDS: AtomicU32 = AtomicU32::new(0);
}

/// The class of a lock of this origin and type, made if it is new. Takes no lock.
///
/// Of two threads that make the same class at once, the one that comes second at the list finds the
/// class of the first and frees its own. So a place and a name have one class.
#[cold]
pub(crate) fn resolve(origin: Origin, first: Place, type_name: &'static str) -> &'static Node {
    let (place, name) = match origin.named {
        Some(class) => (class.place, class.name),
        None => (origin.made.unwrap_or(first), short(type_name)),
    };
    let hash =
        mix(u64::from(place.line()) << 32 | u64::from(place.column()) << 16 | place.file().len() as u64);
    let list = &LISTS[hash as usize % LISTS.len()];
    let mut head = list.load(Acquire); // (publish)
    let mut made: Option<NonNull<Node>> = None;
    loop {
        let mut next = head;
        // SAFETY: classes are never freed, and those of the list came by (publish).
        while let Some(node) = unsafe { next.as_ref() } {
            // The name is compared as a text, since the compiler may have it twice. A place may
            // make locks of several types.
            if node.place == place && node.name == name {
                if let Some(mine) = made {
                    // SAFETY: it is in no list.
                    unsafe { forget(mine) };
                }
                return node;
            }
            next = node.next.load(Relaxed);
        }
        let mine = made.unwrap_or_else(|| {
            let id = IDS.fetch_add(1, Relaxed);
            let hashes =
                core::array::from_fn(|sub| mix(u64::from(id) * u64::from(SUBCLASSES) + sub as u64 + 1));
            keep(Node {
                id,
                hashes,
                name,
                place,
                uses: crate::seen::signal::Uses::new(),
                next: AtomicPtr::default(),
            })
        });
        made = Some(mine);
        // SAFETY: it stays from here on, unless it is not published.
        let node = unsafe { mine.as_ref() };
        node.next.store(head, Relaxed);
        match list.compare_exchange(head, mine.as_ptr(), Release, Acquire) /* (publish) */ {
            Ok(_) => return node,
            Err(other) => head = other,
        }
    }
}

/// The last name in the path of a type, without its parameters and without `Raw`. Three locks are
/// one type of core, and their parameter tells them apart.
fn short(type_name: &'static str) -> &'static str {
    let (path, parameters) = type_name.split_once('<').unwrap_or((type_name, ""));
    let last = path.rsplit("::").next().unwrap_or(path);
    match last {
        "QueueMutex" if parameters.contains("::InOrder") => "FairMutex",
        "QueueMutex" if parameters.contains("::Every") => "Calock",
        "QueueMutex" => "ThroughputMutex",
        _ => last.strip_prefix("Raw").unwrap_or(last),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_one_class() {
        let place = Location::caller();
        let first = resolve(Origin::made(place), place, "a::RawMutex<B>");
        assert!(ptr::eq(first, resolve(Origin::UNKNOWN, place, "b::RawMutex<a::C>")));
        assert!(!ptr::eq(first, resolve(Origin::made(place), place, "a::RawFairMutex<B>")));
        assert_eq!(first.name(), "Mutex");
        let in_order = std::any::type_name::<ulocks_fair::RawFairMutex>();
        assert_eq!(short(in_order), "FairMutex");
        assert_eq!(short(std::any::type_name::<ulocks_unfair::RawThroughputMutex>()), "ThroughputMutex");
        let other = resolve(Origin::made(Location::caller()), place, "a::RawMutex<B>");
        assert_ne!(first.vertex(0), other.vertex(0));
    }

    /// The bytes of a lock in zeroed memory.
    #[test]
    fn a_zeroed_origin_knows_nothing() {
        // SAFETY: two options of references, for which all zero is `None`.
        let zeroed: Origin = unsafe { core::mem::zeroed() };
        assert!(zeroed.made.is_none() && zeroed.named.is_none());
        let place = Location::caller();
        assert_eq!(resolve(zeroed, place, "Zeroed").place(), place);
    }

    #[test]
    fn subclasses_are_vertices_of_their_own() {
        let place = Location::caller();
        let class = resolve(Origin::made(place), place, "T");
        let vertices: std::collections::BTreeSet<u32> =
            (0..SUBCLASSES).map(|sub| class.vertex(sub)).collect();
        assert_eq!(vertices.len(), usize::from(SUBCLASSES));
    }
}
