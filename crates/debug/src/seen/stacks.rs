//! Stacks of acquisitions and waits, for reports.
//!
//! While stacks are wanted, a thread captures its stack when it has acquired a lock, and when it
//! begins to wait. The stacks are in one table, by the record of the thread and the time. That time
//! is exact for a lock (`clock.rs`) and coarse for a wait, so the two are never the same, and those
//! of two locks of a thread are not either. A capture is not resolved: names are looked up when a
//! report is written.
//!
//! A signal handler captures nothing, since that allocates.

use crate::seen::report::Place;
use crate::seen::thread::Record;
use core::fmt;
use serde::{Serialize, Serializer};
use std::backtrace::Backtrace;
use std::sync::Arc;

#[cfg(checking)]
pub use table::set_stacks;
#[cfg(checking)]
pub(crate) use table::{TABLE, drop_at, here, keep, look_at_environment, of};

/// How many frames of a stack are written.
const MOST: usize = 32;

/// What lies between the caller of a lock and the capture, and how deep that may be.
const INSIDE: [&str; 3] = ["ulocks_debug::", "lock_api::", "ulocks_core::"];
const DEPTH: usize = 24;

/// The stack of an acquisition, of a wait, or of a fault; see `set_stacks`.
///
/// It is shown without the frames of the checker, and without those below the main function of the
/// thread. Names and lines are those that the program has: build it with debug information.
#[derive(Clone)]
pub struct Stack {
    trace: Arc<Backtrace>,
    /// The line of the innermost frame that is the user's, if it is known.
    place: Option<Place>,
}

impl Stack {
    /// The same, of a thread that is at `place`.
    pub(crate) fn at(self, place: Place) -> Self {
        Self { place: Some(place), ..self }
    }

    /// The frames: a function each, with its file and line where they are known.
    pub fn frames(&self) -> Vec<String> {
        let text = self.trace.to_string();
        let mut frames: Vec<String> = Vec::new();
        for line in text.lines().map(str::trim) {
            let number = line.split_once(": ").filter(|(number, _)| number.parse::<u32>().is_ok());
            match (number, line.strip_prefix("at "), frames.last_mut()) {
                (Some((_, name)), ..) => frames.push(name.to_owned()),
                (None, Some(place), Some(frame)) => *frame = format!("{frame} at {place}"),
                _ => {}
            }
        }
        let is_caller = |frame: &String| !frame.contains("__rust_begin_short_backtrace");
        frames.drain(..self.inside(&frames));
        frames.into_iter().take_while(is_caller).take(MOST).collect()
    }

    /// How many frames are those of the checker: those above the line of the user. If the line is
    /// not known, or has no frame, those that end in a frame with such a name.
    fn inside(&self, frames: &[String]) -> usize {
        let place = self.place.and_then(|place| {
            // The two paths begin at different folders.
            let file = place.file().rsplit('/').next()?;
            let line = format!("/{file}:{}:", place.line());
            frames.iter().position(|frame| frame.contains(&line))
        });
        let is_inside = |frame: &String| INSIDE.iter().any(|inside| frame.contains(inside));
        let last = || Some(frames.iter().take(DEPTH).rposition(is_inside)? + 1);
        place.or_else(last).unwrap_or(0)
    }

    /// Writes the frames, a line each.
    pub(crate) fn write(&self, f: &mut fmt::Formatter<'_>, margin: &str) -> fmt::Result {
        self.frames().iter().try_for_each(|frame| writeln!(f, "{margin}{frame}"))
    }
}

impl fmt::Display for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, "")
    }
}

impl fmt::Debug for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.frames()).finish()
    }
}

/// Whether both are of the same moment.
impl PartialEq for Stack {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.trace, &other.trace)
    }
}

impl Eq for Stack {}

impl Serialize for Stack {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.frames())
    }
}

#[cfg(modelled)]
pub(crate) fn here(_: Option<Place>) -> Option<Stack> {
    None
}

#[cfg(modelled)]
pub(crate) fn of(_: &Record, _: u64) -> Option<Stack> {
    None
}

#[cfg(checking)]
mod table {
    use super::{Arc, Backtrace, Place, Record, Stack};
    use crate::rules::clock::{STACKS, is_wanted, want};
    use crate::seen::thread::is_in_handler;
    use core::ptr;
    use std::collections::BTreeMap;
    use ulocks_core::sync::{AtomicUsize, Ordering::Relaxed};
    use ulocks_profile::counting::{ForkMutex, Once};

    /// By the address of a record and a time.
    pub(crate) static TABLE: ForkMutex<BTreeMap<(usize, u64), Stack>> = ForkMutex::new(BTreeMap::new());
    /// How many stacks the table has; changed under its lock. A thread that has put one there sees
    /// that, and so looks for what it has to drop. Another thread may overlook a new one.
    static KEPT: AtomicUsize = AtomicUsize::new(0);

    /// Has reports show stacks beside the places, from now on and in all threads.
    ///
    /// Each acquisition and each wait then captures the stack of its thread. That takes
    /// microseconds and allocates; the [guide](crate::guide::cost) says what was measured. A lock
    /// that was acquired before has no stack in reports. The environment variable
    /// `ULOCKS_DEBUG_STACKS`, if it is set and not `0`, does the same at the first acquisition of
    /// the process.
    ///
    /// A step of an inversion keeps the stacks of the thread that used that order first, as long as
    /// the process runs.
    ///
    /// # Examples
    /// ```
    /// use ulocks_debug::{Mutex, TryLockError, set_stacks};
    ///
    /// set_stacks(true);
    /// let mutex = Mutex::new(());
    /// let held = mutex.lock();
    /// let Err(TryLockError::Fault(report)) = mutex.try_lock_checked() else { panic!() };
    /// assert!(report.stack().is_some() && report.stack_before().is_some());
    /// # drop(held);
    /// ```
    pub fn set_stacks(on: bool) {
        want(STACKS, on);
    }

    /// Looks at the environment, once.
    pub(crate) fn look_at_environment() {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            if std::env::var_os("ULOCKS_DEBUG_STACKS").is_some_and(|value| value != "0") {
                set_stacks(true);
            }
        });
    }

    /// The stack of this thread, which is at `place`, if stacks are wanted.
    pub(crate) fn here(place: Option<Place>) -> Option<Stack> {
        let is_wanted = is_wanted(STACKS) && !is_in_handler();
        is_wanted.then(|| Stack { trace: Arc::new(Backtrace::force_capture()), place })
    }

    fn key(record: &Record, time: u64) -> (usize, u64) {
        (ptr::from_ref(record).addr(), time)
    }

    /// Keeps the stack of this thread for what it does at that time.
    #[cold]
    pub(crate) fn keep(me: &Record, time: u64, place: Place) {
        if let Some(stack) = here(Some(place)) {
            let mut table = TABLE.lock();
            table.insert(key(me, time), stack);
            KEPT.store(table.len(), Relaxed);
        }
    }

    /// What the thread did at that time is over.
    #[cold]
    pub(crate) fn drop_at(me: &Record, time: u64) {
        if KEPT.load(Relaxed) > 0 && !me.is_handler() {
            let mut table = TABLE.lock();
            let stack = table.remove(&key(me, time));
            KEPT.store(table.len(), Relaxed);
            drop(table);
            drop(stack); // not under the lock
        }
    }

    /// The stack of what a thread did at that time.
    pub(crate) fn of(record: &Record, time: u64) -> Option<Stack> {
        if KEPT.load(Relaxed) == 0 || is_in_handler() {
            return None;
        }
        TABLE.lock().get(&key(record, time)).cloned()
    }
}
