//! The mutex in two bits of a byte.

use ulocks_core::Private;
use ulocks_core::spin::NoSpin;
use ulocks_unfair::RawByteMutex;

type Mutex = RawByteMutex;
/// Fewer steps, hence more executions of what is left; and other bits.
type Sleeper = RawByteMutex<Private<NoSpin>, 0b0001_0000, 0b0000_1000>;

ulocks_testkit::loom_models! { Mutex, Sleeper }
