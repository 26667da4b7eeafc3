//! What a checked lock knows of itself: its class, and its number.

use crate::seen::access::Access;
use crate::seen::asked::Asked;
use crate::seen::class::{Node, Origin, resolve};
use crate::seen::report::Place;
use core::any::type_name;
use core::ptr;
use ulocks_core::sync::{
    AtomicPtr, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

/// The class and the number of a lock. Its first acquisition sets both. They move with the lock.
#[derive(Debug)]
pub(crate) struct Identity {
    class: AtomicPtr<Node>,
    instance: AtomicU64,
    origin: Origin,
}

impl Identity {
    pub const fn new(origin: Origin) -> Self {
        Self { class: AtomicPtr::new(ptr::null_mut()), instance: AtomicU64::new(0), origin }
    }

    /// The class, if the lock was ever acquired.
    #[inline]
    pub fn known_class(&self) -> Option<&'static Node> {
        // SAFETY: a class is never freed, and it came by (publish).
        unsafe { self.class.load(Acquire).as_ref() } // (publish)
    }

    /// The number; 0 if the lock was never acquired.
    #[inline]
    pub fn instance(&self) -> u64 {
        self.instance.load(Relaxed)
    }

    /// The class of this lock, whose type is `L`.
    #[inline]
    pub fn class<L: ?Sized>(&self, at: Place) -> &'static Node {
        match self.known_class() {
            Some(class) => class,
            None => self.find_class(at, type_name::<L>()),
        }
    }

    #[cold]
    fn find_class(&self, at: Place, type_name: &'static str) -> &'static Node {
        static INSTANCES: AtomicU64 = AtomicU64::new(1);
        let class = resolve(self.origin, at, type_name);
        // Two threads may do this at once, at two places. What the first one says stays.
        let number = INSTANCES.fetch_add(1, Relaxed);
        let _ = self.instance.compare_exchange(0, number, Relaxed, Relaxed);
        let (none, mine) = (ptr::null_mut(), ptr::from_ref(class).cast_mut());
        match self.class.compare_exchange(none, mine, Release, Acquire) /* (publish) */ {
            Ok(_) => class,
            // SAFETY: not null, and as in `known_class`.
            Err(first) => unsafe { &*first },
        }
    }

    /// What a thread asks for that asks for this lock, of type `L`, at `lock`.
    #[inline]
    pub fn asked<L: ?Sized>(&self, lock: usize, access: Access, subclass: u8, at: Place) -> Asked {
        let class = self.class::<L>(at);
        Asked { lock, class, access, subclass, instance: self.instance.load(Relaxed), at }
    }
}
