//! Threads that begin together, or not at all.
//!
//! With a barrier, those that are there would wait for one that cannot be had, and the scope would
//! wait for them. What does not depend on the work is compiled once, not for each body.

use anyhow::{Result, bail};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{Builder, Scope};

/// Where the threads wait for each other, and the thread that has started them waits for them.
#[derive(Default)]
struct Gate {
    count: usize,
    state: Mutex<State>,
    changed: Condvar,
    decided: Condvar,
}

#[derive(Default)]
struct State {
    /// How many threads are at the gate, or were.
    ready: usize,
    /// Whether they go on or leave, once that is known.
    opened: Option<bool>,
    /// How many threads have come to their end.
    gone: usize,
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
            self.changed.notify_one();
        }
        let state = self.decided.wait_while(state, |state| state.opened.is_none());
        state.expect("nothing panics with it").opened == Some(true)
    }

    /// When all threads are at the gate, they go on. Whether they do.
    fn open(&self) -> bool {
        let waits = |state: &mut State| state.ready < self.count && state.opened.is_none();
        let state = self.changed.wait_while(self.state(), waits);
        let decision = *state.expect("nothing panics with it").opened.get_or_insert(true);
        self.decided.notify_all();
        decision
    }

    /// Waits until so many threads have come to their end.
    fn end(&self, threads: usize) {
        let ended = self.changed.wait_while(self.state(), |state| state.gone < threads);
        drop(ended.expect("nothing panics with it"));
    }
}

/// What a thread has of the gate. If it goes before a decision, nobody goes on: it has panicked, or
/// there is no such thread.
struct Way(Arc<Gate>);

impl Drop for Way {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.gone += 1;
        state.opened.get_or_insert(false);
        drop(state);
        self.0.decided.notify_all();
        self.0.changed.notify_one();
    }
}

type Job<'scope> = Box<dyn FnOnce(&Gate) + Send + 'scope>;
type Spawn<'a, 'scope> = &'a mut dyn FnMut(usize, Way, Job<'scope>) -> io::Result<()>;

/// Starts all threads of the gate. If one cannot be had, the others are gone when this returns.
fn start_all<'scope>(
    gate: &Arc<Gate>,
    job: &dyn Fn(usize) -> Job<'scope>,
    spawn: Spawn<'_, 'scope>,
) -> Result<()> {
    let count = gate.count;
    for index in 0..count {
        if let Err(error) = spawn(index, Way(gate.clone()), job(index)) {
            // Its way has gone as well.
            gate.end(index + 1);
            let known = error.kind() == io::ErrorKind::WouldBlock;
            let advice = if known { "; take fewer, or raise `ulimit -u`" } else { "" };
            bail!("cannot start thread {} of {count}: {error}{advice}", index + 1);
        }
    }
    if !gate.open() {
        gate.end(count);
        bail!("one of {count} threads panicked before they began");
    }
    Ok(())
}

/// Threads that have begun together.
pub struct Crew<T> {
    gate: Arc<Gate>,
    results: Arc<Mutex<Vec<Option<T>>>>,
}

impl<'scope, T: Send + 'scope> Crew<T> {
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
        Self::begin(count, prepare, body, &mut |index, way, job| {
            builder(index).spawn_scoped(scope, move || job(&way.0)).map(drop)
        })
    }

    fn begin<P>(
        count: usize,
        prepare: impl Fn(usize) -> P + Clone + Send + 'scope,
        body: impl Fn(usize, P) -> T + Clone + Send + 'scope,
        spawn: Spawn<'_, 'scope>,
    ) -> Result<Self> {
        let gate = Arc::new(Gate { count, ..Gate::default() });
        let results = Arc::new(Mutex::new(Vec::from_iter((0..count).map(|_| None))));
        let job = |index| -> Job<'scope> {
            let (prepare, body, results) = (prepare.clone(), body.clone(), Arc::clone(&results));
            Box::new(move |gate| {
                let prepared = prepare(index);
                if gate.pass() {
                    let done = body(index, prepared);
                    results.lock().expect("nothing panics with it")[index] = Some(done);
                }
            })
        };
        start_all(&gate, &job, spawn)?;
        Ok(Self { gate, results })
    }

    /// Waits for the threads. What each has returned.
    ///
    /// # Panics
    /// If one has panicked.
    pub fn join(self) -> Vec<T> {
        self.gate.end(self.gate.count);
        let done = self.results.lock().expect("nothing panics with it").split_off(0);
        done.into_iter().map(|done| done.expect("a thread comes to its end")).collect()
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
        Self::begin(count, prepare, body, &mut |index, way, job| {
            builder(index).spawn(move || job(&way.0)).map(drop)
        })
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
        let begun = Arc::new(AtomicUsize::new(0));
        let body = begun.clone();
        let body = move |_, ()| _ = body.fetch_add(1, Relaxed);
        let error = Crew::begin(64, |_| (), body, &mut |index, way, job| match index {
            16 => Err(io::Error::from_raw_os_error(libc::EAGAIN)),
            _ => Builder::new().spawn(move || job(&way.0)).map(drop),
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

    /// This test starts itself again as a user who may have eight processes and threads. The limit
    /// does not bind root.
    #[test]
    fn the_limit_of_a_user_is_an_error_at_once() {
        const LIMITED: &str = "ULOCKS_LIMITED";
        if var_os(LIMITED).is_some() {
            let started = Crew::detached(64, |_| Builder::new(), |_| (), |_, ()| ()).map(drop);
            return println!("said: {}", started.unwrap_err());
        }
        let mut command = Command::new(current_exe().unwrap());
        let test = thread::current().name().unwrap().to_owned();
        command.args(["--exact", &test, "--nocapture", "--test-threads=1"]).env(LIMITED, "");
        // SAFETY: the call takes nothing and cannot fail.
        if unsafe { libc::geteuid() } == 0 {
            command.uid(54_334).gid(54_334);
        }
        let limit = || {
            let eight = libc::rlimit { rlim_cur: 8, rlim_max: 8 };
            // SAFETY: the structure is valid.
            unsafe { libc::setrlimit(libc::RLIMIT_NPROC, &eight) };
            Ok(())
        };
        // SAFETY: between fork and exec; `setrlimit` is async-signal-safe.
        let output = output(unsafe { command.pre_exec(limit) });
        let text = String::from_utf8_lossy(&output.stdout);
        let said = text.split_once("said: cannot start thread ").map_or("", |two| two.1);
        assert!(said.contains(" of 64: Resource temporarily unavailable"), "{output:?}");
    }
}
