//! Locks that wrap another one.

/// In an `impl RawMutex` of a lock whose field is a mutex with the same token: these methods are
/// that mutex's. `passes_on! { 0: try_lock, lock_until, unlock, is_locked }` leaves out `lock`.
/// Methods of another trait are passed on by their signatures, without the receiver.
#[macro_export]
macro_rules! passes_on {
    ($to:tt: $($method:ident),+) => { $($crate::passes_on! { @$method $to })+ };
    ($to:tt: $(fn $method:ident() -> $result:ty;)+) => {$(
        fn $method(&self) -> $result {
            self.$to.$method()
        }
    )+};
    ($to:tt: $(unsafe fn $method:ident($($arg:ident: $type:ty),+) $(-> $result:ty)?;)+) => {$(
        unsafe fn $method(&self, $($arg: $type),+) $(-> $result)? {
            // SAFETY: the caller's contract is the callee's.
            unsafe { self.$to.$method($($arg),+) }
        }
    )+};
    (@lock $to:tt) => {
        fn lock(&self) -> Self::Token {
            self.$to.lock()
        }
    };
    (@try_lock $to:tt) => {
        fn try_lock(&self) -> Option<Self::Token> {
            self.$to.try_lock()
        }
    };
    (@lock_until $to:tt) => {
        fn lock_until(&self, deadline: ulocks_core::time::Deadline) -> Option<Self::Token> {
            self.$to.lock_until(deadline)
        }
    };
    (@unlock $to:tt) => {
        unsafe fn unlock(&self, token: Self::Token) {
            // SAFETY: the caller's contract is the callee's.
            unsafe { self.$to.unlock(token) };
        }
    };
    (@is_locked $to:tt) => {
        fn is_locked(&self) -> bool {
            self.$to.is_locked()
        }
    };
}
