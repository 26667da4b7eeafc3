//! The memory and the axioms against the [table](super::table).

use super::super::Memory;
use super::axioms;
use super::program::{explore, words};
use super::table::TABLE;
use std::collections::BTreeSet;

#[test]
fn the_table_is_what_the_memory_does() {
    let mut wrong = Vec::new();
    for litmus in TABLE {
        let program = litmus.program();
        let (all, executions) = explore(&program, Memory::new, false);
        let (cut, representatives) = explore(&program, Memory::new, true);
        assert_eq!(all, cut, "{}: cut executions are no twins", litmus.name);
        let (found, allowed) = (litmus.written(&all), litmus.allowed());
        if found != allowed {
            let invented: Vec<_> = found.difference(&allowed).collect();
            let missed: Vec<_> = allowed.difference(&found).collect();
            wrong.push(format!("{}: invents {invented:?}, misses {missed:?}", litmus.name));
        }
        println!(
            "{:26} {:44} {:2} outcomes, {executions:5} executions, {representatives:3} without twins. {}",
            litmus.name,
            litmus.program,
            allowed.len(),
            litmus.because
        );
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_table_is_what_the_axioms_say() {
    for litmus in TABLE {
        let found = litmus.written(&axioms::outcomes(&litmus.program()));
        assert_eq!(found, litmus.allowed(), "{}: {}", litmus.name, litmus.because);
    }
}

#[test]
fn the_table_is_a_table() {
    let names: BTreeSet<_> = TABLE.iter().map(|litmus| litmus.name).collect();
    assert_eq!(names.len(), TABLE.len(), "two tests of one name");
    assert!(TABLE.len() >= 120);
    for litmus in TABLE {
        assert!(words(&litmus.program()) <= 4 && !litmus.because.is_empty(), "{}", litmus.name);
    }
}
