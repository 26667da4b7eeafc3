//! A SysV semaphore as a lock: Franke's base line, two system calls an acquisition. His program
//! does without SEM_UNDO.

use super::{Held, Lock, Scope};
use crate::subjects::semaphores::kernel_set::SemSet;
use anyhow::Result;

/// A set of one semaphore, which a death gives back if `UNDO`.
#[derive(Debug)]
#[repr(transparent)]
pub struct SysV<const UNDO: bool = false>(SemSet);

impl<const UNDO: bool> SysV<UNDO> {
    /// Adds `change`; says whether that was possible without waiting, or after it.
    #[inline]
    fn change(&self, change: i16, flags: i16) -> bool {
        let flags = if UNDO { flags | libc::SEM_UNDO as i16 } else { flags };
        self.0.apply(&[libc::sembuf { sem_num: 0, sem_op: change, sem_flg: flags }])
    }
}

impl<const UNDO: bool> Lock for SysV<UNDO> {
    const COUNTABLE: bool = false;

    fn unlocked(_: Scope) -> Result<Self> {
        Ok(Self(SemSet::new(&[1])?))
    }

    type Held<'a> = Held<'a, Self>;

    #[inline]
    fn acquire(&self) -> Self::Held<'_> {
        self.change(-1, 0);
        Held(self)
    }

    #[inline]
    fn try_acquire(&self) -> Option<Self::Held<'_>> {
        self.change(-1, libc::IPC_NOWAIT as i16).then(|| Held(self))
    }

    #[inline]
    fn release(&self) {
        self.change(1, 0);
    }
}

#[cfg(test)]
impl SysV {
    /// The id of the set.
    pub(crate) fn id(&self) -> libc::c_int {
        self.0.id()
    }
}
