//! C-TKT-MCS of D. Dice, V. J. Marathe, N. Shavit, "Lock Cohorting" (PPoPP 2012): an MCS lock for
//! each socket, whose holder keeps a ticket lock of all sockets while it passes the lock on within
//! its own.

use super::{Line, Mcs, Section, Ticket};
use std::cell::Cell;

/// How often the lock is passed on within a socket before the others have their turn: the constant
/// of LiTL's cohort locks (`BATCH_COUNT`).
const BATCH: u32 = 100;

pub(in super::super) struct Cohort {
    global: Ticket,
    local: Vec<Line<Local>>,
    /// Of each thread: its socket.
    sockets: Vec<usize>,
}

/// What belongs to a socket. Its holder alone uses the cells, and the line of the lock is charged
/// for them.
struct Local {
    lock: Mcs,
    /// The ticket of the global lock, while the socket has it.
    ticket: Cell<Option<u32>>,
    passed: Cell<u32>,
}

impl Section for Cohort {
    fn new(sockets: Vec<usize>) -> Self {
        let count = sockets.iter().max().map_or(0, |last| last + 1);
        let local = |_| {
            let lock = Mcs::new(sockets.clone());
            Line(Local { lock, ticket: Cell::new(None), passed: Cell::new(0) })
        };
        Self { global: Ticket::new(Vec::new()), local: (0..count).map(local).collect(), sockets }
    }

    fn enter(&self, me: usize) -> u32 {
        let local = &self.local[self.sockets[me]].0;
        let token = local.lock.enter(me);
        if local.ticket.get().is_none() {
            local.ticket.set(Some(self.global.enter(me)));
            local.passed.set(0);
        }
        token
    }

    fn leave(&self, me: usize, token: u32) {
        let local = &self.local[self.sockets[me]].0;
        let passed = local.passed.get() + 1;
        local.passed.set(passed);
        if (passed >= BATCH || !local.lock.has_waiter(me))
            && let Some(ticket) = local.ticket.take()
        {
            self.global.leave(me, ticket);
        }
        local.lock.leave(me, token);
    }
}
