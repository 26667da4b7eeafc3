//! Classes of locks: what the order of locks is about.
//!
//! # What a class is
//! A class is a supposition: its locks play one part, so they have one order with all other locks.
//! As in the kernel's lockdep, an inversion of two classes is found although the two locks of the
//! first thread and the two of the second were never the same.
//!
//! | how the lock was made | its class |
//! |---|---|
//! | with a [`Class`] | that of this name, as its author says |
//! | by `new`, in a line of the program | the line, with the type of the lock and of its data |
//! | by `Default` or `From`, called from the program | the same, with the address of the call: a `derive` has one line for all fields |
//! | in a line of the standard library, as by `map(Mutex::new)` or `or_default`, or through a pointer | none |
//! | by `INIT`, from data, in zeroed memory | none |
//!
//! A lock without a class has an order of its own. Its node is a name, made of the line that
//! acquires it first and of its types.
//!
//! # Who makes and ends one
//! The first acquisition of a lock finds its node or makes it. A node is never freed. There are as
//! many as there are lines that make locks.
//!
//! The class of a line may be wrong, since a wrapper or a macro may hide the lines of its users. If
//! different locks of it are seen in opposite orders, this is said once, and the class is
//! *dissolved*: from then on its locks have an order each (`rules/order`). A named class is not.
//!
//! # Invariants
//! 1. A key has one node in its list.
//! 2. A number of a lock's word (`identity.rs`) is in `TABLE` before it is in the word.
//! 3. A bit of `kind` is set, and never cleared.
//!
//! # Keys of what is known
//! A thread remembers what it may acquire by a key of the classes that it holds (`rules/order`). If
//! locks of a class are nested in each other, `NESTS` is set, and from then on the key is one of
//! locks.

use crate::seen::access::Access;
use crate::seen::report::{LockName, Place};
use crate::seen::signal::{forget, keep};
use core::any::type_name;
use core::panic::Location;
use core::ptr::{self, NonNull};
use ulocks_core::sync::{
    AtomicPtr, AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};
use ulocks_core::{each, sync_static};

/// A named class of locks, for locks that are made at many places, or that are nested by level.
///
/// Without it, the locks around one type that one line makes are a class, unless that line is one
/// of the standard library: the guide's page on rules has the table.
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
}

/// The type of the data of a lock.
#[derive(Debug)]
pub(crate) struct Data(fn() -> &'static str);

impl Data {
    pub const fn of<T: ?Sized>() -> &'static Self {
        const { &Self(type_name::<T>) }
    }
}

/// A call of `Default` or `From`: its line, and the address that it returns to.
#[derive(Debug)]
pub(crate) struct Call {
    pub place: Place,
    pub address: usize,
}

/// What a lock knows about its class from its making.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub how: How,
    pub data: Option<&'static Data>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum How {
    Unknown,
    Made(Place),
    Called(&'static Call),
    Named(&'static Class),
}

impl Origin {
    /// Nothing is known: `INIT` made the lock, or it is zeroed memory.
    pub const UNKNOWN: Self = Self { how: How::Unknown, data: None };

    /// A constructor of a lock around a `T` was called at that place.
    pub const fn made<T: ?Sized>(place: Place) -> Self {
        Self { how: How::Made(place), data: Some(Data::of::<T>()) }
    }

    /// `Default` or `From` has made a lock around a `T`.
    #[cfg(checking)]
    pub const fn called<T: ?Sized>(call: &'static Call) -> Self {
        Self { how: How::Called(call), data: Some(Data::of::<T>()) }
    }

    /// Nothing is known but the type of the data.
    #[cfg(feature = "serde")]
    pub const fn unknown<T: ?Sized>() -> Self {
        Self { how: How::Unknown, data: Some(Data::of::<T>()) }
    }

    pub const fn named(class: &'static Class) -> Self {
        Self { how: How::Named(class), data: None }
    }

    /// The node of a lock of this origin and type, which is acquired first at that place.
    fn key(self, first: Place, type_name: &'static str) -> Key {
        let (place, call, is_one) = match self.how {
            How::Named(class) => {
                let (place, name) = (class.place, class.name);
                return Key { place, name, data: "", call: 0, is_named: true, is_one: true };
            }
            How::Made(place) if !is_inside(place) => (place, 0, true),
            How::Called(call) if !is_inside(call.place) && call.address != 0 => {
                (call.place, call.address, true)
            }
            _ => (first, 0, false),
        };
        let data = self.data.map_or("", |data| data.0());
        Key { place, name: short(type_name), data, call, is_named: false, is_one }
    }
}

/// Whether the line is none of the program: one of the standard library, with or without its source
/// on this machine, or of this crate, which a call through a pointer has.
fn is_inside(place: Place) -> bool {
    let (file, here) = (place.file(), file!());
    let ours = here.strip_suffix("seen/class.rs").unwrap_or(here);
    let is_ours = file.strip_prefix(ours).is_some_and(|file| file.starts_with("locks/"));
    file.starts_with("/rustc/") || file.contains("/rustlib/src/rust/library/") || is_ours
}

/// What tells a node from others.
#[derive(PartialEq, Eq)]
struct Key {
    place: Place,
    // Compared as texts, since the compiler may have them twice.
    name: &'static str,
    data: &'static str,
    call: usize,
    is_named: bool,
    is_one: bool,
}

impl Key {
    fn hash(&self) -> u64 {
        let texts = of_text(of_text(self.call as u64, self.name), self.data);
        mix(texts ^ u64::from(self.place.line()) << 32 ^ u64::from(self.place.column()))
    }
}

/// Each lock has an order of its own.
const OWN: u32 = 1;
/// Locks of the class are nested in each other, or one of them is a gate.
const NESTS: u32 = 2;

/// A class in use, or the name of locks without one.
pub(crate) struct Node {
    id: u32,
    /// By subclass.
    hashes: [u64; SUBCLASSES as usize],
    key: Key,
    /// The two bits.
    kind: AtomicU32,
    uses: crate::seen::signal::Uses,
    next: AtomicPtr<Node>,
}

/// How many subclasses a class has.
pub(crate) const SUBCLASSES: u8 = 8;

impl Node {
    /// The vertex of a lock in the graph of the order: its class and subclass, or, if it has an
    /// order of its own, its number and subclass.
    #[inline]
    pub fn vertex(&self, subclass: u8, instance: u64) -> u64 {
        match self.is_one() {
            true => CLASS | own_vertex(subclass, self.id.into()),
            false => own_vertex(subclass, instance),
        }
    }

    /// A hash of the vertex and the code of an access that is as good as random.
    #[inline(always)]
    pub fn hash(&self, (subclass, code): (u8, u32), instance: u64) -> u64 {
        let hash = match self.kind.load(Relaxed) {
            0 => self.hashes[usize::from(subclass % SUBCLASSES)],
            _ => fold(own_vertex(subclass, instance)),
        };
        hash.rotate_left(7 * code)
    }

    /// Whether the locks of this class have one order.
    #[inline(always)]
    pub fn is_one(&self) -> bool {
        self.kind.load(Relaxed) & OWN == 0
    }

    /// Locks of the class are nested in each other, or are gates: hashes tell them apart from now
    /// on. Whether that is new.
    pub fn nests(&self) -> bool {
        self.kind.load(Relaxed) == 0 && self.kind.fetch_or(NESTS, Relaxed) == 0
    }

    /// Whether the hash of a lock of this class tells its class only.
    pub fn is_by_class(&self) -> bool {
        self.kind.load(Relaxed) == 0
    }

    /// From now on each of its locks has an order of its own.
    pub fn dissolve(&self) {
        self.kind.fetch_or(OWN, Relaxed);
    }

    /// Whether the class has its name from the author of the program.
    pub fn is_named(&self) -> bool {
        self.key.is_named
    }

    /// Whether the type of the data is part of the class.
    #[cfg(modelled)]
    pub fn has_data(&self) -> bool {
        !self.key.data.is_empty()
    }

    pub fn id(&self) -> u32 {
        self.id
    }

    pub fn name(&self) -> &'static str {
        self.key.name
    }

    #[inline(always)]
    pub fn uses(&self) -> &crate::seen::signal::Uses {
        &self.uses
    }

    pub fn place(&self) -> Place {
        self.key.place
    }

    pub fn lock_name(&self, (address, number): (usize, u64), subclass: u8, access: Access) -> LockName {
        let (name, made) = (self.name().to_owned(), Some(self.place()));
        LockName { name, made, address, number, subclass, access }
    }
}

/// Marks the vertex of a class.
const CLASS: u64 = 1 << 63;

/// The vertex of one lock.
#[inline(always)]
pub(crate) const fn own_vertex(subclass: u8, instance: u64) -> u64 {
    instance * SUBCLASSES as u64 + subclass as u64
}

/// The number of the lock that a vertex is, unless it is a class.
pub(crate) const fn lock_of(vertex: u64) -> Option<u64> {
    if vertex & CLASS == 0 { Some(vertex / SUBCLASSES as u64) } else { None }
}

/// A hash of a text, which begins with `hash` (Fowler, Noll, Vo 1a).
pub(crate) fn of_text(hash: u64, text: &str) -> u64 {
    text.bytes().fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// A hash by one multiplication.
#[inline(always)]
pub(crate) fn fold(value: u64) -> u64 {
    let product = u128::from(value ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
    (product >> 64) as u64 ^ product as u64
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
    /// Lists of nodes by a hash of their key. A node is put at the head of its list and stays.
    static LISTS: [AtomicPtr<Node>; COUNT] = each!(AtomicPtr::new(ptr::null_mut()); COUNT);
    static IDS: AtomicU32 = AtomicU32::new(0);
}

/// The node of a lock of this origin and type, made if it is new. Takes no lock.
///
/// Of two threads that make the same node at once, the one that comes second at the list finds the
/// node of the first and frees its own.
#[cold]
pub(crate) fn resolve(origin: Origin, first: Place, type_name: &'static str) -> &'static Node {
    let key = origin.key(first, type_name);
    let list = &LISTS[key.hash() as usize % LISTS.len()];
    let mut head = list.load(Acquire); // (publish)
    let mut made: Option<NonNull<Node>> = None;
    loop {
        let mut next = head;
        // SAFETY: nodes are never freed, and those of the list came by (publish).
        while let Some(node) = unsafe { next.as_ref() } {
            let is_it = match made {
                // SAFETY: it is in no list, and not freed.
                Some(mine) => node.key == unsafe { mine.as_ref() }.key,
                None => node.key == key,
            };
            if is_it {
                if let Some(mine) = made {
                    #[cfg(checking)]
                    // SAFETY: as above.
                    table::set(unsafe { mine.as_ref() }.id, ptr::null_mut());
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
            let key = origin.key(first, type_name);
            let kind = AtomicU32::new(if key.is_one { 0 } else { OWN });
            let uses = crate::seen::signal::Uses::new();
            keep(Node { id, hashes, key, kind, uses, next: AtomicPtr::default() })
        });
        made = Some(mine);
        // SAFETY: it stays from here on, unless it is not published.
        let node = unsafe { mine.as_ref() };
        node.next.store(head, Relaxed);
        #[cfg(checking)]
        table::set(node.id, mine.as_ptr());
        match list.compare_exchange(head, mine.as_ptr(), Release, Acquire) /* (publish) */ {
            Ok(_) => return node,
            Err(other) => head = other,
        }
    }
}

#[cfg(checking)]
pub(crate) use table::node;

/// All nodes. A model has no table of them.
#[cfg(modelled)]
pub(crate) fn all() -> impl Iterator<Item = &'static Node> {
    LISTS.iter().flat_map(|list| {
        let mut next = list.load(Acquire); // (publish)
        core::iter::from_fn(move || {
            // SAFETY: nodes are never freed, and those of the list came by (publish).
            let node = unsafe { next.as_ref() }?;
            next = node.next.load(Relaxed);
            Some(node)
        })
    })
}

/// The node of this number, which was read from a lock.
#[cfg(modelled)]
pub(crate) fn node(id: usize) -> &'static Node {
    all().find(|node| node.id as usize == id).expect("the class of a lock is known")
}

/// The nodes by number, in chunks that are made when they are needed.
///
/// A thread learns a number from a lock's word, or from an entry of a list (`slot.rs`). Both show
/// it what was in the table before, so its own reads are Relaxed.
#[cfg(checking)]
mod table {
    use super::{Acquire, AtomicPtr, Node, Relaxed, Release, forget, keep, ptr};

    const CHUNK: usize = 1024;
    type Chunk = [AtomicPtr<Node>; CHUNK];

    /// The largest number of nodes is that which a lock has room for.
    static TABLE: [AtomicPtr<Chunk>; 4096] = [const { AtomicPtr::new(ptr::null_mut()) }; 4096];

    /// The node of this number, which was read from a lock.
    #[inline(always)]
    pub fn node(id: usize) -> &'static Node {
        let chunk = TABLE[id / CHUNK % 4096].load(Relaxed);
        // SAFETY: invariant 2: the number was in the table before this thread learned it, so both
        // pointers are there, and what they point to. Chunks and nodes are never freed.
        unsafe { &*(&*chunk)[id % CHUNK].load(Relaxed) }
    }

    /// Enters a node that is about to be published, or takes it out, since it is not.
    pub fn set(id: u32, node: *mut Node) {
        let id = id as usize;
        let place = TABLE.get(id / CHUNK).expect("there are at most four million classes");
        // Mutant: Acquire -> Relaxed: models have no chunks, which one thread makes.
        let mut chunk = place.load(Acquire);
        if chunk.is_null() {
            let mine = keep([const { AtomicPtr::new(ptr::null_mut()) }; CHUNK]);
            // Mutant: Release -> Relaxed: as above.
            // Mutant: failure Acquire -> Relaxed: as above.
            match place.compare_exchange(ptr::null_mut(), mine.as_ptr(), Release, Acquire) {
                Ok(_) => chunk = mine.as_ptr(),
                Err(other) => {
                    // SAFETY: no other thread has seen it.
                    unsafe { forget(mine) };
                    chunk = other;
                }
            }
        }
        // SAFETY: a chunk is never freed once it is in the table.
        let chunk = unsafe { &*chunk };
        chunk[id % CHUNK].store(node, Relaxed);
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
        let first = resolve(Origin::made::<u8>(place), place, "a::RawMutex<B>");
        assert!(ptr::eq(first, resolve(Origin::made::<u8>(place), place, "b::RawMutex<a::C>")));
        assert!(!ptr::eq(first, resolve(Origin::made::<u8>(place), place, "a::RawFairMutex<B>")));
        assert!(!ptr::eq(first, resolve(Origin::made::<u16>(place), place, "a::RawMutex<B>")));
        assert!(!ptr::eq(first, resolve(Origin::UNKNOWN, place, "a::RawMutex<B>")));
        assert_eq!(first.name(), "Mutex");
        let in_order = std::any::type_name::<ulocks_fair::RawFairMutex>();
        assert_eq!(short(in_order), "FairMutex");
        assert_eq!(short(std::any::type_name::<ulocks_unfair::RawThroughputMutex>()), "ThroughputMutex");
        let other = resolve(Origin::made::<u8>(Location::caller()), place, "a::RawMutex<B>");
        assert_ne!(first.vertex(0, 1), other.vertex(0, 1));
    }

    #[test]
    fn a_lock_without_a_class_is_a_vertex_of_its_own() {
        let place = Location::caller();
        let none = resolve(Origin::UNKNOWN, place, "T");
        assert_eq!((none.place(), lock_of(none.vertex(2, 7))), (place, Some(7)));
        let class = resolve(Origin::made::<u8>(place), place, "T");
        assert_eq!((class.vertex(2, 7), lock_of(class.vertex(2, 7))), (class.vertex(2, 8), None));
        class.dissolve();
        assert_ne!(class.vertex(2, 7), class.vertex(2, 8));
    }

    #[test]
    fn subclasses_are_vertices_of_their_own() {
        let place = Location::caller();
        let class = resolve(Origin::made::<i8>(place), place, "T");
        let vertices: std::collections::BTreeSet<u64> =
            (0..SUBCLASSES).map(|sub| class.vertex(sub, 1)).collect();
        assert_eq!(vertices.len(), usize::from(SUBCLASSES));
    }
}
