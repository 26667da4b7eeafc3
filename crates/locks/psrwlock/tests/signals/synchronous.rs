//! Synchronous signals cannot wait: their handlers may strike a thread that writes, and then do not
//! get in.

use crate::ByAll;
use crate::strikes::{Struck, keeping_errno, strike_me};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use ulocks_psrwlock::ByClass;
use ulocks_psrwlock::signal::{Handlers, Soft};
use ulocks_testkit::shared::Mapping;
use ulocks_testkit::watchdog::watch;

const PAGE: usize = 4096;

fn protect(page: usize, protection: libc::c_int) {
    // SAFETY: the page is one of this test's own.
    assert_eq!(unsafe { libc::mprotect(page as *mut libc::c_void, PAGE, protection) }, 0);
}

#[test]
fn a_fault_in_the_midst_of_a_write_is_handled_there() {
    // Zero, or a page that may be the reason.
    static PROTECTED: AtomicUsize = AtomicUsize::new(0);
    let Struck { lock, seen } = Struck::<ByAll>::new();
    let _watchdog = watch("fault", move || format!("{:?}, {seen:?}", lock.state()));
    let recover = move |context: &ulocks_psrwlock::signal::Context<'_>| {
        seen.look(lock, context);
        match PROTECTED.swap(0, SeqCst) {
            0 => {}
            page => protect(page, libc::PROT_READ | libc::PROT_WRITE),
        }
    };
    // SAFETY: the handler does atomic operations, reads variables, and makes a system call.
    let installed =
        unsafe { Handlers::new().signal(libc::SIGSEGV).install(recover) }.expect("nobody else has it");

    let page = Mapping::private();
    let fault = || {
        let place = page.place::<u64>();
        protect(place.expose_provenance(), libc::PROT_NONE);
        PROTECTED.store(place.expose_provenance(), SeqCst);
        // SAFETY: the page is mapped, and the handler makes it readable.
        assert_eq!(keeping_errno(|| unsafe { place.read_volatile() }), 0);
    };
    for (nth, strike) in [&fault as &dyn Fn(), &|| strike_me(libc::SIGSEGV)].into_iter().enumerate() {
        let (reads, shuts) = (2 * nth, 2 * nth);
        let reader = lock.read();
        strike();
        assert_eq!(seen.counts(), [reads + shuts + 1, reads + 1, shuts], "beside a reader it reads");
        drop(reader);
        let mut held = lock.write();
        strike();
        assert_eq!(seen.counts(), [reads + shuts + 2, reads + 1, shuts + 1], "beside a writer it does not");
        assert!(Soft::is_up(), "the mask stays");
        held.add_one();
        strike();
        drop(held);
        strike();
        assert_eq!(seen.counts(), [reads + shuts + 4, reads + 2, shuts + 2]);
    }
    seen.check();
    assert_eq!(lock.read().look(), 2);
    installed.uninstall();
}
