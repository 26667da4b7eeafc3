//! The mutex, with waiters that are tasks.

use ulocks_core::Private;
use ulocks_core::spin::NoSpin;
use ulocks_fair::RawFairMutex;
use ulocks_testkit::tasks::Tasks;

ulocks_testkit::loom_models! { Tasks<RawFairMutex<Private<NoSpin>>> }
