use super::*;
use crate::run::child::state;
use crate::run::syscalls::{self, Counters};
use std::sync::Mutex;
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::channel;
use std::thread::Scope as Threads;

fn lock(entry: &Entry) -> Locks {
    Locks::new(entry, Form::plain(Scope::Threads), 1).unwrap()
}

/// The forms that an entry can be made in.
fn forms(entry: &Entry) -> Vec<Form> {
    let mut forms = Vec::new();
    for scope in [Scope::Threads, Scope::Processes] {
        for patience_ns in [None].into_iter().chain(entry.patience_ns.iter().copied().map(Some)) {
            for counted in [false, true] {
                forms.push(Form { scope, patience_ns, counted });
            }
        }
    }
    forms.retain(|form| form.scope == Scope::Threads || entry.processes);
    forms
}

#[test]
fn a_lock_is_found_by_its_name_alone() {
    let error = Entry::find("mutex").unwrap_err().to_string();
    assert!(error.starts_with("unknown lock 'mutex'; allowed: none, std, parking_lot, "), "{error}");
    for (i, a) in Entry::all().iter().enumerate() {
        assert_eq!(Entry::find(a.name).unwrap().about, a.about);
        assert!(Entry::all()[..i].iter().all(|b| a.name != b.name), "{}", a.name);
    }
}

#[test]
fn a_form_is_the_type_that_it_says() {
    for entry in Entry::all() {
        for form in forms(entry) {
            let kind = entry.make(form).unwrap();
            let said = (entry.excludes, entry.shared_mode);
            assert_eq!((kind.excludes, kind.shared_mode), said, "{}", entry.name);
            let name = (kind.name)();
            let patience = form.patience_ns.map(|ns| format!("Patience<{ns}>"));
            let spins = match &patience {
                Some(patience) if form.patience_ns != Some(0) => name.contains(patience.as_str()),
                _ => name.contains("NoSpin") == (form.patience_ns == Some(0)) && !name.contains("Patience<"),
            };
            assert!(spins && name.contains("Counted") == (form.counted && entry.counts), "{form:?}: {name}");
            if entry.counts {
                assert_eq!(
                    name.contains("policy::Shared"),
                    form.scope == Scope::Processes,
                    "{form:?}: {name}"
                );
            }
            let locks = Locks::of(kind, form.scope, 1).unwrap();
            locks.get(0).with(&mut || ());
            let meters = locks.get(0).meters().map(|[acquired, ..]| acquired);
            assert_eq!(meters, (form.counted && entry.counts).then_some(1), "{}: {form:?}", entry.name);
        }
    }
}

#[test]
fn a_patience_can_be_part_of_a_name_and_one_that_is_not_there_is_refused() {
    let form = |patience_ns| Form { patience_ns, ..Form::plain(Scope::Threads) };
    let make = |name: &str, form| Entry::find(name).unwrap().make(form);
    let name = |name, ns| (make(name, form(ns)).unwrap().name)();
    assert_eq!(name("calock-0", None), name("calock", Some(0)));
    assert_eq!(name("semaphore-3us", None), name("semaphore", Some(3_000)));
    assert!(Entry::all().iter().all(|entry| entry.name != "calock-0"), "it is no lock of its own");
    assert!(Entry::find("calock-0").unwrap().family && Entry::find("pi-3us").is_err());
    let error = |name, form| make(name, form).unwrap_err().to_string();
    let said = error("std", Form::plain(Scope::Processes));
    assert!(
        said.starts_with("lock 'std' does not work between processes; allowed: none, pthread, "),
        "{said}"
    );
    assert_eq!(error("calock", form(Some(5_000))), "lock 'calock' has no patience of 5us; allowed: 0, 3us");
    assert_eq!(error("std", form(Some(5_000))), "lock 'std' has no patience of 5us; allowed: its own");
}

/// What `f` says on another thread.
fn elsewhere<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| scope.spawn(f).join().unwrap())
}

/// A held lock refuses `try_with` from another thread and grants it once it is free; `try_with`
/// itself excludes.
#[test]
fn a_lock_that_is_held_is_not_to_be_had() {
    for entry in Entry::all() {
        let locks = lock(entry);
        let (lock, name) = (locks.get(0), entry.name);
        let elsewhere = || elsewhere(|| lock.try_with(&mut || ()));
        lock.with(&mut || assert_eq!(elsewhere(), !entry.excludes, "{name}"));
        assert!(elsewhere(), "{name}");
        assert!(lock.try_with(&mut || assert_eq!(elsewhere(), !entry.excludes, "{name}")));
        assert!(elsewhere(), "{name}");
    }
}

/// Two readers at once, and none beside a writer.
#[test]
fn readers_share_and_writers_do_not() {
    for entry in Entry::all().iter().filter(|entry| entry.shared_mode) {
        let locks = lock(entry);
        let (lock, mut together) = (locks.get(0), false);
        lock.with_shared(&mut || {
            elsewhere(|| lock.with_shared(&mut || ()));
            together = true;
            assert_eq!(elsewhere(|| lock.try_with(&mut || ())), !entry.excludes, "{}", entry.name);
        });
        assert!(together, "{}", entry.name);
    }
}

/// Runs `f` on another thread, and comes back when the kernel says that it sleeps.
fn until_it_sleeps<'scope>(scope: &'scope Threads<'scope, '_>, f: impl FnOnce() + Send + 'scope) {
    let (say, hear) = channel();
    scope.spawn(move || {
        // SAFETY: no pointers are involved.
        say.send(unsafe { libc::gettid() }).unwrap();
        f();
    });
    let thread = format!("/proc/self/task/{}", hear.recv().unwrap());
    ulocks_testkit::limit::until("the waiter is asleep", || state(&thread) == Some('S'));
}

/// A waiter gets the lock when its holder lets go; and both are seen at the door to the kernel,
/// wherever the lock says that it goes through it.
#[test]
fn a_waiter_comes_after_the_holder_and_sleeps_are_counted() {
    for entry in Entry::all().iter().filter(|entry| entry.excludes && entry.name != "mcs") {
        let (locks, [holder, waiter]) = (lock(entry), [Counters::default(), Counters::default()]);
        let (lock, waiter, order) = (locks.get(0), &waiter, &Mutex::new(Vec::new()));
        let say = |who| order.lock().unwrap().push(who);
        std::thread::scope(|scope| {
            let wait = || syscalls::count(waiter, || lock.with(&mut || say("waiter")));
            let hold = || {
                until_it_sleeps(scope, wait);
                say("holder");
            };
            syscalls::count(&holder, || lock.with(&mut || hold()));
        });
        assert_eq!(*order.lock().unwrap(), ["holder", "waiter"], "{}", entry.name);
        let (seen, countable) = ((waiter.read().waits > 0, holder.read().wakes > 0), locks.kind().countable);
        // The holder's own wait for its sign may count as well, but it wakes nobody. The waiter of
        // a calock naps with a timer, and the release leaves it alone.
        let wakes = countable && entry.name != "calock";
        assert!(!syscalls::countable() || seen == (countable, wakes), "{}: {seen:?}", entry.name);
    }
}

/// Locks that promise order: the waiter that came first is served first. A waiter has queued when
/// the kernel says that it sleeps.
#[test]
fn queue_locks_serve_in_order() {
    for name in ["mcs-park", "sysv", "fair"] {
        let locks = lock(Entry::find(name).unwrap());
        let (lock, served) = (locks.get(0), &Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            let wait = |index| move || lock.with(&mut || served.lock().unwrap().push(index));
            lock.with(&mut || (0..5).for_each(|index| until_it_sleeps(scope, wait(index))));
        });
        assert_eq!(*served.lock().unwrap(), [0, 1, 2, 3, 4], "{name}");
    }
}

#[test]
fn a_semaphore_set_is_removed_when_a_signal_ends_its_maker() {
    // SAFETY: it may be zero.
    let id = &unsafe { zeroed::<AtomicI32>(1) }.unwrap()[0];
    id.store(-1, SeqCst);
    // SAFETY: the child uses no lock that another thread of this process may hold, but for the
    // allocator's, which glibc keeps usable across fork.
    unsafe {
        let child = libc::fork();
        assert!(child >= 0);
        if child == 0 {
            let locks = Locks::of(Type::of::<SysV>(), Scope::Processes, 1).unwrap();
            let lock: &dyn std::any::Any = locks.get(0);
            id.store(lock.downcast_ref::<SysV>().unwrap().0.id(), SeqCst);
            libc::raise(libc::SIGTERM);
            libc::_exit(0);
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
        assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGTERM, "{status:#x}");
        let id = id.load(SeqCst);
        assert!(id >= 0 && libc::semctl(id, 0, libc::GETVAL) < 0, "the set {id} is still there");
    }
}
