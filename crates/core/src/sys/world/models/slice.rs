//! No time slice extensions: a model has no time slices.

use crate::sys::types::slice::SliceError;

pub(crate) fn enable() -> Result<(), SliceError> {
    Err(SliceError::Unsupported)
}

pub(crate) fn is_enabled() -> bool {
    false
}

#[inline(always)]
pub(crate) fn enter() {}

#[inline(always)]
pub(crate) fn leave() {}
