//! The pause as a unit of time. How many pauses fit into one is the machine's to say: an explorer has room for one look
//! in any budget, the cost model counts.

use ulocks_vm::sync::{pause_times, pauses_in};

pub(crate) fn budget(_: bool, ns: u32) -> u32 {
    if ns == 0 { 0 } else { count(ns) }
}

pub(crate) fn count(ns: u32) -> u32 {
    pauses_in(ns).max(1)
}

#[track_caller]
pub(crate) fn times(count: u32) {
    pause_times(count);
}
