//! Mutexes under test, and what can be used as one. A lock is added as a type with the trait
//! [`Lock`], and a line in the registry. All others meet it as a `dyn` [`Mutex`], in [`Locks`] made
//! by its entry.
//!
//! C locks are called through libc, hence never inlined, as in a C program; that costs them half a
//! nanosecond to two.

mod erased;
mod loops;
mod mcs;
mod peers;
mod posix;
mod robust;
mod semaphores;
mod ulock;
mod wait_wake;

pub use erased::{Locks, Mutex, Type, zeroed};
pub use loops::{Lane, Next, Turned, Worker, phase};
pub use mcs::Mcs;
pub use peers::{NoLock, ParkingLot, PsrwShared, Rw, Std, Swapped, Usync};
pub use posix::{INHERIT, NORMAL, Posix};
pub use robust::{InRegion, Robust};
pub use semaphores::{PosixSem, SysV};
pub use ulock::{Permit, Ulock};
pub use wait_wake::WaitWake;

use super::rwlocks::{self, Psrw, PsrwCentral};
use anyhow::{Result, anyhow, bail};
pub(super) use loops::time;
use posix::ROBUST;
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::sync::LazyLock;
use std::time::Duration;
use ulocks_core::meter::Counted;
use ulocks_core::policy::{Private, Shared};
use ulocks_core::spin::{Adaptive, NoSpin, Patience};
use ulocks_shm as shm;

/// The contenders of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The threads of this process.
    Threads,
    /// Processes that share the mapping in which the lock lies.
    Processes,
}

/// A lock that can be measured. It lives where it is placed.
pub trait Lock: Sync + Sized + 'static {
    /// Whether it excludes at all. Only what is no lock says no.
    const EXCLUDES: bool = true;
    /// Whether [`shared`](Self::shared) lets several readers in.
    const SHARED_MODE: bool = false;
    /// Whether all its ways into the kernel lead through libc's `syscall`, where
    /// [`futexes`](crate::run::syscalls) counts them.
    const COUNTABLE: bool = true;

    /// Creates an unlocked lock where it stays.
    fn place(place: &mut MaybeUninit<Self>, scope: Scope) -> Result<()>;

    /// Holding the lock; dropping it releases the lock, by the thread that acquired it.
    type Held<'a>;

    /// Acquires the lock. None only if it was not to `wait`.
    fn acquire(&self, wait: bool) -> Option<Self::Held<'_>>;

    /// Releases the lock, which [`Held`] holds.
    fn release(&self) {}

    /// Runs `f` while holding the lock together with other readers.
    #[inline]
    fn shared<R>(&self, f: impl FnOnce() -> R) -> R {
        let _held = self.acquire(true);
        f()
    }

    /// The time of so many acquisitions and releases, with nothing inside or between.
    fn time_pairs(&self, times: u32, reads: bool) -> Duration {
        let lock = black_box(self);
        match reads {
            true => time(times, || lock.shared(|| ())),
            false => time(times, || drop(lock.acquire(true))),
        }
    }

    /// What the lock counted, if it counts.
    fn meters(&self) -> Option<Meters> {
        None
    }
}

/// Holding a lock that is released by [`Lock::release`].
pub struct Held<'a, L: Lock>(&'a L);

impl<L: Lock> Drop for Held<'_, L> {
    #[inline]
    fn drop(&mut self) {
        self.0.release();
    }
}

/// What a lock that counts has counted: acquisitions, those that found the lock taken, those of
/// them that were resolved by spinning, and entries into the kernel to sleep.
pub type Meters = [u64; 4];

/// A subject of this kind.
pub type Entry = super::Entry<Traits>;

/// What is known of a lock.
#[derive(Clone, Copy, Debug)]
pub struct Traits {
    /// Whether it works between processes.
    pub processes: bool,
    /// Whether it has a mode for several readers.
    pub shared_mode: bool,
    /// Whether it excludes at all.
    pub excludes: bool,
    /// Whether it can count its own events.
    pub counts: bool,
    /// How long it can be made to spin, beside its own way.
    pub patience_ns: &'static [u32],
    /// How long it spins where its name says so.
    named_ns: Option<u32>,
    types: fn(Form) -> Option<Type>,
}

/// In which form a lock is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// Its users.
    pub scope: Scope,
    /// How long it spins, instead of its own way.
    pub patience_ns: Option<u32>,
    /// Whether it counts its own events, if it can.
    pub counted: bool,
}

impl Form {
    /// The lock as it is.
    pub fn plain(scope: Scope) -> Self {
        Self { scope, patience_ns: None, counted: false }
    }
}

impl super::Kind for Traits {
    const WHAT: &'static str = "lock";

    fn entries() -> &'static [Entry] {
        &ALL
    }

    /// `NAME-0` never spins, `NAME-3us` so long: another name for a lock with that patience.
    fn aliases() -> &'static [Entry] {
        static ALIASES: LazyLock<Vec<Entry>> = LazyLock::new(|| {
            let each = |entry: &'static Entry| entry.patience_ns.iter().map(move |&ns| entry.with(ns));
            ALL.iter().flat_map(each).collect()
        });
        &ALIASES
    }
}

impl Entry {
    /// The type of the lock in this form.
    ///
    /// # Errors
    /// If there is none.
    pub fn make(&self, form: Form) -> Result<Type> {
        let Form { scope, patience_ns, counted } = form;
        let patience_ns = patience_ns.or(self.named_ns);
        if scope == Scope::Processes && !self.processes {
            let names = Self::names(|entry| entry.processes);
            bail!("lock '{}' does not work between processes; allowed: {names}", self.name);
        }
        if let Some(ns) = patience_ns
            && !self.patience_ns.contains(&ns)
        {
            let known: Vec<_> = self.patience_ns.iter().map(|&ns| patience_text(ns)).collect();
            let known = if known.is_empty() { "its own".into() } else { known.join(", ") };
            bail!("lock '{}' has no patience of {}; allowed: {known}", self.name, patience_text(ns));
        }
        let counted = counted && self.counts;
        let made = (self.types)(Form { scope, patience_ns, counted });
        made.ok_or_else(|| anyhow!("lock '{}' has no form {form:?}", self.name))
    }

    /// The same with a patience in its name. Names are made up once and live as long as the
    /// registry, that is for ever.
    fn with(&self, ns: u32) -> Self {
        let text = patience_text(ns);
        let about = if ns == 0 { "never spins".into() } else { format!("spins for {text}") };
        Self {
            name: format!("{}-{text}", self.name).leak(),
            about: format!("{}, {about}", self.about).leak(),
            kind: Traits { named_ns: Some(ns), ..self.kind },
            ..*self
        }
    }
}

/// A patience as names have it: `0`, `3us`.
fn patience_text(ns: u32) -> String {
    if ns == 0 { "0".into() } else { format!("{}us", f64::from(ns) / 1000.0) }
}

/// One line a lock.
///
/// A lock that has no policy has a name, a description, a type for threads, and after a bar the
/// type for processes, if any.
///
/// Any other lock of the family has what makes a lock of its raw type, which is generic over the
/// policy. It spins as it sees fit, never, or for one of the times in the braces behind it, in
/// nanoseconds; and in each of these ways it can count. One that works in one process only ends in
/// `, threads`.
macro_rules! locks {
    (family { $($member:literal $text:literal:
                $of:ident of $krate:ident :: $raw:ident $({ $($ns:literal)+ })? $(, $only:ident)?;)* }
     $($group:ident { $($name:literal $about:literal:
                        $threads:ty $(| $processes:ty)?;)* })*
    ) => {
        static ALL: LazyLock<Vec<Entry>> = LazyLock::new(|| {
            let family = vec![$({
                let types = |form: Form| match form.scope {
                    Scope::Threads => locks!(@policy form, $of, $krate::$raw, Private, $($($ns)+)?),
                    Scope::Processes => locks!(@shared [$($only)?] form, $of, $krate::$raw, Shared, $($($ns)+)?),
                };
                entry($member, $text, "family", Some(&[0, $($($ns),+)?]), types)
            },)*];
            let mut all = Vec::new();
            $(
                if stringify!($group) == "named" {
                    all.extend_from_slice(&family);
                }
                $({
                    let types = |form: Form| match form.scope {
                        Scope::Threads => Some(Type::of::<$threads>()),
                        Scope::Processes => [$(Type::of::<$processes>())?].first().copied(),
                    };
                    all.push(entry($name, $about, stringify!($group), None, types));
                })*
            )*
            all
        });
    };
    (@shared [threads] $($rest:tt)*) => { None };
    (@shared [] $($rest:tt)*) => { locks!(@policy $($rest)*) };
    (@policy $form:ident, $of:ident, $krate:ident :: $raw:ident, $scope:ident, $($ns:literal)*) => {
        match ($form.patience_ns, $form.counted) {
            (None, false) => Some(Type::of::<$of<$krate::$raw<$scope>>>()),
            (None, true) => Some(Type::of::<$of<$krate::$raw<$scope<Adaptive, Counted>>>>()),
            (Some(0), false) => Some(Type::of::<$of<$krate::$raw<$scope<NoSpin>>>>()),
            (Some(0), true) => Some(Type::of::<$of<$krate::$raw<$scope<NoSpin, Counted>>>>()),
            $(
                (Some($ns), false) => Some(Type::of::<$of<$krate::$raw<$scope<Patience<$ns>>>>>()),
                (Some($ns), true) => Some(Type::of::<$of<$krate::$raw<$scope<Patience<$ns>, Counted>>>>()),
            )*
            _ => None,
        }
    };
}

/// An entry of `group`. Those of `named` are locks of the family that have rows of their own.
fn entry(
    name: &'static str,
    about: &'static str,
    group: &str,
    patience_ns: Option<&'static [u32]>,
    types: fn(Form) -> Option<Type>,
) -> Entry {
    let plain = types(Form::plain(Scope::Threads)).expect("every lock is one of threads");
    let kind = Traits {
        processes: types(Form::plain(Scope::Processes)).is_some(),
        shared_mode: plain.shared_mode,
        excludes: plain.excludes,
        counts: patience_ns.is_some(),
        patience_ns: patience_ns.unwrap_or_default(),
        named_ns: None,
        types,
    };
    Entry { name, about, family: matches!(group, "family" | "named"), kind }
}

locks! {
    family {
        "unfair" "ulocks unfair BargingMutex": Ulock of ulocks_unfair::RawBargingMutex;
        "throughput" "ulocks unfair ThroughputMutex, owed to a waiter after 100 us": Ulock of ulocks_unfair::RawThroughputMutex, threads;
        "asym" "ulocks unfair AsymMutex": Ulock of ulocks_unfair::RawAsymMutex;
        "byte" "ulocks unfair ByteMutex": Ulock of ulocks_unfair::RawByteMutex, threads;
        "calock" "ulocks Calock": Ulock of ulocks_calock::RawCalock { 3_000 }, threads;
        "fair" "ulocks fair FairMutex": Ulock of ulocks_fair::RawFairMutex { 3_000 }, threads;
        "semaphore" "ulocks fair Semaphore, one permit": Permit of ulocks_fair::RawSemaphore { 3_000 }, threads;
        "pi" "ulocks PiMutex": Ulock of ulocks_pi::RawPiMutex;
    }
    peers {
        "none" "no lock at all: the ceiling": NoLock | NoLock;
        "std" "std::sync::Mutex": Std;
        "parking_lot" "parking_lot 0.13 Mutex": ParkingLot;
        "usync" "usync Mutex": Usync;
        "pthread" "pthread_mutex_t, normal": Posix<NORMAL> | Posix<NORMAL>;
        "pthread-pi" "pthread_mutex_t, priority inheritance": Posix<INHERIT> | Posix<INHERIT>;
        "pthread-robust" "pthread_mutex_t, robust and process-shared": Posix<ROBUST> | Posix<ROBUST>;
        "sem_t" "POSIX unnamed semaphore": PosixSem | PosixSem;
        "sysv" "SysV semaphore, two semop calls an operation": SysV | SysV;
    }
    probes {
        "mcs" "MCS queue spinlock, for no more threads than CPUs": Mcs<false>;
        "mcs-park" "MCS queue lock, spins for 100 pauses, then parks": Mcs<true>;
        "wait-wake" "mutex on FUTEX_WAIT and FUTEX_WAKE that never spins": WaitWake;
        "sysv-undo" "SysV semaphore with SEM_UNDO": SysV<true> | SysV<true>;
        "std-rw" "std::sync::RwLock": Rw<rwlocks::Std>;
        "parking_lot-rw" "parking_lot 0.13 RwLock": Rw<rwlocks::ParkingLot>;
        "usync-rw" "usync RwLock": Rw<rwlocks::Usync>;
        "pthread-rw" "pthread_rwlock_t, readers first": Rw<rwlocks::Pthread>;
        "sharded-rw" "crossbeam ShardedLock": Rw<rwlocks::Sharded>;
        "arc-swap" "arc-swap: readers load, writers replace, nothing excludes": Swapped;
    }
    named {
        "psrw" "ulocks PsRwLock": Rw<Psrw> | PsrwShared;
        "psrw-central" "ulocks PsRwLock, all readers counted in the state": Rw<PsrwCentral>;
        "robust" "ulocks shm::Mutex, in a region": InRegion<shm::Mutex<u64>> | InRegion<shm::Mutex<u64>>;
        "robust-fair" "ulocks shm::FairMutex, in a region":
            InRegion<shm::FairMutex<u64>> | InRegion<shm::FairMutex<u64>>;
        "robust-rw" "ulocks shm::RwLock, in a region, for writing":
            InRegion<shm::RwLock<u64>> | InRegion<shm::RwLock<u64>>;
        "robust-semaphore" "ulocks shm::Semaphore of one permit, in a region":
            InRegion<shm::Semaphore> | InRegion<shm::Semaphore>;
    }
}

#[cfg(test)]
mod tests;
