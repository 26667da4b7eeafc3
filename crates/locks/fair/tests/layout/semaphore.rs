//! The semaphore.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;
use std::time::{Duration, Instant};
use ulocks_core::Private;
use ulocks_core::meter::Counted;
use ulocks_core::policy::InOneProcess;
use ulocks_core::spin::{NoSpin, Patience};
use ulocks_fair::{Permit, RawSemaphore, Semaphore, SemaphoreWith, TooManyPermits};

static IN_A_STATIC: Semaphore = Semaphore::new(2);
const _: () = assert!(size_of::<Semaphore>() == 24 && align_of::<Semaphore>() == 8);
const _: () = assert!(size_of::<SemaphoreWith<Private<Patience<3_000>>>>() == 24);
const _: () = assert!(size_of::<Permit<'_>>() == 2 * size_of::<usize>());
const _: fn() = || {
    fn sent_and_shared<T: Send + Sync + UnwindSafe + RefUnwindSafe>() {}
    sent_and_shared::<Semaphore>();
    sent_and_shared::<SemaphoreWith<Private<NoSpin>>>();
    sent_and_shared::<Permit<'_>>();
};

#[test]
fn lives_in_a_static() {
    let one = IN_A_STATIC.acquire();
    assert_eq!(IN_A_STATIC.available_permits(), 1);
    drop(one);
    assert_eq!(IN_A_STATIC.available_permits(), 2);
}

#[test]
fn new_is_all_zero_but_for_the_count() {
    /// The word with the counts, and one with a pointer in it.
    const WORDS: usize = 8 + size_of::<usize>();

    fn bytes<P: InOneProcess>(permits: u32) -> [u8; WORDS] {
        let semaphore = RawSemaphore::<P>::new(permits);
        // SAFETY: the first bytes of an initialised value of at least this size: two words without
        // padding before or between them.
        unsafe { (&raw const semaphore).cast::<[u8; WORDS]>().read() }
    }
    assert_eq!(bytes::<Private>(0), [0; WORDS]);
    assert_eq!(bytes::<Private<NoSpin>>(0), [0; WORDS]);
    assert_eq!(bytes::<Private>(258)[..8], 258_u64.to_ne_bytes());
}

#[test]
fn permits_go_back_unless_forgotten() {
    let semaphore = Semaphore::new(10);
    let mut permits = semaphore.acquire_many(7);
    assert_eq!((semaphore.available_permits(), permits.count()), (3, 7));
    let two = permits.split(2).expect("there are seven");
    assert!(permits.split(6).is_none());
    assert_eq!(permits.count(), 5);
    two.forget();
    permits.merge(semaphore.try_acquire_many(3).expect("there are three"));
    assert_eq!((semaphore.available_permits(), permits.count()), (0, 8));
    assert!(semaphore.try_acquire().is_none());
    std::thread::scope(|scope| {
        scope.spawn(|| drop(permits));
    });
    assert_eq!(semaphore.available_permits(), 8);
}

#[test]
#[should_panic(expected = "permits of different semaphores cannot be merged")]
fn permits_of_two_semaphores_stay_apart() {
    let (one, other) = (Semaphore::new(1), Semaphore::new(1));
    one.acquire().merge(other.acquire());
}

#[test]
#[should_panic(expected = "permits beyond MAX_PERMITS cannot be merged")]
fn permits_that_would_find_no_room_stay_apart() {
    let semaphore = Semaphore::new(Semaphore::MAX_PERMITS);
    let mut all = semaphore.acquire_many(Semaphore::MAX_PERMITS);
    semaphore.release(1).expect("there are none");
    all.merge(semaphore.acquire());
}

#[test]
fn more_permits_than_there_can_be_are_refused() {
    const MOST: u32 = Semaphore::MAX_PERMITS;
    let semaphore = Semaphore::new(MOST - 1);
    assert_eq!(semaphore.release(2), Err(TooManyPermits));
    assert_eq!(semaphore.release(u32::MAX), Err(TooManyPermits));
    let panics = catch_unwind(AssertUnwindSafe(|| semaphore.add_permits(2)));
    assert!(panics.is_err(), "too many permits");
    assert_eq!(semaphore.available_permits(), MOST - 1);
    assert_eq!(semaphore.release(1), Ok(()));
    assert_eq!(semaphore.release(0), Ok(()));
    assert_eq!(semaphore.release(1), Err(TooManyPermits));
    assert_eq!(TooManyPermits.to_string(), "too many permits: a semaphore has at most 1073741823");
    // A guard whose permits find no room any more.
    let permit = semaphore.acquire();
    semaphore.release(1).expect("room for one");
    drop(permit);
    assert_eq!(semaphore.available_permits(), MOST);
}

#[test]
#[should_panic(expected = "1073741824 permits are more than a semaphore has: at most 1073741823")]
fn a_request_that_can_never_be_met_panics() {
    Semaphore::new(1).acquire_many(Semaphore::MAX_PERMITS + 1).forget();
}

/// The place that the panic of `call` names.
fn panics_at<R>(call: impl FnOnce() -> R) -> (String, u32) {
    std::thread_local!(static AT: RefCell<Option<(String, u32)>> = const { RefCell::new(None) });
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |panic| {
            AT.set(panic.location().map(|at| (at.file().to_owned(), at.line())));
            before(panic);
        }));
    });
    catch_unwind(AssertUnwindSafe(|| drop(call()))).expect_err("it is misuse");
    AT.take().expect("the hook ran")
}

#[test]
fn a_panic_names_the_line_of_the_caller() {
    const TOO_MANY: u32 = Semaphore::MAX_PERMITS + 1;
    let here = |line: u32| (file!().to_owned(), line);
    let (semaphore, other) = (Semaphore::new(2), Semaphore::new(1));
    assert_eq!(panics_at(|| Semaphore::new(TOO_MANY)), here(line!()));
    assert_eq!(panics_at(|| semaphore.acquire_many(TOO_MANY)), here(line!()));
    assert_eq!(panics_at(|| semaphore.acquire_many_unless_closed(TOO_MANY)), here(line!()));
    assert_eq!(panics_at(|| semaphore.try_acquire_many_for(TOO_MANY, Duration::ZERO)), here(line!()));
    assert_eq!(panics_at(|| semaphore.acquire_many_interruptible(TOO_MANY)), here(line!()));
    let now = Instant::now();
    assert_eq!(panics_at(|| semaphore.acquire_many_interruptible_until(TOO_MANY, now)), here(line!()));
    assert_eq!(panics_at(|| semaphore.acquire().merge(other.acquire())), here(line!()));
    semaphore.close();
    assert_eq!(panics_at(|| semaphore.acquire()), here(line!()));
}

#[test]
#[should_panic(expected = "a semaphore has at most 1073741823 permits")]
fn too_many_to_begin_with() {
    _ = Semaphore::new(u32::MAX);
}

#[test]
fn none_are_had_at_once() {
    let semaphore = Semaphore::new(0);
    assert_eq!(semaphore.acquire_many(0).count(), 0);
    assert!(semaphore.try_acquire_many(0).is_some());
}

#[test]
fn attempts_end_in_time() {
    fn check<P: InOneProcess>() {
        let semaphore = SemaphoreWith::<P>::new(1);
        let start = Instant::now();
        assert!(semaphore.try_acquire_many_for(2, Duration::from_millis(20)).is_none());
        assert!(start.elapsed() >= Duration::from_millis(20), "it gave up before its time");
        assert!(semaphore.try_acquire_until(Instant::now()).is_some(), "it did not try");
        assert!(semaphore.try_acquire_many_until(2, Instant::now()).is_none());
        assert!(semaphore.try_acquire_for(Duration::MAX).is_some());
    }
    check::<Private>();
    check::<Private<NoSpin>>();
}

#[test]
fn says_what_it_is() {
    let semaphore = Semaphore::new(3);
    assert_eq!(format!("{semaphore:?}"), "Semaphore { available_permits: 3, waiters: 0, closed: false }");
    assert_eq!(format!("{:?}", semaphore.raw()), "RawSemaphore(permits=3)");
    assert_eq!(format!("{:?}", semaphore.acquire()), "Permit { count: 1 }");
}

#[test]
fn a_semaphore_may_be_moved_whatever_its_count() {
    let semaphore = SemaphoreWith::<Private<NoSpin, Counted>>::new(2);
    semaphore.acquire().forget();
    let moved = Box::new(semaphore);
    assert_eq!(moved.available_permits(), 1);
    drop(moved.acquire());
    let counted = moved.raw().meter().snapshot();
    assert_eq!((counted.acquired, counted.contended, counted.slept), (2, 0, 0));
}
