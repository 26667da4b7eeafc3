//! What is noted when an execution goes wrong by a step of a thread.

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
        if let Some(difference) = payload.downcast_ref::<NotDeterministic>() {
            self.verdict = Some(Verdict::of_difference(difference));
            return;
        }
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        let message = super::quiet::take_message(text);
        let text = message.unwrap_or_else(|| text.unwrap_or("a panic").to_owned());
        let steps = self.steps;
        if let Some(story) = &mut self.story {
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

    /// The model goes on after a panic, whose clean-up has not happened here.
    pub(super) fn caught(&mut self) {
        let text = super::quiet::take_last_message().unwrap_or_else(|| "a panic".into());
        self.verdict = Some(Verdict::Panic(format!("{text}; the model caught it, but a panic ends the run")));
    }
}
