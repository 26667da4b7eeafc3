//! Threads that begin together, each on its CPU, or not at all.
//!
//! With a barrier, those that are there would wait for one that cannot be had, and the scope would
//! wait for them. Here they wait to read what the thread that starts them still writes: whether
//! they go on. When it has written, the kernel wakes all of them in one call.

use super::pinning;
use anyhow::{Result, anyhow};
use std::io;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, RwLock};
use std::thread::{self, Builder};

/// Of a thread; none of the bodies needs more.
const STACK: usize = 512 * 1024;

/// Runs `body(index)` on so many threads, which are dealt to `cpus` in turn, if there are any, and
/// begin together. `meanwhile` runs on the calling thread. Returns what all of them return.
///
/// # Errors
/// The first of those that `body` returns. If a thread cannot be had, or not be bound, no other
/// runs `body`.
///
/// # Panics
/// If a body has panicked.
pub fn together<T: Send, R>(
    count: usize,
    cpus: &[usize],
    body: &(dyn Fn(usize) -> Result<T> + Sync),
    meanwhile: impl FnOnce() -> R,
) -> Result<(Vec<T>, R)> {
    thread::scope(|scope| {
        let cpu = |index: usize| Some(*cpus.get(index % cpus.len().max(1))?);
        let crew =
            Crew::begin(count, &cpu, body, &mut |builder, job| builder.spawn_scoped(scope, job).map(drop))?;
        let seen = meanwhile();
        Ok((crew.join().into_iter().collect::<Result<Vec<T>>>()?, seen))
    })
}

/// Threads that have begun together: what each says. First whether it is bound (nothing, or an
/// error), then what it returns. The end of a channel is the end of its thread.
pub struct Crew<T>(Vec<Says<T>>);

type Says<T> = Receiver<Result<Option<T>>>;

type Job<'a> = Box<dyn FnOnce() + Send + 'a>;

impl<T: Send> Crew<T> {
    fn begin<'a>(
        count: usize,
        cpu: &dyn Fn(usize) -> Option<usize>,
        body: impl Fn(usize) -> T + Clone + Send + 'a,
        spawn: &mut dyn FnMut(Builder, Job<'a>) -> io::Result<()>,
    ) -> Result<Self>
    where
        T: 'a,
    {
        let gate = Arc::new(RwLock::new(false));
        let mut opened = gate.write().expect("it is new");
        let (mut threads, mut begins) = (Vec::with_capacity(count), Ok(()));
        while threads.len() < count && begins.is_ok() {
            let index = threads.len();
            // Room for both messages: to say something never blocks.
            let (says, thread) = sync_channel(2);
            let (gate, cpu, body) = (gate.clone(), cpu(index), body.clone());
            let job = move || {
                // The channel goes last: then nothing is left of the thread that others could miss.
                let (says, body) = (says, body);
                let _ = says.send(cpu.map_or(Ok(()), pinning::bind).map(|()| None));
                if gate.read().is_ok_and(|opened| *opened) {
                    let _ = says.send(Ok(Some(body(index))));
                }
            };
            let builder = Builder::new().name(format!("worker {index}")).stack_size(STACK);
            begins = spawn(builder, Box::new(job)).map_err(|error| {
                let known = error.kind() == io::ErrorKind::WouldBlock;
                let advice = if known { "; take fewer, or raise `ulimit -u`" } else { "" };
                anyhow!("cannot start thread {} of {count}: {error}{advice}", index + 1)
            });
            threads.push(thread);
        }
        let is_bound = |thread: &Says<T>| thread.recv().expect("a thread says whether it is").map(drop);
        let begins = begins.and_then(|()| threads.iter().try_for_each(is_bound));
        *opened = begins.is_ok();
        drop(opened);
        if begins.is_err() {
            // Until all are gone.
            threads.iter().for_each(|thread| thread.iter().for_each(drop));
        }
        begins.map(|()| Self(threads))
    }

    /// Waits for the threads. What each has returned.
    ///
    /// # Panics
    /// If one has panicked.
    pub fn join(self) -> Vec<T> {
        let done = |thread: Says<T>| thread.recv().ok()?.ok()?;
        self.0.into_iter().map(|thread| done(thread).expect("a thread comes to its end")).collect()
    }
}

impl<T: Send + 'static> Crew<T> {
    /// As [`together`], but a thread that is not joined is left behind. For work that may never
    /// come to its end.
    ///
    /// # Errors
    /// If a thread cannot be had, or not be bound. No other runs `body`, and all are gone.
    pub fn detached(
        count: usize,
        cpu: &dyn Fn(usize) -> Option<usize>,
        body: impl Fn(usize) -> T + Clone + Send + 'static,
    ) -> Result<Self> {
        Self::begin(count, cpu, body, &mut |builder, job| builder.spawn(job).map(drop))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn all_begin_on_their_cpus_or_none_does_and_all_are_gone() {
        let cpus = pinning::allowed().unwrap();
        let body = |index| Ok((index, pinning::allowed()?));
        let (seen, meanwhile) = together(5, &cpus, &body, || 7).unwrap();
        let expected: Vec<_> = (0..5).map(|index| (index, vec![cpus[index % cpus.len()]])).collect();
        assert_eq!((seen, meanwhile), (expected, 7));
        assert_eq!(Crew::detached(3, &|_| None, |index| 2 * index).unwrap().join(), [0, 2, 4]);

        // Nobody but the crew waits for these. The errors are those of a CPU that is not there, and
        // of a user who may have no more threads.
        let begun = Arc::new(AtomicUsize::new(0));
        let not_there = |index| Some(if index == 2 { usize::MAX } else { cpus[0] });
        for (most, says) in [
            (64, "CPU 18446744073709551615 is beyond what an affinity mask can name"),
            (
                16,
                "cannot start thread 17 of 64: Resource temporarily unavailable (os error 11); take fewer, ",
            ),
        ] {
            let (counter, mut spawned) = (begun.clone(), 0);
            let spawn = &mut |builder: Builder, job: Job<'static>| {
                spawned += 1;
                let none = io::Error::from_raw_os_error(libc::EAGAIN);
                if spawned > most { Err(none) } else { builder.spawn(job).map(drop) }
            };
            let crew = Crew::begin(64, &not_there, move |_| _ = counter.fetch_add(1, Relaxed), spawn);
            let error = crew.map(drop).unwrap_err().to_string();
            assert!(error.starts_with(says), "{error}");
            let left = (begun.load(Relaxed), Arc::strong_count(&begun));
            assert_eq!(left, (0, 1), "a thread has begun, or is left");
        }
    }
}
