//! A bounded queue with timeouts and an orderly end: a service sends events to a slow sink in
//! batches.
//!
//! Handlers of requests must not wait long for the sink, so a push gives up after a while, and the
//! event is dropped and counted. The sender collects a batch until it is full or late. On shutdown
//! the queue is closed: nothing more goes in, what is in it is sent, and all threads return.
//!
//! # Which lock, and why
//! The queue is [`ulocks_examples::BoundedQueue`], a mutex around a ring and two condition
//! variables: `src/bounded_queue.rs`, to take home. Critical sections are a few instructions, so
//! the mutex is a barging one of four bytes. The queue is model-checked as it stands, with four
//! bugs that programmers make in such code (`mutants/queue.toml`).
//!
//! # What would go wrong with another
//! With `ulocks::fair::FairMutex` each item would cost a switch to the next waiting thread. Most
//! bugs of such a queue are not in the mutex. An `if` in place of the loop around a wait loses
//! items. One condition variable for both sides wakes the wrong side. Those are two of the four
//! bugs.

use std::thread;
use std::time::{Duration, Instant};
use ulocks_examples::{BoundedQueue, PopError, PushError};

const HANDLERS: u64 = 4;
const REQUESTS: u64 = 200;
/// So long a request may wait for room in the queue.
const PATIENCE: Duration = Duration::from_micros(500);
const BATCH: usize = 16;
/// An event is sent no later than this after it came, if the sink is not busy.
const LATEST: Duration = Duration::from_millis(5);

struct Event {
    handler: u64,
    request: u64,
}

fn main() {
    let queue = BoundedQueue::new(32);
    let (dropped, (sent, batches)) = thread::scope(|scope| {
        let sender = scope.spawn(|| send_all(&queue));
        let handlers: Vec<_> = (0..HANDLERS)
            .map(|handler| {
                scope.spawn({
                    let queue = &queue;
                    move || handle(handler, queue)
                })
            })
            .collect();
        let dropped: u64 =
            handlers.into_iter().map(|handler| handler.join().expect("no thread panics")).sum();

        // Shutdown: the sender sends what is in the queue, and returns.
        queue.close();
        let refused = Event { handler: 0, request: REQUESTS };
        assert!(matches!(queue.push(refused), Err(PushError::Closed(_))));
        (dropped, sender.join().expect("no thread panics"))
    });
    assert_eq!(sent + dropped, HANDLERS * REQUESTS, "an event was lost or sent twice");
    assert!(queue.is_empty());
    println!("{} events: {sent} sent in {batches} batches, {dropped} dropped.", HANDLERS * REQUESTS);
}

/// Handles requests. Returns how many events were dropped because the queue was full for too long.
fn handle(handler: u64, queue: &BoundedQueue<Event>) -> u64 {
    let mut dropped = 0;
    for request in 0..REQUESTS {
        match queue.push_timeout(Event { handler, request }, PATIENCE) {
            Ok(()) => {}
            Err(PushError::Full(_event)) => dropped += 1,
            Err(PushError::Closed(_)) => unreachable!("closed after the handlers are done"),
        }
        if request % 20 == 19 {
            thread::sleep(LATEST); // Requests come in bursts.
        }
    }
    dropped
}

/// Sends events in batches until the queue is closed and empty. Returns how many events and batches
/// it has sent.
fn send_all(queue: &BoundedQueue<Event>) -> (u64, u64) {
    let (mut sent, mut batches) = (0, 0);
    let mut next_of = [0; HANDLERS as usize];
    while let Some(first) = queue.pop() {
        let deadline = Instant::now() + LATEST;
        let mut batch = vec![first];
        while batch.len() < BATCH {
            match queue.pop_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(event) => batch.push(event),
                Err(PopError::Empty | PopError::Closed) => break,
            }
        }
        thread::sleep(Duration::from_millis(1)); // The sink is slow.
        for Event { handler, request } in &batch {
            assert!(*request >= next_of[*handler as usize], "the events of a handler are out of order");
            next_of[*handler as usize] = request + 1;
        }
        sent += batch.len() as u64;
        batches += 1;
    }
    (sent, batches)
}
