#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod lock;
mod sys;

pub use lock::policy::{Policy, Private, Shared};
pub use lock::traits as raw;
pub use lock::{api, condvar, interrupt, meter, policy, spin, task};
#[doc(hidden)]
pub use lock::{epoch, queue, sleep};
#[doc(no_inline)]
pub use lock_api;
#[cfg(feature = "parking_lot")]
pub use sys::parking_lot;
#[cfg(not(world = "loom"))]
pub use sys::robust;
#[cfg(world = "machine")]
pub use sys::world::capabilities;
/// For the faces for `LD_PRELOAD`, which know a child of fork by a page.
#[cfg(world = "machine")]
#[doc(hidden)]
pub use sys::world::wipe_on_fork;
pub use sys::{cpu, errno, futex, membarrier, model, signal, sync, tid, time};
