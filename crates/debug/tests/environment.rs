//! `ULOCKS_CHECKED`, reports that a program accepts, forks, and the ends of threads: each in a
//! process of its own.

#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::process::Command;
use std::time::Duration;
use std::{mem, thread};
use ulocks_core::api::Token;
use ulocks_debug::{
    Class, Condvar, FairMutex, Mutex, Policy, RwLock, SignalContext, TryLockError, accept, held,
    new_deadlocks, profile, set_policy, set_stacks,
};
use ulocks_testkit::Child;
use ulocks_testkit::limit::{again, output, until};

static FIRST: Class = Class::new("first");
static LAST: Class = Class::new("last");

/// Two locks in both orders, a guess, and a lock that is read twice.
fn program() {
    let (first, last) = (Mutex::new_in(&FIRST, 0), Mutex::new_in(&LAST, 0));
    drop((first.lock(), last.lock()));
    for _ in 0..2 {
        drop((last.lock(), first.lock())); // the inversion
    }
    let make = |value| Mutex::new(value);
    let (one, other) = (make(1), make(2));
    drop((one.lock(), first.lock()));
    drop((first.lock(), other.lock())); // the guess
    for _ in 0..3 {
        // Locks of no class: each pair is new, and its lines are not.
        let [one, other] = [(); 2].map(|()| Box::<Mutex<u32>>::default());
        drop((one.lock(), other.lock()));
        drop((other.lock(), one.lock())); // the pairs
    }
    let table = RwLock::new(0);
    drop((table.read(), table.read()));
    println!("it goes on, and holds {}", {
        let _held = first.lock();
        held().locks().len()
    });
}

/// The line of this file with that comment.
fn line(comment: &str) -> usize {
    let text = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/environment.rs")).unwrap();
    1 + text.lines().position(|line| line.ends_with(comment)).unwrap()
}

/// What the program prints with these words in the environment, and whether it ends well.
fn run(words: &str) -> (String, bool) {
    run_that("1", words)
}

/// The same of another program.
fn run_that(program: &str, words: impl AsRef<OsStr>) -> (String, bool) {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "the_program", "--nocapture"]).env("ULOCKS_TEST_PROGRAM", program);
    let output = output(command.env("ULOCKS_CHECKED", words).env("RUST_BACKTRACE", "0"));
    let texts = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    (texts.concat(), output.status.success())
}

/// Reports of three rules about locks of two classes.
fn program_of_classes() {
    static ACCEPTOR: Class = Class::new("acceptor");
    static PEER: Class = Class::new("peer");
    let table = RwLock::new_in(&ACCEPTOR, 0);
    drop((table.read(), table.read()));
    let (acceptor, peer) = (Mutex::new_in(&ACCEPTOR, 0), Mutex::new_in(&PEER, 0));
    drop((peer.lock(), acceptor.lock()));
    let (_held, mut waits) = (acceptor.lock(), peer.lock());
    Condvar::new().wait_for(&mut waits, Duration::from_millis(1));
    println!("it goes on");
}

#[test]
fn the_program() {
    match env::var("ULOCKS_TEST_PROGRAM").as_deref() {
        Ok("has classes") => program_of_classes(),
        Ok("cannot print") => {
            let full = fs::File::options().write(true).open("/dev/full").unwrap();
            // SAFETY: both are descriptors of this process.
            assert_eq!(unsafe { libc::dup2(full.as_raw_fd(), 2) }, 2);
            program();
        }
        Ok("has standard error") => {
            let _alone = std::io::stderr().lock();
            thread::spawn(program).join().unwrap();
        }
        Ok("accepts") => {
            accept("last", "first");
            accept("tests/environment.rs:1", "first"); // no such line
            program();
        }
        Ok(_) => {
            fn never(_: &ulocks_debug::Report) {
                println!("the policy of the program");
            }
            drop(Mutex::new(0).lock());
            set_policy(Policy::Call(never));
            program();
        }
        Err(_) => {}
    }
}

#[test]
fn the_environment_says_what_becomes_of_reports() {
    let (text, is_well) = run("warn");
    assert!(is_well && text.contains("it goes on, and holds 1"), "{text}");
    assert_eq!(text.matches("fault: inversion").count(), 2, "{text}");
    assert_eq!(text.matches("warning: possible inversion").count(), 1, "{text}");
    assert_eq!(text.matches("if a writer comes between").count(), 1, "{text}");

    for words in ["panic", "abort"] {
        let (text, is_well) = run(words);
        assert!(!is_well && text.contains("fault: inversion") && !text.contains("goes on"), "{text}");
        assert_eq!(text.contains("panicked"), words == "panic", "{text}");
    }
    let (text, is_well) = run("off");
    assert!(is_well && text.contains("it goes on, and holds 0") && !text.contains("ulocks-debug"), "{text}");

    let (text, _) = run("warn,strict");
    assert_eq!(text.matches("fault: inversion: same class, different locks").count(), 1, "{text}");
    let (text, is_well) = run("");
    assert!(is_well && text.contains("the policy of the program"), "{text}");
    assert!(run("warn,loud").0.contains("no word `loud`"));
}

/// A log may be full, or a pipe closed. A program that only warns goes on.
#[test]
fn reports_that_cannot_be_printed_are_lost() {
    for words in ["warn", "warn,loud,accept=/nowhere"] {
        let (text, is_well) = run_that("cannot print", words);
        assert!(is_well && text.contains("it goes on, and holds 1"), "{text}");
    }
}

/// The thread that has the lock of standard error may wait for a lock of the program.
#[test]
fn a_report_takes_no_lock_of_the_program() {
    let (text, is_well) = run_that("has standard error", "warn");
    assert!(is_well && text.contains("it goes on, and holds 1"), "{text}");
    assert_eq!(text.matches("fault: inversion").count(), 2, "{text}");
}

/// A path may be any bytes.
#[test]
fn words_need_no_unicode() {
    let (text, is_well) = run_that("1", OsStr::from_bytes(b"warn,lo\xFFud,accept=/nowhere\xFF"));
    assert!(is_well && text.contains("it goes on, and holds 1"), "{text}");
    assert!(text.contains("no word `lo") && text.contains("cannot read `/nowhere"), "{text}");
}

#[test]
fn a_file_accepts_pairs() {
    let file = env::temp_dir().join(format!("ulocks-accepted-{}", std::process::id()));
    let [inversion, guess, pairs] = ["// the inversion", "// the guess", "// the pairs"].map(line);
    let text = format!(
        "# known\n\n  accept  debug/tests/environment.rs:{inversion} -> tests/environment.rs:{inversion}\n\
         environment.rs:{guess} -> environment.rs:{guess}\nno arrow\n\
         environment.rs:{pairs} -> environment.rs:{pairs}\n"
    );
    fs::write(&file, text).unwrap();
    let (text, is_well) = run(&format!("warn,accept={}", file.display()));
    fs::remove_file(file).unwrap();
    assert!(is_well && !text.contains("inversion:"), "{text}");
    assert!(text.contains("if a writer comes between") && text.contains("without `->`: no arrow"), "{text}");
    assert!(run("warn,accept=/nowhere").0.contains("cannot read `/nowhere`"));
}

/// A class may have a name that begins with the word before a pair.
#[test]
fn a_file_accepts_classes_for_each_rule() {
    let file = env::temp_dir().join(format!("ulocks-accepted-classes-{}", std::process::id()));
    let text = "acceptor -> acceptor\n  accept  acceptor -> peer\n";
    for (lines, count) in [("", 3), ("acceptor -> acceptor\n", 2), (text, 0)] {
        fs::write(&file, lines).unwrap();
        let (text, is_well) = run_that("has classes", format!("warn,accept={}", file.display()));
        assert!(is_well && text.contains("it goes on"), "{text}");
        assert_eq!(text.matches("ulocks-debug: ").count(), count, "accepts {lines:?}: {text}");
    }
    fs::remove_file(file).unwrap();
}

/// A process of its own that runs the test of this name with `words` in its environment, and ends
/// well. `false` in that process.
fn is_elsewhere(name: &str, words: &str) -> bool {
    let Some(mut command) = again(name) else { return false };
    let output = output(command.env("ULOCKS_CHECKED", words));
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
    assert!(output.status.success(), "{text}");
    true
}

/// Forks so many times. Each child does `work`, and is ended if it waits for ever.
fn fork_often(times: u32, work: impl Fn()) {
    for _ in 0..times {
        let child = Child::runs(|| {
            // SAFETY: the signal ends the process.
            unsafe { libc::alarm(20) };
            work();
        });
        assert_eq!(child.waited(), 0, "the child waits for ever, or fails");
    }
}

#[test]
fn a_child_of_a_fork_asks_what_is_accepted() {
    fn again() {
        let table = RwLock::new(0);
        drop((table.read(), table.read())); // again
    }
    if is_elsewhere("a_child_of_a_fork_asks_what_is_accepted", "warn") {
        return;
    }
    // The list is long, so that it is mostly locked.
    (0..2_000).for_each(|number| accept("nowhere", &format!("nowhere {number}")));
    let accepted = format!("tests/environment.rs:{}", line("// again"));
    accept(&accepted, &accepted);
    std::thread::spawn(|| {
        loop {
            again();
        }
    });
    fork_often(100, again);
}

#[test]
fn a_child_of_a_fork_asks_for_deadlocks() {
    fn wait_for_oneself() {
        std::thread::spawn(|| {
            let mutex = Mutex::new(0);
            drop((mutex.lock(), mutex.lock()));
        });
    }
    if is_elsewhere("a_child_of_a_fork_asks_for_deadlocks", "warn") {
        return;
    }
    wait_for_oneself();
    for _ in 0..3 {
        std::thread::spawn(|| {
            loop {
                new_deadlocks();
            }
        });
    }
    fork_often(100, || {
        wait_for_oneself();
        until("the thread waits for itself", || !new_deadlocks().is_empty());
    });
}

#[test]
fn a_call_accepts_pairs() {
    let (text, succeeds) = run_that("accepts", "warn");
    assert!(succeeds && !text.contains("`last`"), "{text}");
    assert!(text.contains("possible inversion"), "{text}");
}

/// Handlers of forks that were there before those of the checker run between them.
#[test]
fn a_handler_of_forks_uses_the_checker() {
    static TABLE: Mutex<u32> = Mutex::new(0);
    static LOG: FairMutex<u32> = FairMutex::new(0);
    fn use_all() {
        accept("nowhere", "nowhere");
        new_deadlocks();
        profile::snapshot();
    }
    extern "C" fn prepare() {
        use_all();
        mem::forget((TABLE.lock(), LOG.lock())); // an order that is new
    }
    extern "C" fn after() {
        // SAFETY: the signal ends the process.
        unsafe { libc::alarm(20) };
        // SAFETY: `prepare` has locked both, on this thread; their tokens are nothing.
        unsafe {
            LOG.force_unlock(Token::new(()));
            TABLE.force_unlock(Token::new(()));
        }
        use_all();
        assert_eq!(held().locks().len(), 0);
    }
    if is_elsewhere("a_handler_of_forks_uses_the_checker", "warn") {
        return;
    }
    // SAFETY: the functions do not unwind: a panic in them aborts.
    assert_eq!(unsafe { libc::pthread_atfork(Some(prepare), Some(after), Some(after)) }, 0);
    // SAFETY: the signal ends the process.
    unsafe { libc::alarm(20) };
    // The first acquisition has forks watched from now on.
    drop(TABLE.lock());
    set_stacks(true);
    fork_often(1, || {
        let _held = LOG.lock();
        let asked = TABLE.try_lock_checked();
        assert!(matches!(asked, Err(TryLockError::Fault(_))), "the order of the handler is not known");
    });
}

/// Locks that are held at the end of the main thread name its record as their holder.
#[test]
fn what_the_main_thread_holds_at_its_end_is_not_that_of_a_later_thread() {
    static STATE: Mutex<u32> = Mutex::new(0);
    extern "C" fn at_exit() {
        let later = || {
            drop(Mutex::new(0).lock());
            STATE.try_lock_checked().map(drop)
        };
        let asked = thread::spawn(later).join().unwrap();
        if !matches!(asked, Err(TryLockError::WouldBlock)) {
            eprintln!("{asked:?}");
            // SAFETY: the process has nothing left to do.
            unsafe { libc::_exit(1) };
        }
    }
    if is_elsewhere("what_the_main_thread_holds_at_its_end_is_not_that_of_a_later_thread", "warn") {
        return;
    }
    // The main thread of the child is this one.
    fork_often(1, || {
        // SAFETY: the function does not unwind: a panic in it aborts.
        assert_eq!(unsafe { libc::atexit(at_exit) }, 0);
        mem::forget(STATE.lock());
        std::process::exit(0);
    });
}

/// A lock that a thread acquires while it holds 64 is in no list. It names the thread all the same.
#[test]
fn what_a_thread_holds_beyond_the_64_is_not_that_of_a_later_thread() {
    static LAST: Mutex<u32> = Mutex::new(0);
    if is_elsewhere("what_a_thread_holds_beyond_the_64_is_not_that_of_a_later_thread", "warn") {
        return;
    }
    let earlier = || {
        let many = [(); 64].map(|()| Mutex::new(()));
        let _held = many.each_ref().map(|mutex| mutex.lock());
        mem::forget(LAST.lock());
    };
    let later = || {
        drop(Mutex::new(0).lock());
        LAST.try_lock_checked().map(drop)
    };
    thread::spawn(earlier).join().unwrap();
    let asked = thread::spawn(later).join().unwrap();
    assert!(matches!(asked, Err(TryLockError::WouldBlock)), "{asked:?}");
}

#[test]
fn what_a_handler_holds_is_not_listed_if_nothing_is_checked() {
    if is_elsewhere("what_a_handler_holds_is_not_listed_if_nothing_is_checked", "off") {
        return;
    }
    let mutex = Mutex::new(());
    drop(mutex.lock());
    let _context = SignalContext::enter(libc::SIGUSR1);
    let _held = mutex.lock();
    assert_eq!(held().locks().len(), 0);
}
