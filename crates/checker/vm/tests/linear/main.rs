//! The checker of histories: on histories whose verdict is known, against a checker that tries
//! every order, and where it would take for ever if it forgot where it has been.

mod brute;
mod known;
mod reports;

use ulocks_vm::linear::History;

/// What happens in a history, in the order in which it happens.
#[derive(Clone, Debug)]
enum Event<C, R> {
    /// A thread calls an operation.
    Call(usize, C),
    /// The operation the thread called last returns.
    Return(usize, R),
}
use Event::{Call, Return};

fn history<C, R>(events: impl IntoIterator<Item = Event<C, R>>) -> History<C, R> {
    let mut history = History::new();
    let mut open = Vec::new();
    for event in events {
        match event {
            Call(thread, call) => {
                let operation = history.call(thread, call);
                open.push((thread, operation));
            }
            Return(thread, value) => {
                let place =
                    open.iter().rposition(|(by, _)| *by == thread).expect("the thread called something");
                let (_, operation) = open.remove(place);
                history.returned(operation, value);
            }
        }
    }
    history
}
