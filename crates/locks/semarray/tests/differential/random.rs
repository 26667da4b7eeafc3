//! Random scripts.

use crate::crew::Crew;
use crate::kernel;
use crate::ours;
use crate::script::{self, Seen, Step, predict, scripts, set, step};
use proptest::prelude::Strategy;
use proptest::test_runner::{TestCaseError, TestRunner};
use std::cell::{Cell, RefCell};
use ulocks_semarray::Fairness;
use ulocks_testkit::sets::Sets;

const LIMIT: u32 = 32_767;
const WORKERS: usize = 6;

#[test]
fn the_kernel_does_what_the_model_says_of_linux_and_ours_what_it_promises() {
    let (all, alike) = (Cell::new(0), Cell::new(0));
    let crew = RefCell::new(Crew::new(WORKERS));
    let some =
        (1..=4_usize).prop_flat_map(|len| scripts(len, LIMIT, step(WORKERS, len, LIMIT, set(len, LIMIT))));
    let result = TestRunner::new(script::cases(400)).run(&some, |(values, steps)| {
        let model = Sets::new(values.clone(), LIMIT);
        let in_linux = model.clone().as_in_linux();
        all.set(all.get() + 1);
        alike.set(alike.get() + u32::from(trace(model.clone(), &steps) == trace(in_linux.clone(), &steps)));
        let mut crew = crew.borrow_mut();
        let kernels = kernel::array(&values);
        kernels.map_or(Ok(()), |array| crew.play(array, in_linux, &steps)).map_err(TestCaseError::fail)?;
        crew.play(ours::array(&values, LIMIT, Fairness::Barging), model, &steps).map_err(TestCaseError::fail)
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    let (all, alike) = (all.get(), alike.get());
    println!("{all} scripts, of which {alike} do not tell the kernel's array from the model's");
    assert!(alike * 5 > all * 4, "the kernel's array differs in rare cases only: {alike} of {all}");
}

/// What the model shows after each step of a script.
fn trace(mut model: Sets, steps: &[Step]) -> Vec<Seen> {
    let mut seen = |step| {
        let ended = predict(&mut model, step).unwrap_or_default();
        Seen::of(&model, ended)
    };
    steps.iter().map(&mut seen).collect()
}
