//! What an array can do beside performing sets: read values, set them, give back, close.

use crate::Error;
use crate::node::Outcome;
use crate::op::{Action, Op};
use crate::raw::{Attempt, Fairness, RawSemArray, Waiters, look_fence};
use crate::session::{Heap, Obstacle, Session};
use crate::word::State;
use smallvec::SmallVec;
use ulocks_core::policy::InOneProcess;
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::sync::without_unwinding;

impl<P: InOneProcess> RawSemArray<P> {
    /// How many semaphores there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// The greatest value a semaphore can have.
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// The most operations of a set.
    pub fn max_ops(&self) -> usize {
        self.max_ops
    }

    /// Which sets may pass which.
    pub fn fairness(&self) -> Fairness {
        self.fairness
    }

    /// Its counters.
    pub fn meter(&self) -> &P::Meter {
        &self.meter
    }

    /// Whether the array was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed.load(Acquire) != 0
    }

    /// The value of semaphore `index` at this moment. If a call is changing it, this waits until
    /// that call is done.
    ///
    /// # Errors
    /// [`Error::IndexOutOfRange`].
    pub fn value(&self, index: usize) -> Result<u32, Error> {
        self.check_index(index)?;
        Ok(self.settled(index as u32))
    }

    /// (read value): the value of a cell that is not locked. A session may take back what it writes
    /// before it publishes. And if it has published another cell already, a reader must not miss
    /// its value here. A follower is parted from its leader first.
    fn settled(&self, index: u32) -> u32 {
        let cell = &self.cells[index as usize];
        look_fence();
        loop {
            let word = State(cell.word.load(Acquire));
            if !word.has(State::LOCK) {
                return word.value();
            }
            if cell.lead().leader().is_none() {
                self.slot().wait_while::<P>(index, || cell.is_held());
                continue;
            }
            let here = 0;
            if let Some(mut session) = self.session(&here, &[Op::add(index as usize, 0)]) {
                let value = session.value(index);
                session.publish();
                return value;
            }
        }
    }

    /// All values at one moment. This locks one semaphore after the other. A call that changes a
    /// locked one waits until all have been read.
    #[must_use]
    pub fn values(&self) -> Vec<u32> {
        let here = 0;
        let mut session = Session::with_array_lock(self, &here);
        let all = 0..self.cells.len() as u32;
        let open = all.clone().all(|index| session.lock(index));
        let values = if open { all.clone().map(|index| session.value(index)).collect() } else { Vec::new() };
        session.publish();
        // The values of a closed array do not change any more.
        if open { values } else { all.map(|index| self.settled(index)).collect() }
    }

    /// How many sets wait at semaphore `index` at this moment. A set waits at the semaphore of its
    /// first operation that cannot proceed, or that stops for an aged set.
    ///
    /// # Errors
    /// [`Error::IndexOutOfRange`].
    pub fn waiters(&self, index: usize) -> Result<Waiters, Error> {
        self.check_index(index)?;
        let here = 0;
        let mut waiters = Waiters::default();
        let op = Op::add(index, 0);
        if let Some(mut session) = self.session(&here, &[op]) {
            // SAFETY: the session has the cell, and the array lock if that is needed; nodes in
            // queues are alive.
            unsafe {
                let (subtractions, others) =
                    self.cells[index].inside(|inside| (inside.subtractions.iter(), inside.others.iter()));
                for node in subtractions.chain(others) {
                    let at = (*node).links(|links| links.at);
                    if (*node).ops()[at].is_wait_zero() { waiters.zero += 1 } else { waiters.increase += 1 }
                }
            }
            session.publish();
        }
        Ok(waiters)
    }

    /// Gives semaphore `index` this value, and completes the sets that can proceed then. It does
    /// not change what permits give back.
    ///
    /// # Errors
    /// [`Error::IndexOutOfRange`], [`Error::ValueOutOfRange`], [`Error::Closed`].
    pub fn set(&self, index: usize, value: u32) -> Result<(), Error> {
        self.check_index(index)?;
        self.check_value(index, value)?;
        self.set_values(&[Op::add(index, 0)], |_, _| value)
    }

    /// Gives the semaphores these values, all at one moment, and completes the sets that can
    /// proceed then. It does not change what permits give back.
    ///
    /// # Errors
    /// [`Error::ValueOutOfRange`], [`Error::Closed`]; [`Error::WrongNumber`] if there are not as
    /// many values as semaphores.
    pub fn set_all(&self, values: &[u32]) -> Result<(), Error> {
        if values.len() != self.cells.len() {
            return Err(Error::WrongNumber { values: values.len(), len: self.cells.len() });
        }
        values.iter().enumerate().try_for_each(|(index, &value)| self.check_value(index, value))?;
        without_unwinding(|| {
            let here = 0;
            let mut session = Session::with_array_lock(self, &here);
            let all = 0..self.cells.len() as u32;
            let open = !self.is_closed() && all.clone().all(|index| session.lock(index));
            if open {
                let mut heap = Heap::new();
                all.clone().for_each(|index| session.set_value(index, values[index as usize]));
                all.for_each(|index| session.changed(index, true, &mut heap));
                session.serve(heap);
            }
            session.publish();
            if open { Ok(()) } else { Err(Error::Closed) }
        })
    }

    /// Undoes the changes of `ops`. A value that would fall below zero becomes zero; one that would
    /// exceed the limit becomes the limit.
    ///
    /// # Errors
    /// [`Error::IndexOutOfRange`]; [`Error::Closed`], since a closed array takes nothing back.
    /// [`Error::SetTooLong`] if `ops` change more semaphores than a set has operations: operations
    /// on one semaphore count as one, their sum. Operations that change nothing are not looked at,
    /// so `ops` without others succeed, whatever they name, and on a closed array, too.
    pub fn give_back(&self, ops: &[Op]) -> Result<(), Error> {
        let mut back: Opposite = ops.iter().filter(|op| op.alters()).map(opposite).collect();
        let attempt = match &back[..] {
            [] => Attempt::Done,
            [op] => self.perform_one(op),
            ops => self.perform_several(ops),
        };
        if attempt == Attempt::Done {
            return Ok(());
        }
        back = self.in_sum(back);
        self.check(&back)?;
        self.set_values(&back, |op, value| match op.action {
            Action::Sub => value.saturating_sub(op.amount),
            _ => value.saturating_add(op.amount).min(self.limit),
        })
    }

    /// One operation for each semaphore, with the sum of what `ops` change.
    fn in_sum(&self, mut ops: Opposite) -> Opposite {
        ops.sort_by_key(|op| op.index);
        let in_sum = |same: &[Op]| {
            let change: i64 = same.iter().map(Op::change).sum();
            let amount = change.unsigned_abs().min(self.limit.into()) as u32;
            let index = same[0].index();
            if change < 0 { Op::sub(index, amount) } else { Op::add(index, amount) }
        };
        ops.chunk_by(|a, b| a.index == b.index).map(in_sum).collect()
    }

    /// Gives each semaphore that `ops` name the value that `value` returns, and completes the sets
    /// that can proceed then. No semaphore is named twice.
    #[cold]
    fn set_values(&self, ops: &[Op], value: impl Fn(&Op, u32) -> u32) -> Result<(), Error> {
        without_unwinding(|| {
            let here = 0;
            let mut session = self.session(&here, ops).ok_or(Error::Closed)?;
            let mut heap = Heap::new();
            for op in ops {
                let before = session.value(op.index);
                session.set_value(op.index, value(op, before));
                if session.has_array_lock {
                    session.changed(op.index, true, &mut heap);
                } else {
                    session.drain(op.index);
                }
            }
            session.serve(heap);
            session.publish();
            Ok(())
        })
    }

    /// Closes the array: waiting sets and later sets get [`Error::Closed`]. Values stay as they
    /// are, and can be read. Permits give nothing back any more. To close the array again changes
    /// nothing.
    ///
    /// # Examples
    /// ```
    /// use std::thread;
    /// use ulocks_semarray::{Error, Op, SemArray};
    ///
    /// let array = SemArray::new(1);
    /// thread::scope(|scope| {
    ///     let sleeper = scope.spawn(|| array.apply(&[Op::sub(0, 1)]));
    ///     array.close();
    ///     assert_eq!(sleeper.join().unwrap(), Err(Error::Closed));
    /// });
    /// ```
    pub fn close(&self) {
        without_unwinding(|| {
            let here = 0;
            let mut session = Session::with_array_lock(self, &here);
            if (0..self.cells.len() as u32).all(|index| session.lock(index)) {
                session.closes = true;
                self.closed.store(1, Release);
                session.end_all();
            }
            session.publish();
        });
    }

    /// Whether no thread has a lock, waits or watches. Models ask this when all threads are done.
    #[doc(hidden)]
    pub fn is_at_rest(&self) -> bool {
        let flags = State::SUBTRACTIONS | State::ZERO | State::COMPLEX;
        !self.cells.iter().any(|cell| cell.is_held() || State(cell.word.load(Relaxed)).has(flags))
            && self.array_lock.is_at_rest()
    }

    /// Locks the word of semaphore `index`, as a session does that never ends. Tests ask for it.
    #[doc(hidden)]
    pub fn keep_locked(&self, index: usize) {
        self.cells[index].word.fetch_or(State::LOCK, Relaxed);
    }

    /// A session that has locked the semaphores of `ops`, with the array lock if that is needed.
    /// `None` if the array was closed.
    fn session<'a>(&'a self, here: &'a u8, ops: &[Op]) -> Option<Session<'a, P>> {
        let mut session = Session::new(self, here);
        match session.lock_all(ops) {
            Ok(()) => Some(session),
            Err(Obstacle::Closed) => None,
            Err(_) => {
                session = Session::with_array_lock(self, here);
                let open = ops.iter().all(|op| session.lock(op.index));
                if !open {
                    session.publish();
                }
                open.then_some(session)
            }
        }
    }

    pub(crate) fn check_index(&self, index: usize) -> Result<(), Error> {
        let len = self.cells.len();
        if index < len { Ok(()) } else { Err(Error::IndexOutOfRange { index, len }) }
    }

    fn check_value(&self, index: usize, value: u32) -> Result<(), Error> {
        if value <= self.limit { Ok(()) } else { Err(Error::ValueOutOfRange { index, limit: self.limit }) }
    }
}

impl<P: InOneProcess> Session<'_, P> {
    /// Ends all waiting sets, because the array was closed. The session has the array lock and all
    /// cells.
    fn end_all(&mut self) {
        for cell in &self.array.cells {
            // SAFETY: the session has the array lock and all cells, and nodes in queues are alive.
            // Their watches and places among the aged sets go with them.
            unsafe {
                let (subtractions, others) =
                    cell.inside(|inside| (inside.subtractions.iter(), inside.others.iter()));
                for node in subtractions.chain(others) {
                    // An aged set that leaves makes candidates, which are not evaluated any more.
                    self.leave(node, &mut Heap::new());
                    self.will_complete(node, Outcome::Closed);
                }
            }
        }
    }
}

/// Operations to give back; they are allocated only if there are more than eight.
type Opposite = SmallVec<[Op; 8]>;

fn opposite(op: &Op) -> Op {
    let action = if op.action == Action::Sub { Action::Add } else { Action::Sub };
    Op { action, no_wait: false, ..*op }
}
