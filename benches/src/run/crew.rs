//! Threads that begin together, or not at all.
//!
//! With a barrier, those that are there would wait for one that cannot be had, and the scope would
//! wait for them. Here they wait to read what the thread that starts them still writes: whether
//! they go on. When it has written, the kernel wakes all of them in one call.

use anyhow::{Result, bail};
use std::io;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, RwLock};
use std::thread::{Builder, Scope};

/// Threads that have begun together: what each says. First that it is prepared (nothing), then
/// what it returns. The end of a channel is the end of its thread.
pub struct Crew<T>(Vec<Receiver<Option<T>>>);

type Spawn<'a, 'scope> = &'a mut dyn FnMut(usize, Box<dyn FnOnce() + Send + 'scope>) -> io::Result<()>;

impl<'scope, T: Send + 'scope> Crew<T> {
    /// Starts `count` threads in `scope`, each with `builder(index)`. Each prepares itself. When
    /// all have, this returns, and each runs `body(index, what it has prepared)`.
    ///
    /// # Errors
    /// If a thread cannot be had, or panics while it prepares itself. The others leave without
    /// running `body`, and are gone.
    pub fn start<P>(
        scope: &'scope Scope<'scope, '_>,
        count: usize,
        builder: impl Fn(usize) -> Builder,
        prepare: impl Fn(usize) -> P + Clone + Send + 'scope,
        body: impl Fn(usize, P) -> T + Clone + Send + 'scope,
    ) -> Result<Self> {
        Self::begin(count, prepare, body, &mut |index, job| builder(index).spawn_scoped(scope, job).map(drop))
    }

    fn begin<P>(
        count: usize,
        prepare: impl Fn(usize) -> P + Clone + Send + 'scope,
        body: impl Fn(usize, P) -> T + Clone + Send + 'scope,
        spawn: Spawn<'_, 'scope>,
    ) -> Result<Self> {
        let gate = Arc::new(RwLock::new(false));
        let mut opened = gate.write().expect("it is new");
        let (mut threads, mut refused) = (Vec::with_capacity(count), None);
        while threads.len() < count && refused.is_none() {
            let index = threads.len();
            // Room for both messages: to say something never blocks.
            let (says, thread) = sync_channel(2);
            let (gate, prepare, body) = (gate.clone(), prepare.clone(), body.clone());
            let job = move || {
                // It is dropped last: then nothing is left of the thread that others could miss.
                let says = says;
                let (prepare, body) = (prepare, body);
                let prepared = prepare(index);
                let _ = says.send(None);
                if gate.read().is_ok_and(|opened| *opened) {
                    let _ = says.send(Some(body(index, prepared)));
                }
            };
            refused = spawn(index, Box::new(job)).err();
            threads.push(thread);
        }
        *opened = refused.is_none() && threads.iter().all(|thread| thread.recv().is_ok());
        let goes_on = *opened;
        drop(opened);
        if goes_on {
            return Ok(Self(threads));
        }
        threads.iter().for_each(|thread| thread.iter().for_each(drop));
        let Some(error) = refused else { bail!("one of {count} threads panicked before they began") };
        let known = error.kind() == io::ErrorKind::WouldBlock;
        let advice = if known { "; take fewer, or raise `ulimit -u`" } else { "" };
        bail!("cannot start thread {} of {count}: {error}{advice}", threads.len())
    }

    /// Waits for the threads. What each has returned.
    ///
    /// # Panics
    /// If one has panicked.
    pub fn join(self) -> Vec<T> {
        let done = |thread: Receiver<_>| thread.iter().flatten().next();
        self.0.into_iter().map(|thread| done(thread).expect("a thread comes to its end")).collect()
    }
}

impl<T: Send + 'static> Crew<T> {
    /// As [`start`](Self::start), without a scope: who is not joined is left behind. For work that
    /// may never come to its end.
    ///
    /// # Errors
    /// As those of `start`.
    pub fn detached<P>(
        count: usize,
        builder: impl Fn(usize) -> Builder,
        prepare: impl Fn(usize) -> P + Clone + Send + 'static,
        body: impl Fn(usize, P) -> T + Clone + Send + 'static,
    ) -> Result<Self> {
        Self::begin(count, prepare, body, &mut |index, job| builder(index).spawn(job).map(drop))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::Relaxed;
    use std::thread;

    #[test]
    fn no_thread_begins_before_all_have_prepared() {
        let prepared = AtomicUsize::new(0);
        let seen = thread::scope(|scope| {
            let prepare = |index| {
                prepared.fetch_add(1, Relaxed);
                10 * index
            };
            let body = |index, tens| (index + tens, prepared.load(Relaxed));
            Crew::start(scope, 5, |_| Builder::new(), prepare, body).map(Crew::join)
        });
        assert_eq!(seen.unwrap(), [(0, 5), (11, 5), (22, 5), (33, 5), (44, 5)]);
        let crew = Crew::detached(3, |_| Builder::new(), |index| index, |index, same| index + same).unwrap();
        assert_eq!(crew.join(), [0, 2, 4]);
    }

    /// Detached threads: nobody but the crew waits for them. The error is that of a user who may
    /// have no more threads.
    #[test]
    fn a_thread_that_cannot_be_had_is_an_error_and_the_others_are_gone() {
        let begun = Arc::new(AtomicUsize::new(0));
        let body = begun.clone();
        let body = move |_, ()| _ = body.fetch_add(1, Relaxed);
        let error = Crew::begin(64, |_| (), body, &mut |index, job| match index {
            16 => Err(io::Error::from_raw_os_error(libc::EAGAIN)),
            _ => Builder::new().spawn(job).map(drop),
        });
        let error = error.map(drop).unwrap_err().to_string();
        assert!(
            error.starts_with("cannot start thread 17 of 64: Resource temporarily unavailable"),
            "{error}"
        );
        let left = (begun.load(Relaxed), Arc::strong_count(&begun));
        assert_eq!(left, (0, 1), "a thread has begun, or is left");
        let prepare = |index| assert_ne!(index, 2, "on purpose");
        let error = Crew::detached(5, |_| Builder::new(), prepare, |_, ()| ()).map(drop);
        assert_eq!(error.unwrap_err().to_string(), "one of 5 threads panicked before they began");
    }
}
