//! Readers in signal handlers. `arm` is the model world's way to have the calling thread struck
//! somewhere.

use super::place::{Place, Role, with};
use std::cell::Cell;
use std::rc::Rc;
use ulocks_core::signal::dispatch;
use ulocks_core::sync::interruption_point;
use ulocks_psrwlock::{ByClass, Configuration, PsRwLockWith, Stage, ThreadClass};
use ulocks_testkit::thread::{Arc, spawn};

/// Any asynchronous one.
const SIGNAL: i32 = 10;

/// What is to be done when the signal strikes.
pub type Handler = Rc<dyn Fn()>;

/// Whether the signal came.
#[derive(Default)]
struct Strike {
    came: Rc<Cell<bool>>,
}

impl Strike {
    /// A handler that read-locks, with so many looks, and has to get in whenever `must` says so.
    fn handler<D: Configuration>(
        &self,
        place: &Arc<Place<D>>,
        looks: u32,
        must: impl Fn() -> bool + 'static,
    ) -> Handler {
        let (place, came) = (Arc::clone(place), Rc::clone(&self.came));
        let must = Rc::new(must);
        Rc::new(move || {
            came.set(true);
            let (place, must) = (Arc::clone(&place), Rc::clone(&must));
            dispatch(SIGNAL, move |_| match place.lock.read_in_handler_looking(looks) {
                Some(token) => {
                    place.look();
                    place.unlock_read(token);
                }
                None => assert!(!must(), "a handler finds the lock shut by its own thread"),
            });
        })
    }
}

/// A thread in the role `acts`, twice, the only one of the roles that writes, is struck: the
/// handler gets in at once, wherever it is. Whether the signal came.
pub fn struck_writer<D: Configuration, const N: usize>(
    arm: impl Fn(Handler),
    acts: Role<D>,
    beside: [Role<D>; N],
) -> bool {
    let place = Place::new();
    let others: Vec<_> = beside.into_iter().map(|role| with(&place, role)).collect();
    let strike = Strike::default();
    arm(strike.handler(&place, 1, || true));
    let counted = acts(&place) + acts(&place);
    others.into_iter().for_each(|other| _ = other.join().expect("a client panicked"));
    place.check_at_rest(counted);
    strike.came.get()
}

/// A reader is struck, inside or outside, beside `writers`: while it is inside the handler gets in,
/// and then no writer does. Whether the signal came.
pub fn struck_reader<D: Configuration, C: ThreadClass, const N: usize>(
    arm: impl Fn(Handler),
    looks: u32,
    writers: [Role<D>; N],
) -> bool {
    let place = Place::new();
    let others: Vec<_> = writers.into_iter().map(|role| with(&place, role)).collect();
    let inside = Rc::new(Cell::new(false));
    let is_inside = Rc::clone(&inside);
    let strike = Strike::default();
    arm(strike.handler(&place, looks, move || is_inside.get()));
    let token = place.read::<C>();
    inside.set(true);
    place.look();
    place.look();
    inside.set(false);
    place.unlock_read(token);
    // Nor is it left out elsewhere.
    interruption_point();
    let counted = others.into_iter().map(|other| other.join().expect("a client panicked")).sum();
    place.check_at_rest(counted);
    strike.came.get()
}

/// A thread outside is struck beside a write in steps, which neither waits for the handler with
/// handlers shut out, nor writes while it reads.
pub fn struck_beside_steps<D: Configuration>(arm: impl Fn(Handler) + Send + 'static, polls: usize) {
    let lock = Arc::new(PsRwLockWith::<usize, D>::new(0));
    let other = {
        let lock = Arc::clone(&lock);
        spawn(move || {
            arm(Rc::new(move || {
                let lock = Arc::clone(&lock);
                dispatch(SIGNAL, move |context| {
                    if let Some(guard) = lock.read_handler(context) {
                        assert!(*guard <= 1);
                        interruption_point();
                    }
                });
            }));
            interruption_point();
            interruption_point();
        })
    };
    let mut pending = lock.write_begin();
    for _ in 0..polls {
        let stage = pending.poll();
        let level = lock.state().level();
        assert!(
            stage != Stage::Readers("Handler") || level < 2,
            "a write in steps keeps handlers out, and does not end"
        );
    }
    *pending.wait() += 1;
    other.join().expect("the struck thread panicked");
    assert_eq!(*lock.try_write().expect("try_write failed on a lock that nobody holds"), 1);
}
