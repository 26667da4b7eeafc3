//! The protocol of `thread` against a kernel that strikes between any two of its steps, and what is
//! found of the real one.

use super::thread::{Control, Thread, between};
use super::*;
use core::cell::{Cell, RefCell};
use core::sync::atomic::Ordering::Relaxed;
use std::rc::Rc;

/// What may come between two steps of a thread.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Event {
    /// An interrupt that would preempt it.
    Preempt,
    /// An interrupt with other work beside, by which a request is lost.
    Work,
    /// A system call, where the thread makes one: for a futex, say.
    Call,
    /// A signal handler, with a section in it.
    Handler,
    /// The same, in whose section it would be preempted.
    HandlerPreempted,
}
use Event::*;

const EVENTS: [Event; 5] = [Preempt, Work, Call, Handler, HandlerPreempted];

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Enter,
    Leave,
}
use Step::{Enter as E, Leave as L};

const PROGRAMS: [&[Step]; 4] = [&[E, L], &[E, L, E, L], &[E, E, L, L], &[E, E, L, E, L, L]];

/// What a handler does, and whether it would be preempted in its section.
type SectionOfHandler = Box<dyn Fn(&Run, bool)>;

/// One run: the kernel's side of a thread, and when it strikes.
#[derive(Default)]
struct Run {
    control: Control,
    /// What the kernel itself knows of the grant.
    is_granted: Cell<bool>,
    events: Vec<(usize, Event)>,
    passed: Cell<usize>,
    /// Sections that the program, not a handler, is in.
    inside: Cell<u32>,
    given_back: Cell<u32>,
    granted: Cell<u32>,
    in_handler: Cell<bool>,
    wrong: RefCell<Option<&'static str>>,
    handler: RefCell<Option<SectionOfHandler>>,
}

thread_local! {
    static RUN: RefCell<Option<Rc<Run>>> = const { RefCell::new(None) };
}

/// Called from between any two steps.
pub(super) fn interrupt() {
    let Some(run) = RUN.with_borrow(|run| run.clone()) else { return };
    let place = run.passed.replace(run.passed.get() + 1);
    run.check();
    for &(_, event) in run.events.iter().filter(|event| event.0 == place) {
        run.strike(event);
        run.check();
    }
}

impl Run {
    fn word(&self) -> (u8, u8) {
        (self.control.request.load(Relaxed), self.control.granted.load(Relaxed))
    }

    fn write(&self, request: u8, granted: u8) {
        self.control.request.store(request, Relaxed);
        self.control.granted.store(granted, Relaxed);
        self.is_granted.set(granted != 0);
    }

    fn complain(&self, wrong: &'static str) {
        self.wrong.borrow_mut().get_or_insert(wrong);
    }

    fn check(&self) {
        if self.word() == (1, 1) {
            self.complain("asks during an extension");
        }
        if (self.word().1 != 0) != self.is_granted.get() {
            self.complain("writes what is the kernel's");
        }
    }

    fn strike(&self, event: Event) {
        match event {
            Preempt if !self.is_granted.get() && self.word().0 != 0 => {
                self.write(0, 1);
                self.granted.set(self.granted.get() + 1);
            }
            Preempt if self.is_granted.get() => self.write(0, 0),
            Preempt => {} // it is preempted, and its word stays
            Work => self.write(0, 0),
            Call if self.is_granted.get() => self.write(0, 0),
            Call => {}
            Handler | HandlerPreempted if !self.in_handler.get() => {
                self.in_handler.set(true);
                if let Some(handler) = &*self.handler.borrow() {
                    handler(self, event == HandlerPreempted);
                }
                self.in_handler.set(false);
            }
            Handler | HandlerPreempted => {}
        }
    }
}

/// The test's `rseq_slice_yield`.
fn given_back() {
    let run = RUN.with_borrow(|run| run.clone()).expect("a run is on");
    if run.word().0 != 0 {
        run.complain("gives back and goes on asking");
    }
    if run.inside.get() > 0 {
        run.complain("gives back inside of a section");
    }
    run.given_back.set(run.given_back.get() + 1);
    run.strike(Call);
}

/// Runs `program`, with `word` as another user has left it, and says what was wrong and how many
/// places it passed.
fn run(program: &[Step], events: &[(usize, Event)], foreign: u8) -> (Option<&'static str>, Rc<Run>) {
    let run = Rc::new(Run { events: events.to_vec(), ..Run::default() });
    run.control.request.store(foreign, Relaxed);
    let thread = Rc::new(Thread::new());
    // SAFETY: `run` is alive until the end of this function, and the thread is not used after it.
    unsafe { thread.enable(NonNull::from(&run.control), given_back) };
    let interrupted = Rc::clone(&thread);
    *run.handler.borrow_mut() = Some(Box::new(move |run, preempted| {
        interrupted.enter();
        if preempted {
            run.strike(Preempt);
        }
        interrupted.leave();
    }));
    RUN.set(Some(Rc::clone(&run)));
    for step in program {
        match step {
            E => {
                thread.enter();
                run.inside.set(run.inside.get() + 1); // the lock is acquired
            }
            L => {
                run.inside.set(run.inside.get() - 1); // and released
                thread.leave();
            }
        }
        between();
    }
    RUN.set(None);
    if thread.depth() != 0 {
        run.complain("is still inside");
    }
    // What an event has left of another user's request is that user's business.
    if run.word() != (foreign, 0) && (foreign == 0 || events.is_empty()) {
        run.complain("leaves something in the word");
    }
    run.handler.take(); // it is a cycle
    let wrong = *run.wrong.borrow();
    (wrong, run)
}

/// All runs with up to two events. What the first wrong one did wrong.
fn explore() -> Result<u32, &'static str> {
    let mut runs = 0;
    let mut go = |program, events: &[_], foreign| {
        runs += 1;
        let (wrong, run) = run(program, events, foreign);
        wrong.map_or(Ok(run.passed.get()), Err)
    };
    for program in PROGRAMS {
        for foreign in [0, 1] {
            let places = go(program, &[], foreign)?;
            for first in (0..places).flat_map(|place| EVENTS.map(|event| (place, event))) {
                let places = go(program, &[first], foreign)?;
                for second in (first.0..places).flat_map(|place| EVENTS.map(|event| (place, event))) {
                    go(program, &[first, second], foreign)?;
                }
            }
        }
    }
    Ok(runs)
}

#[test]
#[cfg_attr(miri, ignore = "the runs are many, and the same in every schedule")]
fn nothing_that_comes_between_two_steps_confuses_it() {
    let runs = explore().expect("sound");
    println!("{runs} runs");
    assert!(runs > 10_000);
}

/// An extension that is granted in a section, and not used up in it, is given back once, at its
/// end.
#[test]
#[cfg_attr(miri, ignore = "the runs are many, and the same in every schedule")]
fn an_extension_is_given_back_once() {
    for program in PROGRAMS {
        let (_, quiet) = run(program, &[], 0);
        assert_eq!((quiet.granted.get(), quiet.given_back.get()), (0, 0));
        let mut granted = 0;
        for place in 0..quiet.passed.get() {
            let (wrong, run) = run(program, &[(place, Preempt)], 0);
            assert_eq!(wrong, None);
            assert_eq!(run.given_back.get(), run.granted.get(), "{program:?}, preempted at {place}");
            granted += run.granted.get();
        }
        assert!(granted > 0, "the request never stood");
    }
}

/// From the return of the outermost `enter` to the beginning of its `leave` the request stands.
#[test]
fn the_request_stands_in_the_section_and_not_outside() {
    let control = Control::new();
    let thread = Thread::new();
    let request = || control.request.load(Relaxed);
    thread.enter();
    thread.leave();
    assert_eq!((request(), thread.depth()), (0, 0), "not enabled");
    thread.enter();
    // SAFETY: `control` outlives `thread`.
    unsafe { thread.enable(NonNull::from(&control), || ()) };
    thread.leave();
    assert_eq!((request(), thread.depth()), (0, 0), "entered before it was enabled");
    thread.enter();
    assert_eq!(request(), 1);
    thread.enter();
    thread.leave();
    assert_eq!(request(), 1);
    thread.leave();
    thread.leave();
    assert_eq!((request(), thread.depth()), (0, 0));
    // A guard that is forgotten, and a request that the kernel has answered.
    thread.enter();
    control.request.store(0, Relaxed);
    thread.enter();
    thread.leave();
    assert_eq!((request(), thread.depth()), (0, 1));
}

/// Guards that are forgotten keep the section for ever: the thread never asks in the middle of one.
#[test]
fn forgotten_guards_never_wrap_the_depth() {
    let (control, thread) = (Control::new(), Thread::new());
    // SAFETY: `control` outlives `thread`.
    unsafe { thread.enable(NonNull::from(&control), || ()) };
    thread.set_depth(u32::MAX - 1);
    (0..3).for_each(|_| thread.enter());
    (0..3).for_each(|_| thread.leave());
    assert_eq!((control.request.load(Relaxed), thread.depth()), (0, u32::MAX - 3));
}

/// glibc's area is where we look for it: the kernel keeps the number of the CPU there.
#[test]
#[cfg_attr(miri, ignore = "Miri has no kernel")]
fn the_area_is_the_thread_s_own() {
    // 20 bytes are in use everywhere.
    let Some(area) = area(20) else {
        println!("skipped: the C library has registered no area, or this architecture is not known");
        return;
    };
    // SAFETY: as in `enable`.
    let id = unsafe { area.as_ref() }.cpu_id.load(Relaxed);
    if id.cast_signed() < 0 {
        println!("skipped: registration failed, or was turned off");
        return;
    }
    let agrees = || {
        let before = crate::sys::cpu::current();
        // SAFETY: as in `enable`.
        let id = unsafe { area.as_ref() }.cpu_id.load(Relaxed);
        before == Some(id) && crate::sys::cpu::current() == before
    };
    assert!((0..1_000).any(|_| agrees()), "the number there is not that of the CPU");
    let other = std::thread::spawn(move || super::area(20).map(|area| area.as_ptr().addr())).join();
    assert_ne!(other.expect("runs"), Some(area.as_ptr().addr()));
}
