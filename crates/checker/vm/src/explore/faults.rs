//! What is noted when an execution goes wrong by a step of a thread.

use super::bounds::Bound;
use super::machine::Machine;
use super::story::Said;
use super::verdict::Verdict;
use crate::choice::NotDeterministic;
use crate::engine::{At, Word};
use crate::memory::{Fault, What};
use core::any::Any;

impl Machine<'_, '_> {
    pub(super) fn fault(&mut self, fault: &Fault, at: At) {
        let mut text = fault.to_string();
        text += self.story.as_ref().and_then(|story| story.missing(fault)).as_deref().unwrap_or_default();
        if matches!(fault, Fault::Race { second, .. } if second.what == What::Retire) {
            text += "; join the threads that use it before it goes: what the counts of a `std::sync::Arc` order is not \
                     known here";
        }
        self.tell(at, || Said::Text(text.clone()));
        self.verdict = Some(Verdict::of_fault(fault, text));
    }

    /// A word of another run, or bytes that no constructor made.
    pub(super) fn stale_word(&mut self, word: Word) {
        self.verdict = Some(Verdict::Misuse(format!(
            "the bytes of the atomic at {:#x} are neither zero nor made by a constructor in this execution: it \
             outlived the execution it was made in (declare a static with `sync_static!`), its memory was given back, or \
             something wrote over it",
            word.address()
        )));
    }

    pub(super) fn panicked(&mut self, thread: usize, payload: &(dyn Any + Send)) {
        let message = super::quiet::take_message();
        if let Some(difference) = payload.downcast_ref::<NotDeterministic>() {
            self.verdict = Some(Verdict::of_difference(difference));
            return;
        }
        let text = message.unwrap_or_else(|| {
            let text = payload.downcast_ref::<&str>().map(ToString::to_string);
            text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic".into())
        });
        let (steps, told) = (self.steps, self.steering.unwinds_from());
        if let Some(story) = &mut self.story {
            // What its drops have done is of no interest.
            story.lines.truncate(told.unwrap_or(usize::MAX));
            story.tell_without_place(steps, thread, format!("panics: {text}"));
        }
        self.verdict = Some(Verdict::Panic(text));
    }

    /// What was not given back.
    pub(super) fn leaks(&mut self, text: String) -> Verdict {
        let steps = self.steps;
        if let Some(story) = &mut self.story {
            story.tell_without_place(steps, 0, text.clone());
        }
        Verdict::Leak(text)
    }

    /// The run is over while a panic unwinds. It came first, and is the verdict.
    pub(super) fn cut_off(&mut self) {
        if let Some(verdict) = self.verdict.take_if(|verdict| !matches!(verdict, Verdict::Panic(_))) {
            let text = super::quiet::take_message().unwrap_or_else(|| "a panic".into());
            self.verdict = Some(Verdict::Panic(format!("{text}; while it unwinds, {verdict}")));
        }
    }

    /// A thread begins an operation, and a panic unwinds then, or does not. What the drops of a
    /// panic do is a step as any other, and is not varied.
    pub(super) fn steer_a_panic(&mut self, unwinds: bool, at: At) {
        let told = self.story.as_ref().map_or(0, |story| story.lines.len());
        if self.steering.panics(unwinds.then_some(told)) {
            self.hit_if(true, Bound::Stopped, at);
        }
    }
}
