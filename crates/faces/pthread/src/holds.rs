//! The read locks of each thread, for a child that it may fork: only these readers are in the
//! child.

/// The read locks of a thread, as `wait.c` declares them.
#[repr(C)]
pub struct Holds {
    /// One read of a lock, or null: without another one the list is not touched.
    one: *const (),
    count: u64,
    entries: [Hold; 32],
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Hold {
    lock: *const (),
    depth: u64,
}

#[cfg(not(target_arch = "x86_64"))]
unsafe extern "C" {
    fn ulocks_holds_of_thread() -> *mut Holds;
}

/// Where the list of the calling thread is.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn ulocks_holds_of_thread() -> *mut Holds {
    let address;
    // SAFETY: the sequence of the ABI for a variable of the initial-exec model: its offset, and the
    // thread pointer. It loads, and changes nothing.
    unsafe {
        core::arch::asm!(
            "mov {0}, qword ptr [rip + ulocks_holds@GOTTPOFF]",
            "add {0}, qword ptr fs:[0]",
            out(reg) address,
            options(nostack, readonly),
        );
    }
    address
}

impl Holds {
    /// The list of the calling thread. It is used by one function at a time: a signal handler does
    /// not lock a rwlock.
    #[inline(always)]
    pub fn mine<'a>() -> &'a mut Self {
        // SAFETY: the list is this thread's, and initialised by zeros. No caller keeps it over a
        // call that asks for it again.
        #[allow(unused_unsafe, reason = "on one architecture it is a call of C")]
        unsafe {
            &mut *ulocks_holds_of_thread()
        }
    }

    /// Where the lock is in the list.
    fn find(&self, lock: *const ()) -> Option<usize> {
        let count = (self.count as usize).min(self.entries.len());
        self.entries[..count].iter().position(|hold| hold.lock == lock)
    }

    #[inline(always)]
    pub fn depth(&self, lock: *const ()) -> u64 {
        u64::from(self.one == lock) + self.find(lock).map_or(0, |place| self.entries[place].depth)
    }

    #[inline(always)]
    pub fn enter(&mut self, lock: *const ()) {
        if self.one.is_null() {
            self.one = lock;
        } else {
            self.enter_list(lock);
        }
    }

    #[cold]
    fn enter_list(&mut self, lock: *const ()) {
        if let Some(place) = self.find(lock) {
            self.entries[place].depth += 1;
        } else if let Some(hold) = self.entries.get_mut(self.count as usize) {
            *hold = Hold { lock, depth: 1 };
            self.count += 1;
        }
    }

    /// Whether it had the lock.
    #[inline(always)]
    pub fn leave(&mut self, lock: *const ()) -> bool {
        let is_one = self.one == lock;
        if is_one {
            self.one = core::ptr::null();
        }
        is_one || self.leave_list(lock)
    }

    #[cold]
    fn leave_list(&mut self, lock: *const ()) -> bool {
        let Some(place) = self.find(lock) else { return false };
        self.entries[place].depth -= 1;
        if self.entries[place].depth == 0 {
            self.remove(place);
        }
        true
    }

    fn remove(&mut self, place: usize) {
        self.count -= 1;
        self.entries[place] = self.entries[self.count as usize];
    }

    /// The lock that was at this address is gone, with its reads.
    #[cold]
    pub fn forget(&mut self, lock: *const ()) {
        if self.one == lock {
            self.one = core::ptr::null();
        }
        if let Some(place) = self.find(lock) {
            self.remove(place);
        }
    }
}
