//! [`Stamped`]: a meter by which a plain lock takes part in the profile.

use super::sums::{self, Entry, Key};
use super::ticks::ticks;
use crate::rules::clock::now;
use crate::rules::current::current;
use crate::seen::class::{Class, Node, Origin, resolve};
use crate::seen::thread::Record;
use core::marker::PhantomData;
use core::ptr;
use ulocks_core::meter::{Event, Meter, sealed};
use ulocks_core::sync::{
    AtomicPtr,
    Ordering::{Acquire, Release},
};

/// The name of plain locks in the profile; see [`Stamped`].
#[derive(Debug)]
pub struct Name {
    class: Class,
    node: AtomicPtr<Node>,
}

impl Name {
    /// A name; [`named`](crate::named) declares one.
    #[track_caller]
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self { class: Class::new(name), node: AtomicPtr::new(ptr::null_mut()) }
    }

    #[inline]
    fn node(&'static self) -> &'static Node {
        // SAFETY: null, or a class; those are never freed, and this one came by (publish).
        match unsafe { self.node.load(Acquire).as_ref() } {
            Some(node) => node,
            None => self.find(),
        }
    }

    #[cold]
    fn find(&'static self) -> &'static Node {
        let node = resolve(Origin::named(&self.class), self.class.place(), "");
        self.node.store(ptr::from_ref(node).cast_mut(), Release); // (publish)
        node
    }
}

/// The record of this thread. A signal handler must not count, since that allocates.
fn thread() -> Option<&'static Record> {
    current().filter(|me| !me.is_handler())
}

/// A type that stands for a [`Name`]. [`named`](crate::named) declares it.
pub trait Named: Send + Sync + 'static {
    /// The name.
    fn name() -> &'static Name;
}

/// Declares a type that names plain locks in the profile: `named!(pub Accounts = "accounts")`. See
/// [`Stamped`](crate::profile::Stamped).
#[macro_export]
macro_rules! named {
    ($(#[$meta:meta])* $vis:vis $type:ident = $name:expr) => {
        $(#[$meta])*
        $vis enum $type {}

        impl $crate::profile::Named for $type {
            fn name() -> &'static $crate::profile::Name {
                static NAME: $crate::profile::Name = $crate::profile::Name::new($name);
                &NAME
            }
        }
    };
}

/// A meter by which a plain lock is in the [profile](super), under the name `N`.
///
/// It is part of the lock's type, as `Private<Adaptive, Stamped<Accounts>>`. A lock of any other
/// policy is not in the profile. It has no code for it, since the calls to its meter are empty. The
/// meter takes no room: the lock is as large as without it.
///
/// The profile counts the acquisitions, the waits and the holds of the lock. The class is `N`. A
/// plain lock does not know the lines of its users. So the only place is the line of `N`. The
/// address of a lock is that of its meter, which is in the lock or at its end.
///
/// While the profile is off, each event makes one Relaxed load. A release also looks up whether its
/// thread has ever taken part in the profile.
///
/// A lock of this policy inside a checked lock is counted under both names.
///
/// It is for threads: waits and holds belong to the thread that makes them. A task that acquires by
/// `lock_async` waits on one thread and releases on another perhaps, and its times are not right.
///
/// A semaphore has no holder, so its holds are not counted. A lock of these may be in a process
/// only, and may not guard a global allocator. No signal handler may acquire it.
///
/// # Examples
/// ```
/// use ulocks_core::{Private, spin::Adaptive};
/// use ulocks_debug::{named, profile};
/// use ulocks_unfair::ThroughputMutexWith;
///
/// named!(Accounts = "accounts");
/// type Mutex<T> = ThroughputMutexWith<T, Private<Adaptive, profile::Stamped<Accounts>>>;
///
/// static TOTAL: Mutex<u64> = Mutex::new(0);
/// assert_eq!(size_of::<Mutex<u64>>(), size_of::<ulocks_unfair::ThroughputMutex<u64>>());
///
/// profile::start();
/// *TOTAL.lock() += 1;
/// profile::stop();
/// let profile = profile::snapshot();
/// let line = profile.classes().iter().find(|line| line.lock.name == "accounts").unwrap();
/// assert_eq!(line.sums.acquired, 1);
/// ```
#[derive(Debug)]
pub struct Stamped<N>(PhantomData<fn() -> N>);

// SAFETY: the methods return and do not unwind. They allocate at the first event of a thread or of
// a lock. They take no lock of the family: records, tables, entries and classes are lists that are
// added to by one exchange.
unsafe impl<N: Named> sealed::Sealed for Stamped<N> {}

impl<N: Named> Stamped<N> {
    fn lock(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    fn key(&self) -> Key {
        let class = N::name().node();
        Key { class, place: N::name().class.place(), lock: self.lock(), holder: None }
    }

    #[cold]
    #[inline(never)]
    fn acquired(&self) {
        let Some(table) = thread().map(|me| me.profile().table(me.identity())) else { return };
        let entry: &'static Entry = table.entry(&self.key());
        if let Some(began) = table.stamps.end_wait(self.lock()) {
            entry.waited(began);
        }
        let began = ticks();
        entry.acquired(began);
        table.stamps.begin_hold((self.lock(), began, entry));
    }

    #[cold]
    #[inline(never)]
    fn contended(&self) {
        if let Some(me) = thread() {
            me.profile().table(me.identity()).stamps.begin_wait(self.lock(), now());
        }
    }
}

impl<N: Named> Meter for Stamped<N> {
    const INIT: Self = Self(PhantomData);

    #[inline]
    fn count(&self, event: Event) {
        match event {
            Event::Acquired if sums::is_on() => self.acquired(),
            Event::Contended | Event::ReaderContended if sums::is_on() => self.contended(),
            _ => {}
        }
    }

    #[inline]
    fn released(&self) {
        if let Some(table) = crate::seen::thread::existing().and_then(|me| me.profile().known_table())
            && let Some((_, began, entry)) = table.stamps.end_hold(self.lock())
        {
            entry.released(began);
        }
    }

    fn gave_up(&self) {
        if let Some(table) = crate::seen::thread::existing().and_then(|me| me.profile().known_table())
            && let Some(began) = table.stamps.end_wait(self.lock())
        {
            table.entry(&self.key()).waited(began);
        }
    }
}
