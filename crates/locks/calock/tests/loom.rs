//! A few small models in loom's world: that the lock works there, for models of protocols that are
//! built on it. What the planted bugs break, and all larger models, is the virtual machine's.
#![cfg(all(ulocks_loom, feature = "loom"))]

use ulocks_calock::RawCalock;
use ulocks_core::Private;
use ulocks_core::spin::NoSpin;

type Sleeper = RawCalock<Private<NoSpin>>;

ulocks_testkit::loom_models! { Sleeper }
