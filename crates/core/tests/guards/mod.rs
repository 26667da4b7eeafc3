//! What the guards of the typed face can be sent to and shared with is the same in every world.

use ulocks_core::api;
use ulocks_testkit::plain::Plain;

type Mutex<T> = api::Mutex<Plain, T>;
type MutexGuard<'a, T> = api::MutexGuard<'a, Plain, T>;
type MappedMutexGuard<'a, T> = api::MappedMutexGuard<'a, Plain, T>;
type Condvar = api::Condvar<Plain>;

/// Has two implementations for a type that is `Send`, so that naming neither of them does not
/// compile.
trait AmbiguousIfSend<A> {
    const NOT_SEND: () = ();
}
enum Sendable {}
impl<T: ?Sized> AmbiguousIfSend<()> for T {}
impl<T: ?Sized + Send> AmbiguousIfSend<Sendable> for T {}

#[test]
fn guards_are_sync_and_not_send_as_on_the_machine() {
    fn is_sync<T: Sync + ?Sized>() {}
    fn is_send<T: Send + ?Sized>() {}
    is_sync::<Mutex<std::cell::Cell<u8>>>();
    is_send::<Mutex<u8>>();
    is_sync::<MutexGuard<'_, u8>>();
    is_sync::<MappedMutexGuard<'_, str>>();
    is_sync::<Condvar>();
    is_send::<Condvar>();
    let () = <MutexGuard<'_, u8> as AmbiguousIfSend<_>>::NOT_SEND;
    let () = <MappedMutexGuard<'_, u8> as AmbiguousIfSend<_>>::NOT_SEND;
    #[cfg(feature = "arc_lock")]
    let () = <api::ArcMutexGuard<Plain, u8> as AmbiguousIfSend<_>>::NOT_SEND;
}
