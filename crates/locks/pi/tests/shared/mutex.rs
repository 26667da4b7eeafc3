//! The mutex.

use ulocks_core::Shared;
use ulocks_core::spin::NoSpin;
use ulocks_pi::RawPiMutex;
use ulocks_testkit::stress::Load;

ulocks_testkit::shared_tests! {
    Load { operations: 4_000, ..Load::default() };
    RawPiMutex<Shared>, RawPiMutex<Shared<NoSpin>>,
}
