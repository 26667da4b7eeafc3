//! Lock and unlock, uncontended, of locks between processes. All run in one process, in turn, as in
//! [`uncontended`](super::uncontended).
//!
//! A thread joins the region of a robust lock before each block and leaves it afterwards, neither
//! of which is timed. So the robust lists of the peers' blocks are empty.

use super::uncontended::{BLOCK, Block, Pairs, Run, timed};
use crate::subjects::locks::{self, Entry, Robust, Scope};
use crate::subjects::semaphores::kernel_set::SemSet;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use ulocks_semarray::Op;
use ulocks_shm::robust::fair_mutex::RobustFairMutex;
use ulocks_shm::robust::mutex::RobustMutex;
use ulocks_shm::robust::rwlock::RobustPsRwLock;
use ulocks_shm::robust::semarray::{RobustSemArray, RobustSemaphore};
use ulocks_shm::slots::Member;
use ulocks_shm::{Region, SharedSafe};

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
            "robust-semaphore" => robust::<RobustSemaphore>(|lock, me| drop(Robust::lock(lock, me))),
            "robust-set" => in_region::<RobustSemArray<2>>(
                |array, me| array.apply(me, &[Op::add(0, 1), Op::add(1, 1)]).expect("an array of two"),
                |array, me| drop(array.acquire(me, TWO)),
            ),
            "semop-undo" => semop(),
            "robust-rw-read" => robust::<RobustPsRwLock<u64>>(|lock, me| drop(lock.read(me))),
            name => registered(name, Scope::Processes),
        }
    }
}

fn registered(name: &str, scope: Scope) -> Result<Run> {
    locks::visit(Entry::find(name)?, scope, Block { scope, reads: false })?
}

/// One of each of two semaphores.
const TWO: [Op; 2] = [Op::sub(0, 1), Op::sub(1, 1)];

/// `TWO` by the kernel, with SEM_UNDO.
fn semop() -> Result<Run> {
    let set = SemSet::new(&[1, 1])?;
    let change =
        |by| [0, 1].map(|of| libc::sembuf { sem_num: of, sem_op: by, sem_flg: libc::SEM_UNDO as i16 });
    Ok(Box::new(move || {
        timed(BLOCK, || {
            black_box(set.apply(&change(-1)));
            black_box(set.apply(&change(1)));
        })
    }))
}

fn robust<R: Robust>(pair: impl Fn(&R, &Member<'_>) + 'static) -> Result<Run> {
    in_region(R::prepare, pair)
}

fn in_region<R: SharedSafe>(
    prepare: impl Fn(&R, &Member<'_>),
    pair: impl Fn(&R, &Member<'_>) + 'static,
) -> Result<Run> {
    let region = Region::<R>::options().anonymous()?;
    region.with_member(|me| prepare(&region, me))?;
    Ok(Box::new(move || {
        let lock: &R = black_box(&region);
        let timed = region.with_member(|me| timed(BLOCK, || pair(lock, me)));
        timed.expect("a region of one thread has room")
    }))
}
