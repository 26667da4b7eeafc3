//! Static probes of the provider `ulocks`, behind the feature `probes`: a `nop` each, and a note in
//! the program that says where it is and where its arguments are. bpftrace, perf, SystemTap and gdb
//! read these notes. Without the feature no argument is evaluated.
//!
//! | probe | when | arguments |
//! |---|---|---|
//! | `wait_begin` | before a wait | the address of the lock, the name of its class, the file, the line |
//! | `wait_end` | after a wait, also without the lock | the address of the lock |
//! | `acquired` | after an acquisition | as `wait_begin` |
//! | `released` | before a release | the address of the lock |
//! | `reported` | when a rule was broken | the address of the lock, the title of the rule |
//!
//! A text is two arguments, the address of its first byte and its length.

#[cfg(feature = "probes")]
pub(crate) use probe::probe;

#[cfg(not(feature = "probes"))]
macro_rules! probe {
    ($provider:ident, $name:ident, $($arg:expr),*) => {
        if false {
            $(let _ = $arg;)*
        }
    };
}
#[cfg(not(feature = "probes"))]
pub(crate) use probe;

/// The probe of that name, with the address, the class and the place of a wait or of a held lock.
macro_rules! probe_with_place {
    ($name:ident, $of:expr) => {{
        if cfg!(feature = "probes") {
            let (name, file, line) = ($of.class.name(), $of.place.file(), $of.place.line());
            let [(name, name_len), (file, file_len)] = [name, file].map(|text| (text.as_ptr(), text.len()));
            $crate::seen::probes::probe!(ulocks, $name, $of.lock, name, name_len, file, file_len, line);
        }
    }};
}
pub(crate) use probe_with_place;
