//! The type parameter of a lock beside its data: where the lock lives, how its waiters spin, and
//! what it counts.
//!
//! ```
//! use ulocks::policy::{Adaptive, Counted, Metered, NoSpin, Patience};
//! use ulocks::unfair::ThroughputMutexWith;
//! use ulocks::{Private, Shared};
//!
//! static HASTY: ThroughputMutexWith<u32, Private<NoSpin>> = ThroughputMutexWith::new(0);
//! static PATIENT: ThroughputMutexWith<u32, Private<Patience<3_000>>> = ThroughputMutexWith::new(0);
//! static COUNTED: ThroughputMutexWith<u32, Private<Adaptive, Counted>> = ThroughputMutexWith::new(0);
//! static BETWEEN_PROCESSES: ulocks::unfair::BargingMutexWith<u32, Shared> =
//!     ulocks::unfair::BargingMutexWith::new(0);
//!
//! assert_eq!(*HASTY.lock() + *PATIENT.lock() + *COUNTED.lock() + *BETWEEN_PROCESSES.lock(), 0);
//! assert_eq!(COUNTED.counts().acquired, 1);
//! ```

pub use ulocks_core::meter::{Counted, Off, Snapshot};
pub use ulocks_core::policy::{InOneProcess, Policy, Private, Shared};
pub use ulocks_core::raw::Metered;
pub use ulocks_core::spin::{Adaptive, NoSpin, Patience};
