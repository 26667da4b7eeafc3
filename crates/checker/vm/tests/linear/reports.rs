//! What is told of a history that is not linearizable, and how histories are written.

use crate::{Call, Return, history};
use ulocks_vm::linear::specs::{MutexCall, Queue, QueueCall, Register, RegisterCall};
use ulocks_vm::linear::{History, Recorder};

#[test]
fn the_report_shows_the_history_and_where_it_breaks() {
    use QueueCall::{Pop, Push};
    let error = history([
        Call(0, Push('x')),
        Return(0, None),
        Call(3, Push('y')),
        Call(1, Pop),
        Return(1, Some('x')),
        Call(1, Pop),
        Return(1, Some('x')),
        Return(3, None),
        Call(0, Pop),
    ])
    .check(&Queue::new())
    .expect_err("x was pushed once and popped twice");
    let expected = "\
not linearizable: no order explains that Pop of thread 1 returned Some('x') (event 6)
event  thread 0             thread 1         thread 3
    0  Push('x')
    1  Push('x') = None
    2                                        Push('y')
    3                       Pop              |
    4                       Pop = Some('x')  |
    5                       Pop              |
    6                       Pop = Some('x')  |  <- cannot be explained
    7                                        Push('y') = None
    8  Pop (never returns)
before event 6, one explanation is: thread 0 Push('x') = None, \
thread 3 Push('y') (open), thread 1 Pop = Some('x'); state then ['y']";
    assert_eq!(error.to_string(), expected);
    assert_eq!((error.event(), error.operation()), (6, 3));
}

#[test]
fn an_explanation_may_need_operations_that_are_open() {
    use RegisterCall::{Read, Write};
    let error =
        history([Call(0, Write(7)), Call(1, Read), Return(1, Some(7)), Call(1, Read), Return(1, Some(0))])
            .check(&Register(0))
            .expect_err("the write was seen");
    let text = error.to_string();
    let last = text.lines().last().expect("there is a last line");
    assert_eq!(
        last,
        "before event 4, one explanation is: thread 0 Write(7) (open), thread 1 Read = Some(7); state then 7"
    );
}

#[test]
fn a_prefix_is_not_held_to_what_comes_after_it() {
    use QueueCall::{Pop, Push};
    // With what the first pop returned in the end it has no place at all. But when the second one
    // finds the queue empty, the first is still open and may have taken the value.
    let error = history([
        Call(0, Pop),
        Call(1, Push('x')),
        Return(1, None),
        Call(1, Pop),
        Return(1, None),
        Return(0, Some('q')),
    ])
    .check(&Queue::new())
    .expect_err("nobody pushed q");
    assert_eq!(error.event(), 5);
}

#[test]
#[should_panic(expected = "operation 0 returns a second time")]
fn an_operation_returns_once() {
    let mut history = History::new();
    let lock = history.call(0, MutexCall::Lock);
    history.returned(lock, true);
    history.returned(lock, true);
}

#[test]
#[should_panic(expected = "operation 3 was never called: there are 1")]
fn an_operation_that_returns_was_called() {
    let mut history = History::new();
    history.call(0, MutexCall::Lock);
    history.returned(3, true);
}

#[test]
fn a_recorder_serves_threads_of_the_operating_system() {
    use QueueCall::{Pop, Push};
    let recorder = Recorder::new();
    let queue = std::sync::Mutex::new(std::collections::VecDeque::new());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (recorder, queue) = (recorder.clone(), &queue);
            scope.spawn(move || {
                for round in 0..50 {
                    let value = thread * 100 + round;
                    recorder.record(Push(value), || {
                        queue.lock().unwrap().push_back(value);
                        None
                    });
                    recorder.record(Pop, || queue.lock().unwrap().pop_front());
                }
            });
        }
    });
    let _never_returns = recorder.call(Pop);
    recorder.check(&Queue::new()).unwrap_or_else(|error| panic!("{error}"));

    let history = recorder.history().clone();
    assert_eq!(history.operations().len(), 401);
    assert_eq!(history.events(), 801);
    assert!(history.operations()[400].returned.is_none());
    let threads: std::collections::HashSet<_> =
        history.operations().iter().map(|operation| operation.thread).collect();
    assert_eq!(threads.len(), 5);
}
