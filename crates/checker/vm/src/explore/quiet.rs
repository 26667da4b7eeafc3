//! Panics inside an execution are its result, not news for the terminal: they are caught, kept, and
//! told in the report. One that cannot be caught, since it comes up in a destructor or where code
//! may not unwind, is the end of the process: `watchdog.rs` tells it, with those before it.

use super::story::place_of;
use crate::alloc::outside;
use std::cell::{Cell, RefCell};
use std::panic;
use std::sync::Once;

/// How many panics are kept: a model may catch any number of them.
const KEPT: usize = 16;

/// What a panic said, and the same with its place.
struct Message {
    text: String,
    placed: String,
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
    /// Those that nobody has asked for yet, the last one at the end.
    static MESSAGES: RefCell<Vec<Message>> = const { RefCell::new(Vec::new()) };
}

/// While it lives, panics of this OS thread are kept instead of printed.
pub(super) struct Quiet {
    before: bool,
}

impl Quiet {
    pub(super) fn new() -> Self {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let loud = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                if QUIET.get() {
                    // What is kept here is no memory of the model's, whose panic it is.
                    outside(|| keep(info));
                } else {
                    loud(info);
                }
            }));
        });
        MESSAGES.with_borrow_mut(Vec::clear);
        Self { before: QUIET.replace(true) }
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        QUIET.set(self.before);
    }
}

fn keep(info: &panic::PanicHookInfo<'_>) {
    let text = info.payload_as_str().unwrap_or(WITHOUT_TEXT).to_owned();
    let placed = info.location().map_or_else(|| text.clone(), |at| format!("{text} ({})", place_of(at)));
    MESSAGES.with_borrow_mut(|messages| {
        if messages.len() == KEPT {
            messages.remove(0);
        }
        messages.push(Message { text, placed });
    });
}

/// What the panics of this OS thread said, a line each, if one unwinds, or was to.
pub(super) fn unwinding() -> String {
    let line = |message: &Message| format!("panic: {}\n", message.placed);
    let said = |kept: &RefCell<Vec<Message>>| kept.try_borrow().map(|kept| kept.iter().map(line).collect());
    if std::thread::panicking() { MESSAGES.with(said).unwrap_or_default() } else { String::new() }
}

/// What the panic said that came out with `text`, with its place: not one that was caught before,
/// or while it unwound.
pub(super) fn take_message(text: Option<&str>) -> Option<String> {
    let text = text.unwrap_or(WITHOUT_TEXT);
    MESSAGES.take().into_iter().rfind(|message| message.text == text).map(|message| message.placed)
}

/// What the last panic said.
pub(super) fn take_last_message() -> Option<String> {
    MESSAGES.take().pop().map(|message| message.placed)
}

const WITHOUT_TEXT: &str = "a panic without a message";
