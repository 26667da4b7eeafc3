//! Locks that tasks wait for without blocking their thread: the family's and the peers'.
//!
//! A new one implements [`TaskLock`], and has a line in the registry.

mod event;
mod turns;

pub use turns::{Job, Turns};

use event::EventMutex;
use parking_lot::lock_api::RawMutex as _;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;
use turns::{go_round, go_round_as_thread};
use ulocks_core::policy::Private;
use ulocks_core::raw::{RawMutex, RawMutexAsync};
use ulocks_core::task::{AsyncMutex, AsyncMutexGuard, AsyncRwLock as _, AsyncRwLockWriteGuard};

/// A lock that tasks wait for.
pub trait TaskLock: Send + Sync + 'static {
    /// Whether it keeps others out.
    const EXCLUDES: bool = true;
    /// What holds it.
    type Guard<'a>: Send;
    /// One that is free.
    fn new() -> Self;
    /// Acquires it for a task.
    fn lock(&self) -> impl Future<Output = Self::Guard<'_>> + Send;
    /// Acquires it for a thread that may sleep.
    fn lock_blocking(&self) -> impl Sized;
}

/// What workers do, without the type of the lock.
type Loop = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A lock between workers.
pub trait Contended: Send + Sync {
    /// Worker `index` as a task.
    fn task(self: Arc<Self>, job: Arc<Job>, index: usize) -> Loop;
    /// Worker `index` as a thread.
    fn thread(&self, job: &Job, index: usize);
}

struct Lock<L>(L);

impl<L: TaskLock> Contended for Lock<L> {
    fn task(self: Arc<Self>, job: Arc<Job>, index: usize) -> Loop {
        Box::pin(async move { go_round(&self.0, &job, index).await })
    }

    fn thread(&self, job: &Job, index: usize) {
        go_round_as_thread(&self.0, job, index);
    }
}

/// What is known of such a lock.
#[derive(Clone, Copy, Debug)]
pub struct Traits {
    /// Makes one.
    pub make: fn() -> Arc<dyn Contended>,
    /// Whether it keeps others out.
    pub excludes: bool,
}

/// A subject of this kind.
pub type Entry = super::Entry<Traits>;

impl super::Kind for Traits {
    const WHAT: &'static str = "lock for tasks";

    fn entries() -> &'static [Entry] {
        &ALL
    }
}

/// The name of the mutex of the family that blocks its thread.
pub const PLAIN: &str = "plain";
/// The name of no lock.
pub const NONE: &str = "none";

static ALL: [Entry; 15] = [
    peer::<NoLock>(NONE, "no lock at all: the executor, and the number"),
    peer::<Tokio>("tokio", "tokio's Mutex"),
    peer::<TokioSemaphore>("tokio-semaphore", "tokio's Semaphore of one permit"),
    peer::<AsyncLock>("async-lock", "async-lock's Mutex"),
    peer::<EventMutex>("event-listener", "a flag and event-listener's Event, for tasks and threads"),
    peer::<Maitake>("maitake", "maitake-sync's Mutex; a thread polls, and parks between"),
    peer::<TokioRwLock>("tokio-rwlock", "tokio's RwLock, which all write"),
    peer::<AsyncRwLock>("async-rwlock", "async-lock's RwLock, which all write"),
    peer::<SpawnBlocking>("spawn-blocking", "parking_lot's Mutex, acquired in tokio's `spawn_blocking`"),
    ours::<Plain>(PLAIN, "ulocks unfair ThroughputMutex, whose `lock` blocks the worker"),
    ours::<Own<ulocks_unfair::RawThroughputMutex<Private>>>("throughput", "ulocks unfair ThroughputMutex"),
    ours::<Own<ulocks_fair::RawFairMutex<Private>>>("fair", "ulocks fair FairMutex"),
    ours::<Own<ulocks_calock::RawCalock<Private>>>("calock", "ulocks Calock"),
    ours::<OwnSemaphore>("semaphore", "ulocks fair Semaphore of one permit"),
    ours::<OwnRwLock>("rwlock", "ulocks PsRwLock, which all write"),
];

fn make<L: TaskLock>() -> Arc<dyn Contended> {
    Arc::new(Lock(L::new()))
}

pub(crate) const fn peer<L: TaskLock>(name: &'static str, about: &'static str) -> Entry {
    Entry { name, about, family: false, kind: Traits { make: make::<L>, excludes: L::EXCLUDES } }
}

const fn ours<L: TaskLock>(name: &'static str, about: &'static str) -> Entry {
    Entry { family: true, ..peer::<L>(name, about) }
}

/// Locks with guards: how a task acquires one, and how a thread does.
macro_rules! guarded {
    ($($name:ident($lock:ty): $guard:ty, |$it:ident| $task:expr, $thread:expr;)*) => {$(
        struct $name($lock);

        impl TaskLock for $name {
            type Guard<'a> = $guard;

            fn new() -> Self {
                Self(<$lock>::new(()))
            }

            fn lock(&self) -> impl Future<Output = Self::Guard<'_>> + Send {
                let $it = &self.0;
                $task
            }

            fn lock_blocking(&self) -> impl Sized {
                let $it = &self.0;
                $thread
            }
        }
    )*};
}

guarded! {
    Tokio(tokio::sync::Mutex<()>): tokio::sync::MutexGuard<'a, ()>, |it| it.lock(), it.blocking_lock();
    AsyncLock(async_lock::Mutex<()>): async_lock::MutexGuard<'a, ()>, |it| it.lock(), it.lock_blocking();
    Maitake(maitake_sync::Mutex<()>): maitake_sync::MutexGuard<'a, ()>,
        |it| it.lock(), futures_executor::block_on(it.lock());
    TokioRwLock(tokio::sync::RwLock<()>): tokio::sync::RwLockWriteGuard<'a, ()>,
        |it| it.write(), it.blocking_write();
    AsyncRwLock(async_lock::RwLock<()>): async_lock::RwLockWriteGuard<'a, ()>,
        |it| it.write(), it.write_blocking();
    OwnRwLock(ulocks_psrwlock::PsRwLock<()>): AsyncRwLockWriteGuard<'a, ulocks_psrwlock::RawPsRwLock, ()>,
        |it| it.write_async(), it.write();
}

/// Keeps nobody out.
pub(crate) struct NoLock;

impl TaskLock for NoLock {
    const EXCLUDES: bool = false;
    type Guard<'a> = ();

    fn new() -> Self {
        Self
    }

    fn lock(&self) -> impl Future<Output = ()> + Send {
        ready(())
    }

    fn lock_blocking(&self) -> impl Sized {}
}

struct TokioSemaphore(tokio::sync::Semaphore);

impl TaskLock for TokioSemaphore {
    type Guard<'a> = tokio::sync::SemaphorePermit<'a>;

    fn new() -> Self {
        Self(tokio::sync::Semaphore::new(1))
    }

    async fn lock(&self) -> Self::Guard<'_> {
        self.0.acquire().await.expect("nobody closes it")
    }

    fn lock_blocking(&self) -> impl Sized {
        futures_executor::block_on(self.lock())
    }
}

/// What a program does whose lock blocks: it lets another thread wait.
struct SpawnBlocking(Arc<parking_lot::RawMutex>);

/// It is released by any thread: parking_lot's raw mutex knows none.
struct Blocking(Arc<parking_lot::RawMutex>);

impl Blocking {
    fn acquired(mutex: Arc<parking_lot::RawMutex>) -> Self {
        _ = mutex.lock();
        Self(mutex)
    }
}

impl Drop for Blocking {
    fn drop(&mut self) {
        // SAFETY: `acquired` made this.
        unsafe { self.0.unlock(parking_lot::lock_api::GuardNoSend::new()) };
    }
}

impl TaskLock for SpawnBlocking {
    type Guard<'a> = Blocking;

    fn new() -> Self {
        Self(Arc::new(parking_lot::RawMutex::INIT))
    }

    async fn lock(&self) -> Blocking {
        let mutex = self.0.clone();
        let acquired = tokio::task::spawn_blocking(|| Blocking::acquired(mutex));
        acquired.await.expect("it does not panic")
    }

    fn lock_blocking(&self) -> impl Sized {
        Blocking::acquired(self.0.clone())
    }
}

type Mutex<L> = ulocks_core::api::Mutex<L, ()>;

struct Own<L: RawMutex>(Mutex<L>);

impl<L: RawMutexAsync<Token = ()> + Send + Sync + 'static> TaskLock for Own<L> {
    type Guard<'a> = AsyncMutexGuard<'a, L, ()>;

    fn new() -> Self {
        Self(Mutex::new(()))
    }

    fn lock(&self) -> impl Future<Output = Self::Guard<'_>> + Send {
        self.0.lock_async()
    }

    fn lock_blocking(&self) -> impl Sized {
        self.0.lock()
    }
}

struct OwnSemaphore(ulocks_fair::Semaphore);

impl TaskLock for OwnSemaphore {
    type Guard<'a> = ulocks_fair::Permit<'a>;

    fn new() -> Self {
        Self(ulocks_fair::Semaphore::new(1))
    }

    async fn lock(&self) -> Self::Guard<'_> {
        self.0.acquire_async().await.expect("nobody closes it")
    }

    fn lock_blocking(&self) -> impl Sized {
        self.0.acquire()
    }
}

struct Plain(ulocks_unfair::RawThroughputMutex<Private>);

/// Releases it when it is dropped, which is before an `.await` of another task of the thread.
struct PlainGuard<'a>(&'a Plain);

impl Drop for PlainGuard<'_> {
    fn drop(&mut self) {
        // SAFETY: the guard was made by an acquisition; the token is nothing.
        unsafe { self.0.0.unlock(()) };
    }
}

impl TaskLock for Plain {
    type Guard<'a> = PlainGuard<'a>;

    fn new() -> Self {
        Self(ulocks_unfair::RawThroughputMutex::new())
    }

    async fn lock(&self) -> PlainGuard<'_> {
        self.0.lock();
        PlainGuard(self)
    }

    fn lock_blocking(&self) -> impl Sized {
        self.0.lock();
        PlainGuard(self)
    }
}
