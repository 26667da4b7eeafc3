//! What stories call the words, and what they say was missing.

use crate::{failure, shared, with};
use std::sync::Arc;
use ulocks_vm::explore::{Config, note, run};
use ulocks_vm::sync::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};
use ulocks_vm::sync::{AtomicU32, Mutex, UnsafeCell, fence};
use ulocks_vm::thread;

struct Gate {
    open: AtomicU32,
    count: AtomicU32,
}

impl Gate {
    fn new() -> Self {
        Self { open: AtomicU32::new(0), count: AtomicU32::new(0) }
    }
}

#[test]
fn a_word_is_called_by_its_label_its_field_its_variable_or_where_it_is_used() {
    let found = failure(&Config::exhaustive(), || {
        let gate = Arc::new(Gate::new());
        let turn = Arc::new(AtomicU32::new(0));
        let (left, right) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let flags: Vec<_> = (0..2).map(|_| AtomicU32::new(0)).collect();
        let labelled = AtomicU32::new(0).named("the label");
        let unknown = Arc::<AtomicU32>::default();
        gate.open.store(1, Relaxed);
        gate.count.store(2, Relaxed);
        turn.store(3, Relaxed);
        left.store(4, Relaxed);
        right.store(5, Relaxed);
        flags.iter().for_each(|flag| flag.store(6, Relaxed));
        labelled.store(7, Relaxed);
        unknown.store(8, Relaxed);
        panic!("enough");
    });
    for step in [
        " Gate.open.store(0x1,",
        " Gate.count.store(0x2,",
        " turn.store(0x3,",
        " left.store(0x4,",
        " right.store(0x5,",
        " flags.store(0x6,",
        " flags#2.store(0x6,",
        " the label.store(0x7,",
        " unknown.store(0x8,",
    ] {
        assert!(found.story.contains(step), "no \"{step}\" in {found}");
    }
    assert!(!found.story.contains("word "), "{found}");
}

/// One constructor, called for words of which the source does not say what they are for.
fn some_word() -> AtomicU32 {
    AtomicU32::new(0)
}

#[test]
fn words_without_a_name_are_told_apart() {
    let found = failure(&Config::exhaustive(), || {
        let words = [some_word(), some_word()];
        let by_index = |index: usize| &words[index];
        by_index(0).store(1, Relaxed);
        by_index(1).store(2, Relaxed);
        panic!("enough");
    });
    assert!(
        found.story.contains("word 0.store(0x1,") && found.story.contains("word 1.store(0x2,"),
        "{found}"
    );
}

#[test]
fn steps_on_one_line_are_told_with_their_columns() {
    let found = failure(&Config::exhaustive(), || {
        let (left, right) = (AtomicU32::new(0), AtomicU32::new(0));
        let all = |left: &AtomicU32, right: &AtomicU32| (left.store(1, Relaxed), right.store(2, Relaxed));
        all(&left, &right);
        left.store(3, Relaxed);
        panic!("enough");
    });
    let place = |step: &str| {
        let line = found.story.lines().find(|line| line.contains(step)).expect("the step");
        line.split_whitespace().nth(3).expect("its place").to_owned()
    };
    let (first, second, third) = (place("left.store(0x1"), place("right.store(0x2"), place("left.store(0x3"));
    assert!(first != second && first.matches(':').count() == 2, "{first} {second}: {found}");
    assert_eq!(third.matches(':').count(), 1, "a line with one step needs no column: {third}");
    assert!(
        found.story.contains("left was made at ") && found.story.contains("right was made at "),
        "{found}"
    );
}

/// The orderings of a message that is passed on: by accesses, and by fences around them.
#[derive(Clone, Copy, Debug)]
struct Orders {
    store: Ordering,
    before: Option<Ordering>,
    load: Ordering,
    after: Option<Ordering>,
}

struct Mailbox {
    data: UnsafeCell<u32>,
    ready: AtomicU32,
    relay: AtomicU32,
}
// SAFETY: the virtual machine runs all threads of a model on one thread of the system.
unsafe impl Sync for Mailbox {}

impl Mailbox {
    fn new() -> Self {
        Self { data: UnsafeCell::new(0), ready: AtomicU32::new(0), relay: AtomicU32::new(0) }
    }

    fn write(&self) {
        // SAFETY: the machine reports accesses at the same time.
        self.data.with_mut(|data| unsafe { *data += 1 });
    }

    fn read(&self) {
        // SAFETY: as above.
        self.data.with(|data| unsafe { assert_eq!(*data, 1) });
    }
}

/// Thread 1 writes the data and says so by `ready`; thread 2 reads `ready` as `orders` say.
fn mailbox(orders: Orders) -> impl Fn() + 'static {
    move || {
        let mailbox = Arc::new(Mailbox::new());
        let writer = with(&mailbox, move |mailbox| {
            mailbox.write();
            orders.before.into_iter().for_each(fence);
            mailbox.ready.store(1, orders.store);
        });
        let reader = with(&mailbox, move |mailbox| {
            if mailbox.ready.load(orders.load) == 1 {
                orders.after.into_iter().for_each(fence);
                mailbox.read();
            }
        });
        writer.join().unwrap();
        reader.join().unwrap();
    }
}

/// Thread 1 writes the data and says so by `ready`; thread 2 does `relays`, and thread 3 reads the
/// data if it `sees` that.
fn relayed(
    relays: impl Fn(&Mailbox) + Copy + Send + 'static,
    sees: impl Fn(&Mailbox) -> bool + Copy + Send + 'static,
) -> impl Fn() + 'static {
    move || {
        let mailbox = Arc::new(Mailbox::new());
        let started = [0, 1, 2].map(|role| {
            with(&mailbox, move |mailbox| match role {
                0 => {
                    mailbox.write();
                    mailbox.ready.store(1, Release);
                }
                1 => relays(mailbox),
                2 if sees(mailbox) => mailbox.read(),
                _ => {}
            })
        });
        started.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

#[test]
fn a_race_says_which_side_of_which_read_lacked_an_ordering() {
    let store = "the store is Relaxed and does not release";
    let load = "the load is Relaxed and does not acquire";
    for (orders, says) in [
        (Orders { store: Relaxed, before: None, load: Acquire, after: None }, vec![store]),
        (Orders { store: Release, before: None, load: Relaxed, after: None }, vec![load]),
        (Orders { store: Relaxed, before: None, load: Relaxed, after: None }, vec![store, load]),
        (Orders { store: Relaxed, before: Some(Release), load: Relaxed, after: None }, vec![load]),
        (Orders { store: Relaxed, before: Some(Acquire), load: Acquire, after: None }, vec![store]),
        (Orders { store: Relaxed, before: None, load: Relaxed, after: Some(SeqCst) }, vec![store]),
        (Orders { store: Release, before: None, load: Relaxed, after: Some(Release) }, vec![load]),
    ] {
        let found = failure(&Config::exhaustive(), mailbox(orders));
        let verdict = found.verdict.to_string();
        assert_eq!(found.verdict.kind(), "data race", "{verdict}");
        let hop = ["thread 2 reads Mailbox.ready at ", "from thread 1 at "];
        assert!(hop.iter().all(|text| verdict.contains(text)), "{orders:?}: {verdict}");
        for text in [store, load] {
            assert_eq!(verdict.contains(text), says.contains(&text), "{orders:?}: {verdict}");
        }
        // What it asks for is enough.
        let strong = Orders {
            store: if says.contains(&store) { Release } else { orders.store },
            load: if says.contains(&load) { Acquire } else { orders.load },
            ..orders
        };
        let report = run(&Config::exhaustive(), mailbox(strong)).expect("no race");
        assert!(report.complete, "{report}");
    }
}

#[test]
fn a_race_that_no_read_could_have_ordered_says_so() {
    let found = failure(&Config::exhaustive(), || {
        shared(Mailbox::new()).threads([Mailbox::write, Mailbox::write]);
    });
    let verdict = found.verdict.to_string();
    assert!(verdict.contains("has read nothing, directly or through others, that thread"), "{verdict}");
}

#[test]
fn a_race_over_two_hops_names_the_one_that_does_not_synchronise() {
    for (first, second) in [(Relaxed, AcqRel), (AcqRel, Relaxed)] {
        let relays = move |mailbox: &Mailbox| {
            if mailbox.ready.fetch_add(0, first) == 1 {
                mailbox.relay.swap(1, second);
            }
        };
        let found =
            failure(&Config::exhaustive(), relayed(relays, |mailbox| mailbox.relay.load(Acquire) == 1));
        let verdict = found.verdict.to_string();
        let says = match first {
            Relaxed => "thread 2 reads Mailbox.ready at ",
            _ => "thread 3 reads Mailbox.relay at ",
        };
        let lacks = match first {
            Relaxed => "the fetch_add is Relaxed and does not acquire",
            _ => "the swap is Relaxed and does not release",
        };
        assert!(verdict.contains(says) && verdict.contains(lacks), "{verdict}");
        assert_eq!(verdict.matches(" reads Mailbox").count(), 1, "the other hop synchronises: {verdict}");
    }
}

/// A read-modify-write continues the release sequence of what it reads, whatever its ordering.
#[test]
fn a_race_behind_a_release_sequence_names_its_head_or_the_reader() {
    let relays = |mailbox: &Mailbox| _ = mailbox.ready.fetch_add(1, Relaxed);
    let found = failure(&Config::exhaustive(), relayed(relays, |mailbox| mailbox.ready.load(Relaxed) == 2));
    let verdict = found.verdict.to_string();
    let says =
        ["thread 3 reads Mailbox.ready at ", "from thread 1 at ", "the load is Relaxed and does not acquire"];
    assert!(says.iter().all(|text| verdict.contains(text)), "{verdict}");
    assert!(!verdict.contains("does not release"), "the relaxed fetch_add continues the sequence: {verdict}");
}

/// The line is written in the execution that is told only, which is the one that went wrong.
#[test]
fn a_line_of_the_model_may_look_at_words() {
    let found = failure(&Config::exhaustive(), || {
        let word = Arc::new((AtomicU32::new(1), Mutex::new(5)));
        let other = Arc::clone(&word);
        let other = thread::spawn(move || other.0.store(2, Relaxed));
        let first = word.0.load(Relaxed);
        note(|| format!("shows {:?} and {}", word.0, word.0.load(Relaxed)));
        note(|| format!("protects {}", word.1.lock().unwrap()));
        other.join().unwrap();
        assert_eq!((first, word.0.swap(3, Relaxed)), (9, 9), "is wrong");
    });
    assert!(found.verdict.to_string().contains("is wrong"), "{found}");
    assert!(found.story.contains(" shows ") && found.story.contains("protects 5"), "{found}");
}
