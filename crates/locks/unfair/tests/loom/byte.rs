//! The mutex in two bits of a byte. Each visit to the modelled lot is several steps more than a
//! futex call, so the bounds are a little lower than for the mutex on a futex; the virtual machine
//! takes more threads.

use ulocks_core::Private;
use ulocks_core::spin::NoSpin;
use ulocks_testkit::suite::{exact, timed, unordered};
use ulocks_unfair::RawByteMutex;

type Mutex = RawByteMutex;
/// Fewer steps, hence more executions of what is left; and other bits.
type Sleeper = RawByteMutex<Private<NoSpin>, 0b0001_0000, 0b0000_1000>;

ulocks_testkit::loom_models! {
    locks: [Mutex, Sleeper],
    exclusion: [exact(2) => 3, unordered(2) => 3],
    try_lock: Mutex,
    no_lost_wake: [exact(2) => (3, 1), unordered(2) => (2, 2)],
    timeout_vs_unlock: [timed(3, 3) => 2],
    last_unlocker_frees: [exact(2) => 3],
}
