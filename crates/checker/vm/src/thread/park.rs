//! Parking: a token for each thread.

use crate::side::Side;
use crate::sync::Token;
use core::panic::Location;
use core::sync::atomic::Ordering::{Acquire, Release};
use core::time::Duration;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

thread_local! {
    /// The tokens of this run, by thread.
    static TOKENS: RefCell<HashMap<usize, Rc<Token>>> = RefCell::default();
}

/// The run is over.
pub(crate) fn forget_tokens() {
    TOKENS.take();
}

/// The token of a thread.
fn token_of(thread: usize) -> Rc<Token> {
    if let Some(token) = TOKENS.with_borrow(|tokens| tokens.get(&thread).cloned()) {
        return token;
    }
    // Its memory is no model's.
    let _side = Side::of_machine();
    let token = Rc::new(Token::new());
    // An engine may let another thread run while a token is made.
    TOKENS.with_borrow_mut(|tokens| Rc::clone(tokens.entry(thread).or_insert(token)))
}

/// Waits for the token of the calling thread, and takes it. It never returns without.
#[track_caller]
pub fn park() {
    token_of(super::running()).take("park", Acquire, Location::caller());
}

/// As [`park`], for `timeout` at most. Where
/// [`Config::timeouts`](crate::explore::Config::timeouts) is off, no timeout passes.
#[track_caller]
pub fn park_timeout(timeout: Duration) {
    token_of(super::running()).take_for("park", Acquire, timeout);
}

/// Gives the token to the thread of this number. What the caller did before is known to the thread
/// that takes it.
#[track_caller]
pub fn unpark(thread: usize) {
    token_of(thread).give("unpark", Release, Location::caller());
}
