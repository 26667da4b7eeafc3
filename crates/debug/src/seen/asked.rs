//! What a thread asks for.

use crate::seen::access::Access;
use crate::seen::class::Node;
use crate::seen::report::{LockName, Place};
use crate::seen::thread::Held;

/// What is asked for.
#[derive(Clone, Copy)]
pub(crate) struct Asked {
    pub lock: usize,
    pub class: &'static Node,
    pub access: Access,
    pub subclass: u8,
    pub instance: u64,
    pub at: Place,
}

impl Asked {
    /// The entry of the thread that gets it.
    #[inline]
    pub fn held(&self, since: u64) -> Held {
        let Self { lock, class, access, subclass, instance, at } = *self;
        Held { lock, class, subclass, access, instance, place: at, since }
    }

    /// What a thread asks for that is to have a lock again as it has it now.
    pub fn again(held: &Held) -> Self {
        let Held { lock, class, subclass, access, instance, place, .. } = *held;
        Self { lock, class, access, subclass, instance, at: place }
    }

    pub fn name(&self) -> LockName {
        self.class.lock_name((self.lock, self.instance), self.subclass, self.access)
    }

    /// The vertex in the graph of the order.
    #[inline]
    pub fn vertex(&self) -> u64 {
        self.class.vertex(self.subclass, self.instance)
    }

    /// A hash of the vertex and the access.
    #[inline(always)]
    pub fn hash(&self) -> u64 {
        self.class.hash((self.subclass, self.access.code()), self.instance)
    }
}
