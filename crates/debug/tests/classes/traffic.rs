//! Many locks of one making, in an order that only the program knows.

use super::reports;
use ulocks_debug::{Class, FairMutex, Mutex, Rule, Severity};

/// Numbers that are as good as random.
fn numbers() -> impl FnMut(usize) -> usize {
    let mut seed = 7_u64;
    move |below| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    }
}

/// Locks are nested by a rank that has nothing to do with their places. That is right; the other
/// order of a pair that was nested is not, nor is a circle of three.
fn traffic<L: Send + 'static>(make: fn(usize) -> Vec<L>, lock: fn(&L, &mut dyn FnMut())) {
    const COUNT: usize = 60;
    let found = reports(move || {
        let (locks, mut number) = (make(COUNT), numbers());
        let mut ranks: Vec<usize> = (0..COUNT).collect();
        (1..COUNT).for_each(|index| ranks.swap(index, number(index + 1)));
        let mut nested = vec![[false; COUNT]; COUNT];
        for _ in 0..1_500 {
            let (one, other) = (number(COUNT), number(COUNT));
            if one == other {
                continue;
            }
            let (outer, inner) = if ranks[one] < ranks[other] { (one, other) } else { (other, one) };
            nested[outer][inner] = true;
            lock(&locks[outer], &mut || lock(&locks[inner], &mut || ()));
        }
        assert_eq!(super::REPORTS.lock().unwrap().len(), 0, "the order is right");
        // Every way there is between two locks.
        let mut ways = nested;
        for between in 0..COUNT {
            for from in 0..COUNT {
                for to in 0..COUNT {
                    ways[from][to] |= ways[from][between] && ways[between][to];
                }
            }
        }
        let mut wrong = 0;
        for (from, to) in (0..COUNT).flat_map(|from| (0..COUNT).map(move |to| (from, to))) {
            if ways[from][to] {
                lock(&locks[to], &mut || lock(&locks[from], &mut || ()));
                wrong += 1;
                assert_eq!(super::REPORTS.lock().unwrap().len(), wrong, "{to} before {from} is wrong");
            }
        }
        assert!(wrong > COUNT * COUNT / 4, "{wrong}");
    });
    let is_right = |report: &ulocks_debug::Report| {
        report.rule() == Rule::Order
            && report.severity() == Severity::Fault
            && report.notes().is_empty()
            && report
                .steps()
                .iter()
                .zip(report.steps().iter().cycle().skip(1))
                .all(|(step, next)| step.asked.number == next.held.number)
    };
    assert!(found.iter().all(is_right), "{:?}", found.iter().find(|report| !is_right(report)));
}

#[test]
fn locks_of_one_class_have_an_order_of_their_own() {
    traffic(|count| (0..count).map(|_| Mutex::new(0)).collect(), |lock, inner| drop((lock.lock(), inner())));
}

#[test]
fn locks_without_a_class_have_an_order_of_their_own() {
    traffic(|count| (0..count).map(FairMutex::new).collect(), |lock, inner| drop((lock.lock(), inner())));
}

/// One wrong transfer between accounts that are locked by number, 2000 right ones later.
#[test]
fn a_wrong_transfer_in_two_thousand_is_found() {
    let found = reports(|| {
        let (accounts, mut number) = ((0..1_000).map(|_| Mutex::new(0)).collect::<Vec<_>>(), numbers());
        let transfer = |from: usize, to: usize| drop((accounts[from].lock(), accounts[to].lock()));
        transfer(3, 5);
        for _ in 0..2_000 {
            let (one, other) = (number(1_000), number(1_000));
            if one != other {
                transfer(one.min(other), one.max(other));
            }
        }
        transfer(5, 3);
    });
    let steps = found.iter().map(|report| report.steps().len()).collect::<Vec<_>>();
    assert_eq!(steps, [2], "{found:?}");
}

#[test]
fn a_circle_of_three_hundred_is_found() {
    let found = reports(|| {
        let locks: Vec<Mutex<u32>> = (0..300).map(|_| Mutex::new(0)).collect();
        for index in 0..300 {
            drop((locks[index].lock(), locks[(index + 1) % 300].lock()));
        }
    });
    let steps = found.iter().map(|report| report.steps().len()).collect::<Vec<_>>();
    assert_eq!(steps, [300]);
}

/// A circle that leaves the class, and goes on inside of it.
#[test]
fn a_circle_through_two_locks_of_a_class_is_one() {
    let found = reports(|| {
        let accounts = [(); 2].map(|()| Mutex::new(0));
        let journal = FairMutex::new(0);
        drop((accounts[0].lock(), accounts[1].lock()));
        drop((accounts[1].lock(), journal.lock()));
        drop((journal.lock(), accounts[0].lock()));
    });
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].steps().len(), found[0].severity()), (3, Severity::Fault), "{}", found[0]);
}

/// Two pairs of locks of two wrapped lines: they need not be fields of one type.
#[test]
fn pairs_that_lie_differently_are_a_guess() {
    let found = reports(|| {
        let one = |value: u32| Mutex::new(value);
        let other = |value: u32| FairMutex::new(value);
        let (a, b) = (Box::new(one(1)), Box::new(other(2)));
        let (c, d) = (one(3), Box::new([0_u64; 1000]));
        let e = other(4);
        drop((a.lock(), b.lock()));
        drop((e.lock(), c.lock()));
        drop(d);
    });
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].severity(), Severity::Warning, "{}", found[0]);
}

/// The statics of a wrapper lie equally far apart, and have nothing to do with each other.
#[test]
fn statics_in_a_row_are_a_guess() {
    struct Shared<T>(Mutex<T>);
    impl<T> Shared<T> {
        const fn new(value: T) -> Self {
            Self(Mutex::new(value))
        }
    }
    #[repr(C)]
    struct Row(Shared<u32>, Shared<i32>, Shared<u32>, Shared<i32>);
    static ROW: Row = Row(Shared::new(0), Shared::new(0), Shared::new(0), Shared::new(0));
    let found = reports(|| {
        drop((ROW.0.0.lock(), ROW.1.0.lock()));
        drop((ROW.3.0.lock(), ROW.2.0.lock()));
    });
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].severity(), Severity::Warning, "{}", found[0]);
}

/// Two orders under a third lock cannot meet. Without it they can.
#[test]
fn a_gate_keeps_two_orders_apart() {
    let orders = |gated: [bool; 3]| {
        reports(move || {
            // Locks of no class: each run has its own.
            let [gate, one, other] = [(); 3].map(|()| Box::<Mutex<u32>>::default());
            let under = |is_gated: bool, inner: &dyn Fn()| {
                let _gate = is_gated.then(|| gate.lock());
                inner();
            };
            under(gated[0], &|| drop((one.lock(), other.lock())));
            for _ in 0..2 {
                under(gated[1], &|| drop((other.lock(), one.lock())));
            }
            under(gated[2], &|| drop((one.lock(), other.lock())));
        })
        .len()
    };
    assert_eq!(orders([true, true, true]), 0);
    assert_eq!(orders([true, true, false]), 1, "the first order is used without the gate");
    assert_eq!(orders([true, false, true]), 1, "the second order is used without the gate");
    assert_eq!(orders([false, true, true]), 1, "the first order was used without the gate");
}

/// One order under each of two gates of a class, and the other order under the first one. The first
/// gate may have been used alone, for long enough to be remembered.
#[test]
fn two_locks_of_a_class_are_two_gates() {
    static CLASSES: [Class; 4] = [Class::new("1"), Class::new("3"), Class::new("5"), Class::new("50")];
    for (class, rounds) in CLASSES.iter().zip([1, 3, 5, 50]) {
        let found = reports(move || {
            let gates = [(); 2].map(|()| Mutex::new_in(class, 0));
            let [one, other] = [(); 2].map(|()| Box::<Mutex<u32>>::default());
            for _ in 0..rounds {
                drop((gates[0].lock(), one.lock(), other.lock()));
            }
            drop((gates[1].lock(), one.lock(), other.lock()));
            drop((gates[0].lock(), other.lock(), one.lock()));
        });
        let rules: Vec<_> = found.iter().map(|report| report.rule()).collect();
        assert_eq!(rules, [Rule::Order], "after {rounds} rounds: {found:?}");
    }
}

/// The shortest way back is kept apart by a gate, and a longer one is not.
#[test]
fn a_gate_on_one_way_back_hides_no_other_way() {
    let found = reports(|| {
        let [gate, a, b, c, d, e] = [(); 6].map(|()| Box::<Mutex<u32>>::default());
        drop((gate.lock(), a.lock(), b.lock()));
        drop((gate.lock(), b.lock(), c.lock()));
        for (outer, inner) in [(&a, &d), (&d, &e), (&e, &c)] {
            drop((outer.lock(), inner.lock()));
        }
        for _ in 0..3 {
            drop((c.lock(), a.lock()));
        }
    });
    let steps: Vec<_> = found.iter().map(|report| report.steps().len()).collect();
    assert_eq!(steps, [4], "{found:#?}");
}

/// A way back may pass a gate once, beside one that passes it twice.
#[test]
fn a_way_back_that_passes_a_gate_once_is_found_beside_one_that_passes_it_twice() {
    let found = reports(|| {
        let [gate, a, b, c, d] = [(); 5].map(|()| Box::<Mutex<u32>>::default());
        for (outer, inner) in [(&a, &b), (&b, &c), (&a, &d)] {
            drop((gate.lock(), outer.lock(), inner.lock()));
        }
        drop((d.lock(), c.lock()));
        // Against `a`, `d` and `c`, the first two of them under the gate.
        drop((c.lock(), a.lock()));
    });
    let steps: Vec<_> = found.iter().map(|report| report.steps().len()).collect();
    assert_eq!(steps, [3], "{found:#?}");
}

/// The graph is full, and the oldest edge is the only one of a lock that gets a new one.
#[test]
fn a_lock_gets_an_edge_when_its_only_one_is_the_oldest_of_a_full_graph() {
    const FULL: usize = 1 << 17;
    #[derive(Default)]
    struct Object {
        head: Box<Mutex<u32>>,
        left: Box<Mutex<u32>>,
        right: Box<Mutex<u32>>,
    }
    let found = reports(|| {
        let objects: Vec<Object> = std::iter::repeat_with(Object::default).take(FULL).collect();
        for object in &objects {
            drop((object.head.lock(), object.left.lock()));
        }
        for object in &objects[..10] {
            drop((object.head.lock(), object.right.lock()));
        }
    });
    assert!(found.is_empty(), "{found:#?}");
}
