//! A few models of the condition variable of the mutexes with a queue, under loom. The bugs of
//! `mutants/queue_condvar.toml` are found by the virtual machine.
#![cfg(world = "loom")]

#[allow(dead_code, reason = "the virtual machine runs the larger ones")]
mod condvar_clients;

use condvar_clients::*;
use ulocks_core::Private;
use ulocks_core::model::{Config, explore};
use ulocks_core::queue::{After, HandOff, QueueMutex};
use ulocks_core::spin::NoSpin;

type Strict = QueueMutex<Private<NoSpin>, HandOff>;
type Barging = QueueMutex<Private<NoSpin>, After>;

#[test]
fn a_notification_is_not_missed() {
    explore(Config::bounded(2), one_waiter::<Strict>);
    explore(Config::bounded(2), one_waiter::<Barging>);
}

#[test]
fn all_are_notified_and_all_get_the_mutex() {
    explore(Config::bounded(1), all_while_holding::<Strict>);
    explore(Config::bounded(1), all_while_holding::<Barging>);
}

#[test]
fn a_timeout_loses_no_notification() {
    let expires = Config { timeouts: 1, rest_expire: true, ..Config::bounded(2) };
    explore(expires.clone(), || somebody_says_so::<Strict>(1, soon));
    explore(expires, || somebody_says_so::<Barging>(1, soon));
}
