//! The semaphore.

use std::sync::Arc;
use ulocks_core::Private;
use ulocks_core::policy::InOneProcess;
use ulocks_core::spin::NoSpin;
use ulocks_fair::SemaphoreWith;
use ulocks_testkit::crowd::{self, TEN_THOUSAND};

#[test]
fn ten_thousand_wait_and_allocate_nothing() {
    wait::<Private>();
    wait::<Private<NoSpin>>();
}

fn wait<P: InOneProcess>()
where
    SemaphoreWith<P>: Send + Sync + 'static,
{
    let semaphore = Arc::new(SemaphoreWith::<P>::new(0));
    let one_after_the_other = {
        let semaphore = Arc::clone(&semaphore);
        move || drop(semaphore.acquire())
    };
    let crowd = crowd::wait(TEN_THOUSAND, one_after_the_other, || semaphore.release(1).unwrap());
    crowd.check();
    assert_eq!(semaphore.available_permits(), 1, "a permit was lost or made");
}
