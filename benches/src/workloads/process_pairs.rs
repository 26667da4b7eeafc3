//! Lock and unlock, uncontended, of locks between processes. All run in one process, in turn, as in
//! [`uncontended`](super::uncontended).
//!
//! A thread joins the region of a robust lock before each block and leaves it afterwards, neither
//! of which is timed. So the robust lists of the peers' blocks are empty.

use super::uncontended::{BLOCK, Block, Pairs, Run, timed};
use crate::subjects::locks::{self, Entry, Robust, Scope};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use ulocks_shm::Region;
use ulocks_shm::robust::fair_mutex::RobustFairMutex;
use ulocks_shm::robust::mutex::RobustMutex;
use ulocks_shm::robust::rwlock::RobustPsRwLock;
use ulocks_shm::slots::Member;

/// Added to the name of a lock: the same lock for the threads of one process.
pub const PRIVATE: &str = "-private";

/// Lock and unlock, between processes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ProcessPairs;

impl Pairs for ProcessPairs {
    fn block(&self, name: &str) -> Result<Run> {
        if let Some(name) = name.strip_suffix(PRIVATE) {
            return registered(name, Scope::Threads);
        }
        match name {
            "robust" => robust::<RobustMutex<u64>>(|lock, me| drop(Robust::lock(lock, me))),
            "robust-fair" => robust::<RobustFairMutex<u64>>(|lock, me| drop(Robust::lock(lock, me))),
            "robust-rw" => robust::<RobustPsRwLock<u64>>(|lock, me| drop(Robust::lock(lock, me))),
            "robust-rw-read" => robust::<RobustPsRwLock<u64>>(|lock, me| drop(lock.read(me))),
            name => registered(name, Scope::Processes),
        }
    }
}

fn registered(name: &str, scope: Scope) -> Result<Run> {
    locks::visit(Entry::find(name)?, scope, Block { scope, reads: false })?
}

fn robust<R: Robust>(pair: impl Fn(&R, &Member<'_>) + 'static) -> Result<Run> {
    let region = Region::<R>::options().anonymous()?;
    Ok(Box::new(move || {
        let me = region.join().expect("a region of one thread has room");
        let lock: &R = black_box(&region);
        timed(BLOCK, || pair(lock, &me))
    }))
}
