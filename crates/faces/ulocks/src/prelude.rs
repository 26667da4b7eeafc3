//! Names that nearly every user needs: `use ulocks::prelude::*;`
//!
//! Locks come by module, not by name: several crates of the family have a `Mutex`, and which one is
//! meant should be read where it is used.
//!
//! ```
//! use ulocks::prelude::*;
//!
//! static PLAIN: unfair::BargingMutex<u32> = unfair::BargingMutex::new(0);
//! static HASTY: unfair::BargingMutexWith<u32, Private<NoSpin>> = unfair::BargingMutexWith::new(0);
//! static COUNTED: unfair::BargingMutexWith<u32, Private<Patience<3_000>, Counted>> =
//!     unfair::BargingMutexWith::new(0);
//!
//! assert_eq!(*PLAIN.lock() + *HASTY.lock() + *COUNTED.lock(), 0);
//! ```

pub use crate::meter::{Counted, Off};
pub use crate::psrwlock::ByClass;
pub use crate::spin::{Adaptive, NoSpin, Patience};
pub use crate::{Private, Shared};
pub use crate::{calock, fair, pi, psrwlock, semarray, unfair};
