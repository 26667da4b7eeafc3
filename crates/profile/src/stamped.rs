//! [`Stamped`]: a meter by which a plain lock takes part in the profile.

use crate::recorder;
use crate::subject::{Place, Subject};
use crate::sums::{self, Key};
use core::marker::PhantomData;
use core::panic::Location;
use core::ptr;
use ulocks_core::meter::{Event, Meter, sealed};

/// The name of plain locks in the profile; see [`Stamped`].
#[derive(Debug)]
pub struct Name {
    name: &'static str,
    pub(crate) place: Place,
}

impl Name {
    /// A name; [`named`](crate::named) declares one.
    #[track_caller]
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self { name, place: Location::caller() }
    }
}

impl Subject for Name {
    fn name(&self) -> &str {
        self.name
    }

    fn made(&self) -> Place {
        self.place
    }

    fn is_plain(&self) -> bool {
        true
    }
}

/// A type that stands for a [`Name`]. [`named`](crate::named) declares it.
pub trait Named: Send + Sync + 'static {
    /// The name.
    const NAME: &'static Name;
}

/// Declares a type that names plain locks in the profile: `named!(pub Accounts = "accounts")`. See
/// [`Stamped`](crate::Stamped).
#[macro_export]
macro_rules! named {
    ($(#[$meta:meta])* $vis:vis $type:ident = $name:expr) => {
        $(#[$meta])*
        $vis enum $type {}

        impl $crate::Named for $type {
            const NAME: &'static $crate::Name = {
                static NAME: $crate::Name = $crate::Name::new($name);
                &NAME
            };
        }
    };
}

/// A meter by which a plain lock is in the [profile](crate), under the name `N`.
///
/// It is part of the lock's type, as `Private<Adaptive, Stamped<Accounts>>`. A lock of any other
/// policy is not in the profile. It has no code for it, since the calls to its meter are empty. The
/// meter takes no room: the lock is as large as without it.
///
/// The profile counts the acquisitions, the waits and the holds of the lock. The class is `N`. A
/// plain lock does not know the lines of its users. So the only place is the line of `N`, and who
/// made whom wait is not known. The address of a lock is that of its meter, which is in the lock or
/// at its end.
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
/// use ulocks_profile as profile;
/// use ulocks_profile::named;
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
// a lock. They take no lock of the family: tables and entries are lists that are added to by one
// exchange.
unsafe impl<N: Named> sealed::Sealed for Stamped<N> {}

impl<N: Named> Stamped<N> {
    fn lock(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    fn key(&self) -> Key {
        Key { class: N::NAME, place: N::NAME.place, lock: self.lock(), holder: None }
    }

    #[cold]
    #[inline(never)]
    fn acquired(&self, holds: bool) {
        recorder::plain_acquired(&self.key(), holds);
    }

    #[cold]
    #[inline(never)]
    fn contended(&self) {
        recorder::plain_contended(self.lock());
    }
}

impl<N: Named> Meter for Stamped<N> {
    const INIT: Self = Self(PhantomData);

    #[inline]
    fn count(&self, event: Event) {
        match event {
            Event::Acquired if sums::is_on() => self.acquired(true),
            Event::Contended | Event::ReaderContended if sums::is_on() => self.contended(),
            _ => {}
        }
    }

    #[inline]
    fn released(&self) {
        recorder::plain_released(self.lock());
    }

    #[inline]
    fn permitted(&self) {
        if sums::is_on() {
            self.acquired(false);
        }
    }

    fn gave_up(&self) {
        recorder::plain_gave_up(&self.key());
    }
}
