//! Names that nearly every user needs: `use ulocks::prelude::*;`
//!
//! Locks come by module, not by name: several crates of the family have a `Mutex`, and which one is
//! meant should be read where it is used.
//!
//! ```
//! use ulocks::prelude::*;
//!
//! static PLAIN: unfair::Mutex<u32> = unfair::Mutex::new(0);
//! static HASTY: unfair::MutexWith<u32, Private<NoSpin>> = unfair::MutexWith::new(0);
//! static COUNTED: unfair::MutexWith<u32, Private<Patience<3_000>, Counted>> =
//!     unfair::MutexWith::new(0);
//!
//! assert_eq!(*PLAIN.lock() + *HASTY.lock() + *COUNTED.lock(), 0);
//! ```

pub use crate::meter::{Counted, Off};
pub use crate::psrwlock::ByClass;
pub use crate::spin::{Adaptive, NoSpin, Patience};
pub use crate::{Private, Shared};
pub use crate::{calock, fair, pi, psrwlock, semarray, unfair};
