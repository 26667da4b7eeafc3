//! How often a thread asks the kernel for a sleep or for a wake-up, whichever lock it uses.
//!
//! A lock of this family counts its own sleeps; std, parking_lot and usync do not. But all of them,
//! and the family too, reach the kernel through one door, libc's function `syscall`, and a program
//! may define a function of that name: the linker takes the program's before the C library's. So
//! every program that is linked with this library has this `syscall`. It does what libc's does, and
//! where a thread has asked for it counts its futex calls, in memory that a coordinator may read
//! while the thread works or sleeps. That adds 3 to 5 ns to the shortest call, a wake-up of no
//! thread, which takes 127 ns (Xeon in a virtual machine); a call that sleeps or wakes a thread
//! takes microseconds.
//!
//! What does not come through the door cannot be counted, and is missing rather than zero: glibc's
//! own mutexes and semaphores enter the kernel from within libc, SysV semaphores by `semop`
//! (`Lock::COUNTABLE`). On other architectures than x86-64 nothing is counted: libc's function
//! stays ([`countable`]).

use std::cell::Cell;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Calls of one thread: sleeps, refused sleeps, wakes. All-zero is a counter that has counted
/// nothing; only its thread writes.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Counters([AtomicU64; 3]);

const WAITS: usize = 0;
const REFUSED: usize = 1;
const WAKES: usize = 2;

impl Counters {
    /// What has been counted so far. A wait counts when it begins.
    pub fn read(&self) -> Calls {
        let [waits, refused, wakes] = [WAITS, REFUSED, WAKES].map(|of| self.0[of].load(Relaxed));
        Calls { waits, refused, wakes }
    }

    /// Only the thread itself writes, so a load and a store will do.
    fn raise(&self, of: usize) {
        self.0[of].store(self.0[of].load(Relaxed).wrapping_add(1), Relaxed);
    }
}

/// Futex calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// To sleep, with or without priority inheritance.
    pub waits: u64,
    /// Those of them that did not sleep, because the word had changed by then.
    pub refused: u64,
    /// To wake, to requeue, or to pass a lock with priority inheritance on, whether or not there
    /// was one.
    pub wakes: u64,
}

impl Calls {
    /// Calls to sleep and to wake together.
    pub fn all(&self) -> u64 {
        self.waits + self.wakes
    }

    /// Both together.
    pub fn plus(self, other: Self) -> Self {
        let [waits, refused, wakes] = [self.waits, self.refused, self.wakes];
        Self { waits: waits + other.waits, refused: refused + other.refused, wakes: wakes + other.wakes }
    }

    /// What has come since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        let [waits, refused, wakes] = [earlier.waits, earlier.refused, earlier.wakes];
        Self { waits: self.waits - waits, refused: self.refused - refused, wakes: self.wakes - wakes }
    }
}

thread_local! {
    /// Where this thread's calls are counted; null if they are not. Constant and without a
    /// destructor, so that it can be looked at in whatever state a thread makes a system call.
    static MINE: Cell<*const Counters> = const { Cell::new(ptr::null()) };
}

/// Runs `f` and counts the futex calls that this thread makes in it.
pub fn count<R>(counters: &Counters, f: impl FnOnce() -> R) -> R {
    /// Puts back what was there, also when `f` panics.
    struct Before(*const Counters);
    impl Drop for Before {
        fn drop(&mut self) {
            MINE.set(self.0);
        }
    }
    let _before = Before(MINE.replace(counters));
    f()
}

/// Whether futex calls are counted in this program: on this architecture, and with what the linker
/// made of it.
pub fn countable() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let (word, counters) = (std::sync::atomic::AtomicU32::new(0), Counters::default());
        // SAFETY: a wake needs the address alone, and no thread waits there.
        let wake = || unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1) };
        count(&counters, wake);
        counters.read() == Calls { wakes: 1, ..Calls::default() }
    })
}

#[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
mod door {
    use super::{MINE, REFUSED, WAITS, WAKES};
    use libc::{c_int, c_long};

    /// What the call counts as, if it counts.
    fn kind(number: c_long, operation: c_long) -> Option<usize> {
        use libc::*;
        match number {
            libc::SYS_futex => match operation as c_int & FUTEX_CMD_MASK {
                FUTEX_WAIT | FUTEX_WAIT_BITSET | FUTEX_WAIT_REQUEUE_PI | FUTEX_LOCK_PI | FUTEX_LOCK_PI2 => {
                    Some(WAITS)
                }
                FUTEX_WAKE | FUTEX_WAKE_BITSET | FUTEX_WAKE_OP | FUTEX_UNLOCK_PI => Some(WAKES),
                FUTEX_REQUEUE | FUTEX_CMP_REQUEUE | FUTEX_CMP_REQUEUE_PI => Some(WAKES),
                _ => None,
            },
            libc::SYS_futex_waitv => Some(WAITS),
            _ => None,
        }
    }

    /// libc's `syscall`, and a count. libc's takes what follows the number as variable arguments,
    /// which on this architecture are passed as these are; those that a caller left out are read as
    /// whatever is there, and the kernel does not look at them.
    ///
    /// # Safety
    /// That of the system call.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn syscall(
        number: c_long,
        a: c_long,
        b: c_long,
        c: c_long,
        d: c_long,
        e: c_long,
        f: c_long,
    ) -> c_long {
        // SAFETY: null, or the counters that `count` borrows as long as they are registered.
        let counted = unsafe { MINE.get().as_ref() }.and_then(|mine| Some((mine, kind(number, b)?)));
        if let Some((mine, kind)) = counted {
            mine.raise(kind);
        }
        let result: c_long;
        // SAFETY: the convention of the kernel: number and result in rax, arguments in these six,
        // rcx and r11 lost. What the call itself does is the caller's responsibility.
        unsafe {
            std::arch::asm!(
                "syscall",
                inlateout("rax") number => result,
                in("rdi") a,
                in("rsi") b,
                in("rdx") c,
                in("r10") d,
                in("r8") e,
                in("r9") f,
                lateout("rcx") _,
                lateout("r11") _,
                options(nostack),
            );
        }
        // The kernel reports an error by one of these values.
        if !(-4095..0).contains(&result) {
            return result;
        }
        if let Some((mine, WAITS)) = counted
            && -result == c_long::from(libc::EAGAIN)
        {
            mine.raise(REFUSED);
        }
        // SAFETY: libc gives each thread a place for its error.
        unsafe { *libc::__errno_location() = -result as c_int };
        -1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    fn futex(word: &AtomicU32, operation: libc::c_int, value: u32) -> libc::c_long {
        let soon = libc::timespec { tv_sec: 0, tv_nsec: 1000 };
        // SAFETY: the word and the time live until the call returns.
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, &soon) }
    }

    #[test]
    fn sleeps_refusals_and_wakes_of_this_thread_are_told_apart() {
        let (word, counters) = (AtomicU32::new(7), Counters::default());
        let private = libc::FUTEX_PRIVATE_FLAG;
        count(&counters, || {
            // One that sleeps and times out, two that may not sleep, and three wakes.
            for (value, errno) in [(7, libc::ETIMEDOUT), (8, libc::EAGAIN), (8, libc::EAGAIN)] {
                assert_eq!(futex(&word, libc::FUTEX_WAIT | private, value), -1);
                assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(errno));
            }
            for _ in 0..3 {
                assert_eq!(futex(&word, libc::FUTEX_WAKE | private, 1), 0);
            }
        });
        futex(&word, libc::FUTEX_WAKE, 1);
        std::thread::spawn(|| futex(&AtomicU32::new(0), libc::FUTEX_WAKE, 1)).join().unwrap();
        // Other counters: a panic that is printed may wait for a lock.
        let others = Counters::default();
        let panicked = std::panic::catch_unwind(|| count(&others, || panic!("on purpose")));
        assert!(panicked.is_err() && MINE.get().is_null(), "a panic ends the count");
        assert_eq!(countable(), cfg!(all(target_arch = "x86_64", target_pointer_width = "64")));
        let calls = Calls { waits: 3, refused: 2, wakes: 3 };
        assert_eq!(counters.read(), if countable() { calls } else { Calls::default() });
        assert_eq!(calls.plus(calls).since(calls), calls);
    }

    #[test]
    fn arguments_and_results_pass_through() {
        // Six arguments: a page of zeros, writable. SAFETY: a fresh anonymous mapping harms no
        // other; it is written within its length and unmapped once.
        unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let page = libc::syscall(libc::SYS_mmap, 0usize, 4096usize, access, flags, -1, 0usize);
            assert!(page > 0);
            *(page as *mut u8).add(4095) = 1;
            assert_eq!(libc::syscall(libc::SYS_munmap, page, 4096usize), 0);
        }
    }
}
