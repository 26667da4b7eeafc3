//! Programs of few operations that use the lock as only this lock can be used, for both model
//! worlds. What any reader-writer lock is asked for is in the test kit.
//!
//! | property | client |
//! |---|---|
//! | a writer is alone, whatever thread comes by whatever way; and in the end the lock is as new | [`place::together_with`], [`place::behind`] |
//! | a thread that nests upward gets in; a writer waits for one class at a time, and lets the higher ones in | [`classes`] |
//! | a waiter in line is passed by so many write phases | [`phases`] |
//! | a thread that gives up lets in those that it has kept out | [`giving_up`] |
//! | handlers get in wherever their own thread is; writers wait for them | [`signals`] |
//! | writes in steps and in two phases | [`steps`] |

pub mod classes;
pub mod giving_up;
pub mod phases;
pub mod place;
pub mod signals;
pub mod steps;
