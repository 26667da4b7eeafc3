//! What an execution has to give back before it ends.

use super::arc::Count;
use crate::engine::{self, At};
use crate::side::Side;
use core::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

struct Kept {
    what: &'static str,
    at: At,
    address: Option<usize>,
}

#[derive(Default)]
struct Live {
    run: u64,
    made: u64,
    kept: BTreeMap<u64, Kept>,
    /// The counts of the values that an `Arc` points to, by address.
    counts: HashMap<usize, Arc<Count>>,
    /// While it is not 0, nothing is counted: statics are not given back.
    ignored: u32,
}

thread_local! {
    static LIVE: RefCell<Live> = RefCell::default();
}

/// Calls `f` with the state of this run.
fn live<R>(f: impl FnOnce(&mut Live) -> R) -> R {
    let run = engine::with(|engine| engine.run());
    let _side = Side::of_machine();
    LIVE.with_borrow_mut(|live| {
        live.run = run;
        f(live)
    })
}

/// `what` was made at `at`, and has to end. A number for it.
pub(crate) fn begin(what: &'static str, at: At) -> u64 {
    live(|live| {
        live.made += 1;
        if live.ignored == 0 {
            live.kept.insert(live.made, Kept { what, at, address: None });
        }
        live.made
    })
}

/// The `Arc` that points to `address` is counted by `count`.
pub(super) fn remember(number: u64, address: usize, count: &Arc<Count>) {
    live(|live| {
        if let Some(kept) = live.kept.get_mut(&number) {
            kept.address = Some(address);
        }
        live.counts.insert(address, Arc::clone(count));
    });
}

/// The count of the `Arc` that points to `address`.
pub(super) fn find(address: usize) -> Option<Arc<Count>> {
    live(|live| live.counts.get(&address).cloned())
}

/// What has this number has ended.
pub(crate) fn end(number: u64) {
    let count = live(|live| {
        let kept = live.kept.remove(&number);
        kept.and_then(|kept| kept.address).and_then(|address| live.counts.remove(&address))
    });
    drop(count);
}

/// What `f` makes is not counted, and takes no memory of the model.
pub(crate) fn ignoring<R>(f: impl FnOnce() -> R) -> R {
    live(|live| live.ignored += 1);
    let side = Side::of_machine();
    let made = f();
    drop(side);
    live(|live| live.ignored -= 1);
    made
}

/// The run of this number is over. What it has not given back, as a sentence.
pub(crate) fn end_run(run: u64) -> Option<String> {
    // Outside of a run the counts end without a trace.
    let live = LIVE.take();
    let first = live.kept.values().next().filter(|_| live.run == run)?;
    let more = match live.kept.len() {
        1 => String::new(),
        many => format!(", and {} more", many - 1),
    };
    Some(format!("the {} made at {} was never given back{more}", first.what, first.at))
}
