//! The throughput mutex.

use ulocks_core::Private;
use ulocks_core::spin::NoSpin;
use ulocks_unfair::{HandOff, RawThroughputMutex};

type Mutex = RawThroughputMutex<Private>;
/// Fewer steps, hence more executions of what is left.
type Sleeper = RawThroughputMutex<Private<NoSpin>>;
/// The mutex is owed to each waiter that was woken in vain.
type Strict = RawThroughputMutex<Private<NoSpin>, HandOff>;

ulocks_testkit::loom_models! { Mutex, Sleeper, Strict }
