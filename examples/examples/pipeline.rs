//! Three readers, two workers and a writer, connected by bounded queues. So no thread runs far
//! ahead of the others.

use std::thread;
use ulocks_examples::BoundedQueue;

const READERS: u64 = 3;
const WORKERS: usize = 2;
const NUMBERS_EACH: u64 = 10_000;

fn main() {
    let numbers = BoundedQueue::new(16);
    let squares = BoundedQueue::new(16);

    let (mut count, mut sum) = (0_u64, 0_u64);
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::scope(|readers| {
                for reader in 0..READERS {
                    let numbers = &numbers;
                    readers.spawn(move || {
                        for n in (reader..).step_by(READERS as usize).take(NUMBERS_EACH as usize) {
                            numbers.push(n).expect("closed only after the readers are done");
                        }
                    });
                }
            });
            numbers.close();
        });
        scope.spawn(|| {
            thread::scope(|workers| {
                for _ in 0..WORKERS {
                    workers.spawn(|| {
                        while let Some(n) = numbers.pop() {
                            squares.push(n * n).expect("closed only after the workers are done");
                        }
                    });
                }
            });
            squares.close();
        });
        while let Some(square) = squares.pop() {
            count += 1;
            sum += square;
        }
    });

    let expected: u64 = (0..READERS * NUMBERS_EACH).map(|n| n * n).sum();
    assert_eq!((count, sum), (READERS * NUMBERS_EACH, expected));
    println!("{count} squares, sum {sum}: as expected");
}
