//! What takes the place of the folder `linux` in a build without that feature: nobody dies, no
//! signal comes, all threads are of one process.

use super::explorer::Explorer;
use super::kernel::Sleeper;
use super::machine::{Machine, Status, Thread};
use super::{Config, Report};
use crate::choice::Footprint;
use crate::engine::{At, Key};
use core::fmt;

pub(super) struct OfThread;

#[derive(Default)]
pub(super) struct OfMachine;

impl OfMachine {
    pub(super) fn has_handlers(&self) -> bool {
        false
    }
}

/// There is no priority-inheriting futex to wait for.
#[derive(Clone, Copy)]
pub(super) enum Inherits {}

impl OfThread {
    pub(super) fn new(_: &[Thread], _: Option<(usize, bool)>) -> Self {
        Self
    }

    pub(super) fn may_own(&mut self) {}
}

impl Config {
    pub(super) fn lets_die(&self) -> bool {
        false
    }

    pub(super) fn tell_deaths(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

impl Report {
    pub(super) fn count_death(&mut self, _: Option<(At, bool)>) {}

    pub(super) fn add_deaths(&mut self, _: &Self) {}

    pub(super) fn tell_deaths(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

impl Explorer<'_, '_> {
    pub(super) fn live_or_die(&self, _: At) {}

    pub(super) fn run_handlers(&self) -> bool {
        false
    }

    pub(super) fn run_one_handler(&self) {}
}

impl Machine<'_, '_> {
    pub(super) fn process_of(&self, _: usize) -> usize {
        0
    }

    pub(super) fn canonical_address(&self, address: usize) -> usize {
        address
    }

    pub(super) fn canonical(&self, key: Key) -> Key {
        key
    }

    pub(super) fn at_its_end(&self, _: usize) -> Status {
        Status::Done
    }

    pub(super) fn exit(&mut self, _: usize) {}

    pub(super) fn may_be_struck(&self, _: usize, _: Footprint) -> bool {
        false
    }

    pub(super) fn signal_is_due(&self, _: usize) -> bool {
        false
    }

    pub(super) fn signal_is_pending(&self, _: usize) -> bool {
        false
    }

    pub(super) fn somebody_died(&self) -> bool {
        false
    }

    pub(super) fn may_be_blocked(&self) -> bool {
        false
    }

    pub(super) fn tell_the_dead(&self, _: &mut Vec<String>) {}

    pub(super) fn death(&self) -> Option<(At, bool)> {
        None
    }

    pub(super) fn lock_forgets(&self, _: &Sleeper) -> Option<bool> {
        None
    }
}

pub(super) fn end_run() {}
