//! Real signals: handlers that read what is written on the thread that they strike, and on others.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

mod hard;
#[path = "../common/mixed.rs"]
mod mixed;
mod soft;
mod storm;
mod strikes;
mod synchronous;
#[allow(dead_code, reason = "each test crate uses its part of it")]
#[path = "../common/threads.rs"]
mod threads;
#[path = "../common/variables.rs"]
mod variables;

use ulocks_core::Private;
use ulocks_psrwlock::signal::Soft;
use ulocks_psrwlock::{BULK, Central, HANDLER, NESTED, PhaseFair, Sifted, URGENT};

/// All four classes.
const ALL: u8 = BULK | URGENT | NESTED | HANDLER;
/// The discipline of the tests that need only one.
type ByAll<M = Soft> = Sifted<ALL, Private, PhaseFair, Central, M>;
