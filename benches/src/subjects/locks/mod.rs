//! Mutexes under test, and what can be used as one: one trait, and a registry in which each lock is
//! one line.
//!
//! C locks are called through libc, hence never inlined, as in a C program; that costs them half a
//! nanosecond to two.

mod lock_array;
mod mcs_park;
mod one_of_array;
mod one_permit;
mod peers;
mod posix;
mod robust;
mod rwlock;
mod sysv;
mod ulock;
mod wait_wake;

pub use lock_array::LockArray;
pub use mcs_park::McsPark;
pub use one_of_array::OneOfArray;
pub use one_permit::OnePermit;
pub use peers::{NoLock, ParkingLot, ParkingLot012, ParkingLotFair, Std, Usync};
pub use posix::{INHERIT, NORMAL, Posix, PosixSem};
pub use robust::{InRegion, Robust};
pub use rwlock::Rw;
pub use sysv::SysV;
pub use ulock::{Readable, Ulock};
pub use wait_wake::WaitWake;

use super::rwlocks::{Peer, Psrw, PsrwDistributed, PsrwHandler, Pthread};
use anyhow::{Result, anyhow, bail};
use posix::{ADAPTIVE, ROBUST};
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;
use ulocks_core::meter::Counted;
use ulocks_core::policy::{Private, Shared};
use ulocks_core::spin::{Adaptive, NoSpin, Patience};
use ulocks_shm::robust::fair_mutex::RobustFairMutex;
use ulocks_shm::robust::mutex::RobustMutex;
use ulocks_shm::robust::rwlock::RobustPsRwLock;
use ulocks_shm::robust::semarray::RobustSemaphore;

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
    /// Whether it excludes at all. Only the base line without a lock says no.
    const EXCLUDES: bool = true;
    /// Whether [`with_shared`](Self::with_shared) lets several readers in.
    const SHARED_MODE: bool = false;
    /// Whether the lock offers an acquisition with a timeout.
    const TIMED: bool = false;
    /// Whether the lock counts its own events.
    const METERED: bool = false;
    /// Whether all its ways into the kernel lead through libc's `syscall`, where
    /// [`futexes`](crate::run::syscalls) counts them.
    const COUNTABLE: bool = true;
    /// Whether it is measured only when it is asked for; see [`Entry::probe`].
    const BY_NAME: bool = Self::SHARED_MODE && Self::EXCLUDES;

    /// An unlocked lock that may still be moved.
    fn unlocked(scope: Scope) -> Result<Self> {
        bail!("this lock has no value to be moved, for {scope:?}: it is made where it stays")
    }

    /// Creates an unlocked lock at `place`.
    ///
    /// # Safety
    /// `place` is valid for writes of `Self` and aligned. If this succeeds the lock stays there
    /// until it is dropped in place or its memory is given up.
    unsafe fn place(place: *mut Self, scope: Scope) -> Result<()> {
        let lock = Self::unlocked(scope)?;
        // SAFETY: the place is valid for writes and aligned, by the contract.
        unsafe { place.write(lock) };
        Ok(())
    }

    /// Holding the lock; dropping it releases the lock, by the thread that acquired it.
    type Held<'a>;

    /// Acquires the lock.
    fn acquire(&self) -> Self::Held<'_>;

    /// Acquires the lock if that needs no waiting.
    fn try_acquire(&self) -> Option<Self::Held<'_>>;

    /// Runs `f` while holding the lock.
    #[inline]
    fn with<R>(&self, f: impl FnOnce() -> R) -> R {
        let _held = self.acquire();
        f()
    }

    /// Runs `f` while holding the lock if that needs no waiting.
    #[inline]
    fn try_with<R>(&self, f: impl FnOnce() -> R) -> Option<R> {
        let _held = self.try_acquire()?;
        Some(f())
    }

    /// Runs `f` while holding the lock together with other readers.
    #[inline]
    fn with_shared<R>(&self, f: impl FnOnce() -> R) -> R {
        self.with(f)
    }

    /// What the lock counted, if it counts.
    fn meters(&self) -> Option<Meters> {
        None
    }

    /// Gives back what outlives the process, although users of the lock may hang in it. Called
    /// before a lock that hangs is abandoned; it is not dropped as long as those users live.
    fn abandon(&self) {}
}

/// Holding a lock that is released by a call.
#[derive(Debug)]
pub struct Held<'a, L: Release>(&'a L);

/// A lock that is released by a call.
pub trait Release {
    /// Releases the lock, which the caller holds.
    fn release(&self);
}

impl<L: Release> Drop for Held<'_, L> {
    #[inline]
    fn drop(&mut self) {
        self.0.release();
    }
}

/// Counters of a metered lock, summed over its instances.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Meters {
    /// Acquisitions.
    pub acquired: u64,
    /// Acquisitions that found the lock taken.
    pub contended: u64,
    /// Contended acquisitions resolved by spinning.
    pub spun: u64,
    /// Entries into the kernel to sleep.
    pub slept: u64,
    /// Wake calls.
    pub woke: u64,
    /// Shared acquisitions that found the lock taken.
    pub reader_contended: u64,
}

impl Meters {
    /// Each counter `with` that of `other`.
    pub fn zip(self, other: Self, with: fn(u64, u64) -> u64) -> Self {
        Self {
            acquired: with(self.acquired, other.acquired),
            contended: with(self.contended, other.contended),
            spun: with(self.spun, other.spun),
            slept: with(self.slept, other.slept),
            woke: with(self.woke, other.woke),
            reader_contended: with(self.reader_contended, other.reader_contended),
        }
    }

    /// Of 100 exclusive acquisitions, how many found the lock taken; none if there were none.
    pub fn write_contention(self, read_share: u8) -> Option<f64> {
        let writes = self.acquired as f64 * f64::from(100 - read_share) / 100.0;
        let contended = self.contended.saturating_sub(self.reader_contended);
        (writes > 0.0).then(|| 100.0 * contended as f64 / writes)
    }

    /// Of 100 shared acquisitions, how many found the lock taken; none if there were none. Meters
    /// do not count shared acquisitions by themselves; they are that share of all, but for chance.
    pub fn read_contention(self, read_share: u8) -> Option<f64> {
        let reads = self.acquired as f64 * f64::from(read_share) / 100.0;
        (reads > 0.0).then(|| 100.0 * self.reader_contended as f64 / reads)
    }

    /// Entries into the kernel to sleep per contended acquisition; 0 if nothing was contended.
    pub fn reentries(self) -> f64 {
        self.slept as f64 / self.contended.max(1) as f64
    }
}

subjects!(Traits: Lock);

/// What is known of a lock.
#[derive(Clone, Copy, Debug)]
pub struct Traits {
    /// The lock of which it is a variant; its own name if it is none.
    pub lock: &'static str,
    /// The letter of ulockflex's column L, a capital if it spins before it sleeps; variants of one
    /// lock may share it.
    pub letter: char,
    /// Whether it works between processes.
    pub processes: bool,
    /// Whether it has an acquisition with a timeout.
    pub timed: bool,
    /// Whether it has a mode for several readers.
    pub shared_mode: bool,
    /// Whether it counts its own events; see [`Entry::metered_twin`].
    pub metered: bool,
    /// Whether it excludes at all.
    pub excludes: bool,
    /// How long it spins, where that is fixed by the entry.
    pub patience_ns: Option<u32>,
}

impl super::Kind for Traits {
    const WHAT: &'static str = "lock";

    fn entries() -> &'static [Entry] {
        &ALL
    }
}

impl Entry {
    fn new<L: Lock>(name: &'static str, letter: char, about: &'static str, processes: bool) -> Self {
        let kind = Traits {
            lock: name,
            letter,
            processes,
            timed: L::TIMED,
            shared_mode: L::SHARED_MODE,
            metered: L::METERED,
            excludes: L::EXCLUDES,
            patience_ns: None,
        };
        // A reader-writer lock or a semaphore array has workloads of its own.
        Self { name, about, family: false, probe: L::BY_NAME, kind }
    }

    /// Whether it is the lock itself: not a twin that counts, and not a variant whose patience is
    /// fixed.
    pub fn is_plain(&self) -> bool {
        !self.metered && self.patience_ns.is_none()
    }

    /// Whether it runs where the user names no locks: the lock itself, and no probe.
    pub fn is_usual(&self) -> bool {
        self.is_plain() && !self.probe
    }

    /// The same lock with counters inside, registered as `NAME-counted`.
    pub fn metered_twin(&self) -> Option<&'static Entry> {
        let is_twin =
            |twin: &&Entry| twin.lock == self.lock && twin.patience_ns == self.patience_ns && twin.metered;
        if self.metered { None } else { Self::all().iter().find(is_twin) }
    }
}

/// Runs `visitor` with the type `entry` has for users of `scope`.
pub fn visit<V: Visitor>(entry: &'static Entry, scope: Scope, visitor: V) -> Result<V::Output> {
    match scope {
        Scope::Threads => Ok(visit_threads(entry, visitor)),
        Scope::Processes => visit_processes(entry, visitor).ok_or_else(|| {
            let names = Entry::names(|entry| entry.processes);
            anyhow!("lock '{}' does not work between processes; allowed: {names}", entry.name)
        }),
    }
}

/// One line a lock.
///
/// A peer or a probe has a name, a letter, a description, a type for threads, and after a bar the
/// type for processes, if any. So has a fixed lock of the family, one without a policy.
///
/// Any other lock of the family has its raw type, generic over the policy; it appears as `NAME`,
/// which spins as it sees fit, as `NAME-0`, which never does, and as `NAME-3us` and so on for each
/// patience in the braces behind it (in nanoseconds); each of these again as `..-counted`. All of
/// them are types that every benchmark is compiled for: hence few. A raw type with parameters
/// behind the policy is written with them, `Raw<_, Other>`; a lock that works in one process only
/// ends in `, threads`.
///
/// Letters are as in 2002: a capital spins or yields before it sleeps, a small letter does not.
/// Both cases of a letter are one lock.
macro_rules! locks {
    (peers { $($name:literal $letter:literal $about:literal: $threads:ty $(| $processes:ty)?;)* }
     probes { $($probe:literal $sign:literal $what:literal: $probe_threads:ty $(| $probe_processes:ty)?;)* }
     family { $($member:literal $small:literal $capital:literal $text:literal:
                $krate:ident :: $raw:ident $(< _ $(, $more:ty)+ >)? $({ $($ns:literal)+ })? $(, $only:ident)?;)* }
     fixed { $($fixed:literal $initial:literal $line:literal: $fixed_threads:ty $(| $fixed_processes:ty)?;)* }
    ) => {
        static ALL: LazyLock<Vec<Entry>> = LazyLock::new(|| {
            let mut all = vec![
                $(Entry::new::<$threads>($name, $letter, $about, locks!(@given $($processes)?)),)*
                $(Entry {
                    probe: true,
                    ..Entry::new::<$probe_threads>($probe, $sign, $what, locks!(@given $($probe_processes)?))
                },)*
            ];
            $({
                type Plain = Ulock<$krate::$raw<Private $(, $($more),+)?>>;
                let plain = Entry::new::<Plain>($member, $capital, $text, locks!(@processes $($only)?));
                all.extend(variants(plain, $small, &[$($($ns),+)?]));
            })*
            all.extend([$(Entry {
                family: true,
                ..Entry::new::<$fixed_threads>($fixed, $initial, $line, locks!(@given $($fixed_processes)?))
            },)*] as [Entry; locks!(@count $($fixed)*)]);
            all.retain(|entry| crate::subjects::is_here(entry.name));
            all
        });

        fn visit_threads<V: Visitor>(entry: &'static Entry, visitor: V) -> V::Output {
            match entry.lock {
                $($name => visitor.visit::<$threads>(entry),)*
                $($probe => visitor.visit::<$probe_threads>(entry),)*
                $($member => {
                    type Raw<P> = $krate::$raw<P $(, $($more),+)?>;
                    locks!(@visit visitor, entry, Raw, Private, [$($($ns)+)?])
                })*
                $($fixed => visitor.visit::<$fixed_threads>(entry),)*
                _ => unreachable!("an entry comes from the registry"),
            }
        }

        fn visit_processes<V: Visitor>(entry: &'static Entry, visitor: V) -> Option<V::Output> {
            Some(match entry.lock {
                $($($name => visitor.visit::<$processes>(entry),)?)*
                $($($probe => visitor.visit::<$probe_processes>(entry),)?)*
                $($member => locks!(
                    @shared [$($only)?] visitor, entry, [$krate :: $raw $(, $($more),+)?], [$($($ns)+)?]
                ),)*
                $($($fixed => visitor.visit::<$fixed_processes>(entry),)?)*
                _ => return None,
            })
        }
    };
    (@given) => { false };
    (@given $type:ty) => { true };
    (@processes) => { true };
    (@processes threads) => { false };
    (@count) => { 0 };
    (@count $one:literal $($rest:literal)*) => { 1 + locks!(@count $($rest)*) };
    (@shared [threads] $($rest:tt)*) => { return None };
    (@shared [] $visitor:ident, $entry:ident, [$krate:ident :: $raw:ident $(, $more:ty)*], $ns:tt) => {{
        type Raw<P> = $krate::$raw<P $(, $more)*>;
        locks!(@visit $visitor, $entry, Raw, Shared, $ns)
    }};
    (@visit $visitor:ident, $entry:ident, $raw:ident, $scope:ident, [$($ns:literal)*]) => {
        match ($entry.patience_ns, $entry.metered) {
            (None, false) => $visitor.visit::<Ulock<$raw<$scope>>>($entry),
            (None, true) => $visitor.visit::<Ulock<$raw<$scope<Adaptive, Counted>>>>($entry),
            (Some(0), false) => $visitor.visit::<Ulock<$raw<$scope<NoSpin>>>>($entry),
            (Some(0), true) => $visitor.visit::<Ulock<$raw<$scope<NoSpin, Counted>>>>($entry),
            $(
                (Some($ns), false) => $visitor.visit::<Ulock<$raw<$scope<Patience<$ns>>>>>($entry),
                (Some($ns), true) => $visitor.visit::<Ulock<$raw<$scope<Patience<$ns>, Counted>>>>($entry),
            )*
            _ => unreachable!("an entry comes from the registry"),
        }
    };
}

/// A lock of the family in every variant. Names are made up once and live as long as the registry,
/// that is for ever.
fn variants(plain: Entry, small: char, patience_ns: &[u32]) -> Vec<Entry> {
    let variant = |patience_ns: Option<u32>, metered: bool| {
        let (mut name, mut about) = (plain.name.to_owned(), plain.about.to_owned());
        if let Some(ns) = patience_ns {
            let patience = patience_text(ns);
            name += &format!("-{patience}");
            about += &if ns == 0 { ", never spins".into() } else { format!(", spins for {patience}") };
        }
        if metered {
            name += "-counted";
            about += ", counting";
        }
        let letter = if patience_ns == Some(0) { small } else { plain.letter };
        let (name, about) = (name.leak(), about.leak());
        Entry {
            name,
            about,
            family: true,
            kind: Traits { letter, metered, patience_ns, ..plain.kind },
            ..plain
        }
    };
    let fixed = [0].iter().chain(patience_ns).map(|&ns| Some(ns));
    [None].into_iter().chain(fixed).flat_map(|ns| [variant(ns, false), variant(ns, true)]).collect()
}

/// A patience as names and `--patience` have it: `0`, `3us`.
pub fn patience_text(ns: u32) -> String {
    if ns == 0 { "0".into() } else { format!("{}us", ns / 1000) }
}

locks! {
    peers {
        "none" 'e' "no lock at all: the ceiling": NoLock | NoLock;
        "std" 'D' "std::sync::Mutex": Std;
        "parking_lot" 'L' "parking_lot 0.13 Mutex": ParkingLot;
        "parking_lot-0.12" 'O' "parking_lot 0.12 Mutex": ParkingLot012;
        "parking_lot-fair" 'G' "parking_lot 0.13 FairMutex": ParkingLotFair;
        "usync" 'U' "usync Mutex": Usync;
        "pthread" 'p' "pthread_mutex_t, normal": Posix<NORMAL> | Posix<NORMAL>;
        "pthread-adaptive" 'P' "pthread_mutex_t, adaptive": Posix<ADAPTIVE> | Posix<ADAPTIVE>;
        "pthread-pi" 'i' "pthread_mutex_t, priority inheritance": Posix<INHERIT> | Posix<INHERIT>;
        "pthread-robust" 'r' "pthread_mutex_t, robust and process-shared": Posix<ROBUST> | Posix<ROBUST>;
        "sem_t" 'm' "POSIX unnamed semaphore, process-shared": PosixSem | PosixSem;
        "sysv" 'k' "SysV semaphore, two semop calls an operation": SysV | SysV;
    }
    probes {
        "mcs-park" 'Q' "MCS queue lock, spins for 100 pauses, then parks": McsPark;
        "wait-wake" 'h' "mutex on FUTEX_WAIT and FUTEX_WAKE that never spins": WaitWake;
        "sysv-undo" 'u' "SysV semaphore with SEM_UNDO": SysV<true> | SysV<true>;
        "std-rw" 'R' "std::sync::RwLock": Rw<Peer<crate::subjects::rwlocks::Std>>;
        "parking_lot-rw" 'W' "parking_lot 0.13 RwLock": Rw<Peer<crate::subjects::rwlocks::ParkingLot>>;
        "usync-rw" 'V' "usync RwLock": Rw<Peer<crate::subjects::rwlocks::Usync>>;
        "pthread-rw" 'v' "pthread_rwlock_t, readers first": Rw<Peer<Pthread<false>>>;
        "pthread-rw-writer" 'w' "pthread_rwlock_t, writers first": Rw<Peer<Pthread<true>>>;
    }
    family {
        "unfair" 'b' 'B' "ulocks unfair BargingMutex": ulocks_unfair::RawBargingMutex;
        "throughput" 't' 'T' "ulocks unfair ThroughputMutex, reserved after 100 us": ulocks_unfair::RawThroughputMutex, threads;
        "asym" 'a' 'A' "ulocks unfair AsymMutex": ulocks_unfair::RawAsymMutex;
        "byte" 'x' 'X' "ulocks unfair ByteMutex": ulocks_unfair::RawByteMutex, threads;
        "calock" 'c' 'C' "ulocks Calock": ulocks_calock::RawCalock { 3_000 };
        "fair" 'f' 'F' "ulocks fair FairMutex": ulocks_fair::RawFairMutex;
        "semaphore" 's' 'S' "ulocks fair Semaphore, one permit": one_permit::OnePermit;
        "pi" 'j' 'J' "ulocks PiMutex": ulocks_pi::RawPiMutex;
    }
    fixed {
        "psrw" 'H' "ulocks PsRwLock": Rw<Psrw>;
        "psrw-handler" 'I' "ulocks PsRwLock with the class Handler": Rw<PsrwHandler>;
        "psrw-distributed" 'K' "ulocks PsRwLock, readers counted in eight places": Rw<PsrwDistributed>;
        "semarray" 'o' "ulocks SemArray of one semaphore": OneOfArray;
        "robust" 'E' "ulocks RobustMutex, in a region": InRegion<RobustMutex<u64>> | InRegion<RobustMutex<u64>>;
        "robust-fair" 'M' "ulocks RobustFairMutex, in a region":
            InRegion<RobustFairMutex<u64>> | InRegion<RobustFairMutex<u64>>;
        "robust-rw" 'N' "ulocks RobustPsRwLock, in a region, for writing":
            InRegion<RobustPsRwLock<u64>> | InRegion<RobustPsRwLock<u64>>;
        "robust-semaphore" 'g' "ulocks RobustSemaphore of one permit, in a region":
            InRegion<RobustSemaphore> | InRegion<RobustSemaphore>;
    }
}

#[cfg(test)]
mod tests;
