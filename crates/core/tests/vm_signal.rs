//! Masks and handlers on the virtual machine: a signal may strike before any step.
#![cfg(world = "vm")]

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use ulocks_core::model::signal::{self as vm, Signal};
use ulocks_core::model::thread;
use ulocks_core::model::{Config, explore};
use ulocks_core::signal::{self, Context, Hard, Mask, Soft, dispatch, without_masks};
use ulocks_core::sync::interruption_point;

/// Wrapped; they make up the class.
const FIRST: Signal = Signal::new(10);
const SECOND: Signal = Signal::new(12);
/// Has a handler that is not wrapped.
const OTHER: Signal = Signal::new(14);

/// What a model looks at: plain data outside of the machine, all of whose threads are one thread of
/// the system.
#[derive(Clone, Default)]
struct Watcher(Rc<Watched>);

#[derive(Default)]
struct Watched {
    /// The thread that may be struck is between `raise` and `lower`.
    is_masked: Cell<bool>,
    handling: Cell<bool>,
    arrived: RefCell<Vec<i32>>,
    handled: RefCell<Vec<(i32, bool)>>,
}

// SAFETY: as above.
unsafe impl Send for Watcher {}
// SAFETY: as above.
unsafe impl Sync for Watcher {}

impl Watcher {
    /// Handlers for the class, each of which runs alone, and not while the mask is up.
    fn install(&self, body: impl Fn() + Clone + 'static) {
        for signal in [FIRST, SECOND] {
            let (watcher, body) = (self.clone(), body.clone());
            let handler = move |context: &Context<'_>| {
                let watched = &watcher.0;
                assert!(!watched.is_masked.get(), "a handler runs while the mask is up");
                assert!(!watched.handling.replace(true), "a handler interrupts a handler");
                watched.handled.borrow_mut().push((context.signal(), context.is_deferred()));
                body();
                watched.handling.set(false);
            };
            let watcher = self.clone();
            let number = i32::from(signal.number());
            vm::install(signal, FIRST.bit() | SECOND.bit(), move || {
                // A signal that was sent again arrives again.
                let mut arrived = watcher.0.arrived.borrow_mut();
                if !arrived.contains(&number) {
                    arrived.push(number);
                }
                drop(arrived);
                dispatch(number, handler.clone());
            });
        }
    }

    /// What is masked is masked here.
    fn masked(&self, body: impl FnOnce()) {
        Soft::raise();
        self.0.is_masked.set(true);
        body();
        self.0.is_masked.set(false);
        Soft::lower();
    }

    /// All that arrived have been handled once, and nothing is left blocked.
    fn check(&self) {
        let signals = |handled: &[(i32, bool)]| handled.iter().map(|&(signal, _)| signal).collect::<Vec<_>>();
        let (mut arrived, mut handled) = (self.0.arrived.borrow().clone(), signals(&self.0.handled.borrow()));
        arrived.sort_unstable();
        handled.sort_unstable();
        assert_eq!(handled, arrived, "not each signal that arrived was handled once");
        assert_eq!(vm::mask(0), 0, "signals stay blocked");
    }
}

/// Signals strike a thread that raises and lowers masks, one inside the other.
fn nested() {
    let watcher = Watcher::default();
    watcher.install(interruption_point);
    vm::arm(FIRST, 1);
    vm::arm(SECOND, 1);
    watcher.masked(|| {
        Soft::raise();
        Soft::lower();
        interruption_point();
    });
    watcher.check();
    // Nothing is run a second time.
    watcher.masked(|| {});
    watcher.check();
}

/// The kernel keeps a signal that is blocked: another thread sends two.
fn sent() {
    let watcher = Watcher::default();
    watcher.install(interruption_point);
    let me = thread::current();
    let sender = thread::spawn(move || {
        vm::send(me, FIRST);
        vm::send(me, SECOND);
    });
    watcher.masked(interruption_point);
    sender.join().unwrap();
    vm::mask(0); // What has been sent is delivered here at the latest.
    assert_eq!(watcher.0.handled.borrow().len(), 2, "a signal was lost");
    watcher.check();
}

/// A handler that is not wrapped is struck by signals of the class, and takes their block with it
/// when it returns. And handlers have masks of their own.
fn unwrapped() {
    let watcher = Watcher::default();
    watcher.install(|| {
        Soft::raise();
        Soft::lower();
    });
    vm::install(OTHER, 0, interruption_point);
    for signal in [FIRST, SECOND, OTHER] {
        vm::arm(signal, 1);
    }
    watcher.masked(|| {});
    watcher.check();
}

#[test]
fn a_handler_runs_once_and_never_while_a_mask_is_up() {
    explore(Config::exhaustive(), nested);
}

#[test]
fn the_kernel_keeps_what_comes_after_the_first() {
    explore(Config::exhaustive(), sent);
}

#[test]
fn a_handler_that_is_not_wrapped_may_be_in_between() {
    explore(Config::exhaustive(), unwrapped);
}

#[test]
fn a_signal_is_deferred_or_not() {
    let seen = std::sync::Arc::new(std::sync::Mutex::new(std::collections::BTreeSet::new()));
    let outcomes = std::sync::Arc::clone(&seen);
    explore(Config::exhaustive(), move || {
        let watcher = Watcher::default();
        watcher.install(|| {});
        vm::arm(FIRST, 1);
        watcher.masked(interruption_point);
        let handled = watcher.0.handled.borrow().first().map(|&(_, is_deferred)| is_deferred);
        outcomes.lock().unwrap().insert(handled);
    });
    assert_eq!(seen.lock().unwrap().len(), 3, "not at all, at once, and deferred");
}

#[test]
fn a_synchronous_signal_does_not_wait() {
    explore(Config::exhaustive(), || {
        let handled = Rc::new(Cell::new(false));
        let handler = Rc::clone(&handled);
        let fault = Signal::new(11);
        vm::install(fault, u32::MAX, move || {
            let handler = Rc::clone(&handler);
            signal::dispatch(libc::SIGSEGV, move |context| handler.set(context.is_synchronous()));
        });
        Soft::raise();
        vm::send(thread::current(), fault);
        assert!(handled.get());
        Soft::lower();
    });
}

/// The signal of a fault.
const FAULT: Signal = Signal::new(11);

/// Gives faults a handler that counts, and that has masks of its own.
fn install_fault(faults: &Rc<Cell<u32>>) {
    let faults = Rc::clone(faults);
    // As the wrapper's `sa_mask`: the class, and no synchronous signal.
    vm::install(FAULT, FIRST.bit() | SECOND.bit(), move || {
        let faults = Rc::clone(&faults);
        signal::dispatch(libc::SIGSEGV, move |context| {
            assert!(context.is_synchronous() && !context.is_deferred());
            Soft::raise();
            Soft::lower();
            faults.set(faults.get() + 1);
        });
    });
}

/// What the code here does faults.
fn fault(faults: &Cell<u32>) {
    let before = faults.get();
    vm::send(thread::current(), FAULT);
    assert!(faults.get() > before, "a fault finds its signal blocked");
}

/// Faults under a mask and in handlers, whatever came before. The signal strikes at any other step,
/// too, as if it were sent: in the midst of putting aside, of taking back, and of hiding.
#[test]
fn a_fault_is_handled_whatever_came_before() {
    explore(Config::exhaustive(), || {
        let faults = Rc::new(Cell::new(0));
        install_fault(&faults);
        let watcher = Watcher::default();
        let in_handler = Rc::clone(&faults);
        watcher.install(move || fault(&in_handler));
        vm::arm(FIRST, 1);
        vm::arm(SECOND, 1);
        watcher.masked(|| fault(&faults));
        fault(&faults);
        watcher.check();
    });
    explore(Config::exhaustive(), || {
        let faults = Rc::new(Cell::new(0));
        install_fault(&faults);
        let watcher = Watcher::default();
        watcher.install(|| {
            Soft::raise();
            Soft::lower();
        });
        vm::arm(FIRST, 1);
        vm::arm(FAULT, 1);
        watcher.masked(|| {});
        watcher.masked(|| {});
        watcher.check();
    });
}

/// What a thread masks that is made under a mask of `M`, while a signal may be put aside at any
/// step.
fn inherited<M: Mask>() {
    let watcher = Watcher::default();
    watcher.install(|| {});
    let own = OTHER.bit();
    vm::mask(own);
    vm::arm(FIRST, 1);
    M::raise();
    let masked = Rc::new(Cell::new(u32::MAX));
    let seen = SendCell(Rc::clone(&masked));
    let work = without_masks(move || seen.set(vm::mask(own)));
    let thread = thread::spawn(work);
    M::lower();
    thread.join().unwrap();
    assert_eq!(masked.get(), own, "a new thread masks what it should not");
    assert_eq!(vm::mask(0), own);
}

/// All threads of the machine are one thread of the system.
struct SendCell(Rc<Cell<u32>>);

// SAFETY: as above.
unsafe impl Send for SendCell {}

impl SendCell {
    fn set(&self, value: u32) {
        self.0.set(value);
    }
}

#[test]
fn a_thread_that_is_made_under_a_mask_inherits_nothing_of_it() {
    explore(Config::exhaustive(), inherited::<Soft>);
    explore(Config::exhaustive(), inherited::<Hard<BOTH>>);
}

const BOTH: u64 = signal::of(&[10, 12]);
const ONE: u64 = signal::of(&[10]);

/// Hard masks of two kinds, which end in the order in which they began, while handlers come that
/// use them too.
#[test]
fn hard_masks_overlap() {
    explore(Config::exhaustive(), || {
        let watcher = Watcher::default();
        for signal in [FIRST, SECOND, OTHER] {
            let watcher = watcher.clone();
            let in_class = signal != OTHER;
            vm::install(signal, 0, move || {
                assert!(!in_class || !watcher.0.is_masked.get(), "a handler runs while the mask is up");
                Hard::<BOTH>::raise();
                Hard::<BOTH>::lower();
            });
            vm::arm(signal, 1);
        }
        Hard::<ONE>::raise();
        Hard::<BOTH>::raise();
        watcher.0.is_masked.set(true);
        Hard::<ONE>::lower();
        interruption_point();
        watcher.0.is_masked.set(false);
        Hard::<BOTH>::lower();
        assert_eq!(vm::mask(0), 0);
    });
}

#[test]
fn a_hard_mask_leaves_blocked_what_was() {
    explore(Config::exhaustive(), || {
        vm::mask(SECOND.bit());
        Hard::<BOTH>::raise();
        Hard::<BOTH>::raise();
        Hard::<BOTH>::lower();
        let blocked = vm::mask(u32::MAX);
        assert_eq!(blocked, FIRST.bit() | SECOND.bit());
        vm::mask(blocked);
        Hard::<BOTH>::lower();
        assert_eq!(vm::mask(0), SECOND.bit());
    });
}
