//! The explorer as an engine that has what only Linux has.

use super::pi::{Outcome, Place};
use super::signals::Demand;
use crate::choice::Footprint;
use crate::engine::At;
use crate::engine::linux::Linux;
use crate::explore::explorer::Explorer;
use crate::explore::words::number;
use crate::futex::Waited;
use crate::pi::{Call, Refusal};
use crate::signal::Request;
use core::ops::Range;

impl Linux for Explorer<'_, '_> {
    fn pi(&self, call: Call, at: At) -> Result<u32, Refusal> {
        if self.is_inert() {
            return Ok(1);
        }
        let mut words = Vec::new();
        let call = call.map(|futex| {
            let place = Place { key: self.key(futex.key), loc: self.loc(futex.word, at) };
            words.push(number(place.loc));
            place
        });
        loop {
            self.step(Footprint::futex(&words), at);
            let outcome = self.machine.borrow_mut().pi(call, at);
            match outcome.unwrap_or_else(|fault| self.fail(&fault, at)) {
                Outcome::Returns(answer) => return answer,
                Outcome::Sleeps => match (self.sleep(&words, at).0, call) {
                    (Waited::Woken, _) => {
                        let seen = self.machine.borrow_mut().return_as_owner(call, at);
                        seen.unwrap_or_else(|fault| self.fail(&fault, at));
                        return Ok(1);
                    }
                    (Waited::TimedOut, _) => return Err(Refusal::TimedOut),
                    // The wait for a lock is begun again.
                    (_, Call::Lock { .. }) => {}
                    _ => return Ok(0),
                },
            }
        }
    }

    fn spawn_process(&self, body: Box<dyn FnOnce()>, at: At) -> usize {
        self.start(body, true, at)
    }

    fn current_process(&self) -> usize {
        let machine = self.machine.borrow();
        machine.process_of(machine.current)
    }

    fn signals(&self, request: Request, at: At) -> u64 {
        if self.is_inert() {
            return 0;
        }
        self.step(
            match request {
                Request::Send { .. } | Request::Install { .. } => Footprint::Everything,
                Request::Arm { .. } | Request::Mask { .. } | Request::MaskOnReturn { .. } => Footprint::Local,
            },
            at,
        );
        let (answer, demand) = self.machine.borrow_mut().signals(request, at);
        if demand == Demand::Pending {
            self.deliver_signals(demand);
        }
        answer
    }

    fn map(&self, addresses: Range<usize>, region: usize) {
        self.machine.borrow_mut().map(addresses, region);
    }

    fn set_robust_list(&self, head: usize) {
        self.machine.borrow_mut().set_robust_list(head);
    }
}
