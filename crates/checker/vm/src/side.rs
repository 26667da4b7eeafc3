//! Whose code runs on this thread of the system: that of a model, or the machine's.

use core::cell::Cell;

thread_local! {
    static IS_MODEL: Cell<bool> = const { Cell::new(false) };
}

/// Whether code of a model runs.
pub(crate) fn is_model() -> bool {
    IS_MODEL.get()
}

/// The code of one side runs while it lives. A panic that unwinds ends it, too.
pub(crate) struct Side {
    before: bool,
}

impl Side {
    pub(crate) fn of_model() -> Self {
        Self { before: IS_MODEL.replace(true) }
    }

    pub(crate) fn of_machine() -> Self {
        Self { before: IS_MODEL.replace(false) }
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        IS_MODEL.set(self.before);
    }
}

/// The machine goes on, where a coroutine has been resumed inside of an operation.
pub(crate) fn is_machine_again() {
    IS_MODEL.set(false);
}
