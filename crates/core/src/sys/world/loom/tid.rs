//! Thread ids: numbers from one, in the order in which the threads of an execution ask.

use core::cell::Cell;

loom::lazy_static! {
    static ref THREADS: Cell<u32> = Cell::new(0);
}

loom::thread_local! {
    static ID: Cell<u32> = Cell::new(0);
}

/// Brings the counter to life before the model's first thread starts.
pub(super) fn boot() {
    let _ = THREADS.get();
}

/// The id of the calling thread.
pub(crate) fn thread_id() -> u32 {
    ID.with(|id| {
        if id.get() == 0 {
            THREADS.set(THREADS.get() + 1);
            id.set(THREADS.get());
        }
        id.get()
    })
}
