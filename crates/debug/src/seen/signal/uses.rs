//! Which classes of locks are acquired in signal handlers, and which with signals open.
//!
//! A class has two lists: its *opened* uses, with the signals that were open, and its *handled*
//! uses, with the signal of the handler. All uses of all classes are in one more list. A word says
//! whether an acquisition has to look:
//!
//! | bit of `watch` | set by | cleared by |
//! |---|---|---|
//! | `FRESH` | the making of the class | the first acquisition outside of handlers, after its use |
//! | `HANDLED` | the first acquisition in a handler that may wait, after its use | nothing |
//! | `BEHIND` | a thread that finds an order from a handled class to this one | nothing |
//!
//! A thread with a class of any bit asks the kernel which signals are open. If the class is
//! handled, the thread compares the handled uses with this acquisition, and then with the opened
//! uses. Two of them are a fault if they have a signal in common, and the opened one keeps the
//! handled one waiting.
//!
//! # What is found
//! A fault is reported at the first acquisition of the class that comes after both uses. If none
//! comes, a thread that looks at the news (`news.rs`) reports it.
//!
//! The opened uses are those of a class's first acquisition, those in handlers, those that a
//! handler has interrupted, and all of a class that is behind a handled one: a handler that
//! interrupts its holder may wait for what the holder of the handled lock waits for. What threads
//! acquired before the class was handled or behind, with other signals open, is not known. Of locks
//! without a class, which have one name, each has uses of its own until there are [`MOST`].
//!
//! A thread that clears `FRESH` while a handler sets `HANDLED` may miss the handled use. The
//! opened use is in the list then, and the next acquisition sees the bit and both uses. The word
//! only says where to look, so it is Relaxed: an acquisition that comes after a use sees the bit
//! and the use.

use super::{keep, list, news};
use crate::seen::access::Access;
use crate::seen::asked::Asked;
use crate::seen::class::Node;
use crate::seen::policy::{Policy, policy};
use crate::seen::report::{Circle, LockName, Place, Report, Rule, Severity};
use crate::seen::slot::{Held, how, subclass_and_access};
use crate::seen::stacks;
use crate::seen::thread::Record;
use crate::seen::thread::ThreadIdentity;
use core::ptr;
use ulocks_core::sync::{AtomicBool, AtomicPtr, AtomicU32, Ordering::Relaxed};
use ulocks_core::sync_static;

const FRESH: u32 = 1;
const HANDLED: u32 = 2;
const BEHIND: u32 = 4;

/// How locks of a class are used, as far as signals are concerned.
pub(crate) struct Uses {
    watch: AtomicU32,
    opened: AtomicPtr<Use>,
    handled: AtomicPtr<Use>,
}

/// An acquisition.
pub(super) struct Use {
    class: &'static Node,
    /// In which of the two lists it is.
    is_handled: bool,
    /// A bit for each signal that was open, or that of the handler.
    signals: u64,
    /// The subclass and the access.
    how: u8,
    lock: usize,
    instance: u64,
    place: Place,
    thread: ThreadIdentity,
    /// Of a handled use: whether it was reported.
    reported: AtomicBool,
    /// In the list of its class.
    next: AtomicPtr<Use>,
    next_of_all: AtomicPtr<Use>,
}

sync_static! {
    /// The uses of all classes.
    static ALL: AtomicPtr<Use> = AtomicPtr::new(ptr::null_mut());
}

/// The set of one signal.
pub(super) fn bit(signal: u32) -> u64 {
    1 << (signal - 1)
}

impl Use {
    pub fn signals(&self) -> u64 {
        self.signals
    }

    pub fn class(&self) -> &'static Node {
        self.class
    }

    pub fn is_handled(&self) -> bool {
        self.is_handled
    }

    pub fn thread(&self) -> &ThreadIdentity {
        &self.thread
    }

    /// The lock of the use, as one that is held.
    pub fn held(&self) -> Held {
        let (subclass, access) = subclass_and_access(self.how);
        let (lock, instance) = (self.lock, self.instance);
        Held { lock, class: self.class, subclass, access, instance, place: self.place, since: 0 }
    }

    fn access(&self) -> Access {
        subclass_and_access(self.how).1
    }

    /// Whether a lock that is acquired so keeps `handled` waiting, if that interrupts the holder.
    fn keeps(signals: u64, (how, instance): (u8, u64), handled: &Self) -> bool {
        let ((subclass, access), (other, asked)) =
            (subclass_and_access(how), subclass_and_access(handled.how));
        let is_it = handled.class.is_one() || instance == handled.instance;
        is_it && subclass == other && access.blocks(asked) && signals & handled.signals != 0
    }
}

fn list(head: &AtomicPtr<Use>) -> impl Iterator<Item = &'static Use> + use<> {
    list::each(head, |one| &one.next)
}

/// The locks that handlers wait for.
#[cfg(checking)]
pub(crate) fn handled() -> impl Iterator<Item = Held> {
    all().filter(|one| one.is_handled()).map(Use::held)
}

/// The uses of all classes.
pub(super) fn all() -> impl Iterator<Item = &'static Use> {
    list::each(&ALL, |one| &one.next_of_all)
}

/// The thread of `me` holds, or is about to hold, a lock of `class` with `signals` open.
pub(super) fn add_opened(signals: u64, me: &Record, asked: &Asked) {
    add(&asked.class.uses().opened, signals, me, asked, false);
}

/// How many uses a list has before it takes uses of other locks of a class without one order for
/// the same. Without a bound, each lock that comes and goes would leave one. A program whose locks
/// differ in this has few of them: the tables of tests have five of a class at most.
pub(super) const MOST: usize = 64;

/// Adds a use, unless there is one like it.
fn add(head: &AtomicPtr<Use>, signals: u64, me: &Record, asked: &Asked, is_handled: bool) {
    let how = how(asked.subclass, asked.access);
    let is_any = asked.class.is_one() || list(head).nth(MOST - 1).is_some();
    let is_like = |other: &Use| {
        let is_it = is_any || asked.instance == other.instance;
        is_it && other.how == how && signals & !other.signals == 0
    };
    if signals == 0 || list(head).any(is_like) {
        return;
    }
    let kept = keep(Use {
        class: asked.class,
        is_handled,
        signals,
        how,
        lock: asked.lock,
        instance: asked.instance,
        place: asked.at,
        thread: ThreadIdentity::new(),
        reported: AtomicBool::new(false),
        next: AtomicPtr::default(),
        next_of_all: AtomicPtr::default(),
    });
    // SAFETY: it is never freed.
    unsafe { kept.as_ref() }.thread.copy(me.identity());
    list::push(head, kept, |one| &one.next);
    list::push(&ALL, kept, |one| &one.next_of_all);
    news::left(me.is_handler());
}

impl Uses {
    pub fn new() -> Self {
        let (opened, handled) = (AtomicPtr::new(ptr::null_mut()), AtomicPtr::new(ptr::null_mut()));
        Self { watch: AtomicU32::new(FRESH), opened, handled }
    }

    /// The signals whose handlers an opened use keeps waiting for a lock of this class.
    pub(super) fn kept_by(&self, opened: &Use) -> u64 {
        let kept = list(&self.handled)
            .filter(|handled| Use::keeps(opened.signals, (opened.how, opened.instance), handled));
        kept.fold(0, |all, handled| all | handled.signals)
    }

    /// Not 0 if an acquisition has to be looked at.
    #[inline(always)]
    pub fn watch(&self) -> u32 {
        self.watch.load(Relaxed)
    }

    /// Whether a handler may wait for what locks are held under one of this class.
    pub fn is_ahead(&self) -> bool {
        self.watch() & (HANDLED | BEHIND) != 0
    }

    /// There is an order from a class that is ahead to this one. Whether that is new.
    #[cfg(checking)]
    pub fn put_behind(&self) -> bool {
        self.watch() & BEHIND == 0 && self.watch.fetch_or(BEHIND, Relaxed) & BEHIND == 0
    }

    /// The report of this acquisition, or of an earlier one.
    fn fault(&self, me: &Record, asked: &Asked, open: u64) -> Option<Report> {
        let how = how(asked.subclass, asked.access);
        if let Some(handled) =
            list(&self.handled).find(|handled| Use::keeps(open, (how, asked.instance), handled))
        {
            let again = handled.reported.swap(true, Relaxed);
            let mut report = report(asked.name(), asked.instance, handled);
            (report.thread, report.here) = (me.name(), Some(asked.at));
            report.stack = stacks::here(Some(asked.at));
            return (!again || matches!(policy(), Policy::Panic)).then_some(report);
        }
        self.earlier(asked.class)
    }

    /// The opened use that keeps a handled one waiting.
    fn keeper(&self, handled: &Use) -> Option<&'static Use> {
        list(&self.opened).find(|opened| Use::keeps(opened.signals, (opened.how, opened.instance), handled))
    }

    /// The report of two uses in the lists of `class`, which are these. Each is reported once.
    pub(super) fn earlier(&self, class: &Node) -> Option<Report> {
        let new = list(&self.handled).filter(|handled| !handled.reported.load(Relaxed));
        let (handled, opened) = new.filter_map(|handled| Some((handled, self.keeper(handled)?))).next()?;
        if handled.reported.swap(true, Relaxed) {
            return None;
        }
        let (subclass, access) = subclass_and_access(opened.how);
        let name = class.lock_name((opened.lock, opened.instance), subclass, access);
        let mut report = report(name, opened.instance, handled);
        (report.thread, report.here) = (opened.thread.name(), Some(opened.place));
        Some(report)
    }
}

/// The report of `instance`, which keeps a handled use waiting. If it is another lock of a class
/// that may be wrong, the report is a warning.
fn report(lock: LockName, instance: u64, handled: &Use) -> Report {
    let (other, mut notes) = (handled.instance, Vec::new());
    if instance != other {
        notes.push(format!("the handler acquired #{other}, and the thread #{instance}, of one class"));
    }
    let is_certain = notes.is_empty() || handled.class.is_named();
    Report {
        rule: Rule::NoOpenSignal,
        severity: if is_certain { Severity::Fault } else { Severity::Warning },
        // Of the same class.
        held_lock: Some(lock.clone()),
        lock,
        thread: handled.thread.name(),
        here: None,
        before: Some(handled.place),
        held: Some(handled.access()),
        holder: Some(handled.thread.name()),
        steps: Vec::new(),
        circle: Circle::OfLocks,
        notes,
        signal: Some(handled.signals.trailing_zeros() + 1),
        stack: None,
        stack_before: None,
    }
}

/// A thread or a handler acquires a lock with the signals of `open` open. Returns the report.
pub(crate) fn used(me: &Record, asked: &Asked, waits: bool, open: u64) -> Option<Report> {
    let uses = asked.class.uses();
    if me.is_handler() {
        if waits {
            add(&uses.handled, bit(me.signal()), me, asked, true);
            uses.watch.fetch_or(HANDLED, Relaxed);
            news::nest(me, asked);
        }
        // One that waits for a promise does not own it.
        if !waits || asked.access != Access::Promise {
            add_opened(open, me, asked);
        }
        return None;
    }
    if uses.watch() & (FRESH | BEHIND) != 0 {
        add_opened(open, me, asked);
    }
    if uses.watch() & FRESH != 0 {
        uses.watch.fetch_and(!FRESH, Relaxed);
    }
    if uses.watch() & HANDLED != 0 { uses.fault(me, asked, open) } else { None }
}
