//! Masks and handlers under loom: a signal strikes at each of a thread's points of interruption in
//! turn, and a second one at each after that. There is one thread; where the handlers of several
//! signals overlap is for the virtual machine.
#![cfg(world = "loom")]

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use ulocks_core::model::{Config, explore, interrupt_at};
use ulocks_core::signal::{Hard, Mask, Soft, dispatch};
use ulocks_core::sync::interruption_point;

/// More than a thread passes here.
const POINTS: usize = 12;

#[derive(Default)]
struct Watched {
    is_masked: Cell<bool>,
    handling: Cell<bool>,
    handled: RefCell<Vec<i32>>,
    was_deferred: Cell<bool>,
}

/// What the wrapper of `signal` does.
fn strike(signal: i32, watched: &Rc<Watched>) {
    let watched = Rc::clone(watched);
    dispatch(signal, move |context| {
        assert!(!watched.is_masked.get(), "a handler runs while the mask is up");
        assert!(!watched.handling.replace(true), "a handler interrupts a handler");
        watched.was_deferred.set(context.is_deferred());
        watched.handled.borrow_mut().push(context.signal());
        interruption_point();
        watched.handling.set(false);
    });
}

/// Two signals come, the second one `later` points after the first one has been dispatched, to a
/// thread that raises and lowers two masks.
fn scenario(points: usize, later: usize) {
    let watched = Rc::new(Watched::default());
    let first = Rc::clone(&watched);
    interrupt_at(points, move || {
        strike(10, &first);
        interrupt_at(later, move || strike(12, &first));
    });
    Soft::raise();
    watched.is_masked.set(true);
    Soft::raise();
    Soft::lower();
    interruption_point();
    watched.is_masked.set(false);
    Soft::lower();
    if !watched.handled.borrow().is_empty() {
        Soft::raise();
        Soft::lower();
    }
    (0..2 * POINTS).for_each(|_| interruption_point());
    assert_eq!(
        *watched.handled.borrow(),
        [10, 12],
        "not each signal was handled once, in the order of arrival"
    );
}

fn all() {
    for points in 0..POINTS {
        (0..POINTS).for_each(|later| scenario(points, later));
    }
}

#[test]
fn a_handler_runs_once_and_never_while_a_mask_is_up() {
    explore(Config::default(), all);
}

#[test]
fn a_hard_mask_holds_a_handler_back() {
    explore(Config::default(), || {
        let handled = Rc::new(Cell::new(false));
        let handler = Rc::clone(&handled);
        <Hard>::raise();
        <Hard>::raise();
        interrupt_at(0, move || dispatch(10, move |_| handler.set(true)));
        interruption_point();
        <Hard>::lower();
        interruption_point();
        assert!(!handled.get());
        <Hard>::lower();
        assert!(handled.get());
    });
}
