//! What is told of a check.

use super::search::{Found, search};
use super::{History, Operation, Specification};
use core::fmt::{self, Debug, Write};

/// An order that explains a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    sequence: Vec<usize>,
    configurations: usize,
}

impl Order {
    /// The operations, by their numbers. Those that are missing never returned, and took no effect.
    #[must_use]
    pub fn sequence(&self) -> &[usize] {
        &self.sequence
    }

    /// How many configurations (a set of operations that were, and the state after them) the search
    /// went through.
    #[must_use]
    pub fn configurations(&self) -> usize {
        self.configurations
    }
}

/// No order explains the history. To display it is to show the history as a table, a column for
/// each thread, and the return up to which it can be explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotLinearizable {
    event: usize,
    operation: usize,
    configurations: usize,
    text: String,
}

impl NotLinearizable {
    /// The number of the return with which the history ceases to be linearizable: what happened
    /// before it can be explained, it cannot.
    #[must_use]
    pub fn event(&self) -> usize {
        self.event
    }

    /// The number of the operation whose return that is.
    #[must_use]
    pub fn operation(&self) -> usize {
        self.operation
    }

    /// How many configurations the search went through to find that there is no order.
    #[must_use]
    pub fn configurations(&self) -> usize {
        self.configurations
    }
}

impl fmt::Display for NotLinearizable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl core::error::Error for NotLinearizable {}

pub(super) fn check<S: Specification>(
    specification: &S,
    history: &History<S::Call, S::Return>,
) -> Result<Order, NotLinearizable> {
    let operations = history.operations();
    let stuck = match search(specification, operations, history.events()) {
        Ok(Found { sequence, configurations, .. }) => return Ok(Order { sequence, configurations }),
        Err(stuck) => stuck,
    };
    // Everything before the return it is stuck at can be explained. But the search held the returns
    // after it against those operations that are still open there; without them it may get further.
    let mut event = stuck.event;
    while search(specification, operations, event + 1).is_ok() {
        event = next_return(operations, event).expect("the whole history has no explanation");
    }
    let operation = operations
        .iter()
        .position(|operation| operation.returned.as_ref().is_some_and(|(number, _)| *number == event))
        .expect("the search gets stuck at returns only");
    let text = tell(specification, history, event, operation);
    Err(NotLinearizable { event, operation, configurations: stuck.configurations, text })
}

fn next_return<C, R>(operations: &[Operation<C, R>], after: usize) -> Option<usize> {
    let returns = operations.iter().filter_map(|operation| operation.returned.as_ref());
    returns.map(|(number, _)| *number).filter(|number| *number > after).min()
}

/// The text of a failure. `event`, the return of `operation`, is the first that has no explanation.
fn tell<S: Specification>(
    specification: &S,
    history: &History<S::Call, S::Return>,
    event: usize,
    operation: usize,
) -> String {
    let operations = history.operations();
    let show = |number: usize| -> String {
        let Operation { thread, call, returned, .. } = &operations[number];
        match returned {
            Some((number, value)) if *number < event => format!("thread {thread} {call:?} = {value:?}"),
            _ => format!("thread {thread} {call:?} (open)"),
        }
    };
    let bad = &operations[operation];
    let mut text = String::new();
    let _ = writeln!(
        text,
        "not linearizable: no order explains that {:?} of thread {} returned {:?} (event {event})",
        bad.call,
        bad.thread,
        bad.returned.as_ref().map(|(_, value)| value).expect("it is a return that has no explanation"),
    );
    table(&mut text, history, event);
    if let Ok(Found { sequence, state, .. }) = search(specification, operations, event) {
        let sequence: Vec<_> = sequence.into_iter().map(show).collect();
        let order = if sequence.is_empty() { "no operation at all".to_owned() } else { sequence.join(", ") };
        let _ = write!(text, "before event {event}, one explanation is: {order}; state then {state:?}");
    }
    text
}

/// Events down, threads across. An open operation is a bar.
fn table<C: Debug, R: Debug>(text: &mut String, history: &History<C, R>, bad: usize) {
    let operations = history.operations();
    let mut threads: Vec<usize> = operations.iter().map(|operation| operation.thread).collect();
    threads.sort_unstable();
    threads.dedup();
    let column = |thread| threads.binary_search(&thread).expect("each thread has a column");

    // (column, what stands there, operations open there afterwards: one more or one less)
    let mut cells = vec![None; history.events()];
    for operation in operations {
        let column = column(operation.thread);
        let fate = if operation.returned.is_some() { "" } else { " (never returns)" };
        cells[operation.called] = Some((column, format!("{:?}{fate}", operation.call), true));
        if let Some((number, value)) = &operation.returned {
            cells[*number] = Some((column, format!("{:?} = {value:?}", operation.call), false));
        }
    }
    let mut widths: Vec<usize> = threads.iter().map(|thread| format!("thread {thread}").len()).collect();
    for (column, cell, _) in cells.iter().flatten() {
        widths[*column] = widths[*column].max(cell.chars().count());
    }

    let mut line = "event".to_owned();
    for (thread, &width) in threads.iter().zip(&widths) {
        let _ = write!(line, "  {:<width$}", format!("thread {thread}"));
    }
    let _ = writeln!(text, "{}", line.trim_end());
    let mut open = vec![0_usize; threads.len()];
    for (number, cell) in cells.into_iter().enumerate() {
        let Some((here, cell, begins)) = cell else { continue };
        let mut line = format!("{number:>5}");
        for (column, &width) in widths.iter().enumerate() {
            let content = match open[column] {
                _ if column == here => cell.as_str(),
                0 => "",
                _ => "|",
            };
            let _ = write!(line, "  {content:<width$}");
        }
        if begins {
            open[here] += 1;
        } else {
            open[here] -= 1;
        }
        let mark = if number == bad { "  <- cannot be explained" } else { "" };
        let _ = writeln!(text, "{}{mark}", line.trim_end());
    }
}
