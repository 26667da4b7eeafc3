//! What the executions of one exploration came to, all together. Not part of the model.

use std::cell::RefCell;
use std::fmt::Debug;
use std::rc::Rc;

/// The different outcomes so far.
#[derive(Clone)]
pub struct Outcomes<T>(Rc<RefCell<Vec<T>>>);

impl<T: PartialEq + Debug> Outcomes<T> {
    pub fn new() -> Self {
        Self(Rc::default())
    }

    pub fn add(&self, outcome: T) {
        let mut outcomes = self.0.borrow_mut();
        if !outcomes.contains(&outcome) {
            outcomes.push(outcome);
        }
    }

    /// All of `expected` came about, and nothing else.
    #[track_caller]
    pub fn are<const N: usize>(&self, expected: [T; N]) {
        let outcomes = self.0.borrow();
        assert!(
            expected.iter().all(|outcome| outcomes.contains(outcome)),
            "{outcomes:?} lacks some of {expected:?}"
        );
        assert_eq!(outcomes.len(), N, "{outcomes:?} has more than {expected:?}");
    }
}
