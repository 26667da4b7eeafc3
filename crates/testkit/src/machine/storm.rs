//! A shower of `SIGUSR1` on chosen threads.

use super::task;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

static HANDLED: AtomicUsize = AtomicUsize::new(0);

extern "C" fn count(_: libc::c_int) {
    HANDLED.fetch_add(1, Relaxed);
}

type Targets = Arc<Mutex<Vec<i32>>>;

/// Sends signals to its targets until it ends.
pub struct Storm {
    targets: Targets,
    over: Arc<AtomicBool>,
    sender: thread::JoinHandle<()>,
    before: usize,
}

/// A thread's place among the targets; it leaves them when this is dropped.
pub struct Target(Targets, i32);

impl Storm {
    /// Begins. The handler is installed with these flags: without `SA_RESTART`, system calls report
    /// `EINTR`.
    pub fn begin(flags: libc::c_int) -> Self {
        // SAFETY: the handler only increments an atomic.
        unsafe { task::handle(libc::SIGUSR1, count, flags) };
        let (targets, over) = (Targets::default(), Arc::new(AtomicBool::new(false)));
        let sender = {
            let (targets, over) = (Arc::clone(&targets), Arc::clone(&over));
            thread::spawn(move || {
                while !over.load(Relaxed) {
                    for &target in targets.lock().unwrap().iter() {
                        // A thread is among the targets only while it runs.
                        task::signal(target, libc::SIGUSR1);
                    }
                    thread::sleep(Duration::from_micros(50));
                }
            })
        };
        Self { targets, over, sender, before: HANDLED.load(Relaxed) }
    }

    /// A place for a thread.
    pub fn target(&self) -> Target {
        Target(Arc::clone(&self.targets), 0)
    }

    /// Stops, and returns how many signals were handled.
    ///
    /// # Panics
    /// If a target has ended without leaving.
    pub fn end(self) -> usize {
        self.over.store(true, Relaxed);
        self.sender.join().expect("the sender of signals panicked");
        HANDLED.load(Relaxed) - self.before
    }
}

impl Target {
    /// Makes a target of the calling thread.
    ///
    /// # Panics
    /// If the storm has panicked.
    #[must_use]
    pub fn join(mut self) -> Self {
        self.1 = task::id();
        self.0.lock().unwrap().push(self.1);
        self
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        self.0.lock().unwrap().retain(|&target| target != self.1);
    }
}
