//! What the executions of one exploration came to, all together. Not part of the model.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

/// The different outcomes so far.
#[derive(Clone)]
pub struct Outcomes<T>(Arc<Mutex<Vec<T>>>);

impl<T: PartialEq + Debug> Outcomes<T> {
    pub fn new() -> Self {
        Self(Arc::default())
    }

    pub fn add(&self, outcome: T) {
        let mut outcomes = self.0.lock().unwrap();
        if !outcomes.contains(&outcome) {
            outcomes.push(outcome);
        }
    }

    /// All of `expected` came about, and nothing else.
    #[track_caller]
    pub fn are<const N: usize>(&self, expected: [T; N]) {
        let outcomes = self.0.lock().unwrap();
        assert!(
            expected.iter().all(|outcome| outcomes.contains(outcome)),
            "{outcomes:?} lacks some of {expected:?}"
        );
        assert_eq!(outcomes.len(), N, "{outcomes:?} has more than {expected:?}");
    }
}
