//! The biased mutex.

use ulocks_core::Private;
use ulocks_unfair::RawBiasedMutex;

ulocks_testkit::crowd_tests! { RawBiasedMutex<Private> }
