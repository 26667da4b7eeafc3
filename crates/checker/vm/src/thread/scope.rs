//! Threads that borrow from the thread that starts them.

use super::{JoinHandle, start};
use crate::engine;
use crate::sync::Beside;
use core::marker::PhantomData;
use core::mem::transmute;
use core::panic::Location;

/// Where threads are started that end before [`scope`] returns.
#[derive(Debug)]
pub struct Scope<'scope, 'env: 'scope> {
    threads: Beside<Vec<usize>>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// As [`JoinHandle`], of a thread of a scope.
#[derive(Debug)]
pub struct ScopedJoinHandle<'scope, T> {
    handle: JoinHandle<T>,
    scope: PhantomData<&'scope ()>,
}

/// As `std::thread::scope`: calls `f`, and waits for all threads that it has started.
#[track_caller]
pub fn scope<'env, F, T>(f: F) -> T
where
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
{
    struct JoinAll<'a, 'scope, 'env>(&'a Scope<'scope, 'env>, engine::At);
    impl Drop for JoinAll<'_, '_, '_> {
        fn drop(&mut self) {
            loop {
                let next = self.0.threads.with(Vec::pop);
                let Some(thread) = next else { return };
                engine::with(|engine| engine.join(thread, self.1));
            }
        }
    }
    let scope = Scope { threads: Beside::default(), scope: PhantomData, env: PhantomData };
    let _join_all = JoinAll(&scope, Location::caller());
    f(&scope)
}

impl<'scope> Scope<'scope, '_> {
    /// Starts a thread.
    #[track_caller]
    pub fn spawn<F, T>(&'scope self, body: F) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        let at = Location::caller();
        let handle = start(body, |body| {
            // SAFETY: the types differ in a lifetime only. `scope` joins the thread before what the
            // body borrows ends. If the run ends first, the thread never runs again.
            let body: Box<dyn FnOnce()> = unsafe { transmute::<Box<dyn FnOnce() + 'scope>, _>(body) };
            engine::with(|engine| engine.spawn(body, at))
        });
        self.threads.with(|threads| threads.push(handle.thread()));
        ScopedJoinHandle { handle, scope: PhantomData }
    }
}

impl<T> ScopedJoinHandle<'_, T> {
    /// The number of the thread.
    #[must_use]
    pub fn thread(&self) -> usize {
        self.handle.thread()
    }

    /// As [`JoinHandle::is_finished`].
    #[track_caller]
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.handle.is_finished()
    }

    /// Waits until the thread has ended, and takes what it returned.
    ///
    /// # Errors
    /// If the thread died. (One that panics ends the run.)
    #[track_caller]
    pub fn join(self) -> std::thread::Result<T> {
        self.handle.join()
    }
}
