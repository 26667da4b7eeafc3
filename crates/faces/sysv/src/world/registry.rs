//! The registry of the virtual machine: the tokens of the processes.

use super::robust::Token;
use super::sys::Answer;
use ulocks_core::sync::AtomicU64;

/// The most processes of a model.
pub const MOST: usize = 8;

/// A slot.
#[derive(Debug)]
pub struct Process {
    /// On the list of its thread.
    pub token: Token,
    /// 0 is free.
    pub identity: AtomicU64,
}

/// Of a run.
#[derive(Debug)]
pub struct Registry {
    /// By number.
    pub processes: [Process; MOST],
}

ulocks_core::sync_static! {
    // SAFETY: atomics that are all zero are valid in each world.
    static REGISTRY: Registry = unsafe { core::mem::zeroed() };
}

/// The registry.
///
/// # Errors
/// None.
pub fn get() -> Answer<&'static Registry> {
    let registry: &'static Registry = &REGISTRY;
    Ok(registry)
}
