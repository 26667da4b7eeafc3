//! What signal handlers leave for threads: uses of locks that no acquisition has compared, and
//! edges of the lock order. A handler cannot touch the graph of the order, so a thread enters them.
//!
//! | edge | from | to | why the handler waits |
//! |---|---|---|---|
//! | through a handler | a lock that was held with a signal open | a lock that a handler of the signal waits for | it may interrupt the holder |
//! | in a handler | a lock that a handler holds | the lock that it waits for | as a thread |
//!
//! The first kind is a pair of an opened and a handled use (`uses.rs`). The second is a *nesting*:
//! an entry of one list. Of locks without a class, each two have a nesting of their own until their
//! lines have [`uses::MOST`]. Without that bound, locks that come and go would leave one each.
//!
//! # The word
//! | bit of `NEWS` | set by | cleared by |
//! |---|---|---|
//! | `UNREAD` | a thread or a handler that has published a use or a nesting (tell) | a thread, before it looks at all lists (look) |
//! | `HANDLERS` | with `UNREAD`, once a handler has published one | nothing |
//!
//! A thread looks when it acquires a lock of a watched class, when it enters a new order, and when
//! it ends. An acquisition that is known to be right does not look.
//!
//! # Invariant
//! Of any two uses, some look comes after both, or `UNREAD` is set. Each use sets the bit after its
//! publication. All changes of the word are read-modify-writes. So the look that clears the later
//! of the two bits (look) has read from a sequence that both releases (tell) are in, and sees both
//! uses.
//!
//! A look reports one fault at a time, and sets the bit again before it does so: a panic loses
//! nothing.

use super::uses::{self, Use, bit};
use super::{keep, list};
use crate::seen::asked::Asked;
use crate::seen::report::Report;
use crate::seen::slot::Held;
use crate::seen::thread::Record;
use crate::seen::thread::ThreadIdentity;
use core::ptr;
use ulocks_core::sync::{
    AtomicPtr, AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};
use ulocks_core::sync_static;

const UNREAD: u32 = 1;
const HANDLERS: u32 = 2;

sync_static! {
    static NEWS: AtomicU32 = AtomicU32::new(0);
    static NESTINGS: AtomicPtr<Nesting> = AtomicPtr::new(ptr::null_mut());
}

/// A handler held one lock when it waited for another.
struct Nesting {
    held: Held,
    asked: Asked,
    signal: u32,
    thread: ThreadIdentity,
    next: AtomicPtr<Nesting>,
}

/// An edge that a handler has left. Its locks may be gone.
pub(crate) struct Edge {
    pub held: Held,
    pub asked: Asked,
    /// The thread that held the one lock.
    pub thread: &'static ThreadIdentity,
    /// The signal of the handler.
    pub signal: u32,
}

/// A use or a nesting has been published.
pub(super) fn left(by_handler: bool) {
    let handlers = if by_handler { HANDLERS } else { 0 };
    NEWS.fetch_or(UNREAD | handlers, Release); // (tell)
}

/// A fault was found and is about to be reported. There may be more.
pub(crate) fn put_back() {
    NEWS.fetch_or(UNREAD, Relaxed);
}

/// Whether the caller has to look at all lists.
pub(crate) fn take() -> bool {
    // Without handlers no two uses are a fault.
    NEWS.load(Relaxed) & UNREAD != 0 && NEWS.fetch_and(!UNREAD, Acquire) & HANDLERS != 0 // (look)
}

fn nestings() -> impl Iterator<Item = &'static Nesting> {
    list::each(&NESTINGS, |nesting| &nesting.next)
}

/// A handler waits for a lock, with what it holds.
pub(super) fn nest(me: &Record, asked: &Asked) {
    for held in me.held() {
        let is_it = |one: &Nesting| {
            (one.held.vertex(), one.held.access) == (held.vertex(), held.access)
                && (one.asked.vertex(), one.asked.access) == (asked.vertex(), asked.access)
        };
        // Locks without a class have vertices of their own.
        let is_like = |one: &&Nesting| {
            ptr::eq(one.held.class, held.class)
                && ptr::eq(one.asked.class, asked.class)
                && (one.held.subclass, one.held.access) == (held.subclass, held.access)
                && (one.asked.subclass, one.asked.access) == (asked.subclass, asked.access)
        };
        if nestings().any(is_it) || nestings().filter(is_like).nth(uses::MOST - 1).is_some() {
            continue;
        }
        let (held, asked) = (Held { since: 0, ..held }, *asked);
        let thread = ThreadIdentity::new();
        thread.copy(me.identity());
        let kept = keep(Nesting { held, asked, signal: me.signal(), thread, next: AtomicPtr::default() });
        list::push(&NESTINGS, kept, |nesting| &nesting.next);
        left(true);
    }
}

/// The edges of all uses and nestings. An edge of one class to itself is not one: that is the rule
/// about open signals. If a use breaks that rule, it leads to no edge of the same signal, so it is
/// reported once.
pub(crate) fn edges() -> Vec<Edge> {
    let handled: Vec<_> = uses::all().filter(|one| one.is_handled()).collect();
    let mut edges = Vec::new();
    for opened in uses::all().filter(|one| !one.is_handled()) {
        let signals = opened.signals() & !opened.class().uses().kept_by(opened);
        for handled in handled.iter().filter(|handled| signals & handled.signals() != 0) {
            let (held, asked) = (opened.held(), Asked::again(&handled.held()));
            let signal = handled.signals().trailing_zeros() + 1;
            edges.push(Edge { held, asked, thread: opened.thread(), signal });
        }
    }
    edges.extend(nestings().map(|&Nesting { held, asked, signal, ref thread, .. }| Edge {
        held,
        asked,
        thread,
        signal,
    }));
    edges.retain(|edge| edge.held.vertex() != edge.asked.vertex());
    edges
}

/// A fault of two uses that was not reported.
pub(crate) fn earlier() -> Option<Report> {
    let handled = uses::all().filter(|one| one.is_handled());
    handled.map(Use::class).find_map(|class| class.uses().earlier(class))
}

/// A handler has interrupted threads and handlers that hold locks: its signal is open there.
pub(crate) fn interrupts(me: &Record) {
    for record in me.interrupted() {
        for held in record.held() {
            uses::add_opened(bit(me.signal()), record, &Asked::again(&held));
        }
    }
}
