//! The table.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};
use std::mem::MaybeUninit;
use std::rc::Rc;
use std::sync::{Arc, LazyLock, OnceLock};
use ulocks_core::api;
use ulocks_core::lock_api;
use ulocks_core::raw::Initial;
use ulocks_debug::{Checked, FairMutex, Mutex, PiMutex, ReentrantMutex, RwLock, Semaphore};

/// Holds a lock while a closure runs.
pub type Nest = Box<dyn Fn(&mut dyn FnMut())>;

pub struct Way {
    pub name: &'static str,
    /// Whether the two locks are of one class.
    pub is_class: bool,
    pub make: fn() -> (Nest, Nest),
}

const OWN: bool = false;
const CLASS: bool = true;

/// The lock at a place inside of a value.
fn at<S: 'static, T: 'static>(all: &Rc<S>, place: fn(&S) -> &Mutex<T>) -> Nest {
    let all = Rc::clone(all);
    Box::new(move |inner| drop((place(&all).lock(), inner())))
}

fn two<T: 'static>((first, last): (Mutex<T>, Mutex<T>)) -> (Nest, Nest) {
    let all = Rc::new((first, last));
    (at(&all, |all| &all.0), at(&all, |all| &all.1))
}

fn pair<S: 'static>(all: S, [first, last]: [fn(&S) -> &Mutex<u32>; 2]) -> (Nest, Nest) {
    let all = Rc::new(all);
    (at(&all, first), at(&all, last))
}

#[derive(Default)]
struct Derived {
    first: Mutex<u32>,
    last: Mutex<u32>,
}

#[derive(Default)]
struct Outer {
    _name: String,
    inner: Inner,
}

#[derive(Default)]
struct Inner {
    deep: (Mutex<u32>, Mutex<u32>),
}

#[derive(Default)]
struct DerivedTuple(Mutex<u32>, Mutex<u32>);

#[derive(Default)]
struct Generic<T>(Mutex<T>);

/// A wrapper that hides the line of its user. Each way has its own one: two pairs of locks that two
/// ways make may lie equally far apart, and be taken for the fields of two objects then.
struct Shared<T>(Mutex<T>);

impl<T> Shared<T> {
    fn of_two(value: T) -> Self {
        Self(Mutex::new(value))
    }

    fn of_one(value: T) -> Self {
        Self(Mutex::new(value))
    }
}

/// One that does not.
struct Tracked(Mutex<u32>);

impl Tracked {
    #[track_caller]
    fn new(value: u32) -> Self {
        Self(Mutex::new(value))
    }
}

macro_rules! of_macro {
    () => {
        (Mutex::new(1), Mutex::new(2))
    };
}

macro_rules! statics {
    ($($name:ident)*) => { $(static $name: Mutex<u32> = Mutex::new(0);)* };
}

fn of_static(lock: &'static Mutex<u32>) -> Nest {
    Box::new(move |inner| drop((lock.lock(), inner())))
}

type Unplaced = lock_api::Mutex<api::Raw<Checked<ulocks_unfair::RawThroughputMutex>>, u32>;

macro_rules! ways {
    ($($name:literal, $is_class:ident: $make:expr;)*) => {
        &[$(Way { name: $name, is_class: $is_class, make: || $make }),*]
    };
}

pub const WAYS: &[Way] = ways! {
    "new, on a line each", OWN: two((
        Mutex::new(1),
        Mutex::new(2),
    ));
    "new, in a column each", OWN: two((Mutex::new(1), Mutex::new(2)));
    "new of two types in a wrapper", OWN: {
        let (first, last) = (Rc::new(Shared::of_two(1)), Rc::new(Shared::of_two("x")));
        (at(&first, |shared| &shared.0), at(&last, |shared| &shared.0))
    };
    "new of one type in a wrapper", CLASS: two((Shared::of_one(1).0, Shared::of_one(2).0));
    "new in a wrapper with track_caller", OWN: two((Tracked::new(1).0, Tracked::new(2).0));
    "new in a closure", CLASS: {
        let make = || Mutex::new(0);
        two((make(), make()))
    };
    "two in a macro", CLASS: two(of_macro!());
    "the same in two uses of a macro", OWN: two((of_macro!().0, of_macro!().1));
    "statics of a macro", CLASS: {
        statics!(FIRST LAST);
        (of_static(&FIRST), of_static(&LAST))
    };
    "statics", OWN: {
        static FIRST: Mutex<u32> = Mutex::new(0);
        static LAST: Mutex<u32> = Mutex::new(0);
        (of_static(&FIRST), of_static(&LAST))
    };
    "an array in a static", CLASS: {
        static BOTH: [Mutex<u32>; 2] = [const { Mutex::new(0) }; 2];
        (of_static(&BOTH[0]), of_static(&BOTH[1]))
    };
    "a constant", CLASS: {
        #[allow(clippy::declare_interior_mutable_const)]
        const LOCK: Mutex<u32> = Mutex::new(0);
        two((LOCK, LOCK))
    };
    "derive(Default)", OWN: pair(Derived::default(), [|all| &all.first, |all| &all.last]);
    "derive(Default) of a tuple", OWN: pair(DerivedTuple::default(), [|all| &all.0, |all| &all.1]);
    "derive(Default) two deep", OWN: pair(Outer::default(), [|all| &all.inner.deep.0, |all| &all.inner.deep.1]);
    "derive(Default) of a generic type", OWN: {
        let (first, last) = (Rc::new(Generic::<u32>::default()), Rc::new(Generic::<u64>::default()));
        (at(&first, |one| &one.0), at(&last, |one| &one.0))
    };
    "two objects of one derive(Default)", CLASS: two((Derived::default().first, Derived::default().first));
    "default, on a line each", OWN: two((
        Mutex::default(),
        Mutex::<u32>::default(),
    ));
    "Arc::default", OWN: {
        let (first, last) = (Arc::<Mutex<u32>>::default(), Arc::<Mutex<u32>>::default());
        let nest = |lock: Arc<Mutex<u32>>| -> Nest { Box::new(move |inner| drop((lock.lock(), inner()))) };
        (nest(first), nest(last))
    };
    "Box::default", OWN: two((*Box::<Mutex<u32>>::default(), *Box::<Mutex<u32>>::default()));
    "Rc::default", OWN: {
        let both: [Rc<Mutex<u32>>; 2] = Default::default();
        let [first, last] = both;
        (at(&first, |lock| lock), at(&last, |lock| lock))
    };
    "default of a tuple", OWN: two(<(Mutex<u32>, Mutex<u32>)>::default());
    "default of an array", OWN: pair(<[Mutex<u32>; 2]>::default(), [|all| &all[0], |all| &all[1]]);
    "into", OWN: two((5.into(), 6.into()));
    "From::from", OWN: two((Mutex::from(5), Mutex::from(6)));
    "Arc::new(into)", OWN: {
        let (first, last): (Arc<Mutex<u32>>, Arc<Mutex<u32>>) = (Arc::new(5.into()), Arc::new(6.into()));
        let nest = |lock: Arc<Mutex<u32>>| -> Nest { Box::new(move |inner| drop((lock.lock(), inner()))) };
        (nest(first), nest(last))
    };
    "map(Mutex::new)", OWN: pair((0..2).map(Mutex::new).collect::<Vec<_>>(), [|all| &all[0], |all| &all[1]]);
    "map(Mutex::from)", OWN: pair((0..2).map(Mutex::from).collect::<Vec<_>>(), [|all| &all[0], |all| &all[1]]);
    "map(|value| Mutex::new(value))", CLASS: {
        #[allow(clippy::redundant_closure)]
        let all: Vec<Mutex<u32>> = (0..2).map(|value| Mutex::new(value)).collect();
        pair(all, [|all| &all[0], |all| &all[1]])
    };
    "array.map(Mutex::new)", OWN: pair([1, 2].map(Mutex::new), [|all| &all[0], |all| &all[1]]);
    "array::from_fn", CLASS: {
        pair(std::array::from_fn::<_, 2, _>(|_| Mutex::new(0)), [|all| &all[0], |all| &all[1]])
    };
    "repeat_with(Mutex::default)", OWN: {
        let all: Vec<Mutex<u32>> = std::iter::repeat_with(Mutex::default).take(2).collect();
        pair(all, [|all| &all[0], |all| &all[1]])
    };
    "resize_with(Default::default)", OWN: {
        let mut all: Vec<Mutex<u32>> = Vec::new();
        all.resize_with(2, Default::default);
        pair(all, [|all| &all[0], |all| &all[1]])
    };
    "entry().or_default()", OWN: {
        let mut all: HashMap<u32, Mutex<u32>> = HashMap::new();
        all.entry(1).or_default();
        all.entry(2).or_default();
        pair(all, [|all| &all[&1], |all| &all[&2]])
    };
    "entry().or_default() of a tree", OWN: {
        let mut all: BTreeMap<u32, Arc<Mutex<u32>>> = BTreeMap::new();
        all.entry(1).or_default();
        all.entry(2).or_default();
        pair(all, [|all| &all[&1], |all| &all[&2]])
    };
    "entry().or_insert_with(|| Mutex::new)", CLASS: {
        let mut all: HashMap<u32, Mutex<u32>> = HashMap::new();
        for key in [1, 2] {
            all.entry(key).or_insert_with(|| Mutex::new(0));
        }
        pair(all, [|all| &all[&1], |all| &all[&2]])
    };
    "unwrap_or_default", OWN: {
        let mut none = Vec::<Mutex<u32>>::new();
        two((none.pop().unwrap_or_default(), none.pop().unwrap_or_default()))
    };
    "mem::take", OWN: {
        let (mut first, mut last) = (Mutex::new(0), Mutex::new(0));
        drop((std::mem::take(&mut first), std::mem::take(&mut last)));
        two((first, last))
    };
    "OnceLock::get_or_init(Mutex::default)", OWN: {
        static FIRST: OnceLock<Mutex<u32>> = OnceLock::new();
        static LAST: OnceLock<Mutex<u32>> = OnceLock::new();
        (of_static(FIRST.get_or_init(Mutex::default)), of_static(LAST.get_or_init(Mutex::default)))
    };
    "OnceCell::get_or_init", OWN: {
        let all: Rc<[OnceCell<Mutex<u32>>; 2]> = Rc::default();
        let nest = |number: usize| -> Nest {
            let all = Rc::clone(&all);
            Box::new(move |inner| drop((all[number].get_or_init(Default::default).lock(), inner())))
        };
        (nest(0), nest(1))
    };
    "LazyLock of new", OWN: {
        static FIRST: LazyLock<Mutex<u32>> = LazyLock::new(|| Mutex::new(0));
        static LAST: LazyLock<Mutex<u32>> = LazyLock::new(|| Mutex::new(0));
        (of_static(&FIRST), of_static(&LAST))
    };
    "LazyLock of default", OWN: {
        static FIRST: LazyLock<Mutex<u32>> = LazyLock::new(Default::default);
        static LAST: LazyLock<Mutex<u32>> = LazyLock::new(Default::default);
        (of_static(&FIRST), of_static(&LAST))
    };
    "thread_local", CLASS: {
        std::thread_local! { static LOCK: Arc<Mutex<u32>> = Arc::new(Mutex::new(0)); }
        let nest = |lock: Arc<Mutex<u32>>| -> Nest { Box::new(move |inner| drop((lock.lock(), inner()))) };
        let other = std::thread::spawn(|| LOCK.with(Arc::clone)).join().unwrap();
        (nest(LOCK.with(Arc::clone)), nest(other))
    };
    "zeroed memory", OWN: {
        // SAFETY: zeroes are an unlocked lock around 0.
        let zeroed = || unsafe { MaybeUninit::<Mutex<u32>>::zeroed().assume_init() };
        two((zeroed(), zeroed()))
    };
    "INIT", OWN: {
        let make = || Unplaced::from_raw(api::Raw::new(Initial::INIT), 0);
        let nest = |lock: Unplaced| -> Nest { Box::new(move |inner| drop((lock.lock(), inner()))) };
        (nest(make()), nest(make()))
    };
    "lock_api's new, first acquired in one line", OWN: {
        fn read(lock: &Unplaced) -> u32 {
            *lock.lock()
        }
        let nest = |lock: Unplaced| -> Nest {
            read(&lock);
            Box::new(move |inner| drop((lock.lock(), inner())))
        };
        (nest(Unplaced::new(1)), nest(Unplaced::new(2)))
    };
    "read-write locks by Arc::default", OWN: {
        let nest = |lock: Arc<RwLock<u32>>| -> Nest { Box::new(move |inner| drop((lock.write(), inner()))) };
        (nest(Arc::default()), nest(Arc::default()))
    };
    "a reentrant lock by Arc::default", OWN: {
        let nest = |lock: Arc<ReentrantMutex<u32>>| -> Nest { Box::new(move |inner| drop((lock.lock(), inner()))) };
        (nest(Arc::default()), nest(Arc::default()))
    };
    "a priority lock by Arc::default", OWN: {
        let nest = |lock: Arc<PiMutex<u32>>| -> Nest { Box::new(move |inner| drop((lock.lock(), inner()))) };
        (nest(Arc::default()), nest(Arc::default()))
    };
    "a fair lock by Arc::default", OWN: {
        let nest = |lock: Arc<FairMutex<u32>>| -> Nest { Box::new(move |inner| drop((lock.lock(), inner()))) };
        (nest(Arc::default()), nest(Arc::default()))
    };
    "semaphores as locks, by map", OWN: {
        let nest = |lock: Semaphore| -> Nest {
            Box::new(move |inner| drop((lock.acquire_as_lock(), inner())))
        };
        let mut both = [1, 1].map(Semaphore::new).into_iter();
        (nest(both.next().unwrap()), nest(both.next().unwrap()))
    };
};
