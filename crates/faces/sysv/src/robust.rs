//! The robust list of the calling thread, as far as it names one word as pending: what the kernel
//! looks at when the thread dies.

use crate::sys;
use core::cell::Cell;
use core::ptr::null_mut;
use ulocks_core::sync::Ordering::SeqCst;
use ulocks_core::sync::compiler_fence;

/// The kernel's `struct robust_list_head`.
#[repr(C)]
#[derive(Debug)]
struct Head {
    first: *mut (),
    offset: isize,
    pending: usize,
}

thread_local! {
    static HEAD: Cell<*mut Head> = const { Cell::new(null_mut()) };
}

/// The list of the thread that asked for it. A thread may have none: then nothing is pending.
#[derive(Clone, Copy, Debug)]
pub struct List(*mut Head);

impl List {
    /// The calling thread's.
    #[inline]
    pub fn current() -> Self {
        HEAD.with(|known| {
            if known.get().is_null() {
                known.set(ask());
            }
            Self(known.get())
        })
    }

    /// The address of the pending word, or 0.
    #[inline]
    pub fn pending(self) -> usize {
        if self.0.is_null() {
            return 0;
        }
        // SAFETY: the kernel has told where the head is, and the C library keeps it as long as the
        // thread lives. The thread and the kernel alone write to it.
        let (entry, offset) = unsafe { ((&raw const (*self.0).pending).read_volatile(), (*self.0).offset) };
        if entry == 0 { 0 } else { entry.wrapping_add_signed(offset) }
    }

    /// Names the pending word, or with 0 none.
    #[inline]
    pub fn set_pending(self, word: usize) {
        if self.0.is_null() {
            return;
        }
        compiler_fence(SeqCst); // The kernel sees what this thread did in the order of the program.
        // SAFETY: as in `pending`.
        unsafe {
            let entry = if word == 0 { 0 } else { word.wrapping_add_signed(-(*self.0).offset) };
            (&raw mut (*self.0).pending).write_volatile(entry);
        }
        compiler_fence(SeqCst);
    }
}

#[cold]
fn ask() -> *mut Head {
    let (mut head, mut bytes) = (null_mut::<Head>(), 0_usize);
    let a = [0, &raw mut head as usize, &raw mut bytes as usize, 0, 0, 0];
    // SAFETY: 0 is the calling thread; both places are borrowed.
    let answer = unsafe { sys::raw(libc::SYS_get_robust_list, a) };
    if answer < 0 || bytes != size_of::<Head>() { null_mut() } else { head }
}
