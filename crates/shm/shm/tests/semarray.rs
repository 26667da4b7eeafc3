//! `SemArray` against the kernel's semaphores: processes perform the same sets on both, and
//! die; the outcomes and the values are the same.
#![cfg(not(any(ulocks_loom, ulocks_vm, miri)))]

use std::io;
use ulocks_semarray::{Op, Set};
use ulocks_shm::{Region, SemArray, SemError};
use ulocks_testkit::Child;

const SEMS: usize = 3;
type Array = SemArray<SEMS, 64, 4>;

/// A set of the kernel's semaphores, removed at the end.
struct Kernel(libc::c_int);

impl Kernel {
    /// `None` if the machine has none.
    fn new() -> Option<Self> {
        // SAFETY: no pointers.
        let id = unsafe { libc::semget(libc::IPC_PRIVATE, SEMS as libc::c_int, 0o600) };
        (id >= 0).then_some(Self(id))
    }

    fn value(&self, index: usize) -> u32 {
        // SAFETY: `GETVAL` takes no fourth argument.
        let value = unsafe { libc::semctl(self.0, index as libc::c_int, libc::GETVAL) };
        u32::try_from(value).expect("the set exists")
    }

    fn last_process(&self, index: usize) -> u32 {
        // SAFETY: `GETPID` takes no fourth argument.
        let process = unsafe { libc::semctl(self.0, index as libc::c_int, libc::GETPID) };
        u32::try_from(process).expect("the set exists")
    }

    fn set(&self, index: usize, value: u32) {
        // SAFETY: `SETVAL` takes an integer.
        assert_eq!(unsafe { libc::semctl(self.0, index as libc::c_int, libc::SETVAL, value) }, 0);
    }

    /// Performs `ops` without waiting.
    fn perform(&self, ops: &[Op], undo: bool) -> Outcome {
        let flags = libc::IPC_NOWAIT | if undo { 0x1000 } else { 0 };
        let mut ops = ops.iter().map(|op| libc::sembuf {
            sem_num: op.index() as u16,
            sem_op: op.change() as i16,
            sem_flg: flags as i16,
        });
        let mut list: [libc::sembuf; 4] =
            std::array::from_fn(|_| ops.next().unwrap_or(libc::sembuf { sem_num: 0, sem_op: 0, sem_flg: 0 }));
        let number = list.iter().take_while(|op| op.sem_flg != 0).count();
        // SAFETY: so many operations are in the list.
        match unsafe { libc::semop(self.0, list.as_mut_ptr(), number) } {
            0 => Outcome::Done,
            _ => match io::Error::last_os_error().raw_os_error() {
                Some(libc::EAGAIN) => Outcome::WouldBlock,
                Some(libc::ERANGE) => Outcome::Limit,
                other => panic!("semop: {other:?}"),
            },
        }
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        // SAFETY: no further argument.
        unsafe { libc::semctl(self.0, 0, libc::IPC_RMID) };
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    WouldBlock,
    Limit,
}

/// One set of a child.
#[derive(Clone, Copy)]
struct Step {
    ops: [Op; 4],
    number: usize,
    undo: bool,
}

/// Numbers by a rule: xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn op(&mut self) -> Op {
        let index = self.below(SEMS as u64) as usize;
        // Small amounts, mostly, and some at the limit.
        let amount = if self.below(8) == 0 { 32_760 } else { 1 + self.below(4) as u32 };
        let op = match self.below(5) {
            0 => Op::wait_zero(index),
            1 | 2 => Op::add(index, amount),
            _ => Op::sub(index, amount),
        };
        op.no_wait()
    }

    fn step(&mut self) -> Step {
        let number = 1 + self.below(4) as usize;
        Step { ops: std::array::from_fn(|_| self.op()), number, undo: self.below(2) == 0 }
    }
}

/// Performs `steps` on both in a child, which then dies. Whether the outcomes were the same.
fn in_a_child(region: &Region<Array>, kernel: &Kernel, steps: &[Step], by_signal: bool) -> bool {
    let child = Child::runs(|| {
        // SAFETY: a permit lends nothing.
        let me = unsafe { region.join() }.expect("a slot");
        for step in steps {
            let ops = &step.ops[..step.number];
            let ours = match step.undo {
                true => region.try_acquire(&me, Set::from(ops)).map(std::mem::forget),
                false => region.try_apply(&me, ops),
            };
            let ours = match ours {
                Ok(()) => Outcome::Done,
                Err(SemError::WouldBlock) => Outcome::WouldBlock,
                Err(SemError::Limit) => Outcome::Limit,
                Err(error) => panic!("{error}"),
            };
            assert!(ours == kernel.perform(ops, step.undo), "another outcome");
        }
        std::mem::forget(me);
        if by_signal {
            // SAFETY: a signal to this process.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        }
    });
    child.waited() == if by_signal { libc::SIGKILL } else { 0 }
}

#[test]
fn processes_that_die_leave_what_the_kernel_leaves() {
    let Some(kernel) = Kernel::new() else {
        println!("not tested: no semaphores of System V: {}", io::Error::last_os_error());
        return;
    };
    let region = Region::<Array>::options().anonymous().expect("a region");
    // SAFETY: as above.
    let me = unsafe { region.join() }.expect("a slot");
    let mut random = Random(0x1234_5678_9abc_def1);
    let mut came_back = 0;
    for round in 0..400 {
        if round % 40 == 0 {
            for index in 0..SEMS {
                let value = [0, 3, 32_760][(round / 40 + index) % 3];
                region.set(&me, index, value).expect("a value in range");
                kernel.set(index, value);
            }
        }
        let steps: Vec<_> = (0..1 + random.below(4)).map(|_| random.step()).collect();
        let by_signal = random.below(2) == 0;
        assert!(in_a_child(&region, &kernel, &steps, by_signal), "round {round}: another outcome");
        let before = region.values();
        region.reclaim(&me).expect("it works");
        came_back += usize::from(before != region.values());
        let theirs: [u32; SEMS] = std::array::from_fn(|index| kernel.value(index));
        assert_eq!(region.values(), theirs, "round {round}");
        for index in 0..SEMS {
            let process = Some(kernel.last_process(index));
            assert_eq!(region.last_process(index), process, "round {round}, semaphore {index}");
        }
    }
    assert!(came_back > 40, "only {came_back} deaths gave something back");
}
