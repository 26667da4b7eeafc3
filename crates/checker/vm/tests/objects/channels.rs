//! Channels: the order of messages, what they order, and their ends.

use crate::{Plain, all_outcomes};
use std::time::Duration;
use ulocks_vm::explore::{Config, explore, finds_bug_saying};
use ulocks_vm::sync::mpsc::{RecvTimeoutError, TryRecvError, TrySendError, channel, sync_channel};
use ulocks_vm::sync::{Arc, AtomicU32, Condvar, Mutex, Ordering::Relaxed};
use ulocks_vm::thread;

#[test]
fn messages_come_in_order_and_order() {
    let model = || {
        let data = Arc::new(Plain::default());
        let (sender, receiver) = channel();
        let send = |number: u32| {
            let (sender, data) = (sender.clone(), Arc::clone(&data));
            thread::spawn(move || {
                if number == 1 {
                    data.add(1);
                }
                sender.send(number).unwrap();
                sender.send(10 * number).unwrap();
            })
        };
        let senders = [send(1), send(2)];
        drop(sender);
        let mut got = Vec::new();
        while let Ok(number) = receiver.recv() {
            if number == 1 {
                assert_eq!(data.get(), 1);
            }
            got.push(number);
        }
        for sender in senders {
            sender.join().unwrap();
        }
        got
    };
    let merged =
        [[1, 2, 10, 20], [1, 2, 20, 10], [1, 10, 2, 20], [2, 1, 10, 20], [2, 1, 20, 10], [2, 20, 1, 10]];
    all_outcomes(model, merged.map(Vec::from));
}

#[test]
fn a_channel_without_its_other_half_says_so() {
    explore(Config::exhaustive(), || {
        let (sender, receiver) = channel::<u32>();
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
        drop(sender);
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
        assert!(receiver.recv().is_err());
        let (sender, receiver) = channel();
        drop(receiver);
        assert!(sender.send(1).is_err());
    });
}

#[test]
fn a_full_channel_makes_its_sender_wait() {
    let model = || {
        let (sender, receiver) = sync_channel(1);
        let other = thread::spawn(move || {
            sender.send(1).unwrap();
            let second = match sender.try_send(2) {
                Ok(()) => true,
                Err(TrySendError::Full(_)) => false,
                Err(TrySendError::Disconnected(_)) => panic!("the receiver is there"),
            };
            sender.send(3).unwrap();
            second
        });
        let got: Vec<_> = receiver.iter().collect();
        (other.join().unwrap(), got)
    };
    all_outcomes(model, [(false, vec![1, 3]), (true, vec![1, 2, 3])]);
}

#[test]
fn a_channel_without_room_hands_over() {
    explore(Config::exhaustive(), || {
        let data = Arc::new(Plain::default());
        let (sender, receiver) = sync_channel(0);
        let other = {
            let data = Arc::clone(&data);
            thread::spawn(move || {
                data.add(1);
                receiver.recv().unwrap()
            })
        };
        sender.send(7).unwrap();
        // The receiver has come to its receive, and what it did before is known.
        assert_eq!(data.get(), 1);
        assert_eq!(other.join().unwrap(), 7);
    });
}

/// As std: the message comes back to its sender.
#[test]
fn a_message_that_waits_for_a_receiver_comes_back_when_that_goes() {
    let model = |receives: bool| {
        move || {
            let (sender, receiver) = sync_channel(0);
            let send = |number| {
                let sender = sender.clone();
                thread::spawn(move || sender.send(Arc::new(number)).map_err(|error| *error.0))
            };
            let senders = [send(1), send(2)];
            let got = receives.then(|| *receiver.recv().unwrap());
            drop(receiver);
            (got, senders.map(|sender| sender.join().unwrap()))
        }
    };
    all_outcomes(model(false), [(None, [Err(1), Err(2)])]);
    all_outcomes(model(true), [(Some(1), [Ok(()), Err(2)]), (Some(2), [Err(1), Ok(())])]);
}

#[test]
fn a_timed_receive_times_out_or_receives() {
    let model = || {
        let (sender, receiver) = channel();
        let other = thread::spawn(move || {
            let _ = sender.send(1);
            sender
        });
        let got = receiver.recv_timeout(Duration::from_millis(1));
        drop(other.join());
        assert!(got.is_ok() || got == Err(RecvTimeoutError::Timeout));
        got.ok()
    };
    all_outcomes(model, [None, Some(1)]);
}

/// A sender may be dropped at any time, also one that goes first most of the time.
#[test]
fn the_last_sender_may_be_any_of_them() {
    let model = || {
        let word = Arc::new(AtomicU32::new(0));
        let (sender, receiver) = channel::<u32>();
        let (first, second) = (sender.clone(), sender);
        let first = thread::spawn(move || drop(first));
        let other = Arc::clone(&word);
        let second = thread::spawn(move || {
            drop(second);
            other.store(1, Relaxed);
        });
        let seen = (word.load(Relaxed), receiver.try_recv() == Err(TryRecvError::Disconnected));
        first.join().unwrap();
        second.join().unwrap();
        seen
    };
    all_outcomes(model, [(0, false), (0, true), (1, false), (1, true)]);
}

#[test]
fn the_longest_time_outs_never_pass() {
    explore(Config::exhaustive(), || {
        let (sender, receiver) = channel();
        let other = thread::spawn(move || {
            thread::park_timeout(Duration::MAX);
            sender.send(1).unwrap();
        });
        thread::unpark(other.thread());
        assert_eq!(receiver.recv_timeout(Duration::MAX), Ok(1));
        other.join().unwrap();
    });
}

#[test]
fn timed_waits_that_nobody_ends_are_told_at_their_lines() {
    const SOON: Duration = Duration::from_millis(1);
    let models: [fn(); 3] = [
        || thread::park_timeout(SOON),
        || {
            let (_sender, receiver) = channel::<u32>();
            assert!(receiver.recv_timeout(SOON).is_ok());
        },
        || {
            let (lock, changed) = (Mutex::new(()), Condvar::new());
            drop(changed.wait_timeout(lock.lock().unwrap(), SOON));
        },
    ];
    for model in models {
        let config = Config { timeouts: false, ..Config::exhaustive() };
        let verdict = finds_bug_saying("deadlock", config, model).verdict.to_string();
        assert!(verdict.contains("objects/channels.rs:"), "{verdict}");
    }
}

#[test]
fn a_receive_that_nobody_sends_for_is_a_deadlock() {
    finds_bug_saying("deadlock", Config::exhaustive(), || {
        let (sender, receiver) = channel::<u32>();
        let _ = receiver.recv();
        drop(sender);
    });
}
