//! What stands for the wrapper in the model worlds.

use super::context::Context;
use super::soft::arrive;
use crate::sys::world::signal::Interrupted;
use std::rc::Rc;

/// What a wrapped handler of `signal` does when the signal strikes: calls `handler`, now or when
/// the mask is lowered. For the models, and to be called in a handler of theirs.
///
/// ```ignore
/// // Under loom: at the third of this thread's points of interruption.
/// model::interrupt_at(3, || signal::dispatch(10, |context| read_in(context)));
/// // On the virtual machine: at any step. The mask keeps the class's signals out of each other.
/// model::signal::install(Signal::new(10), u32::MAX, || signal::dispatch(10, |context| read_in(context)));
/// model::signal::arm(Signal::new(10), 1);
/// ```
#[cfg_attr(world = "vm", track_caller)]
pub fn dispatch(signal: i32, handler: impl Fn(&Context<'_>) + 'static) {
    // In a model there is no action to pass it on to.
    let _ = arrive(signal, &(), Rc::new(handler), &mut Interrupted);
}
