#![doc = include_str!("../README.md")]
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

mod access;
mod arena;
mod array;
mod config;
mod fault;
mod layout;
mod list;
mod lock;
mod op;
// Unit tests do not interpose their own calls. The programs and the other tests do, since one
// library is linked and preloaded: what is no call of semaphores goes on to the C library there.
#[cfg(not(test))]
mod preload;
mod process;
mod queue;
mod registry;
mod section;
mod semctl;
mod semget;
mod semop;
mod sleep;
pub mod sys;
mod undo;
mod user;
mod word;

pub use list::{Listed, find, list};
pub use op::Op;
pub use process::leave as leave_process;
pub use semctl::{Status, semctl, stat};
pub use semget::semget;
pub use semop::{semop, semtimedop};
