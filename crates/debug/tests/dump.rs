//! The list of held locks by a signal and on a panic. Each test runs a part of itself in a process
//! of its own, and reads what that has written.

#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use std::{fs, ptr, thread};
use ulocks_debug::{Class, FairMutex, Mutex, RwLock, held, waiters};
use ulocks_testkit::limit::{child, until};
use ulocks_testkit::task;

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

const FIRST: &str = "held locks of process ";
const LAST: &str = "end of held locks";

/// A line of a list: the number of the list, and the rest.
fn numbered(line: &str) -> Option<(u32, &str)> {
    let rest = line.strip_prefix("ulocks-debug: #").or_else(|| line.strip_prefix("  #"))?;
    let (number, rest) = rest.split_once(' ')?;
    Some((number.parse().ok()?, rest))
}

/// The lists in a text in the order in which they end, each as its lines. They may be mixed.
fn lists(text: &str) -> Vec<Vec<&str>> {
    let mut lists = Vec::new();
    let mut open: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    for line in text.lines() {
        let Some((number, rest)) = numbered(line) else { continue };
        if rest.starts_with(FIRST) {
            assert!(open.insert(number, Vec::new()).is_none(), "two lists have the number {number}");
        } else if rest == LAST {
            lists.push(open.remove(&number).expect("the beginning of a list"));
        } else {
            assert!(is_entry(rest), "{line:?}");
            open.get_mut(&number).expect("the beginning of a list").push(rest);
        }
    }
    assert!(open.is_empty(), "a list without an end");
    lists
}

/// Whether a line is one of the two kinds, with all its parts.
fn is_entry(line: &str) -> bool {
    let Some(rest) = line.strip_prefix("thread ") else { return false };
    let holds = rest.contains(" holds `") && rest.contains(" since ") && rest.ends_with(" ms");
    let waits = rest.contains(" waits for `") && rest.contains(" in ");
    (holds || waits) && rest.contains(" of crates/debug/tests/dump.rs:") && rest.contains(" at 0x")
}

static OUTER: Class = Class::new("outer");
static INNER: Class = Class::new("inner");

/// A thread `holder` that holds two locks until the end of `program`, and a thread that waits.
/// Returns the lines of the acquisitions.
fn with_holders<T>(program: impl FnOnce([u32; 3]) -> T) -> T {
    let (outer, inner) = (Mutex::new_in(&OUTER, ()), FairMutex::new_in(&INNER, ()));
    let is_over = AtomicBool::new(false);
    let mut lines = [0; 3];
    thread::scope(|scope| {
        let (sender, receiver) = std::sync::mpsc::channel();
        let (outer, inner, is_over) = (&outer, &inner, &is_over);
        let holder = move || {
            let (_outer, first) = (outer.lock(), line!());
            let (_inner, second) = (inner.lock(), line!());
            sender.send([first, second]).unwrap();
            ulocks_testkit::limit::until("the program of the test has ended", || is_over.load(Relaxed));
        };
        thread::Builder::new().name("holder".to_owned()).spawn_scoped(scope, holder).unwrap();
        let [first, second] = receiver.recv().unwrap();
        let third = line!() + 1;
        let waiter = || drop(inner.lock());
        thread::Builder::new().name("waiter".to_owned()).spawn_scoped(scope, waiter).unwrap();
        until("a thread waits", || held().locks().iter().any(|held| held.waiters == 1));
        lines = [first, second, third];
        let result = program(lines);
        is_over.store(true, Relaxed);
        result
    })
}

fn raise(signal: i32) {
    // SAFETY: the signal has a handler.
    assert_eq!(unsafe { libc::raise(signal) }, 0);
}

/// Whether the list has the three lines of [`with_holders`].
fn has_holders(list: &[&str], [first, second, third]: [u32; 3]) -> bool {
    let file = file!();
    let has = |parts: [&str; 3]| list.iter().any(|line| parts.iter().all(|part| line.contains(part)));
    has(["`holder` holds `outer` of ", " at 0x", &format!(" since {file}:{first}:")])
        && has(["`holder` holds `inner` of ", " at 0x", &format!(" since {file}:{second}:")])
        && has(["`waiter` waits for `inner` of ", " at 0x", &format!(" in {file}:{third}:")])
}

/// The lines that the child has printed.
fn lines_of(out: &str) -> [u32; 3] {
    let (_, rest) = out.split_once("lines [").expect("the lines");
    let numbers = rest.split_once(']').expect("their end").0.split(", ");
    numbers.map(|line| line.parse().unwrap()).collect::<Vec<_>>().try_into().unwrap()
}

#[test]
fn a_signal_prints_the_held_locks() {
    let Some(output) = child("a_signal_prints_the_held_locks") else {
        held::on_signal(libc::SIGUSR1).unwrap();
        with_holders(|lines| {
            // The list of the handler is the one that the process reads elsewhere.
            println!("lines {lines:?}");
            raise(libc::SIGUSR1);
        });
        return raise(libc::SIGUSR1);
    };
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    let found = lists(&err);
    let [held, nothing] = &found[..] else { panic!("{err}") };
    assert!(held.len() == 3 && has_holders(held, lines_of(&out)), "{err}");
    assert!(nothing.is_empty(), "{err}");
    assert!(err.contains(&format!("by signal {}", libc::SIGUSR1)), "{err}");
}

#[test]
fn a_list_says_who_reads_and_who_writes() {
    static NAME: Class = Class::new("shared");
    let Some(output) = child("a_list_says_who_reads_and_who_writes") else {
        held::on_signal(libc::SIGUSR1).unwrap();
        let lock = RwLock::new_in(&NAME, ());
        return thread::scope(|scope| {
            let reader = lock.read();
            scope.spawn(|| drop(lock.write()));
            until("the writer waits", || !waiters().is_empty());
            raise(libc::SIGUSR1);
            drop(reader);
        });
    };
    let err = text(&output.stderr);
    assert!(output.status.success(), "{err}");
    let found = lists(&err);
    let [list] = &found[..] else { panic!("{err}") };
    let has = |words: [&str; 2]| list.iter().any(|line| words.iter().all(|word| line.contains(word)));
    assert!(has([" holds `shared` of ", " to read since "]), "{err}");
    assert!(has([" waits for `shared` of ", " to write in "]), "{err}");
}

#[test]
fn a_panic_prints_the_held_locks() {
    let Some(output) = child("a_panic_prints_the_held_locks") else {
        held::on_panic();
        held::on_panic();
        with_holders(|lines| {
            println!("lines {lines:?}");
            static OWN: Class = Class::new("own");
            let own = Mutex::new_in(&OWN, ());
            let result = thread::Builder::new().name("panics".to_owned()).spawn(move || {
                let _own = own.lock();
                panic!("a planted panic");
            });
            assert!(result.unwrap().join().is_err());
        });
        return;
    };
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    let found = lists(&err);
    let [list] = &found[..] else { panic!("{err}") };
    assert!(list.len() == 4 && has_holders(list, lines_of(&out)), "{err}");
    assert!(list[0].contains("`panics` holds `own`"), "{err}");
    // The hook before has run before.
    assert!(err.find("a planted panic").unwrap() < err.find(FIRST).unwrap(), "{err}");
    assert!(err.contains("by a panic"), "{err}");
}

/// A file in memory. Its end has a lock, and its position has none: two threads that write at once
/// would write to one place.
fn memory() -> File {
    // SAFETY: the name is a string that ends in a zero.
    let descriptor = unsafe { libc::memfd_create(c"dump".as_ptr(), 0) };
    assert!(descriptor >= 0);
    // SAFETY: three numbers.
    assert_eq!(unsafe { libc::fcntl(descriptor, libc::F_SETFL, libc::O_APPEND) }, 0);
    // SAFETY: the descriptor is new, and nothing else has it.
    unsafe { File::from_raw_fd(descriptor) }
}

fn contents(mut file: File) -> String {
    file.rewind().unwrap();
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    text
}

/// What the checker does: the first acquisition of the thread, the acquisition of two locks for the
/// first time and once more, and a wait for a lock that another thread holds.
#[cfg(target_arch = "x86_64")]
fn inside_of_the_checker(outer: &Mutex<u32>, inner: &FairMutex<u32>, taken: &Mutex<u32>) {
    for _ in 0..2 {
        let mut in_outer = outer.lock();
        let mut in_inner = inner.lock();
        *in_outer += 1;
        *in_inner += 1;
        drop(in_inner);
        assert!(taken.try_lock_for(Duration::ZERO).is_none());
        drop(in_outer);
    }
}

/// The trap flag has each instruction followed by `SIGTRAP`. So the handler interrupts the thread
/// at each instruction of the checker.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_signal_at_each_instruction_of_the_checker() {
    let Some(output) = child("a_signal_at_each_instruction_of_the_checker") else {
        let file = memory();
        held::on_signal_to(libc::SIGTRAP, file.as_raw_fd()).unwrap();
        static TAKEN: Class = Class::new("taken");
        let taken = Mutex::new_in(&TAKEN, 0);
        let in_taken = taken.lock();
        let step = || {
            let (outer, inner) = (Mutex::new_in(&OUTER, 0), FairMutex::new_in(&INNER, 0));
            // SAFETY: sets the trap flag; the signal has a handler. The stack is as before.
            unsafe { std::arch::asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq") };
            inside_of_the_checker(&outer, &inner, &taken);
            // SAFETY: clears the trap flag.
            unsafe { std::arch::asm!("pushfq", "and qword ptr [rsp], 0xfffffffffffffeff", "popfq") };
            assert_eq!((outer.into_inner(), inner.into_inner()), (2, 2));
        };
        // A new thread, whose first acquisition makes its record.
        thread::scope(|scope| {
            thread::Builder::new().name("stepped".to_owned()).spawn_scoped(scope, step).unwrap();
        });
        drop(in_taken);
        let text = contents(file);
        let lists = lists(&text);
        // What the thread holds and waits for changes by one lock at a time.
        let sets = lists.iter().map(|list| {
            assert!(list.last().is_some_and(|line| line.contains(" holds `taken`")), "{list:?}");
            let names = list[..list.len() - 1].iter().map(|line| {
                let (_, what) = line.split_once(" `stepped` ").expect("the thread");
                what.split_once("` of ").expect("a name").0
            });
            names.collect::<BTreeSet<_>>()
        });
        let mut changes: Vec<Vec<&str>> = sets.map(|set| set.into_iter().collect()).collect();
        let count = changes.len();
        changes.dedup();
        let (outer, inner, taken) = ("holds `outer", "holds `inner", "waits for `taken");
        let round = [vec![], vec![outer], vec![inner, outer], vec![outer], vec![outer, taken], vec![outer]];
        let expected: Vec<Vec<&str>> = round.iter().chain(&round).cloned().chain([vec![]]).collect();
        assert_eq!(changes, expected);
        println!("signals: {count}");
        return;
    };
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    let count = out.lines().find_map(|line| line.split_once("signals: ")).expect("the number of signals").1;
    assert!(count.parse::<u32>().unwrap() > 2_000, "{count} signals");
}

/// Three threads that acquire two locks all the time, and `SIGNALS` signals to each of them. `pace`
/// is called after each with the number of signals that were sent, and what is in the file.
fn while_locks_are_contended(pace: impl Fn(usize, &dyn Fn() -> String)) {
    let file = memory();
    held::on_signal_to(libc::SIGUSR2, file.as_raw_fd()).unwrap();
    let (outer, inner) = (Mutex::new_in(&OUTER, 0_u64), FairMutex::new_in(&INNER, 0_u64));
    let is_over = AtomicBool::new(false);
    let (sender, receiver) = std::sync::mpsc::channel();
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let written = || fs::read_to_string(&path).unwrap();
    thread::scope(|scope| {
        for _ in 0..THREADS {
            let (outer, inner, is_over, sender) = (&outer, &inner, &is_over, sender.clone());
            scope.spawn(move || {
                sender.send(task::id()).unwrap();
                while !is_over.load(Relaxed) {
                    let mut in_outer = outer.lock();
                    *inner.lock() += 1;
                    *in_outer += 1;
                }
            });
        }
        let threads: Vec<_> = receiver.iter().take(THREADS).collect();
        for sent in 1..=THREADS * SIGNALS {
            task::signal(threads[sent % THREADS], libc::SIGUSR2);
            pace(sent, &written);
        }
        is_over.store(true, Relaxed);
    });
    let text = contents(file);
    let lists = lists(&text);
    let holds = lists.iter().flatten().filter(|line| line.contains(" holds `")).count();
    println!("lists: {} with {holds} holds", lists.len());
    assert!(holds > 0);
}

const THREADS: usize = 3;
const SIGNALS: usize = 200;

/// How many lists are complete.
fn ended(text: &str) -> usize {
    text.lines().filter(|line| numbered(line).is_some_and(|(_, rest)| rest == LAST)).count()
}

#[test]
fn signals_at_random_while_locks_are_contended() {
    let Some(output) = child("signals_at_random_while_locks_are_contended") else {
        return while_locks_are_contended(|sent, written| {
            until(&format!("{sent} lists are complete"), || ended(&written()) == sent);
        });
    };
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    assert!(out.contains("lists: 600 "), "{out}{err}");
}

/// A thread takes one signal of a number at a time, so some signals are lost, and no list is.
#[test]
fn no_line_is_lost_of_lists_of_several_threads_at_once() {
    let Some(output) = child("no_line_is_lost_of_lists_of_several_threads_at_once") else {
        return while_locks_are_contended(|sent, written| {
            // The other two may be in the middle of theirs.
            let begun = sent / THREADS;
            until(&format!("{begun} lists are complete"), || ended(&written()) >= begun);
        });
    };
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    let count = out.split_once("lists: ").expect("the lists").1.split(' ').next().unwrap();
    let count: usize = count.parse().unwrap();
    assert!((SIGNALS..=THREADS * SIGNALS).contains(&count), "{out}{err}");
}

/// Two lists, of which the second one is asked for while the first one is written: a pipe that is
/// full stops it in the middle. Returns the text, and the number of the list in each line.
fn two_lists(of_one_thread: bool) -> (String, Vec<u32>) {
    let (mut reader, writer) = std::io::pipe().unwrap();
    // SAFETY: three numbers. The kernel gives one page, which is less than a list of these.
    assert!(unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_SETPIPE_SZ, 1) } > 0);
    for signal in [libc::SIGUSR1, libc::SIGUSR2] {
        held::on_signal_to(signal, writer.as_raw_fd()).unwrap();
    }
    static OUTER: Class = Class::new("outer, and so many words more that a list is three pages long");
    let locks: Vec<_> = (0..LOCKS).map(|_| Mutex::new_in(&OUTER, ())).collect();
    let (sender, receiver) = std::sync::mpsc::channel();
    let is_over = AtomicBool::new(false);
    let mut text = Vec::new();
    let spin = || {
        sender.send(task::id()).unwrap();
        while !is_over.load(Relaxed) {
            std::hint::spin_loop();
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            let _held: Vec<_> = locks.iter().map(|lock| lock.lock()).collect();
            spin();
        });
        let holder = receiver.recv().unwrap();
        scope.spawn(spin);
        let other = receiver.recv().unwrap();
        task::signal(holder, libc::SIGUSR1);
        task::until_asleep(&[holder]);
        let mut some = [0; 4096];
        if of_one_thread {
            task::signal(holder, libc::SIGUSR2);
        } else {
            task::signal(other, libc::SIGUSR2);
            // The one that came first writes a second page, and is then behind the other one.
            for _ in 0..2 {
                task::until_asleep(&[holder, other]);
                let length = reader.read(&mut some).unwrap();
                text.extend_from_slice(&some[..length]);
            }
        }
        until("two lists are complete", || {
            let length = reader.read(&mut some).unwrap();
            text.extend_from_slice(&some[..length]);
            ended(&String::from_utf8_lossy(&text)) == 2
        });
        is_over.store(true, Relaxed);
    });
    let text = String::from_utf8(text).unwrap();
    let lengths: Vec<usize> = lists(&text).iter().map(Vec::len).collect();
    assert_eq!(lengths, [LOCKS; 2], "{text}");
    let mut numbers: Vec<u32> = text.lines().map(|line| numbered(line).expect(line).0).collect();
    numbers.dedup();
    (text, numbers)
}

#[test]
fn a_second_signal_waits_for_the_list_of_its_thread() {
    let Some(output) = child("a_second_signal_waits_for_the_list_of_its_thread") else {
        let (text, numbers) = two_lists(true);
        assert_eq!(numbers, [1, 2], "{text}");
        return println!("one by one");
    };
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && out.contains("one by one"), "{out}{err}");
}

#[test]
fn lists_of_two_threads_that_are_mixed_can_be_told_apart() {
    let Some(output) = child("lists_of_two_threads_that_are_mixed_can_be_told_apart") else {
        let (text, numbers) = two_lists(false);
        assert!(numbers.len() > 2, "they are not mixed: {text}");
        return println!("told apart");
    };
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && out.contains("told apart"), "{out}{err}");
}

/// So many that their list is longer than two pages of 4 KiB. A thread may hold 64.
const LOCKS: usize = 60;

#[test]
fn a_signal_that_has_no_handler_is_refused() {
    for signal in [libc::SIGKILL, 0, 65, -1] {
        let error = held::on_signal(signal).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL), "{signal}");
    }
}

#[test]
fn errno_and_system_calls_are_as_before() {
    let Some(output) = child("errno_and_system_calls_are_as_before") else {
        // A descriptor that cannot be written to.
        held::on_signal_to(libc::SIGUSR1, -1).unwrap();
        // SAFETY: the place of this thread's `errno`.
        unsafe { *libc::__errno_location() = 123 };
        raise(libc::SIGUSR1);
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(123));
        // SAFETY: all zero is a valid value.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: the place of the answer is valid.
        unsafe { libc::sigaction(libc::SIGUSR1, ptr::null(), &raw mut action) };
        assert_ne!(action.sa_flags & libc::SA_RESTART, 0);
        return println!("as before");
    };
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && out.contains("as before"), "{out}{err}");
}
