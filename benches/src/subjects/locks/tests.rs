use super::*;
use crate::run::syscalls::{self, Counters};
use crate::subjects::is_here;
use std::sync::mpsc::channel;

#[test]
fn an_unknown_lock_is_named_and_so_are_the_known() {
    let error = Entry::find("mutex").unwrap_err().to_string();
    assert!(error.starts_with("unknown lock 'mutex'; allowed: none, std, parking_lot, "), "{error}");
}

#[test]
fn names_are_unique_and_letters_but_for_variants() {
    for (i, a) in Entry::all().iter().enumerate() {
        assert_eq!(Entry::find(a.name).unwrap().about, a.about);
        for b in &Entry::all()[..i] {
            assert_ne!(a.name, b.name);
            assert!(a.letter != b.letter || a.lock == b.lock, "{} and {}", a.name, b.name);
        }
    }
}

#[test]
fn a_capital_letter_spins_before_it_sleeps() {
    let of = |wanted: fn(&Entry) -> bool| Entry::all().iter().filter(move |entry| wanted(entry));
    let sleep_at_once = of(|entry| !entry.family && entry.letter.is_lowercase());
    let sleep_at_once: Vec<_> = sleep_at_once.map(|entry| entry.name).collect();
    let mut expected = vec![
        "none",
        "pthread",
        "pthread-pi",
        "pthread-robust",
        "sem_t",
        "sysv",
        "wait-wake",
        "sysv-undo",
        "pthread-rw",
        "pthread-rw-writer",
    ];
    expected.retain(|name| is_here(name));
    assert_eq!(sleep_at_once, expected);
    for entry in of(has_policy) {
        assert_eq!(entry.letter.is_lowercase(), entry.patience_ns == Some(0), "{}", entry.name);
        let plain = Entry::find(entry.lock).unwrap();
        assert!(plain.is_plain() && plain.letter == entry.letter.to_ascii_uppercase(), "{}", entry.name);
    }
}

/// Whether it is of the family and has its waiting and counting as a parameter.
fn has_policy(entry: &Entry) -> bool {
    let variant = |other: &Entry| other.lock == entry.lock && other.patience_ns.is_some();
    entry.family && Entry::all().iter().any(variant)
}

#[test]
fn probes_run_when_they_are_named() {
    let probes: Vec<_> = Entry::all().iter().filter(|entry| entry.probe).map(|entry| entry.name).collect();
    let wanted = ["mcs-park", "wait-wake"];
    assert_eq!(probes[..wanted.len()], wanted);
    let elsewhere = |name: &&str| {
        crate::subjects::rwlocks::Entry::find(name).is_ok()
            || crate::subjects::semaphores::Entry::find(name).is_ok()
            || name.starts_with("robust")
            || *name == "sysv-undo" // `shared`
    };
    assert!(probes[wanted.len()..].iter().all(elsewhere), "{probes:?}");
    assert!(Entry::all().iter().all(|entry| entry.is_usual() == (entry.is_plain() && !entry.probe)));
}

#[test]
fn each_lock_with_a_policy_has_variants_and_each_of_them_a_counting_twin() {
    let names: Vec<_> =
        Entry::all().iter().filter(|entry| entry.lock == "calock").map(|entry| entry.name).collect();
    let expected = ["", "-0", "-3us"].map(|v| [format!("calock{v}"), format!("calock{v}-counted")]);
    assert_eq!(names, expected.concat());
    for entry in Entry::all().iter().filter(|entry| has_policy(entry) && !entry.metered) {
        let twin = entry.metered_twin().unwrap();
        assert_eq!(twin.name, format!("{}-counted", entry.name));
        assert!(twin.metered && twin.family && twin.processes == entry.processes, "{}", entry.name);
        assert_eq!((twin.letter, twin.patience_ns), (entry.letter, entry.patience_ns), "{}", entry.name);
        assert!(twin.metered_twin().is_none());
    }
    assert!(Entry::find("std").unwrap().metered_twin().is_none());
}

/// What the registry says of a lock is what its type says.
struct Agrees;

impl Visitor for Agrees {
    type Output = ();

    fn visit<L: Lock>(self, entry: &'static Entry) {
        let said = (entry.excludes, entry.shared_mode, entry.timed, entry.metered);
        assert_eq!(said, (L::EXCLUDES, L::SHARED_MODE, L::TIMED, L::METERED), "{}", entry.name);
        let ns = |ns: &str| format!("Patience<{ns}>");
        let spins = |policy: &str| std::any::type_name::<L>().contains(policy);
        match entry.patience_ns {
            Some(0) => assert!(spins("NoSpin"), "{}", entry.name),
            Some(patience) => assert!(spins(&ns(&patience.to_string())), "{}", entry.name),
            None => assert!(!spins("NoSpin") && !spins("Patience"), "{}", entry.name),
        }
    }
}

#[test]
fn entries_agree_with_their_types() {
    for entry in Entry::all() {
        visit(entry, Scope::Threads, Agrees).unwrap();
        if entry.processes {
            visit(entry, Scope::Processes, Agrees).unwrap();
        }
    }
}

/// A held lock refuses `try_with` from another thread and grants it once it is free; `try_with`
/// itself excludes.
struct Tries;

impl Visitor for Tries {
    type Output = ();

    fn visit<L: Lock>(self, entry: &'static Entry) {
        let row = LockArray::<L>::new(Scope::Threads, 1).unwrap();
        let lock = row.get(0);
        let elsewhere = || std::thread::scope(|s| s.spawn(|| lock.try_with(|| ()).is_some()).join().unwrap());
        lock.with(|| assert_eq!(elsewhere(), !L::EXCLUDES, "{}", entry.name));
        assert!(elsewhere(), "{}", entry.name);
        lock.try_with(|| assert_eq!(elsewhere(), !L::EXCLUDES, "{}", entry.name)).unwrap();
        assert!(elsewhere(), "{}", entry.name);
    }
}

#[test]
fn a_lock_that_is_held_is_not_to_be_had() {
    for entry in Entry::all() {
        visit(entry, Scope::Threads, Tries).unwrap();
    }
}

/// A waiter gets the lock when its holder lets go.
struct Waits;

impl Visitor for Waits {
    type Output = ();

    fn visit<L: Lock>(self, entry: &'static Entry) {
        let row = LockArray::<L>::new(Scope::Threads, 1).unwrap();
        let lock = row.get(0);
        let (say, hear) = channel();
        std::thread::scope(|s| {
            let held = lock.acquire();
            let first = say.clone();
            s.spawn(move || lock.with(|| say.send("waiter").unwrap()));
            // Long enough that the waiter sleeps more often than not; the order must hold either
            // way.
            std::thread::sleep(std::time::Duration::from_millis(2));
            first.send("holder").unwrap();
            drop(held);
        });
        let order: Vec<_> = hear.iter().collect();
        assert_eq!(order, ["holder", "waiter"], "{}", entry.name);
    }
}

#[test]
fn a_waiter_comes_after_the_holder() {
    for entry in Entry::all().iter().filter(|entry| entry.excludes) {
        visit(entry, Scope::Threads, Waits).unwrap();
    }
}

/// Locks that promise order: the waiter that came first is served first. A waiter has queued when
/// the kernel says that it sleeps.
#[test]
fn queue_locks_serve_in_order() {
    struct InOrder;
    impl Visitor for InOrder {
        type Output = ();
        fn visit<L: Lock>(self, entry: &'static Entry) {
            let row = LockArray::<L>::new(Scope::Threads, 1).unwrap();
            let (lock, served) = (row.get(0), std::sync::Mutex::new(Vec::new()));
            std::thread::scope(|s| {
                let held = lock.acquire();
                for index in 0..5 {
                    let (served, (say, hear)) = (&served, channel());
                    s.spawn(move || {
                        // SAFETY: no pointers are involved.
                        say.send(unsafe { libc::gettid() }).unwrap();
                        lock.with(|| served.lock().unwrap().push(index));
                    });
                    until_asleep(hear.recv().unwrap());
                }
                drop(held);
            });
            assert_eq!(served.into_inner().unwrap(), [0, 1, 2, 3, 4], "{}", entry.name);
        }
    }
    for name in ["mcs-park", "sysv"] {
        visit(Entry::find(name).unwrap(), Scope::Threads, InOrder).unwrap();
    }
}

fn until_asleep(thread: libc::pid_t) {
    let asleep = || {
        let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap();
        // The state follows the name, which is in brackets.
        stat.rsplit(") ").next().unwrap().starts_with('S')
    };
    ulocks_testkit::limit::until("the waiter is asleep", asleep);
}

#[test]
fn a_lock_for_threads_only_is_refused_between_processes() {
    let error = visit(Entry::find("std").unwrap(), Scope::Processes, Tries).unwrap_err().to_string();
    assert!(
        error.starts_with("lock 'std' does not work between processes; allowed: none, pthread, "),
        "{error}"
    );
}

fn set_exists(id: libc::c_int) -> bool {
    // SAFETY: no pointers are involved.
    unsafe { libc::semctl(id, 0, libc::GETVAL) >= 0 }
}

#[test]
fn a_semaphore_set_is_removed_with_its_lock() {
    let row = LockArray::<SysV>::new(Scope::Processes, 1).unwrap();
    let id = row.get(0).id();
    assert!(set_exists(id));
    drop(row);
    assert!(!set_exists(id));
}

#[test]
fn a_semaphore_set_is_removed_when_a_signal_ends_its_maker() {
    let mut ends = [0; 2];
    // SAFETY: the array has room for two descriptors; the child uses no lock that another thread of
    // this process may hold, but for the allocator's, which glibc keeps usable across fork.
    unsafe {
        assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
        let child = libc::fork();
        assert!(child >= 0);
        if child == 0 {
            let row = LockArray::<SysV>::new(Scope::Processes, 1).unwrap();
            let id = row.get(0).id();
            libc::write(ends[1], (&raw const id).cast(), size_of_val(&id));
            libc::raise(libc::SIGTERM);
            libc::_exit(0);
        }
        let (mut id, mut status) = (0 as libc::c_int, 0);
        assert_eq!(libc::read(ends[0], (&raw mut id).cast(), size_of_val(&id)), size_of_val(&id) as isize);
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
        assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGTERM, "{status:#x}");
        assert!(!set_exists(id));
        libc::close(ends[0]);
        libc::close(ends[1]);
    }
}

/// A waiter and a waking thread are seen at the door to the kernel, wherever the lock says that it
/// goes through it.
#[test]
fn the_sleeps_and_wakes_of_countable_locks_are_counted() {
    struct Counts;
    impl Visitor for Counts {
        type Output = ();
        fn visit<L: Lock>(self, entry: &'static Entry) {
            let row = LockArray::<L>::new(Scope::Threads, 1).unwrap();
            let (lock, [holder, waiter]) = (row.get(0), [Counters::default(), Counters::default()]);
            std::thread::scope(|s| {
                let held = lock.acquire();
                let (waiter, (say, hear)) = (&waiter, channel());
                s.spawn(move || {
                    // SAFETY: no pointers are involved.
                    say.send(unsafe { libc::gettid() }).unwrap();
                    syscalls::count(waiter, || lock.with(|| ()));
                });
                until_asleep(hear.recv().unwrap());
                syscalls::count(&holder, || drop(held));
            });
            let seen = (waiter.read().waits > 0, holder.read().wakes > 0);
            assert_eq!(seen, (L::COUNTABLE, L::COUNTABLE), "{}", entry.name);
        }
    }
    if syscalls::countable() {
        for entry in Entry::all().iter().filter(|entry| entry.excludes) {
            visit(entry, Scope::Threads, Counts).unwrap();
        }
    }
}
