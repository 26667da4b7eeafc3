//! The semaphore arrays of the kernel.

use crate::crew::{Patience, Subject};
use std::collections::VecDeque;
use std::io;
use std::ptr;
use std::sync::{Mutex, Once};
use ulocks_testkit::sets::{Op, Outcome, Refusal, Waiters};

const LIMIT: i64 = 32_767;

/// An array of these values. `None` if there are no such arrays here, or if they are not permitted;
/// a line says so.
pub fn array(values: &[u32]) -> Option<SysV> {
    match SysV::new(values) {
        Ok(array) => Some(array),
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => {
            static ONCE: Once = Once::new();
            ONCE.call_once(|| println!("not tested: not compared with the kernel: semget: {error}"));
            None
        }
        Err(error) => panic!("semget: {error}; `ipcs -s` lists what there is"),
    }
}

/// An array of the kernel, removed when it is dropped.
pub struct SysV {
    id: libc::c_int,
    len: usize,
    /// Processes that are to give back something by their end.
    lenders: Mutex<VecDeque<libc::pid_t>>,
}

impl SysV {
    fn new(values: &[u32]) -> Result<Self, io::Error> {
        let len = values.len();
        // SAFETY: no preconditions.
        let id = unsafe { libc::semget(libc::IPC_PRIVATE, len as libc::c_int, 0o600) };
        if id < 0 {
            return Err(io::Error::last_os_error());
        }
        let array = Self { id, len, lenders: Mutex::default() };
        array.set_all(values).expect("values in range");
        Ok(array)
    }

    /// Prepares a step that gives back what `ops` do: a process performs them with `SEM_UNDO` and
    /// stops. The values are then as before, unless they are set, which makes the kernel forget
    /// what to undo. Of several such steps the first must be prepared first.
    pub fn prepare_give_back(&self, ops: &[Op]) {
        let change = |index| ops.iter().filter(|op| op.index == index).map(|op| op.change()).sum::<i64>();
        let values = self.values();
        // What the process needs, as far as there is room for it, and when it has done its part,
        // what is missing or too much.
        let room = |index: usize| LIMIT - i64::from(values[index]);
        let before: Vec<i64> = (0..self.len).map(|index| (-change(index)).clamp(0, room(index))).collect();
        self.add(&before);
        let mut undone: Vec<_> = ops.iter().map(sembuf).collect();
        undone.iter_mut().for_each(|op| op.sem_flg |= libc::SEM_UNDO as i16);
        // SAFETY: the child makes system calls only, with arguments that were made before.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: the count is that of the operations; the other calls have no preconditions.
            unsafe {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                let done = libc::semop(self.id, undone.as_mut_ptr(), undone.len());
                libc::raise(if done == 0 { libc::SIGSTOP } else { libc::SIGKILL });
                libc::_exit(1);
            }
        }
        let mut status = 0;
        // SAFETY: the child is ours, and has not been waited for.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, libc::WUNTRACED) }, child);
        assert!(libc::WIFSTOPPED(status), "{ops:?} has to be possible on {values:?}, and on more");
        self.lenders.lock().unwrap().push_back(child);
        let after: Vec<i64> =
            before.iter().enumerate().map(|(index, before)| -change(index) - before).collect();
        self.add(&after);
        assert_eq!(self.values(), values);
    }

    /// Adds to the values; not with a command that sets them.
    fn add(&self, changes: &[i64]) {
        let mut ops: Vec<_> = changes
            .iter()
            .enumerate()
            .filter(|(_, change)| **change != 0)
            .map(|(index, change)| libc::sembuf {
                sem_num: index as u16,
                sem_op: *change as i16,
                sem_flg: libc::IPC_NOWAIT as i16,
            })
            .collect();
        // SAFETY: the count is that of the operations.
        let done = unsafe { libc::semop(self.id, ops.as_mut_ptr(), ops.len()) };
        assert!(done == 0 || ops.is_empty(), "semop: {}", io::Error::last_os_error());
    }

    fn end_lender(child: libc::pid_t) {
        // SAFETY: the child is ours and stopped, and has not been waited for since.
        unsafe {
            libc::kill(child, libc::SIGKILL);
            assert_eq!(libc::waitpid(child, ptr::null_mut(), 0), child);
        }
    }

    fn count(&self, index: usize, what: libc::c_int) -> usize {
        // SAFETY: these commands take no argument.
        let count = unsafe { libc::semctl(self.id, index as libc::c_int, what) };
        assert!(count >= 0, "semctl: {}", io::Error::last_os_error());
        count as usize
    }
}

impl Subject for SysV {
    fn apply(&self, ops: &[Op], patience: Patience) -> Outcome {
        let mut ops: Vec<_> = ops.iter().map(sembuf).collect();
        let tv_nsec = if patience == Patience::Short { 50_000 } else { 0 };
        let timeout = libc::timespec { tv_sec: 0, tv_nsec };
        let timeout = if patience == Patience::Endless { ptr::null() } else { &raw const timeout };
        // SAFETY: the count is that of the operations, and the time is none or valid.
        let done =
            unsafe { libc::syscall(libc::SYS_semtimedop, self.id, ops.as_mut_ptr(), ops.len(), timeout) };
        outcome(done as libc::c_int)
    }

    fn set(&self, index: usize, value: u32) -> Outcome {
        // SAFETY: the command takes an integer.
        let done = unsafe { libc::semctl(self.id, index as libc::c_int, libc::SETVAL, value as libc::c_int) };
        outcome(done)
    }

    fn set_all(&self, values: &[u32]) -> Outcome {
        assert_eq!(values.len(), self.len);
        let values: Vec<u16> = values.iter().map(|value| *value as u16).collect();
        // SAFETY: as many values as there are semaphores.
        outcome(unsafe { libc::semctl(self.id, 0, libc::SETALL, values.as_ptr()) })
    }

    /// The end of a process that was prepared.
    fn give_back(&self, _: &[Op]) {
        let lender = self.lenders.lock().unwrap().pop_front();
        Self::end_lender(lender.expect("`prepare_give_back` before the script"));
    }

    fn close(&self) {
        // SAFETY: the command takes no argument. It fails if the array was removed before.
        unsafe { libc::semctl(self.id, 0, libc::IPC_RMID) };
    }

    fn values(&self) -> Vec<u32> {
        let mut values = vec![0_u16; self.len];
        // SAFETY: room for as many values as there are semaphores.
        let got = unsafe { libc::semctl(self.id, 0, libc::GETALL, values.as_mut_ptr()) };
        assert_eq!(got, 0, "semctl: {}", io::Error::last_os_error());
        values.into_iter().map(u32::from).collect()
    }

    fn waiters(&self) -> Vec<Waiters> {
        let at = |index| Waiters {
            increase: self.count(index, libc::GETNCNT),
            zero: self.count(index, libc::GETZCNT),
        };
        (0..self.len).map(at).collect()
    }

    /// `semop` has one error for a set without waiting and for one that timed out, and does not
    /// name the semaphore.
    fn as_seen(refusal: Refusal) -> Refusal {
        match refusal {
            Refusal::TimedOut => Refusal::WouldBlock,
            Refusal::OutOfRange(_) => Refusal::OutOfRange(usize::MAX),
            other => other,
        }
    }
}

impl Drop for SysV {
    fn drop(&mut self) {
        self.close();
        self.lenders.get_mut().unwrap().drain(..).for_each(Self::end_lender);
    }
}

fn sembuf(op: &Op) -> libc::sembuf {
    libc::sembuf {
        sem_num: op.index as u16,
        sem_op: op.change().try_into().expect("as much as semop can"),
        sem_flg: if op.no_wait { libc::IPC_NOWAIT as i16 } else { 0 },
    }
}

fn outcome(done: libc::c_int) -> Outcome {
    if done >= 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    Err(match error.raw_os_error() {
        Some(libc::EAGAIN) => Refusal::WouldBlock,
        Some(libc::EINTR) => Refusal::Interrupted,
        Some(libc::ERANGE) => Refusal::OutOfRange(usize::MAX),
        Some(libc::EFBIG) => Refusal::NoSuch(usize::MAX),
        Some(libc::EIDRM) => Refusal::Closed,
        _ => panic!("semop: {error}"),
    })
}
