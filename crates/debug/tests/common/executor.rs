//! An executor of a few lines.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

pub type Task<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Polls a task once. Whether it is done.
pub fn step(task: &mut Task<'_>) -> bool {
    task.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

/// Polls the tasks in turn until all are done.
pub fn run(mut tasks: Vec<Task<'_>>) {
    while !tasks.is_empty() {
        tasks.retain_mut(|task| !step(task));
    }
}

/// Lets the other tasks run.
pub async fn turn() {
    let mut is_first = true;
    poll_fn(|_| if std::mem::take(&mut is_first) { Poll::Pending } else { Poll::Ready(()) }).await;
}

/// A task that goes from thread to thread although it may hold a guard.
pub struct Travels<'a>(pub Task<'a>);

// SAFETY: the tests say with each of them why it may travel.
unsafe impl Send for Travels<'_> {}

impl Travels<'_> {
    pub fn step(&mut self) -> bool {
        step(&mut self.0)
    }
}
