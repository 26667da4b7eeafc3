//! What a model decides in place of the plan (`plan.rs`).
//!
//! No invariant of the protocol rests on the plan. So the models check the protocol under other
//! decisions, too: say, that each release wakes a waiter, so that no timer hides a lost wake-up.
//! Every interval that ships leaves all decisions to the plan.

use crate::interval::Interval;
use core::marker::PhantomData;

/// The decisions that are not left to the plan.
pub trait Advice: Send + Sync + 'static {
    /// Whether the lock is hot while a waiter is parked.
    const SOLO: bool = false;
    /// Whether the plan notes each release past a parked waiter, and not only some of them.
    const NOTES_EACH: bool = false;

    /// Whether a release wakes a waiter to contend, or `None` to leave this to the plan. `awake`: a
    /// waiter that was woken before has not come yet.
    #[must_use]
    fn wants_wake(awake: bool) -> Option<bool> {
        let _ = awake;
        None
    }
}

/// All decisions are left to the plan.
#[derive(Debug)]
pub enum Planned {}

impl Advice for Planned {}

/// The interval `I`, of a lock that follows the advice `A`.
#[derive(Debug)]
pub struct Advised<I: Interval, A: Advice>(PhantomData<(I, A)>);
