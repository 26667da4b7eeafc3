//! Time slice extensions: nothing in an exploration, which has no time slices. In the cost model
//! the virtual machine says what they give, and no thread has to be enabled.

use crate::sys::types::slice::SliceError;

pub(crate) fn enable() -> Result<(), SliceError> {
    Err(SliceError::Unsupported)
}

pub(crate) fn is_enabled() -> bool {
    false
}

#[inline(always)]
pub(crate) fn enter() {
    #[cfg(world = "vm")]
    ulocks_vm::thread::ask_for_extension(true);
}

#[inline(always)]
pub(crate) fn leave() {
    #[cfg(world = "vm")]
    ulocks_vm::thread::ask_for_extension(false);
}
