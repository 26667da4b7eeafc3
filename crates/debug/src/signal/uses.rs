//! Which classes of locks are acquired in signal handlers, and which with signals open.
//!
//! A class has two lists: its *opened* uses, with the signals that were open, and its *handled*
//! uses, with the signal of the handler. A use is written before it is published (P), and stays. A
//! word says whether an acquisition has to look:
//!
//! | bit of `watch` | set by | cleared by |
//! |---|---|---|
//! | `FRESH` | the making of the class | the first acquisition outside of handlers, after its use |
//! | `HANDLED` | the first acquisition in a handler that may wait, after its use | nothing |
//!
//! A thread with a class of any bit asks the kernel which signals are open. If the class is
//! handled, the thread compares the handled uses with this acquisition, and then with the opened
//! uses. Two of them are a fault if they have a signal in common, and the opened one keeps the
//! handled one waiting.
//!
//! # What is found
//! Both uses are in the lists, or the opened one is this acquisition. So a fault is reported at the
//! first acquisition of the class that comes after both. If none comes, the handler has found the
//! opened use, and left word (`PENDING`): a thread that ends reports it.
//!
//! The opened uses are those of a class's first acquisition, and those in handlers. What threads
//! acquired between that and the first handled use, with other signals open, is not known.
//!
//! A thread that clears `FRESH` while a handler sets `HANDLED` may miss the handled use. The
//! opened use is in the list then, and the next acquisition sees the bit and both uses.

use super::keep;
use crate::class::{Node, nodes};
use crate::order::Asked;
use crate::report::{From, LockName, Place, Report, Rule, Severity, deliver};
use crate::slot::{how, subclass_and_access};
use crate::stacks;
use crate::thread::Record;
use crate::thread_identity::ThreadIdentity;
use crate::{Access, Policy, policy};
use core::iter;
use core::ptr;
use ulocks_core::signal::Soft;
use ulocks_core::sync::{
    AtomicBool, AtomicPtr, AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};

const FRESH: u32 = 1;
const HANDLED: u32 = 2;

/// Whether a handler has found a fault that no thread has looked for since.
static PENDING: AtomicBool = AtomicBool::new(false);

/// How locks of a class are used, as far as signals are concerned.
pub(crate) struct Uses {
    watch: AtomicU32,
    opened: AtomicPtr<Use>,
    handled: AtomicPtr<Use>,
}

/// An acquisition.
struct Use {
    /// A bit for each signal that was open, or that of the handler.
    signals: u64,
    /// The subclass and the access.
    how: u8,
    place: Place,
    thread: ThreadIdentity,
    /// Of a handled use: whether it was reported.
    reported: AtomicBool,
    next: AtomicPtr<Use>,
}

/// The set of one signal.
fn bit(signal: u32) -> u64 {
    1 << (signal - 1)
}

/// The signals that are open on this thread.
fn open() -> u64 {
    // Miri has no signals.
    if Soft::is_up() || cfg!(miri) {
        return 0;
    }
    let mut blocked = 0_u64;
    let none = ptr::null::<u64>();
    // SAFETY: nothing is changed, and the place of the answer has the eight bytes of a set.
    unsafe {
        libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_BLOCK, none, &raw mut blocked, size_of::<u64>())
    };
    !blocked
}

impl Use {
    fn access(&self) -> Access {
        subclass_and_access(self.how).1
    }

    /// Whether a lock that is acquired so keeps `handled` waiting, if that interrupts the holder.
    fn keeps(signals: u64, how: u8, handled: &Self) -> bool {
        let ((subclass, access), (other, asked)) =
            (subclass_and_access(how), subclass_and_access(handled.how));
        subclass == other && access.blocks(asked) && signals & handled.signals != 0
    }
}

fn list(head: &AtomicPtr<Use>) -> impl Iterator<Item = &'static Use> {
    let mut next = head.load(Acquire); // (P)
    iter::from_fn(move || {
        // SAFETY: uses are never freed, and (P) has published those of the list.
        let this = unsafe { next.as_ref() }?;
        next = this.next.load(Relaxed);
        Some(this)
    })
}

/// Adds a use, unless there is one like it.
fn add(head: &AtomicPtr<Use>, signals: u64, me: &Record, asked: &Asked) {
    let how = how(asked.subclass, asked.access);
    if list(head).any(|other| other.how == how && signals & !other.signals == 0) {
        return;
    }
    let kept = keep(Use {
        signals,
        how,
        place: asked.at,
        thread: ThreadIdentity::new(),
        reported: AtomicBool::new(false),
        next: AtomicPtr::default(),
    });
    // SAFETY: it is never freed.
    let new: &'static Use = unsafe { kept.as_ref() };
    new.thread.copy(me.identity());
    let mut first = head.load(Relaxed);
    loop {
        new.next.store(first, Relaxed);
        match head.compare_exchange_weak(first, kept.as_ptr(), Release, Relaxed) /* (P) */ {
            Ok(_) => return,
            Err(other) => first = other,
        }
    }
}

impl Uses {
    pub const fn new() -> Self {
        let (opened, handled) = (AtomicPtr::new(ptr::null_mut()), AtomicPtr::new(ptr::null_mut()));
        Self { watch: AtomicU32::new(FRESH), opened, handled }
    }

    /// Not 0 if an acquisition has to be looked at.
    #[inline(always)]
    pub fn watch(&self) -> u32 {
        self.watch.load(Relaxed)
    }

    /// The report of this acquisition, or of an earlier one.
    fn fault(&self, me: &Record, asked: &Asked, open: u64) -> Option<Report> {
        let how = how(asked.subclass, asked.access);
        if let Some(handled) = list(&self.handled).find(|handled| Use::keeps(open, how, handled)) {
            let again = handled.reported.swap(true, Relaxed);
            let mut report = report(asked.name(), handled);
            (report.thread, report.here) = (me.name(), Some(asked.at));
            report.stack = stacks::here(Some(asked.at));
            return (!again || matches!(policy(), Policy::Panic)).then_some(report);
        }
        self.earlier(asked.class)
    }

    /// The opened use that keeps a handled one waiting.
    fn opened(&self, handled: &Use) -> Option<&'static Use> {
        list(&self.opened).find(|opened| Use::keeps(opened.signals, opened.how, handled))
    }

    /// The report of two uses in the lists of `class`, which are these. Each is reported once.
    fn earlier(&self, class: &Node) -> Option<Report> {
        let new = list(&self.handled).filter(|handled| !handled.reported.load(Relaxed));
        let (handled, opened) = new.filter_map(|handled| Some((handled, self.opened(handled)?))).next()?;
        if handled.reported.swap(true, Relaxed) {
            return None;
        }
        let (subclass, access) = subclass_and_access(opened.how);
        let mut report = report(class.lock_name(0, subclass, access), handled);
        (report.thread, report.here) = (opened.thread.name(), Some(opened.place));
        Some(report)
    }
}

fn report(lock: LockName, handled: &Use) -> Report {
    Report {
        rule: Rule::NoOpenSignal,
        severity: Severity::Fault,
        lock,
        thread: handled.thread.name(),
        here: None,
        before: Some(handled.place),
        held: Some(handled.access()),
        holder: Some(handled.thread.name()),
        steps: Vec::new(),
        signal: Some(handled.signals.trailing_zeros() + 1),
        stack: None,
        stack_before: None,
    }
}

/// An acquisition of a class that is watched, or in a handler, before it is made. `waits` is
/// whether it may wait for ever.
#[cold]
#[inline(never)]
#[track_caller]
pub(crate) fn check(me: &Record, asked: &Asked, waits: bool) {
    if let Some(report) = fault(me, asked, waits) {
        deliver(&report, From::Call);
    }
}

/// As [`check`]. Returns the report.
#[cold]
pub(crate) fn fault(me: &Record, asked: &Asked, waits: bool) -> Option<Report> {
    let (uses, open) = (asked.class.uses(), open());
    if me.is_handler() {
        if waits {
            add(&uses.handled, bit(me.signal()), me, asked);
            uses.watch.fetch_or(HANDLED, Release); // (Q)
        }
        add(&uses.opened, open, me, asked);
        if list(&uses.handled).any(|handled| uses.opened(handled).is_some()) {
            PENDING.store(true, Release); // (L)
        }
        return None;
    }
    if uses.watch() & FRESH != 0 {
        add(&uses.opened, open, me, asked);
        uses.watch.fetch_and(!FRESH, Release);
    }
    let is_handled = uses.watch.load(Acquire) & HANDLED != 0; // (Q)
    if is_handled { uses.fault(me, asked, open) } else { None }
}

/// A thread ends: what handlers have found, and no acquisition has reported.
pub(crate) fn report_pending() {
    if !PENDING.swap(false, Acquire)
    /* (L) */
    {
        return;
    }
    for class in nodes() {
        while let Some(report) = class.uses().earlier(class) {
            deliver(&report, From::Inside);
        }
    }
}
