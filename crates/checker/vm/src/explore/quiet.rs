//! Panics inside an execution are its result, not news for the terminal: they are caught, kept, and
//! told in the report.

use std::cell::{Cell, RefCell};
use std::panic;
use std::sync::Once;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
    static MESSAGE: RefCell<Option<String>> = const { RefCell::new(None) };
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
                    MESSAGE.set(Some(match info.location() {
                        Some(at) => format!("{} ({})", message(info), super::story::place_of(at)),
                        None => message(info),
                    }));
                } else {
                    loud(info);
                }
            }));
        });
        Self { before: QUIET.replace(true) }
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        QUIET.set(self.before);
    }
}

/// What the last panic said.
pub(super) fn take_message() -> Option<String> {
    MESSAGE.take()
}

fn message(info: &panic::PanicHookInfo<'_>) -> String {
    info.payload_as_str().unwrap_or("a panic without a message").to_owned()
}
