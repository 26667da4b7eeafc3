//! What the tests protect: a hundred variables that are equal whenever no thread writes. It is the
//! check of the module that tested the priority-sifting rwlock (Desnoyers 2008): a reader beside a
//! writer finds two numbers, a writer beside a writer loses one.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed, Ordering::SeqCst, compiler_fence};

/// As in the module.
const NR_VARS: usize = 100;

thread_local! {
    /// Constant and without a destructor, so that a handler may look at it at any time.
    static IS_WRITING: AtomicBool = const { AtomicBool::new(false) };
}

/// Whether the calling thread is in the midst of a write: never so in a handler.
pub fn is_writing() -> bool {
    IS_WRITING.with(|is_writing| is_writing.load(Relaxed))
}

/// The variables. All accesses are volatile, so that a broken lock yields wrong numbers.
#[derive(Debug)]
pub struct Variables([u64; NR_VARS]);

impl Variables {
    pub const fn new() -> Self {
        Self([0; NR_VARS])
    }

    /// What they say, if they are equal.
    pub fn value(&self) -> Option<u64> {
        // SAFETY: the pointer is a reference's.
        let mut values =
            self.0.iter().map(|variable| unsafe { std::ptr::from_ref(variable).read_volatile() });
        let first = values.next()?;
        values.all(|value| value == first).then_some(first)
    }

    /// What they say.
    ///
    /// # Panics
    /// If they are not equal.
    pub fn look(&self) -> u64 {
        self.value().expect("a reader saw half a write")
    }

    /// Sets them to the next number. Returns that.
    pub fn add_one(&mut self) -> u64 {
        let next = self.look() + 1;
        IS_WRITING.with(|is_writing| is_writing.store(true, Relaxed));
        compiler_fence(SeqCst);
        for variable in &mut self.0 {
            // SAFETY: the pointer is a reference's.
            unsafe { std::ptr::from_mut(variable).write_volatile(next) };
        }
        compiler_fence(SeqCst);
        IS_WRITING.with(|is_writing| is_writing.store(false, Relaxed));
        next
    }
}
