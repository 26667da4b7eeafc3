#![doc = include_str!("../README.md")]
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

// The protocol of an array.
#[doc(hidden)]
pub mod array;
#[doc(hidden)]
pub mod layout;
#[doc(hidden)]
pub mod lock;
#[doc(hidden)]
pub mod op;
#[doc(hidden)]
pub mod perform;
#[doc(hidden)]
pub mod queue;
#[doc(hidden)]
pub mod section;
mod sleep;
#[doc(hidden)]
pub mod undo;
#[doc(hidden)]
pub mod word;

// What it stands on, and the calls.
#[cfg(files)]
mod access;
#[cfg(files)]
mod arena;
#[cfg(files)]
mod config;
#[cfg(files)]
mod list;
// Unit tests do not interpose their own calls. The programs and the other tests do, since one
// library is linked and preloaded: what is no call of semaphores goes on to the C library there.
#[cfg(all(files, not(test)))]
mod preload;
#[cfg(files)]
#[doc(hidden)]
pub mod process;
#[cfg(files)]
mod registry;
#[cfg(files)]
mod robust;
#[cfg(files)]
mod semctl;
#[cfg(files)]
mod semget;
#[cfg(files)]
mod semop;
#[cfg(files)]
#[cfg_attr(test, allow(dead_code, unused_imports, reason = "unit tests interpose nothing"))]
mod signal;
#[cfg(files)]
pub mod sys;
#[cfg(files)]
mod user;

#[cfg(not(files))]
#[doc(hidden)]
pub mod world;
#[cfg(not(files))]
use world::{process, registry, robust, signal, sys};

pub use op::Op;

#[cfg(files)]
pub use list::{Listed, find, list};
#[cfg(files)]
pub use process::leave as leave_process;
#[cfg(files)]
pub use semctl::{Status, semctl, stat};
#[cfg(files)]
pub use semget::semget;
#[cfg(files)]
pub use semop::{semop, semtimedop};
