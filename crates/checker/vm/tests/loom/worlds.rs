//! The face of the machine, with either explorer behind it: what is made while loom runs is loom's,
//! and everything else is the machine's. So one and the same lock or program is explored by both.
//!
//! The source of the locks says `ulocks_vm::sync`; in this test that is [`sync`] (see `main.rs`),
//! and the crate itself is `machine`.

use core::any::Any;
use core::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Once;

/// The explorer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum World {
    Machine,
    Loom,
}

thread_local! {
    static WORLD: Cell<World> = const { Cell::new(World::Machine) };
}

fn is_loom() -> bool {
    WORLD.get() == World::Loom
}

/// Loom's steps in one execution, beyond which it counts as endless.
const MAX_BRANCHES: usize = 2_000;

/// Every execution of `model` that loom knows, with at most `preemptions` of them if there is a
/// bound: how many there were, or what the failed one says. Nothing in the environment
/// changes what is explored.
pub fn explore_by_loom(
    preemptions: Option<usize>,
    model: impl Fn() + Send + Sync + 'static,
) -> Result<usize, String> {
    // Loom keeps all threads of a model on one thread of the system.
    struct Back;
    impl Drop for Back {
        fn drop(&mut self) {
            WORLD.set(World::Machine);
        }
    }
    keep_loom_quiet();
    WORLD.set(World::Loom);
    let _back = Back;
    let mut loom = loom::model::Builder::new();
    loom.preemption_bound = preemptions;
    loom.max_branches = MAX_BRANCHES;
    (loom.max_permutations, loom.max_duration, loom.checkpoint_file) = (None, None, None);
    let executions = std::sync::Arc::new(core::sync::atomic::AtomicUsize::new(0));
    let count = std::sync::Arc::clone(&executions);
    let explored = catch_unwind(AssertUnwindSafe(|| {
        loom.check(move || {
            count.fetch_add(1, core::sync::atomic::Ordering::Relaxed);
            futex::boot();
            model();
        });
    }));
    let executions = executions.load(core::sync::atomic::Ordering::Relaxed);
    explored.map(|()| executions).map_err(|panic| format!("{} (execution {executions})", message(&*panic)))
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message")
}

/// A panic in a model of loom's is a result, not news for the terminal.
fn keep_loom_quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !is_loom() {
                loud(info);
            }
        }));
    });
}

pub mod sync {
    //! Atomics, cells, and the busy-wait.

    use super::is_loom;
    use core::mem::MaybeUninit;
    pub use core::sync::atomic::Ordering;

    macro_rules! atomic {
        ($name:ident $(<$param:ident>)?, $value:ty) => {
            /// Begins with the machine's own, so that the address of the two is one: it is the
            /// futex's key.
            #[repr(C)]
            pub struct $name $(<$param>)? {
                machine: MaybeUninit<machine::sync::$name $(<$param>)?>,
                loom: Option<loom::sync::atomic::$name $(<$param>)?>,
            }

            impl $(<$param>)? $name $(<$param>)? {
                #[track_caller]
                pub fn new(value: $value) -> Self {
                    if is_loom() {
                        let loom = Some(loom::sync::atomic::$name::new(value));
                        Self { machine: MaybeUninit::uninit(), loom }
                    } else {
                        let machine = MaybeUninit::new(machine::sync::$name::new(value));
                        Self { machine, loom: None }
                    }
                }

                pub(super) fn machine(&self) -> &machine::sync::$name $(<$param>)? {
                    debug_assert!(self.loom.is_none());
                    // SAFETY: `new` made it if it did not make loom's.
                    unsafe { self.machine.assume_init_ref() }
                }
            }

            impl $(<$param>)? Drop for $name $(<$param>)? {
                fn drop(&mut self) {
                    if self.loom.is_none() {
                        // SAFETY: `new` made it, and it is not used any more.
                        unsafe { self.machine.assume_init_drop() }
                    }
                }
            }

            both! { $name $(<$param>)?:
                fn load(order: Ordering) -> $value;
                fn store(value: $value, order: Ordering) -> ();
                fn swap(value: $value, order: Ordering) -> $value;
                fn compare_exchange(
                    expected: $value, new: $value, success: Ordering, failure: Ordering
                ) -> Result<$value, $value>;
                fn fetch_update(
                    success: Ordering, failure: Ordering, change: impl FnMut($value) -> Option<$value>
                ) -> Result<$value, $value>;
            }
        };
    }

    macro_rules! both {
        ($name:ident $(<$param:ident>)?: $(fn $method:ident($($arg:ident: $type:ty),*) -> $out:ty;)*) => {
            #[allow(dead_code, reason = "each type has all methods, and the locks use some of each")]
            impl $(<$param>)? $name $(<$param>)? {
                $(
                    #[track_caller]
                    pub fn $method(&self, $($arg: $type),*) -> $out {
                        match &self.loom {
                            Some(loom) => loom.$method($($arg),*),
                            None => self.machine().$method($($arg),*),
                        }
                    }
                )*
            }
        };
    }

    macro_rules! arithmetic {
        ($name:ident, $value:ty) => {
            both! { $name:
                fn fetch_add(value: $value, order: Ordering) -> $value;
                fn fetch_sub(value: $value, order: Ordering) -> $value;
                fn fetch_and(value: $value, order: Ordering) -> $value;
                fn fetch_or(value: $value, order: Ordering) -> $value;
            }
        };
    }

    atomic!(AtomicU32, u32);
    atomic!(AtomicUsize, usize);
    atomic!(AtomicPtr<T>, *mut T);
    arithmetic!(AtomicU32, u32);
    arithmetic!(AtomicUsize, usize);

    #[track_caller]
    pub fn fence(order: Ordering) {
        if is_loom() { loom::sync::atomic::fence(order) } else { machine::sync::fence(order) }
    }

    /// The cell of one of the worlds.
    pub enum UnsafeCell<T> {
        Machine(machine::sync::UnsafeCell<T>),
        Loom(loom::cell::UnsafeCell<T>),
    }

    impl<T> UnsafeCell<T> {
        pub fn new(value: T) -> Self {
            match is_loom() {
                true => Self::Loom(loom::cell::UnsafeCell::new(value)),
                false => Self::Machine(machine::sync::UnsafeCell::new(value)),
            }
        }

        #[track_caller]
        pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
            match self {
                Self::Machine(cell) => cell.with(f),
                Self::Loom(cell) => cell.with(f),
            }
        }

        #[track_caller]
        pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            match self {
                Self::Machine(cell) => cell.with_mut(f),
                Self::Loom(cell) => cell.with_mut(f),
            }
        }
    }

    /// Fruitless rounds of a busy-wait on which loom branches. After that it runs the schedule and
    /// does not branch: otherwise three threads that spin never come to an end.
    const ROUNDS: usize = 2;

    #[track_caller]
    pub fn spin_until(mut ready: impl FnMut() -> bool) {
        if !is_loom() {
            return machine::sync::spin_until(ready);
        }
        for round in 1.. {
            if ready() {
                return;
            }
            if round == ROUNDS {
                loom::skip_branch();
            }
            loom::thread::yield_now();
        }
    }
}

pub mod futex {
    //! The futex. Loom has none: this one is a step of a counter, which makes loom try the orders
    //! of futex operations and orders nothing, and a queue that it does not see. The word is
    //! compared by an exchange for itself, which reads the newest value, and no step of loom's
    //! comes between that and the queue.

    use super::sync::{AtomicU32, Ordering::Relaxed};
    use super::{Cell, Rc, RefCell, is_loom};
    pub use machine::clock::Time;
    pub use machine::futex::Waited;

    struct Sleeper {
        address: usize,
        woken: Cell<bool>,
        thread: loom::thread::Thread,
    }

    struct Kernel {
        steps: loom::sync::atomic::AtomicUsize,
        queue: RefCell<Vec<Rc<Sleeper>>>,
    }

    loom::lazy_static! {
        static ref KERNEL: Kernel =
            Kernel { steps: loom::sync::atomic::AtomicUsize::new(0), queue: RefCell::default() };
    }

    /// Makes the kernel before there are threads, so that none of them has to learn of it.
    pub(super) fn boot() {
        let _: &RefCell<_> = &KERNEL.queue;
    }

    #[track_caller]
    pub fn wait(word: &AtomicU32, expected: u32, bits: u32, deadline: Option<Time>, private: bool) -> Waited {
        if !is_loom() {
            return machine::futex::wait(word.machine(), expected, bits, deadline, private);
        }
        assert!(bits == u32::MAX && deadline.is_none(), "no lock here asks for more");
        KERNEL.steps.fetch_add(1, Relaxed);
        if word.compare_exchange(expected, expected, Relaxed, Relaxed).is_err() {
            return Waited::Mismatch;
        }
        let address = core::ptr::from_ref(word).addr();
        let thread = loom::thread::current();
        let sleeper = Rc::new(Sleeper { address, woken: Cell::new(false), thread });
        KERNEL.queue.borrow_mut().push(Rc::clone(&sleeper));
        while !sleeper.woken.get() {
            loom::thread::park();
        }
        Waited::Woken
    }

    #[track_caller]
    pub fn wake(address: usize, count: u32, bits: u32, private: bool) -> u32 {
        if !is_loom() {
            return machine::futex::wake(address, count, bits, private);
        }
        KERNEL.steps.fetch_add(1, Relaxed);
        let mut woken = Vec::new();
        KERNEL.queue.borrow_mut().retain(|sleeper| {
            let hit = sleeper.address == address && (woken.len() as u32) < count;
            if hit {
                sleeper.woken.set(true);
                woken.push(Rc::clone(sleeper));
            }
            !hit
        });
        woken.iter().for_each(|sleeper| sleeper.thread.unpark());
        woken.len() as u32
    }
}

pub mod thread {
    //! Threads.

    use super::is_loom;

    /// The handle of one of the worlds.
    pub enum JoinHandle<T> {
        Machine(machine::thread::JoinHandle<T>),
        Loom(loom::thread::JoinHandle<T>),
    }

    #[track_caller]
    pub fn spawn<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        match is_loom() {
            true => JoinHandle::Loom(loom::thread::spawn(body)),
            false => JoinHandle::Machine(machine::thread::spawn(body)),
        }
    }

    impl<T> JoinHandle<T> {
        #[track_caller]
        pub fn join(self) -> std::thread::Result<T> {
            match self {
                Self::Machine(handle) => handle.join(),
                Self::Loom(handle) => handle.join(),
            }
        }
    }
}
