//! Threads that begin together, or not at all.
//!
//! With a barrier, those that are there would wait for one that cannot be had, and the scope would
//! wait for them. What does not depend on the work is compiled once, not for each body.

use anyhow::{Result, bail};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

/// Where the threads wait for each other.
#[derive(Default)]
struct Gate {
    count: usize,
    state: Mutex<State>,
    all_ready: Condvar,
    decided: Condvar,
}

#[derive(Default)]
struct State {
    /// How many threads are at the gate.
    ready: usize,
    /// Whether they go on or leave, once that is known.
    opened: Option<bool>,
}

impl Gate {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics with it")
    }

    /// Waits with the others. Whether the thread goes on.
    fn pass(&self) -> bool {
        let mut state = self.state();
        state.ready += 1;
        if state.ready == self.count {
            self.all_ready.notify_one();
        }
        let state = self.decided.wait_while(state, |state| state.opened.is_none());
        state.expect("nothing panics with it").opened == Some(true)
    }

    /// When all threads are at the gate, they go on. Whether they do.
    fn open(&self) -> bool {
        let waits = |state: &mut State| state.ready < self.count && state.opened.is_none();
        drop(self.all_ready.wait_while(self.state(), waits).expect("nothing panics with it"));
        self.decide(true)
    }

    /// The first decision holds. Returns it.
    fn decide(&self, opened: bool) -> bool {
        let decision = *self.state().opened.get_or_insert(opened);
        self.decided.notify_all();
        self.all_ready.notify_one();
        decision
    }
}

/// A thread's way to the gate. If it panics before it is there, nobody goes on.
struct Way(Arc<Gate>);

impl Drop for Way {
    fn drop(&mut self) {
        self.0.decide(false);
    }
}

/// What a thread has returned.
type Slot<T> = Arc<Mutex<Option<T>>>;

type Job<'scope> = Box<dyn FnOnce() + Send + 'scope>;

enum Thread<'scope> {
    Scoped(ScopedJoinHandle<'scope, ()>),
    Detached(JoinHandle<()>),
}

impl Thread<'_> {
    fn join(self) -> std::thread::Result<()> {
        match self {
            Self::Scoped(thread) => thread.join(),
            Self::Detached(thread) => thread.join(),
        }
    }
}

fn spawn_scoped<'scope>(
    scope: &'scope Scope<'scope, '_>,
    builder: Builder,
    job: Job<'scope>,
) -> io::Result<Thread<'scope>> {
    builder.spawn_scoped(scope, job).map(Thread::Scoped)
}

fn spawn_detached(builder: Builder, job: Job<'static>) -> io::Result<Thread<'static>> {
    builder.spawn(job).map(Thread::Detached)
}

/// Starts all threads of the gate. If one cannot be had, the others are gone when this returns.
fn start_all<'scope>(
    gate: &Gate,
    spawn: &mut dyn FnMut(usize) -> io::Result<Thread<'scope>>,
) -> Result<Vec<Thread<'scope>>> {
    let (count, mut threads, mut missing) = (gate.count, Vec::with_capacity(gate.count), None);
    while missing.is_none() && threads.len() < count {
        match spawn(threads.len()) {
            Ok(thread) => threads.push(thread),
            Err(error) => missing = Some(error),
        }
    }
    if missing.is_none() && gate.open() {
        return Ok(threads);
    }
    gate.decide(false);
    let got = threads.len();
    // A panic of theirs has been printed.
    threads.into_iter().for_each(|thread| _ = thread.join());
    match missing {
        Some(error) if error.kind() == io::ErrorKind::WouldBlock => {
            bail!("cannot start thread {} of {count}: {error}; take fewer, or raise `ulimit -u`", got + 1)
        }
        Some(error) => bail!("cannot start thread {} of {count}: {error}", got + 1),
        None => bail!("one of {count} threads panicked before they began"),
    }
}

/// Threads that have begun together.
pub struct Crew<'scope, T>(Vec<(Thread<'scope>, Slot<T>)>);

impl<'scope, T: Send + 'scope> Crew<'scope, T> {
    /// Starts `count` threads in `scope`, each with `builder(index)`. Each prepares itself. When
    /// all have, this returns, and each runs `body(index, what it has prepared)`.
    ///
    /// # Errors
    /// If a thread cannot be had, or panics while it prepares itself. The others leave without
    /// running `body`.
    pub fn start<P>(
        scope: &'scope Scope<'scope, '_>,
        count: usize,
        builder: impl Fn(usize) -> Builder,
        prepare: impl Fn(usize) -> P + Clone + Send + 'scope,
        body: impl Fn(usize, P) -> T + Clone + Send + 'scope,
    ) -> Result<Self> {
        Self::begin(count, prepare, body, &mut |index, job| spawn_scoped(scope, builder(index), job))
    }

    fn begin<P>(
        count: usize,
        prepare: impl Fn(usize) -> P + Clone + Send + 'scope,
        body: impl Fn(usize, P) -> T + Clone + Send + 'scope,
        spawn: &mut dyn FnMut(usize, Job<'scope>) -> io::Result<Thread<'scope>>,
    ) -> Result<Self> {
        let gate = Arc::new(Gate { count, ..Gate::default() });
        let results: Vec<Slot<T>> = (0..count).map(|_| Arc::default()).collect();
        let threads = start_all(&gate, &mut |index| {
            let (way, result) = (Way(gate.clone()), results[index].clone());
            let (prepare, body) = (prepare.clone(), body.clone());
            let job = move || {
                let prepared = prepare(index);
                if way.0.pass() {
                    let done = body(index, prepared);
                    *result.lock().expect("nothing panics with it") = Some(done);
                }
            };
            spawn(index, Box::new(job))
        })?;
        Ok(Self(threads.into_iter().zip(results).collect()))
    }

    /// Waits for the threads. What each has returned.
    ///
    /// # Panics
    /// If one has panicked.
    pub fn join(self) -> Vec<T> {
        let done = |(thread, result): (Thread<'_>, Slot<T>)| {
            thread.join().expect("a thread comes to its end");
            result.lock().expect("nothing panics with it").take().expect("it went through the gate")
        };
        self.0.into_iter().map(done).collect()
    }
}

impl<T: Send + 'static> Crew<'static, T> {
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
        Self::begin(count, prepare, body, &mut |index, job| spawn_detached(builder(index), job))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::env::{current_exe, var_os};
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::Relaxed;
    use std::thread;
    use ulocks_testkit::limit::output;

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

    /// Detached threads: nobody but the crew waits for them.
    #[test]
    fn a_thread_that_cannot_be_had_is_an_error_and_the_others_are_gone() {
        let shared = Arc::new(AtomicUsize::new(0));
        let begun = shared.clone();
        let body = move |_, ()| _ = begun.fetch_add(1, Relaxed);
        let error = Crew::begin(64, |_| (), body, &mut |index, job| match index {
            16 => Err(io::Error::from_raw_os_error(libc::EAGAIN)),
            _ => spawn_detached(Builder::new(), job),
        });
        let sentence = "cannot start thread 17 of 64: Resource temporarily unavailable";
        let error = error.map(|_| ()).unwrap_err().to_string();
        assert!(
            error.starts_with(sentence) && error.ends_with("; take fewer, or raise `ulimit -u`"),
            "{error}"
        );
        assert_eq!(
            (shared.load(Relaxed), Arc::strong_count(&shared)),
            (0, 1),
            "a thread is left or has begun"
        );
    }

    #[test]
    fn a_panic_before_the_gate_is_an_error_and_no_hang() {
        let error = thread::scope(|scope| {
            let prepare = |index| assert_ne!(index, 2, "on purpose");
            Crew::start(scope, 5, |_| Builder::new(), prepare, |_, ()| ()).map(|_| ())
        });
        assert_eq!(error.unwrap_err().to_string(), "one of 5 threads panicked before they began");
    }

    /// This test starts itself again as a user who may have eight processes and threads. The limit
    /// does not bind root.
    #[test]
    fn the_limit_of_a_user_is_an_error_at_once() {
        const LIMITED: &str = "ULOCKS_LIMITED";
        if var_os(LIMITED).is_some() {
            let started = thread::scope(|scope| {
                Crew::start(scope, 64, |_| Builder::new(), |_| (), |_, ()| ()).map(|_| ())
            });
            return println!("said: {:#}", started.unwrap_err());
        }
        let mut command = Command::new(current_exe().unwrap());
        let test = thread::current().name().unwrap().to_owned();
        command.args(["--exact", &test, "--nocapture", "--test-threads=1"]).env(LIMITED, "");
        // SAFETY: the call takes nothing and cannot fail.
        if unsafe { libc::geteuid() } == 0 {
            command.uid(54_334).gid(54_334);
        }
        // SAFETY: between fork and exec; `setrlimit` is async-signal-safe and gets a valid
        // structure.
        unsafe {
            command.pre_exec(|| {
                let eight = libc::rlimit { rlim_cur: 8, rlim_max: 8 };
                match libc::setrlimit(libc::RLIMIT_NPROC, &eight) {
                    0 => Ok(()),
                    _ => Err(io::Error::last_os_error()),
                }
            })
        };
        let output = output(&mut command);
        let text = String::from_utf8_lossy(&output.stdout);
        let said =
            text.lines().find_map(|line| line.split_once("said: cannot start thread ")).map(|two| two.1);
        let (number, rest) = said.unwrap_or_else(|| panic!("{output:?}")).split_once(' ').unwrap();
        assert!((1..=8).contains(&number.parse::<u32>().unwrap()), "{text}");
        assert!(rest.starts_with("of 64: Resource temporarily unavailable"), "{text}");
    }
}
