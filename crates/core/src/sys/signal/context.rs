//! What a handler is told.

use super::set::{SYNCHRONOUS, bit};
use crate::sys::world::signal::{self, Info};
use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;

/// What the handler of a signal is given: which signal it is, and its sender. It is also the
/// proof, for a lock, that its caller is a handler, which may interrupt anything but not what a
/// [`Mask`](super::Mask) protects.
///
/// It cannot leave the handler: it is borrowed, and neither `Send` nor `Sync`.
///
/// ```compile_fail,E0277
/// fn elsewhere<T: Send>() {}
/// elsewhere::<ulocks_core::signal::Context<'static>>();
/// ```
pub struct Context<'a> {
    signal: i32,
    info: Option<&'a Info>,
    is_deferred: bool,
    is_passed_on: Cell<bool>,
    not_send: PhantomData<*mut ()>,
}

impl<'a> Context<'a> {
    /// The context of a handler that was not installed by this crate.
    ///
    /// # Safety
    /// The caller is a handler of `signal`, or code that a handler calls, on the thread that the
    /// signal struck. Either `signal` is a synchronous one, or the handler does not run while a
    /// mask is up on its thread: the locks of this thread are used with [`Hard`](super::Hard), and
    /// `signal` is in its set. And no other handler that uses the same locks interrupts this one,
    /// except handlers of synchronous signals. For that, their signals are in each other's
    /// `sa_mask`, and none has `SA_NODEFER`.
    #[must_use]
    pub unsafe fn assume(signal: i32) -> Self {
        Self { signal, info: None, is_deferred: false, is_passed_on: Cell::new(false), not_send: PhantomData }
    }

    pub(super) fn new(signal: i32, info: &'a Info, is_deferred: bool) -> Self {
        Self { signal, info: Some(info), is_deferred, is_passed_on: Cell::new(false), not_send: PhantomData }
    }

    /// The number of the signal.
    #[must_use]
    pub fn signal(&self) -> i32 {
        self.signal
    }

    /// Whether the signal is one that cannot be deferred: `SIGSEGV`, `SIGBUS`, `SIGFPE`, `SIGILL`,
    /// `SIGTRAP`, `SIGSYS`, `SIGABRT`. Its handler may have interrupted a thread in the midst of
    /// what a mask protects, or another handler, and so may wait for nothing.
    #[must_use]
    pub fn is_synchronous(&self) -> bool {
        (1..=super::set::SIGNALS).contains(&self.signal) && SYNCHRONOUS & bit(self.signal) != 0
    }

    /// Whether the signal arrived earlier, while the soft mask was up, and is handled only now.
    #[must_use]
    pub fn is_deferred(&self) -> bool {
        self.is_deferred
    }

    /// Whether the signal was raised by what the thread itself did: a fault, a trap, a system call
    /// that a filter refuses. False if a process or a thread sent it (`kill`, `raise`, `abort`), if
    /// it is not a [synchronous](Self::is_synchronous) one, in the model worlds, and in a context
    /// that was [assumed](Self::assume).
    ///
    /// After the handler of a fault the thread repeats the instruction, so a fault that is not
    /// resolved comes again. A signal that was sent does not.
    #[must_use]
    pub fn is_fault(&self) -> bool {
        self.is_synchronous() && self.info.is_some_and(signal::is_fault)
    }

    /// The address of a [fault](Self::is_fault), if the kernel knows it: the memory of a `SIGSEGV`
    /// or `SIGBUS`, the instruction of a `SIGFPE`, `SIGILL` or `SIGTRAP`.
    #[must_use]
    pub fn address(&self) -> Option<usize> {
        if self.is_fault() { self.info.and_then(signal::address) } else { None }
    }

    /// Says that this signal is not the closure's: once the closure has returned, the action that
    /// the signal had before [`Handlers`](super#signals-that-cannot-wait) gets it, as if nothing
    /// had been installed. A closure that does not call this has handled the signal.
    ///
    /// It is for [synchronous](Self::is_synchronous) signals only, and does nothing for others. It
    /// does nothing in the model worlds, and in a context that was [assumed](Self::assume): there
    /// is no action before.
    pub fn pass_on(&self) {
        self.is_passed_on.set(self.is_synchronous());
    }

    pub(super) fn is_passed_on(&self) -> bool {
        self.is_passed_on.get()
    }

    /// How the signal was caused, as in `siginfo_t`: `SI_USER`, `SI_TKILL`, `SI_QUEUE`, `SI_TIMER`.
    /// Nothing in the model worlds, nor in a context that was [assumed](Self::assume).
    #[must_use]
    pub fn code(&self) -> Option<i32> {
        self.info.and_then(signal::code)
    }

    /// The process that sent the signal, if a process did.
    #[must_use]
    pub fn sender(&self) -> Option<i32> {
        self.info.and_then(signal::sender)
    }

    /// What was sent with it, by `sigqueue`, a timer or a message queue: the whole width of the
    /// `sigval`. A sender that filled in the integer has written the first four bytes only.
    #[must_use]
    pub fn value(&self) -> Option<usize> {
        self.info.and_then(signal::value)
    }

    /// The same as an integer, for a sender that filled in the integer.
    #[must_use]
    pub fn integer(&self) -> Option<i32> {
        let bytes = self.value()?.to_ne_bytes();
        Some(i32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }
}

impl fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("signal", &self.signal)
            .field("code", &self.code())
            .field("is_deferred", &self.is_deferred)
            .finish()
    }
}
