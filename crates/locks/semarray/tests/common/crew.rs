//! A crew of threads that plays scripts on real arrays, one step at a time.
//!
//! After a step every worker has ended or sleeps in the array before the next step begins. This is
//! known without the model and without a clock: the array counts its waiting sets, and the crew the
//! workers that have not come back. When the two are equal, no worker is on the way. The counts of
//! several semaphores are not read at one moment, so a set that moves could be counted twice. So
//! they are read until they are the same twice. A worker that moves a set during the second reading
//! was on the way during the first.

use crate::script::{DRIVER, Seen, Step, predict};
use std::cell::Cell;
use std::ptr;
use std::sync::Arc;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use ulocks_testkit::sets::{Ended, Op, Outcome, Refusal, Sets, Waiters};
use ulocks_testkit::task;
use ulocks_testkit::watchdog::watch;

/// How long nothing may happen while a worker is on the way. Far beyond what a wake-up takes on a
/// loaded machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// When to send another signal. A signal that comes just before its thread falls asleep interrupts
/// nothing.
const NEXT_SIGNAL: Duration = Duration::from_millis(2);

/// How long a worker waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// It tries.
    None,
    /// For a moment.
    Short,
    /// Until it is interrupted.
    Endless,
}

/// An array on which scripts are played.
pub trait Subject: Send + Sync + 'static {
    /// Performs a set.
    fn apply(&self, ops: &[Op], patience: Patience) -> Outcome;
    /// Gives a semaphore a value.
    fn set(&self, index: usize, value: u32) -> Outcome;
    /// Gives all of them values.
    fn set_all(&self, values: &[u32]) -> Outcome;
    /// Gives back what a set did.
    fn give_back(&self, ops: &[Op]);
    /// Ends the array. It may have been ended before.
    fn close(&self);
    /// The values.
    fn values(&self) -> Vec<u32>;
    /// The waiting sets.
    fn waiters(&self) -> Vec<Waiters>;

    /// What the array can tell about the end of a set.
    fn as_seen(refusal: Refusal) -> Refusal {
        refusal
    }
}

/// Threads that wait for something to do.
pub struct Crew {
    workers: Vec<Worker>,
    ended: Receiver<(usize, Outcome)>,
    /// Workers that were given a set and have not come back.
    out: Vec<usize>,
}

struct Worker {
    jobs: Sender<Job>,
    thread: JoinHandle<()>,
    id: i32,
    /// How many signals it has handled.
    handled: Arc<AtomicUsize>,
}

type Job = Box<dyn FnOnce() -> Outcome + Send>;

impl Crew {
    /// A crew of `workers` threads.
    pub fn new(workers: usize) -> Self {
        install_handler();
        let (ends, ended) = channel();
        let worker = |me| {
            let (jobs, jobs_of_mine) = channel::<Job>();
            let ends = ends.clone();
            let handled = Arc::<AtomicUsize>::default();
            let counter = Arc::clone(&handled);
            let (tells, told) = channel();
            let thread = thread::spawn(move || {
                COUNTER.set(Arc::as_ptr(&counter));
                tells.send(task::id()).expect("the crew waits for it");
                for job in jobs_of_mine {
                    // The crew may have been given up.
                    _ = ends.send((me, job()));
                }
            });
            let id = told.recv().expect("a worker panicked");
            Worker { jobs, thread, id, handled }
        };
        Self { workers: (0..workers).map(worker).collect(), ended, out: Vec::new() }
    }

    /// Plays a script to its end, then closes the array. What went on is compared with the model
    /// after each step.
    ///
    /// # Errors
    /// The first difference, with the steps up to there.
    pub fn play<S: Subject>(&mut self, subject: S, model: Sets, steps: &[Step]) -> Result<(), String> {
        let script = format!("{model:?}\n{steps:?}");
        let _watchdog = watch("a script on a semaphore array", move || script.clone());
        let played = self.play_all(subject, model, steps);
        if !self.out.is_empty() {
            // Some workers hang in the array, or have panicked: others take their places.
            *self = Self::new(self.workers.len());
        }
        played
    }

    fn play_all<S: Subject>(&mut self, subject: S, mut model: Sets, steps: &[Step]) -> Result<(), String> {
        let closed = Closed(Arc::new(subject));
        let start = model.clone();
        for (at, step) in steps.iter().enumerate() {
            let Some(ended) = predict(&mut model, step) else { continue };
            let ended =
                ended.into_iter().map(|(worker, outcome)| (worker, outcome.map_err(S::as_seen))).collect();
            let expected = Seen::of(&model, ended);
            let seen = self.step(&closed.0, step);
            if seen.as_ref() != Ok(&expected) {
                closed.0.close();
                self.come_back();
                let steps: String = steps[..=at].iter().map(|step| format!("  {step:?}\n")).collect();
                let seen = seen.map_or_else(|error| error, |seen| format!("{seen:?}"));
                return Err(format!("{start:?}\n{steps}  expected: {expected:?}\n  seen:     {seen}"));
            }
        }
        let mut expected = model.close();
        expected.sort_unstable();
        closed.0.close();
        let mut seen = self.come_back();
        seen.sort_unstable();
        let still_out = &self.out;
        if seen == expected && still_out.is_empty() {
            return Ok(());
        }
        Err(format!(
            "{start:?}\n{steps:?}\nclosed, expected: {expected:?}, seen: {seen:?}, out: {still_out:?}"
        ))
    }

    fn step<S: Subject>(&mut self, subject: &Arc<S>, step: &Step) -> Result<Seen, String> {
        let mut by_driver = Ok(());
        match step {
            Step::Apply(worker, ops) => self.send(*worker, subject, ops, Patience::Endless),
            Step::Try(worker, ops) | Step::Timed(worker, ops) => {
                let tries = matches!(step, Step::Try(..));
                self.send(*worker, subject, ops, if tries { Patience::None } else { Patience::Short });
                // Not yet asleep, or no longer, or, in the kernel, even asleep for no time at all.
                let ended = self.next_to_end(PATIENCE).ok_or("no set times out")?;
                return self.settled(&**subject, vec![ended]);
            }
            Step::Interrupt(worker) => {
                let ended = self.interrupt(*worker)?;
                return self.settled(&**subject, vec![ended]);
            }
            Step::Set(index, value) => by_driver = subject.set(*index, *value),
            Step::SetAll(values) => by_driver = subject.set_all(values),
            Step::GiveBack(ops) => subject.give_back(ops),
        }
        let ended = by_driver.err().map(|refusal| (DRIVER, Err(refusal)));
        self.settled(&**subject, ended.into_iter().collect())
    }

    fn send<S: Subject>(&mut self, worker: usize, subject: &Arc<S>, ops: &[Op], patience: Patience) {
        let (subject, ops) = (Arc::clone(subject), ops.to_vec());
        self.out.push(worker);
        self.workers[worker]
            .jobs
            .send(Box::new(move || subject.apply(&ops, patience)))
            .expect("a worker panicked");
    }

    /// Waits until every worker that is out sleeps.
    fn settled<S: Subject>(&mut self, subject: &S, mut ended: Ended) -> Result<Seen, String> {
        let mut since = Instant::now();
        loop {
            while let Some(end) = self.next_to_end(Duration::ZERO) {
                ended.push(end);
                since = Instant::now();
            }
            let waiters = subject.waiters();
            let asleep: usize = waiters.iter().map(|waiters| waiters.increase + waiters.zero).sum();
            if asleep == self.out.len() && subject.waiters() == waiters {
                ended.sort_unstable();
                return Ok(Seen { ended, values: subject.values(), waiters });
            }
            if since.elapsed() > PATIENCE
                || !self.out.iter().all(|worker| !self.workers[*worker].thread.is_finished())
            {
                return Err(format!("{ended:?}, then out: {:?}, asleep: {waiters:?}", self.out));
            }
            thread::yield_now();
        }
    }

    /// The worker that ends within `limit`, and its outcome.
    fn next_to_end(&mut self, limit: Duration) -> Option<(usize, Outcome)> {
        let ended =
            if limit.is_zero() { self.ended.try_recv().ok() } else { self.ended.recv_timeout(limit).ok() };
        self.out.retain(|worker| ended.is_none_or(|(ended, _)| ended != *worker));
        ended
    }

    /// Sends signals until the worker ends. Each was handled before the next is sent, and none is
    /// left over.
    fn interrupt(&mut self, worker: usize) -> Result<(usize, Outcome), String> {
        let since = Instant::now();
        while since.elapsed() < PATIENCE {
            let Worker { id, handled, .. } = &self.workers[worker];
            let before = handled.load(Relaxed);
            task::signal(*id, libc::SIGUSR1);
            while handled.load(Relaxed) == before {
                thread::yield_now();
            }
            if let Some(ended) = self.next_to_end(NEXT_SIGNAL) {
                return Ok(ended);
            }
        }
        Err(format!("worker {worker} was interrupted and does not end"))
    }

    /// The array was closed: the workers that end.
    fn come_back(&mut self) -> Ended {
        let mut ended = Vec::new();
        while !self.out.is_empty() {
            let Some(end) = self.next_to_end(PATIENCE) else { break };
            ended.push(end);
        }
        ended
    }
}

/// Closes the array when a script has ended, however that was.
struct Closed<S: Subject>(Arc<S>);

impl<S: Subject> Drop for Closed<S> {
    fn drop(&mut self) {
        self.0.close();
    }
}

thread_local! {
    /// Where the calling worker counts signals. It is null in other threads.
    static COUNTER: Cell<*const AtomicUsize> = const { Cell::new(ptr::null()) };
}

/// SIGUSR1 counts how often the calling worker handled it.
fn install_handler() {
    extern "C" fn count(_: libc::c_int) {
        // SAFETY: the pointer is null, or that of a counter which the thread owns a share of until
        // it ends.
        if let Some(counter) = unsafe { COUNTER.get().as_ref() } {
            counter.fetch_add(1, Relaxed);
        }
    }
    static ONCE: Once = Once::new();
    // SAFETY: the handler only increments a counter.
    ONCE.call_once(|| unsafe { task::handle(libc::SIGUSR1, count, libc::SA_RESTART) });
}
