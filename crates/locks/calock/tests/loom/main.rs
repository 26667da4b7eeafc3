//! Models of the calock.
#![cfg(all(ulocks_loom, feature = "loom"))]

#[path = "../common/advice.rs"]
mod advice;
#[path = "../common/impatient.rs"]
mod impatient;
#[path = "../common/overtaking.rs"]
mod overtaking;
mod sound;

use ulocks_core::model::Config;
use ulocks_testkit::suite::exact;

/// All deadlines pass. For two threads: the standby of a lock that is kept for another would never
/// block.
fn at_last(preemptions: usize) -> Config {
    Config { rest_expire: true, ..exact(preemptions) }
}
