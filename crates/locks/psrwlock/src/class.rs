//! Classes of readers: what a reader is, and so what it may wait for.

mod sealed {
    pub trait Sealed {}
}

/// A class of readers. There are four, in the order of their [`RANK`](Self::RANK).
///
/// A writer closes them in this order, the lowest first, and the next only when no readers of the
/// lower ones are left. So a reader waits, at most, for readers of its own class and of higher
/// ones, and for writers. A thread that holds a read lock may take another one of a *higher* class,
/// whatever writers wait.
pub trait Class: sealed::Sealed + Send + Sync + 'static {
    /// Its position in the order: a writer closes 0 first.
    const RANK: u32;
    /// Its bit in a set of classes.
    const BIT: u8 = 1 << Self::RANK;
    /// Its name.
    const NAME: &'static str;
}

/// A class whose readers are threads, and may sleep: all but [`Handler`].
#[diagnostic::on_unimplemented(
    message = "a thread does not read in the class `{Self}`",
    label = "a signal handler reads by `read_handler(context)`, a thread as `Bulk`, `Urgent` or `Nested`"
)]
pub trait ThreadClass: Class {}

/// Ordinary readers, which may take long. `read()` is of this class.
#[derive(Clone, Copy, Debug)]
pub enum Bulk {}

/// Threads that must not be kept waiting, and do not keep others waiting: short sections only.
#[derive(Clone, Copy, Debug)]
pub enum Urgent {}

/// Code that is entered again on a thread that may hold a read lock of a lower class already:
/// callbacks, hooks, `Drop` of what the lock protects. This recursive read cannot deadlock.
#[derive(Clone, Copy, Debug)]
pub enum Nested {}

/// Handlers of asynchronous signals. They never sleep, and make no system call.
#[derive(Clone, Copy, Debug)]
pub enum Handler {}

/// The bit of [`Bulk`] in a set of classes.
pub const BULK: u8 = Bulk::BIT;
/// The bit of [`Urgent`] in a set of classes.
pub const URGENT: u8 = Urgent::BIT;
/// The bit of [`Nested`] in a set of classes.
pub const NESTED: u8 = Nested::BIT;
/// The bit of [`Handler`] in a set of classes.
pub const HANDLER: u8 = Handler::BIT;

macro_rules! class {
    ($($class:ident = $rank:literal),*) => {$(
        impl sealed::Sealed for $class {}
        impl Class for $class {
            const RANK: u32 = $rank;
            const NAME: &'static str = stringify!($class);
        }
    )*};
}
class!(Bulk = 0, Urgent = 1, Nested = 2, Handler = 3);

impl ThreadClass for Bulk {}
impl ThreadClass for Urgent {}
impl ThreadClass for Nested {}

/// The names of the classes by rank.
pub(crate) const NAMES: [&str; 4] = [Bulk::NAME, Urgent::NAME, Nested::NAME, Handler::NAME];
