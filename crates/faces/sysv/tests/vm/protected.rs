//! What semaphores protect: plain data in a cell whose accesses the machine checks. Each ordering
//! that makes it so is there for one of these models, which fails without it.

use super::*;
use ulocks_core::sync::UnsafeCell;
use ulocks_sysv::array::CONTENTS;
use ulocks_testkit::thread::with;

/// An array, and what it protects.
struct Protected {
    place: Arc<Place>,
    count: UnsafeCell<usize>,
}

// SAFETY: a thread accesses the count when a call has told it that it may. That this is one thread
// at a time is what the models test.
unsafe impl Sync for Protected {}
// SAFETY: as above.
unsafe impl Send for Protected {}

impl Protected {
    fn new(values: [i16; 2]) -> Arc<Self> {
        Arc::new(Self { place: Place::new(values), count: UnsafeCell::new(0) })
    }

    fn add(&self) {
        // SAFETY: says the caller's set.
        self.count.with_mut(|count| unsafe { *count += 1 });
    }

    fn count(&self) -> usize {
        // SAFETY: says the caller's set.
        self.count.with(|count| unsafe { *count })
    }

    fn performs(&self, ops: &[Op]) {
        self.place.semop(ops, None).unwrap();
    }

    /// What becomes of a set that is not to wait.
    fn tries(&self, ops: &[Op]) -> Answer {
        let ops = ops.iter().map(|&Op { num, op, flags }| Op { num, op, flags: flags | NO_WAIT });
        self.place.semop(&ops.collect::<Vec<_>>(), None)
    }
}

/// A way to take what is protected, and to give it back.
type Way = (&'static [Op], &'static [Op]);

const fn plain(num: u16, op: i16) -> Op {
    Op { num, op, flags: 0 }
}

const fn undone(num: u16, op: i16) -> Op {
    Op { num, op, flags: UNDO }
}

const ONE: Way = (&[plain(0, -1)], &[plain(0, 1)]);
const TWO: Way = (&[plain(0, -1), plain(1, -1)], &[plain(0, 1), plain(1, 1)]);
const LIKEWISE: Way = (&[plain(1, -1), plain(0, -1)], &[plain(1, 1), plain(0, 1)]);
const UNDONE: Way = (&[undone(0, -1), undone(1, -1)], &[undone(0, 1), undone(1, 1)]);
/// The lock of old.
const ZERO: Way = (&[plain(0, 0), plain(0, 1)], &[plain(0, -1)]);

/// One thread at a time has what `take` takes, in its own way, and sees what the earlier ones did.
fn exclusion(values: [i16; 2], ways: &'static [Way]) {
    let protected = Protected::new(values);
    let threads = ways.iter().map(|&(take, give)| {
        with(&protected, move |protected| {
            protected.performs(take);
            protected.add();
            protected.performs(give);
        })
    });
    threads.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(protected.count(), ways.len(), "updates were lost");
    assert_eq!(protected.place.values(), values.map(i32::from));
}

/// Sleepers do not look, so each wake-up comes.
#[test]
fn one_at_a_time_has_what_there_is_one_of() {
    const MODELS: [([i16; 2], &[Way]); 5] = [
        ([1, 0], &[ONE, ONE, ONE]),
        ([1, 1], &[TWO, LIKEWISE, TWO]),
        ([1, 1], &[ONE, TWO, ONE]),
        ([1, 1], &[UNDONE, ONE, UNDONE]),
        ([0, 0], &[ZERO, ZERO, ZERO]),
    ];
    for (values, ways) in MODELS {
        explore(Config { timeouts: false, ..Config::sampled(1_500) }, move || exclusion(values, ways));
    }
}

/// Explores all executions with few changes between threads.
fn few() -> Config {
    Config { preemptions: Some(3), ..Config::exhaustive() }
}

/// A thread that finds what another one has done sees what that did before.
fn publication(values: [i16; 2], publish: fn(&Protected), finds: fn(&Protected) -> bool) {
    publication_in(&Protected::new(values), publish, finds);
}

fn publication_in(protected: &Arc<Protected>, publish: fn(&Protected), finds: fn(&Protected) -> bool) {
    let publisher = with(protected, move |protected| {
        protected.add();
        publish(protected);
    });
    if finds(protected) {
        assert_eq!(protected.count(), 1, "published too early");
    }
    publisher.join().unwrap();
}

fn takes_one(protected: &Protected) {
    // It is refused if the other thread has taken it.
    _ = protected.tries(ONE.0);
}

fn gives_one(protected: &Protected) {
    protected.performs(ONE.1);
}

fn gives_two(protected: &Protected) {
    protected.performs(TWO.1);
}

fn gets_one(protected: &Protected) -> bool {
    protected.tries(ONE.0).is_ok()
}

fn gets_two(protected: &Protected) -> bool {
    protected.tries(TWO.0).is_ok()
}

fn is_refused_one(protected: &Protected) -> bool {
    protected.tries(ONE.0) == Err(libc::EAGAIN)
}

fn is_refused_two(protected: &Protected) -> bool {
    protected.tries(TWO.0) == Err(libc::EAGAIN)
}

fn finds_zero(protected: &Protected) -> bool {
    protected.tries(&[plain(0, 0)]).is_ok()
}

/// As GETVAL.
fn reads_one(protected: &Protected) -> bool {
    protected.place.array.look(0).value() == 1
}

#[test]
fn what_is_found_comes_with_what_was_done_before() {
    explore(few(), || publication([1, 1], takes_one, is_refused_one));
    explore(few(), || publication([1, 1], takes_one, is_refused_two));
    explore(few(), || publication([1, 1], takes_one, finds_zero));
    explore(few(), || publication([0, 1], gives_one, gets_one));
    explore(few(), || publication([0, 1], gives_one, gets_two));
    explore(few(), || publication([0, 1], gives_one, reads_one));
    explore(few(), || publication([0, 0], gives_two, gets_one));
    explore(few(), || publication([0, 0], gives_two, reads_one));
}

/// A word that is what it was before may have been another one between. Who takes the permit sees
/// what the last poster did.
#[test]
fn a_permit_that_comes_again_comes_with_what_was_done_since() {
    explore(few(), || {
        let protected = Protected::new([0, 0]);
        let poster = with(&protected, |protected| {
            gives_one(protected);
            if gets_one(protected) {
                protected.add();
                gives_one(protected);
            }
        });
        if gets_one(&protected) {
            protected.add();
        }
        poster.join().unwrap();
    });
}

/// Each of two threads posts to its own semaphore, then looks at the other's. The calls come one
/// after the other, so one thread at least sees what the other did. Nothing else orders the two.
fn one_sees(misses: [fn(&Protected, u16) -> bool; 2]) {
    let protected = Protected::new([0, 0]);
    let misses_in = move |protected: &Protected, me: u16| {
        protected.performs(&[plain(me, 1)]);
        misses[usize::from(me)](protected, 1 - me)
    };
    let second = with(&protected, move |protected| misses_in(protected, 1));
    let first = misses_in(&protected, 0);
    let second = second.join().unwrap();
    assert!(!(first && second), "each missed what the other had done");
}

/// One thread raises a flag, then looks at a semaphore. The other one posts, then looks at the
/// flag.
fn flag_or_post_is_seen(misses: fn(&Protected, u16) -> bool) {
    let protected = Protected::new([0, 0]);
    let flag = Arc::new(AtomicU32::new(0));
    let second = {
        let (protected, flag) = (Arc::clone(&protected), Arc::clone(&flag));
        thread::spawn(move || {
            gives_one(&protected);
            flag.load(Relaxed) == 0
        })
    };
    flag.store(1, Relaxed);
    let first = misses(&protected, 0);
    let second = second.join().unwrap();
    assert!(!(first && second), "each missed what the other had done");
}

fn is_refused(protected: &Protected, other: u16) -> bool {
    protected.tries(&[plain(other, -1)]) == Err(libc::EAGAIN)
}

fn is_refused_a_set(protected: &Protected, other: u16) -> bool {
    protected.tries(&[plain(other, -1), plain(other, 0)]) == Err(libc::EAGAIN)
}

fn finds_none(protected: &Protected, other: u16) -> bool {
    protected.tries(&[plain(other, 0)]).is_ok()
}

fn reads_zero(protected: &Protected, other: u16) -> bool {
    protected.place.array.look(other.into()).value() == 0
}

#[test]
fn of_two_that_miss_each_other_one_sees_the_other() {
    explore(few(), || one_sees([is_refused, is_refused]));
    explore(few(), || one_sees([finds_none, finds_none]));
    explore(few(), || one_sees([reads_zero, reads_zero]));
    explore(few(), || one_sees([is_refused_a_set, is_refused]));
    explore(few(), || one_sees([is_refused_a_set, reads_zero]));
    for misses in [is_refused, is_refused_a_set, finds_none, reads_zero] {
        explore(few(), move || flag_or_post_is_seen(misses));
    }
}

/// What a process took comes back at its end, with what it did before.
#[test]
fn what_is_given_back_at_an_end_comes_with_what_was_done_before() {
    let model = || {
        let protected = Protected::new([1, 1]);
        let owes = |protected: &Protected| {
            if protected.tries(UNDONE.0).is_ok() {
                protected.add();
                process::end();
            }
        };
        let other = with(&protected, move |protected| owes(protected));
        owes(&protected);
        other.join().unwrap();
    };
    explore(few(), model);
}

/// A set that was handed what it waited for sees what was done before.
fn hand_over(values: [i16; 2], take: &'static [Op], give: &'static [Op]) {
    let protected = Protected::new(values);
    let taker = with(&protected, move |protected| {
        protected.performs(take);
        assert_eq!(protected.count(), 1, "handed over too early");
    });
    protected.add();
    protected.performs(give);
    taker.join().unwrap();
}

#[test]
fn what_is_handed_over_comes_with_what_was_done_before() {
    const MODELS: [([i16; 2], &[Op], &[Op]); 5] = [
        ([0, 0], ONE.0, ONE.1),
        ([0, 0], TWO.0, LIKEWISE.1),
        ([0, 1], TWO.0, ONE.1),
        ([0, 0], UNDONE.0, TWO.1),
        ([1, 0], &[plain(0, 0)], ONE.0),
    ];
    for (values, take, give) in MODELS {
        explore(few(), move || hand_over(values, take, give));
    }
}

/// As IPC_RMID.
fn removes(protected: &Protected) {
    let mut section = Section::enter(protected.place.array).unwrap();
    section.end();
    section.leave();
    protected.place.array.forget();
}

/// Whether the calling thread is told of the removal: in its sleep, or before.
fn is_told(protected: &Protected) -> bool {
    matches!(protected.place.semop(TWO.0, None), Err(libc::EIDRM | libc::EINVAL))
}

/// As a thread that opens the array.
fn finds_it_gone(protected: &Protected) -> bool {
    let array = protected.place.array;
    array.is_gone() && {
        assert_eq!(array.why_gone(), libc::EINVAL);
        true
    }
}

/// A thread that takes the array lock, or is told that it cannot.
fn cannot_enter(protected: &Protected) -> bool {
    match Section::enter(protected.place.array) {
        Ok(section) => {
            section.leave();
            false
        }
        Err(error) => {
            assert_eq!(error, libc::EINVAL);
            true
        }
    }
}

#[test]
fn a_removal_comes_with_what_was_done_before() {
    explore(few(), || publication([0, 0], removes, finds_it_gone));
    explore(few(), || publication([0, 0], removes, cannot_enter));
    explore(few(), || publication([0, 0], removes, is_told));
    // A third thread takes the array out of the table, before its remover has done so.
    explore(few(), || {
        let protected = Protected::new([0, 0]);
        let finder = with(&protected, |protected| {
            if finds_it_gone(protected) {
                protected.place.array.forget();
            }
        });
        publication_in(&protected, removes, cannot_enter);
        finder.join().unwrap();
    });
}

/// The mapping of a removed array keeps its contents as long as a thread has a hold.
#[test]
fn a_removal_takes_no_contents_away_from_a_user() {
    explore(few(), || {
        let protected = Protected::new([0, 0]);
        let users = [(); 2].map(|()| {
            let array = protected.place.array;
            thread::spawn(move || {
                if array.hold().is_ok() {
                    CONTENTS.look();
                    array.let_go();
                }
            })
        });
        protected.place.array.forget();
        users.into_iter().for_each(|user| user.join().unwrap());
    });
}

/// As IPC_STAT, which reads fields of the first page in no order.
#[test]
fn what_is_read_of_blank_memory_is_no_answer() {
    explore(few(), || {
        let protected = Protected::new([0, 0]);
        let remover = with(&protected, |protected| protected.place.array.forget());
        let array = protected.place.array;
        let read = array.head().magic.load(Relaxed);
        assert!(read != 0 || array.unless_blank(Ok(())) == Err(libc::EINVAL), "blank memory is believed");
        remover.join().unwrap();
    });
}
