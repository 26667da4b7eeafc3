//! The explorer agrees with loom where loom is right, and where it is not, loom is shown to be
//! wrong.
//!
//! loom 0.7 is the model checker that most Rust code with atomics is checked by: another
//! implementation, another algorithm (dynamic partial order reduction over a history of stores,
//! after CDSChecker), other authors. Random little programs of one to four operations a thread are
//! explored by both to the end, loom without a bound on preemptions, and the sets of their outcomes
//! are compared: what each operation read, and the last value of each word. A third party decides
//! which is right: the axioms of RC11, by enumeration of graphs ([`axioms`]).
//!
//! # What is demanded
//! Of the machine, in every class: exactly the outcomes that the axioms allow. Of loom:
//!
//! | class: programs with | loom's outcomes are | because it |
//! |---|---|---|
//! | loads, stores, updates that do not fail, all fences but SC ones; **no thread accesses a word twice, no word is both stored to and updated** | the machine's | |
//! | the same, and SC fences | among the machine's, not all | orders each fence after all fences that it ran after, and does not try the other orders |
//! | the same without SC fences, and exchanges that may fail | among the machine's, not all | lets a failing exchange read the newest value only |
//! | the same without updates, and SC accesses | the machine's and more | takes `SeqCst` accesses for acquire and release (#180) |
//! | words that are stored to and updated | neither | lets a store come between the two halves of an update (#254); lets an update read the newest value only |
//! | threads that access a word twice | neither | remembers only the last access to a word, and misses even plain interleavings (#166); its order of stores is not transitive, and it invents last values |
//!
//! The first row has 400 programs of two threads and three words, and a few of three threads and
//! two words, of which each takes loom thousands of executions.
//!
//! `ULOCKS_VM_FUZZ` is the number of programs of each class, `ULOCKS_VM_SEED` where they begin. One
//! program for each of the reasons above stands by itself in [`agreement`]; if loom is mended, it
//! fails, and its row moves up.

#![cfg(ulocks_loom)]

mod agreement;
#[allow(dead_code, reason = "for other tests")]
#[path = "../../src/memory/tests/axioms.rs"]
mod axioms;
#[allow(dead_code, reason = "dependences are for other tests")]
#[path = "../../src/memory/tests/op.rs"]
mod op;
mod program;
#[path = "../../src/memory/tests/relation.rs"]
mod relation;
