//! Signals all the time.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use ulocks_testkit::task;

static STRUCK: AtomicUsize = AtomicUsize::new(0);

extern "C" fn strike(_: libc::c_int) {
    STRUCK.fetch_add(1, Relaxed);
}

/// How many signals were handled so far.
pub fn struck() -> usize {
    STRUCK.load(Relaxed)
}

/// Sends signals to its targets until it is dropped. Their handler asks for calls to be restarted,
/// as most programs do.
pub struct Storm {
    targets: Arc<Mutex<Vec<i32>>>,
    over: Arc<AtomicBool>,
    sender: Option<JoinHandle<()>>,
}

/// The thread that made this is a target until it drops it.
pub struct Target<'a>(&'a Storm, i32);

impl Storm {
    pub fn new() -> Self {
        // SAFETY: the handler does nothing but count; the action is initialised, its mask empty.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = strike as extern "C" fn(libc::c_int) as usize;
            action.sa_flags = libc::SA_RESTART;
            assert_eq!(libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut()), 0);
        }
        let targets: Arc<Mutex<Vec<i32>>> = Arc::default();
        let over = Arc::new(AtomicBool::new(false));
        let sender = {
            let (targets, over) = (Arc::clone(&targets), Arc::clone(&over));
            thread::spawn(move || {
                while !over.load(Relaxed) {
                    for &target in targets.lock().unwrap().iter() {
                        // A thread is among the targets only while it runs.
                        task::signal(target, libc::SIGUSR1);
                    }
                    thread::sleep(Duration::from_micros(50));
                }
            })
        };
        Self { targets, over, sender: Some(sender) }
    }

    /// Makes a target of the calling thread.
    pub fn strike_me(&self) -> Target<'_> {
        let me = task::id();
        self.targets.lock().unwrap().push(me);
        Target(self, me)
    }
}

impl Drop for Target<'_> {
    fn drop(&mut self) {
        self.0.targets.lock().unwrap().retain(|target| *target != self.1);
    }
}

impl Drop for Storm {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        if let Some(sender) = self.sender.take() {
            sender.join().expect("the sender does not panic");
        }
    }
}
