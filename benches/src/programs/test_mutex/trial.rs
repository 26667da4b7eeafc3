//! One trial: all tasks of one lock.

use crate::run::child::Task;
use crate::run::crew::Crew;
use crate::run::threads::clock_time;
use crate::subjects::locks::{self, Entry, Lock, LockArray, Scope, Visitor};
use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};
use std::cell::UnsafeCell;
use std::collections::BTreeMap;
use std::fmt;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

/// What a task does over and over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Case {
    /// Adds one to a number under the lock.
    Lock,
    /// Creates, unlinks and closes a file in a directory that the lock protects.
    Files,
}

impl Case {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Lock, Self::Files];
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lock => "lock: tasks add one to a number",
            Self::Files => "files: tasks create, unlink and close files of their own in one directory",
        })
    }
}

/// The description of a trial.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TestMutexSpec {
    /// The lock's name in the registry.
    pub lock: String,
    /// What a task does.
    pub case: Case,
    /// How many tasks.
    pub tasks: u32,
    /// For how long.
    pub window_ms: u64,
}

/// What a trial measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Count {
    /// Loops of all tasks.
    pub loops: u64,
    /// How long it took.
    pub elapsed_s: f64,
    /// CPU time of all tasks, in the kernel and outside.
    pub cpu_s: f64,
    /// CPUs that the tasks may use.
    pub cpus: u32,
}

impl Count {
    /// Loops a second.
    pub fn per_s(&self) -> f64 {
        self.loops as f64 / self.elapsed_s
    }

    /// The share of the CPUs that the tasks used.
    pub fn cpu(&self) -> f64 {
        self.cpu_s / (self.elapsed_s * f64::from(self.cpus))
    }

    /// Loops of a second of CPU time.
    pub fn per_cpu_s(&self) -> f64 {
        self.loops as f64 / self.cpu_s
    }
}

/// What a file consists of, apart from its name.
type Inode = Box<[u64; 16]>;

/// What only the holder of the lock touches.
#[derive(Default)]
struct Directory {
    files: BTreeMap<String, Inode>,
    /// Sections that ran.
    entered: u64,
}

/// A directory that threads reach under the lock under test.
struct Guarded(UnsafeCell<Directory>);

// SAFETY: threads reach the directory only while they hold the lock under test, so no two of them
// are there at once. All that it contains may move to another thread.
unsafe impl Sync for Guarded {}

impl Guarded {
    /// # Safety
    /// The caller holds the lock under test, and `f` does not come back here.
    unsafe fn enter<R>(&self, f: impl FnOnce(&mut Directory) -> R) -> R {
        // SAFETY: by the caller's promise this is the only reference.
        let directory = unsafe { &mut *self.0.get() };
        directory.entered += 1;
        f(directory)
    }
}

struct Run<'a>(&'a TestMutexSpec);

impl Visitor for Run<'_> {
    type Output = Result<Count>;

    fn visit<L: Lock>(self, _: &'static Entry) -> Self::Output {
        let spec = self.0;
        let locks = LockArray::<L>::new(Scope::Threads, 1)?;
        let lock = locks.get(0);
        let directory = Guarded(UnsafeCell::default());
        let over = AtomicBool::new(false);
        let create = |name: String, inode| {
            lock.with(|| {
                // SAFETY: `lock.with` runs this while it holds the lock, and it does not come back.
                unsafe { directory.enter(|directory| directory.files.insert(name, inode)) }
            })
        };
        let unlink = |name: &str| {
            lock.with(|| {
                // SAFETY: `lock.with` runs this while it holds the lock, and it does not come back.
                unsafe { directory.enter(|directory| directory.files.remove(name)) }
            })
        };
        let count = || {
            lock.with(|| {
                // SAFETY: `lock.with` runs this while it holds the lock, and it does not come back.
                unsafe { directory.enter(|_| ()) }
            })
        };
        let task = |_, name: String| {
            let mut loops = 0;
            while !over.load(Relaxed) {
                match spec.case {
                    Case::Lock => count(),
                    Case::Files => {
                        let old = create(name.clone(), Inode::default());
                        let file = unlink(&name);
                        assert!(old.is_none() && file.is_some() || !L::EXCLUDES, "a file was lost");
                        drop(black_box(file)); // The last reference goes outside of the lock.
                    }
                }
                loops += 1;
            }
            loops
        };
        let cpu_time = || clock_time(libc::CLOCK_PROCESS_CPUTIME_ID);
        let (loops, elapsed, cpu) = thread::scope(|scope| {
            let prepare = |number| format!("file-{number}");
            let tasks = Crew::start(scope, spec.tasks as usize, |_| Builder::new(), prepare, task)?;
            let (began, before) = (Instant::now(), cpu_time());
            thread::sleep(Duration::from_millis(spec.window_ms));
            over.store(true, Relaxed);
            let loops: u64 = tasks.join().into_iter().sum();
            anyhow::Ok((loops, began.elapsed(), cpu_time() - before))
        })?;
        let sections = if spec.case == Case::Files { 2 } else { 1 };
        let (wanted, found) = (sections * loops, directory.0.into_inner().entered);
        ensure!(found == wanted || !L::EXCLUDES, "{found} of {wanted} sections ran alone");
        Ok(Count {
            loops,
            elapsed_s: elapsed.as_secs_f64(),
            cpu_s: cpu.as_secs_f64(),
            cpus: thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32),
        })
    }
}

impl Task for TestMutexSpec {
    type Answer = Count;

    fn carry_out(&self) -> Result<Count> {
        locks::visit(Entry::find(&self.lock)?, Scope::Threads, Run(self))?
    }

    fn own_time(&self) -> Duration {
        Duration::from_millis(self.window_ms)
    }

    fn workers(&self) -> u32 {
        self.tasks
    }
}
