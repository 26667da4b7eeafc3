//! Threads with a name.

use super::{JoinHandle, spawn};
use std::io;

/// As `std::thread::Builder`. The name is for the program; all stacks have one size.
#[derive(Debug, Default)]
pub struct Builder {
    name: Option<String>,
}

impl Builder {
    /// A thread without a name.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives it a name.
    #[must_use]
    pub fn name(mut self, name: String) -> Self {
        self.name = Some(name);
        self
    }

    /// Does nothing: all stacks have one size.
    #[must_use]
    pub fn stack_size(self, _bytes: usize) -> Self {
        self
    }

    /// The name.
    #[must_use]
    pub fn name_of(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Starts the thread.
    ///
    /// # Errors
    /// None: the type is std's.
    #[track_caller]
    pub fn spawn<T: Send + 'static>(
        self,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<JoinHandle<T>> {
        let handle = spawn(body);
        if let Some(name) = self.name {
            let thread = handle.thread();
            crate::explore::note(move || format!("thread {thread} is called {name:?}"));
        }
        Ok(handle)
    }
}
