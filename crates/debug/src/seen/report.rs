//! What is reported.

use crate::seen::access::Access;
use crate::seen::stacks::Stack;
use core::fmt;
use core::panic::Location;
use serde::{Serialize, Serializer};

/// A line of a program.
pub type Place = &'static Location<'static>;

/// A rule of the locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub enum Rule {
    /// A lock has one holder. Two of them are a fault of the lock itself, or of a release behind
    /// the checker's back.
    OneHolder,
    /// A lock is released by the thread that acquired it.
    OwnerReleases,
    /// A lock that is not held is not released.
    ReleasedOnce,
    /// A thread does not acquire a lock that it holds.
    NoRecursion,
    /// A thread that reads a lock does not read it again, unless in a higher class: if a writer
    /// comes between, it waits for the first read, and the second read for it.
    NoReadAgain,
    /// A held lock stays at its address.
    NotMoved,
    /// A thread does not end while it holds a lock.
    NoExit,
    /// A held lock is not dropped.
    NotDropped,
    /// A thread does not fork while it holds a lock. A warning: a child that calls `exec` at once
    /// does no harm.
    NoFork,
    /// A thread does not wait on a condition variable while it holds a lock other than that of the
    /// wait. A warning.
    NoLockInWait,
    /// A thread does not wait on a condition variable while it holds a lock that each notification
    /// of it so far was made under. A warning, since others may come.
    NoLockOfNotifier,
    /// All threads nest locks in one order.
    Order,
    /// No threads wait for each other in a circle. A warning if one of the waits has a deadline.
    Deadlock,
    /// A thread holds at most 64 locks. A warning: the others are not checked.
    AtMost64,
    /// A lock that is acquired in a signal handler is not acquired with that signal open. The
    /// handler may interrupt the holder, and waits for it for ever.
    NoOpenSignal,
    /// A lock is not held across an `.await`, of a future in `watch`.
    NoAwait,
}

impl Rule {
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::OneHolder => "a lock has two holders",
            Self::OwnerReleases => "a lock is released by a thread that does not hold it",
            Self::ReleasedOnce => "a lock is released that is not held",
            Self::NoRecursion => "self-deadlock: a thread asks for a lock that it holds",
            Self::NoReadAgain => {
                "self-deadlock if a writer comes between: a thread reads a lock that it reads already"
            }
            Self::NotMoved => "a lock was moved or copied while it was held",
            Self::NoExit => "a thread ends while it holds a lock",
            Self::NotDropped => "a lock is dropped while it is held",
            Self::NoFork => "a thread forks while it holds a lock",
            Self::NoLockInWait => "a thread waits on a condition variable while it holds another lock",
            Self::NoLockOfNotifier => {
                "a thread waits on a condition variable while it holds a lock that its notifiers hold"
            }
            Self::Order => "inversion: the order of two locks is not the same everywhere",
            Self::Deadlock => "deadlock: threads wait for each other in a circle",
            Self::AtMost64 => "a thread holds more than 64 locks",
            Self::NoAwait => "a lock is held across an `.await`",
            Self::NoOpenSignal => {
                "self-deadlock if the signal comes: the signal is open, and its handler acquires such a lock"
            }
        }
    }

    const fn advice(self) -> &'static str {
        match self {
            Self::OneHolder => {
                "look for a release through `Mutex::raw` or `force_unlock`; or the raw lock is broken"
            }
            Self::OwnerReleases => {
                "release the lock on the thread that acquired it; a semaphore may be what is meant"
            }
            Self::ReleasedOnce => "release once for each acquisition, best by dropping the guard",
            Self::NoRecursion => {
                "pass the guard down, or split the function into one that locks and one that does not"
            }
            Self::NoReadAgain => {
                "pass the guard down, or read again in a higher class: `Bulk`, `Urgent`, `Nested`"
            }
            Self::NotMoved => {
                "keep the lock in its place until it is released, for instance in a `Box` or an `Arc`"
            }
            Self::NoExit => "drop the guard before the thread ends; look for `mem::forget` and `leak`",
            Self::NotDropped => "release the lock before its memory goes; look for `mem::forget` and `leak`",
            Self::NoFork => "release the lock before `fork`, or call `exec` at once in the child",
            Self::NoLockInWait => "release the other lock first: the notifier may need it",
            Self::NoLockOfNotifier => {
                "release the other lock before the wait, or notify without it: no thread that needs it \
                 can end the wait"
            }
            Self::Order => {
                "acquire the locks in one order everywhere, or release the first before the second"
            }
            Self::Deadlock => "acquire the locks in one order everywhere",
            Self::AtMost64 => "nest less; the locks above 64 are not checked",
            Self::NoAwait => "drop the guard before the `.await`, or use a lock whose waiters are tasks",
            Self::NoOpenSignal => "block the signal while a thread has the lock, or only try in the handler",
        }
    }
}

/// What the circle of an inversion goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Circle {
    /// The same locks in both orders. That of other rules, too.
    OfLocks,
    /// Different locks of classes that are certain.
    OfClasses,
    /// Different locks of the classes of lines.
    Guessed,
}

impl Circle {
    const fn title(self, rule: Rule) -> &'static str {
        match self {
            Self::OfLocks => rule.title(),
            Self::OfClasses => "inversion: same class, different locks, seen in opposite orders",
            Self::Guessed => "possible inversion: same class, different locks, seen in opposite orders",
        }
    }

    const fn advice(self, rule: Rule) -> &'static str {
        match self {
            Self::Guessed => {
                "acquire the locks in one order everywhere; if the line makes locks of several purposes, \
                 give them a `Class` each, or make the function of the line `#[track_caller]`"
            }
            _ => rule.advice(),
        }
    }
}

/// How a report is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum Severity {
    /// The program breaks a rule. The policy decides what happens.
    Fault,
    /// The program may be right. It goes on, whatever the policy.
    Warning,
}

/// A lock, as a report names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LockName {
    /// The name of its class, if it was given one; or its type.
    pub name: String,
    /// Where it was made. A lock without a class has the place of its first acquisition here.
    #[serde(serialize_with = "place_option")]
    pub made: Option<Place>,
    /// Its address; 0 for a class as a whole.
    pub address: usize,
    /// Its number, which it keeps as long as it lives; 0 for a class as a whole. Of a robust lock
    /// it is made of the address.
    pub number: u64,
    /// Its subclass, 0 to 7.
    pub subclass: u8,
    /// In what way it is held, asked for or released.
    pub access: Access,
}

impl fmt::Display for LockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.name)?;
        if self.subclass > 0 {
            write!(f, " subclass {}", self.subclass)?;
        }
        if self.number > 0 {
            write!(f, " #{}", self.number)?;
        }
        if let Some(made) = self.made {
            write!(f, " of {made}")?;
        }
        self.access.fmt(f)
    }
}

/// A thread, as a report names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ThreadName {
    /// Its name, cut to 64 bytes; empty if it has none.
    pub name: String,
    /// The kernel's id of it.
    pub tid: u32,
}

impl fmt::Display for ThreadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name.as_str() {
            "" => write!(f, "thread {}", self.tid),
            name => write!(f, "thread {} `{name}`", self.tid),
        }
    }
}

/// A thread held one lock when it asked for another. The circle of a [`Report`] is made of these.
///
/// In a deadlock, a writer may keep a reader waiting that has come after it. Both wait for the same
/// lock then. That lock is the one that the step of the writer names twice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The thread that did so.
    pub thread: ThreadName,
    /// The lock that it held.
    pub held: LockName,
    /// Where it had acquired that.
    #[serde(serialize_with = "place")]
    pub since: Place,
    /// Its stack there, if `set_stacks` had asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_stack: Option<Stack>,
    /// The lock that it asked for.
    pub asked: LockName,
    /// Where it asked.
    #[serde(serialize_with = "place")]
    pub at: Place,
    /// Its stack there, if stacks were wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_stack: Option<Stack>,
    /// If a signal handler asked, its signal. It may interrupt the thread that holds the lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<u32>,
}

impl Step {
    /// Whether this is a writer that waits in front of the thread before it in the circle.
    fn is_in_front(&self) -> bool {
        self.held == self.asked && core::ptr::eq(self.since, self.at)
    }
}

/// A rule that was broken: where, by which thread, and what came before.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub(crate) rule: Rule,
    pub(crate) severity: Severity,
    pub(crate) lock: LockName,
    pub(crate) thread: ThreadName,
    #[serde(serialize_with = "place_option")]
    pub(crate) here: Option<Place>,
    #[serde(serialize_with = "place_option")]
    pub(crate) before: Option<Place>,
    pub(crate) held: Option<Access>,
    /// The lock of that acquisition, if there are no steps.
    #[serde(skip)]
    pub(crate) held_lock: Option<LockName>,
    pub(crate) holder: Option<ThreadName>,
    pub(crate) steps: Vec<Step>,
    #[serde(skip)]
    pub(crate) circle: Circle,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) notes: Vec<String>,
    pub(crate) signal: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stack: Option<Stack>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stack_before: Option<Stack>,
}

impl Report {
    /// The rule.
    pub fn rule(&self) -> Rule {
        self.rule
    }

    /// Whether the program is wrong for certain.
    pub fn severity(&self) -> Severity {
        self.severity
    }

    /// The lock that the thread used when it broke the rule.
    pub fn lock(&self) -> &LockName {
        &self.lock
    }

    /// The thread that broke the rule.
    pub fn thread(&self) -> &ThreadName {
        &self.thread
    }

    /// Where it did so. `None` where Rust hides the caller: in the drop of a guard or a lock, at
    /// the end of a thread, and in `fork`.
    pub fn here(&self) -> Option<Place> {
        self.here
    }

    /// Where the lock, or the other lock, had been acquired.
    pub fn before(&self) -> Option<Place> {
        self.before
    }

    /// In what way it had been acquired.
    pub fn held_as(&self) -> Option<Access> {
        self.held
    }

    /// The thread that had acquired it, if that is known.
    pub fn holder(&self) -> Option<&ThreadName> {
        self.holder.as_ref()
    }

    /// The circle of an inversion or of a deadlock, and nothing else. The step of the thread that
    /// closes the circle is the first.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// What else is to be known of the circle: which locks of it differ, and where a writer is
    /// needed.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// What was broken, in a line.
    pub fn title(&self) -> &'static str {
        self.circle.title(self.rule)
    }

    /// The signal whose handler has a part in it.
    pub fn signal(&self) -> Option<u32> {
        self.signal
    }

    /// The stack of the thread that broke the rule, if `set_stacks` has asked for it.
    pub fn stack(&self) -> Option<&Stack> {
        self.stack.as_ref()
    }

    /// The stack of the acquisition before, if stacks were wanted then.
    pub fn stack_before(&self) -> Option<&Stack> {
        self.stack_before.as_ref()
    }

    /// What to do about it.
    pub fn advice(&self) -> &'static str {
        self.circle.advice(self.rule)
    }

    /// The report as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("strings and numbers are JSON")
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.severity {
            Severity::Fault => "fault",
            Severity::Warning => "warning",
        };
        writeln!(f, "ulocks-debug: {word}: {}", self.title())?;
        writeln!(f, "  lock    {} at {:#x}", self.lock, self.lock.address)?;
        match self.here {
            Some(here) => writeln!(f, "  here    {here}, {}", self.thread)?,
            None => writeln!(f, "  here    (the place is not known), {}", self.thread)?,
        }
        if let Some(before) = self.before {
            write!(f, "  before  {before}")?;
            if let Some(holder) = &self.holder {
                write!(f, ", {holder}")?;
            }
            match self.held {
                Some(held) if held != Access::Exclusive => writeln!(f, ",{held}")?,
                _ => writeln!(f)?,
            }
        }
        if let Some(signal) = self.signal {
            writeln!(f, "  signal  {signal}")?;
        }
        for (index, step) in self.steps.iter().enumerate() {
            writeln!(f, "  {}. {}", index + 1, step.thread)?;
            if step.is_in_front() {
                writeln!(f, "       was the first to ask for {} at {}", step.asked, step.at)?;
                continue;
            }
            writeln!(f, "       held {} since {}", step.held, step.since)?;
            write_stack(f, step.held_stack.as_ref())?;
            match step.signal {
                None => write!(f, "       and asked for ")?,
                Some(signal) => write!(f, "       and a handler of signal {signal} asked for ")?,
            }
            writeln!(f, "{} at {}", step.asked, step.at)?;
            write_stack(f, step.asked_stack.as_ref())?;
        }
        for note in &self.notes {
            writeln!(f, "  note    {note}")?;
        }
        if self.steps.is_empty() {
            for (name, stack) in [("here", &self.stack), ("before", &self.stack_before)] {
                if stack.is_some() {
                    writeln!(f, "  stack   {name}")?;
                    write_stack(f, stack.as_ref())?;
                }
            }
        }
        if let (
            Rule::Order | Rule::NoLockInWait | Rule::NoLockOfNotifier | Rule::NoReadAgain,
            Some(before),
            Some(here),
        ) = (self.rule, self.before, self.here)
        {
            let [before, here] = [before, here].map(|place| (place.file(), place.line()));
            writeln!(f, "  accept  {}:{} -> {}:{}", before.0, before.1, here.0, here.1)?;
        }
        write!(f, "  to do   {}", self.advice())
    }
}

fn write_stack(f: &mut fmt::Formatter<'_>, stack: Option<&Stack>) -> fmt::Result {
    stack.map_or(Ok(()), |stack| stack.write(f, "            "))
}

pub(crate) fn place<S: Serializer>(place: &Place, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(place)
}

pub(crate) fn place_option<S: Serializer>(place: &Option<Place>, serializer: S) -> Result<S::Ok, S::Error> {
    match place {
        Some(place) => serializer.collect_str(place),
        None => serializer.serialize_none(),
    }
}
