//! Signals of an execution: which thread handles what, what is pending where, and when a handler
//! runs.

use crate::choice::Kind;
use crate::engine::At;
use crate::explore::explorer::Explorer;
use crate::explore::machine::{Machine, Status};
use crate::explore::rounds::Round;
use crate::explore::story::Said;
use crate::side::Side;
use crate::signal::{Request, Signal};
use std::rc::Rc;

/// What one thread has of signals. Bit `n` stands for signal `n`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Signals {
    masked: u32,
    pending: u32,
    /// Of a thread that runs a handler: what the code masks that it has interrupted.
    interrupted: Option<u32>,
    /// Arrivals still to come, by signal: the run chooses when.
    armed: [u8; 32],
}

impl Signals {
    /// Of a new thread, which masks what it has inherited.
    pub(super) fn masking(masked: u32) -> Self {
        Self { masked, ..Self::default() }
    }

    pub(super) fn masked(&self) -> u32 {
        self.masked
    }

    fn armed(&self) -> u32 {
        (0..32).filter(|&signal| self.armed[signal] > 0).fold(0, |bits, signal| bits | 1 << signal)
    }
}

/// A handler of a process.
pub(super) struct Installed {
    process: usize,
    signal: Signal,
    /// Further signals that are masked while it runs.
    mask: u32,
    handler: Rc<dyn Fn()>,
}

/// A handler that runs now.
struct Delivery {
    handler: Rc<dyn Fn()>,
    /// What is to be restored when it returns: what the code masks that was interrupted by what it
    /// interrupts.
    outer: Option<u32>,
}

/// Which signals have to be delivered where some may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Demand {
    /// None.
    Nothing,
    /// One: the thread was woken for it.
    One,
    /// All that are pending and not masked, and nothing else: a system call returns.
    Pending,
}

impl Explorer<'_, '_> {
    /// Runs the handlers of the signals that strike the thread, which was just chosen. Whether one
    /// ran.
    pub(in crate::explore) fn run_handlers(&self) -> bool {
        let held_up = self.machine.borrow().goes_for_a_signal();
        self.deliver_signals(if held_up { Demand::One } else { Demand::Nothing })
    }

    /// Runs the handler of the signal that has ended the sleep of the thread.
    pub(in crate::explore) fn run_one_handler(&self) {
        self.deliver_signals(Demand::One);
    }

    /// Runs the handlers of signals that arrive now, at least those that are demanded. Whether one
    /// ran.
    pub(super) fn deliver_signals(&self, mut demand: Demand) -> bool {
        let mut any = false;
        loop {
            let delivery = self.machine.borrow_mut().next_signal(demand);
            let Some(delivery) = delivery else { return any };
            let round = self.machine.borrow_mut().set_round(Round::default());
            self.machine.borrow_mut().moves_on();
            let side = Side::of_model();
            (delivery.handler)();
            drop(side);
            let mut machine = self.machine.borrow_mut();
            machine.moves_on();
            machine.set_round(round);
            machine.return_from_handler(delivery.outer);
            any = true;
            if demand == Demand::One {
                demand = Demand::Nothing;
            }
        }
    }
}

impl Machine<'_, '_> {
    /// Whether a signal could be handled by a thread.
    pub(super) fn handles_signals(&self, thread: usize) -> bool {
        let process = self.threads[thread].linux.process;
        self.linux.handlers.iter().any(|installed| installed.process == process)
    }

    /// Those of `arrived` that a thread handles now.
    fn handled(&self, thread: usize, arrived: u32) -> u32 {
        let of = &self.threads[thread].linux;
        let arrived = arrived & !of.signals.masked;
        if arrived == 0 {
            return 0;
        }
        let handled = self.linux.handlers.iter().filter(|installed| installed.process == of.process);
        arrived & handled.fold(0, |bits, installed| bits | installed.signal.bit())
    }

    /// What may be delivered to a thread now.
    fn due(&self, thread: usize) -> u32 {
        if !self.linux.has_handlers() {
            return 0;
        }
        let signals = &self.threads[thread].linux.signals;
        self.handled(thread, signals.pending | signals.armed())
    }

    /// Whether a thread may be interrupted now.
    pub(in crate::explore) fn signal_is_due(&self, thread: usize) -> bool {
        self.due(thread) != 0
    }

    /// Whether a thread will be interrupted: the signal has been sent.
    pub(in crate::explore) fn signal_is_pending(&self, thread: usize) -> bool {
        self.handled(thread, self.threads[thread].linux.signals.pending) != 0
    }

    /// Whether the current thread was chosen although what it waits for has not come.
    fn goes_for_a_signal(&self) -> bool {
        let me = self.current();
        self.threads[me].status != Status::Ready && self.signal_is_due(me) && !self.can_go_by_itself(me)
    }

    /// Chooses whether a signal strikes the current thread now, and which.
    fn next_signal(&mut self, demand: Demand) -> Option<Delivery> {
        let me = self.current();
        let due = match demand {
            Demand::Pending => self.handled(me, self.threads[me].linux.signals.pending),
            Demand::Nothing | Demand::One => self.due(me),
        };
        if due == 0 {
            return None;
        }
        let count = due.count_ones() as usize;
        let chosen = match demand {
            Demand::One | Demand::Pending => self.pick(Kind::Interrupt, count),
            Demand::Nothing => self.pick(Kind::Interrupt, count + 1).checked_sub(1)?,
        };
        let number = (0..32_u8).filter(|number| due & 1 << number != 0).nth(chosen)?;
        let process = self.threads[me].linux.process;
        let installed = self
            .linux
            .handlers
            .iter()
            .find(|installed| installed.process == process && installed.signal.bit() == 1 << number)?;
        let (handler, mask) = (Rc::clone(&installed.handler), installed.mask);
        let signals = &mut self.threads[me].linux.signals;
        if signals.pending & 1 << number != 0 {
            signals.pending &= !(1 << number);
        } else {
            signals.armed[usize::from(number)] -= 1;
        }
        let outer = signals.interrupted.replace(signals.masked);
        signals.masked |= mask | 1 << number;
        if let Some(at) = self.threads[me].at {
            self.tell(at, || Said::Text(format!("is interrupted: the handler of signal {number} begins")));
        }
        Some(Delivery { handler, outer })
    }

    fn return_from_handler(&mut self, outer: Option<u32>) {
        let me = self.current();
        let signals = &mut self.threads[me].linux.signals;
        let restored = core::mem::replace(&mut signals.interrupted, outer);
        signals.masked = restored.expect("a handler has interrupted something");
        if let Some(at) = self.threads[me].at {
            self.tell(at, || Said::Text("returns from the handler".into()));
        }
    }

    /// Carries out a request of the current thread. The answer, and what has to be delivered before
    /// it returns.
    pub(super) fn signals(&mut self, request: Request, at: At) -> (u64, Demand) {
        let me = self.current();
        match request {
            Request::Install { signal, mask, handler } => {
                let process = self.threads[me].linux.process;
                self.linux.handlers.retain(|old| old.process != process || old.signal != signal);
                self.linux.handlers.push(Installed { process, signal, mask, handler });
                (0, Demand::Pending)
            }
            Request::Send { thread, signal } => {
                assert!(thread < self.threads.len(), "signal sent to thread {thread}, which does not exist");
                self.threads[thread].linux.signals.pending |= signal.bit();
                self.tell(at, || Said::Text(format!("sends signal {} to thread {thread}", signal.number())));
                (0, if thread == me { Demand::Pending } else { Demand::Nothing })
            }
            Request::Arm { signal, times } => {
                self.threads[me].linux.signals.armed[usize::from(signal.number())] = times;
                (0, Demand::Nothing)
            }
            Request::Mask { masked } => {
                let before = core::mem::replace(&mut self.threads[me].linux.signals.masked, masked);
                self.tell(at, || Said::Text(format!("masks signals {masked:#b}")));
                (before.into(), Demand::Pending)
            }
            Request::MaskOnReturn { more } => {
                let interrupted = self.threads[me].linux.signals.interrupted.as_mut();
                let masked =
                    interrupted.expect("a mask on return is for a handler: none runs on this thread");
                let before = core::mem::replace(masked, *masked | more);
                self.tell(at, || Said::Text(format!("will have signals {more:#b} masked, too, on return")));
                (before.into(), Demand::Nothing)
            }
        }
    }
}
