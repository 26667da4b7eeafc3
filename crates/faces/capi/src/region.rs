//! Regions, and the threads that take part in them.

use crate::call::Uncancelled;
use core::cell::{Cell, RefCell};
use core::ffi::{CStr, c_char, c_int};
use libc::{mode_t, size_t};
use std::ffi::{CString, OsStr};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use ulocks_shm::{
    Attached, Directory, DirectoryError, JoinError, Joined, Member, Region, RegionError, SharedSafe,
};

/// The root of a region of C programs: names, and the bytes of their values.
pub(crate) type Names = Directory<256, { 256 << 10 }>;

/// Locks and data by name, in memory that processes share: in a file, or without one. It has room
/// for 256 names, and 256 KiB for what they stand for. 64 threads can take part at a time.
///
/// A process opens a region once, and all its threads use that. When a process opens a region that
/// no other process has open, the region is reset: all locks in it are unlocked, and the data stays
/// as it was left.
pub struct ulocks_region_t(Region<Names>);

/// A thread that takes part in a region. Only that thread may pass it to functions, and only until
/// the thread ends. A child of fork joins by itself.
pub struct ulocks_member_t(Joined<'static>);

/// The process has created the region: all data is zero.
pub const ULOCKS_REGION_CREATED: c_int = 0;
/// No other process had the region open: the locks are unlocked, the data is as it was left.
pub const ULOCKS_REGION_RESET: c_int = 1;
/// Other processes have the region open.
pub const ULOCKS_REGION_JOINED: c_int = 2;

thread_local! {
    static WHY: RefCell<CString> = RefCell::default();
    /// The sentence in place of `WHY` that a function of a lock says. It allocates nothing, and has
    /// no destructor, for which the C library would allocate.
    static OF_A_LOCK: Cell<Option<&'static CStr>> = const { Cell::new(None) };
}

/// What the calling thread's last error of a region, of a member or of a name was, as a sentence
/// that says what to do. The text is empty if there was none, and valid until the next error. While
/// the thread ends, in a destructor of a thread-local object or of a pthread key, it may be empty.
#[unsafe(no_mangle)]
pub extern "C" fn ulocks_region_error() -> *const c_char {
    match OF_A_LOCK.get() {
        Some(why) => why.as_ptr(),
        None => WHY.try_with(|why| why.borrow().as_ptr()).unwrap_or(c"".as_ptr()),
    }
}

/// Keeps the sentence for `ulocks_region_error`, unless the thread ends and has no place for it.
fn failed(why: &dyn core::fmt::Display, code: c_int) -> c_int {
    OF_A_LOCK.set(None);
    let text = CString::new(why.to_string().replace('\0', " ")).unwrap_or_default();
    _ = WHY.try_with(|why| why.replace(text));
    code
}

/// What cannot be null is.
fn null(what: &str) -> c_int {
    failed(&format_args!("{what} is a null pointer"), libc::EINVAL)
}

fn region_code(error: &RegionError) -> c_int {
    let code = match error {
        RegionError::Io { source, .. } => source.raw_os_error().unwrap_or(libc::EIO),
        RegionError::NotFound | RegionError::NoFolder => libc::ENOENT,
        RegionError::AlreadyExists => libc::EEXIST,
        RegionError::ReadOnly => libc::EACCES,
        RegionError::NoSpace { .. } => libc::ENOSPC,
        RegionError::Busy | RegionError::InUse => libc::EBUSY,
        RegionError::HugePages => libc::EOPNOTSUPP,
        RegionError::WrongVersion { .. } | RegionError::WrongLayout { .. } => libc::EPROTO,
        _ => libc::EBADMSG,
    };
    failed(error, code)
}

fn name_code(error: &DirectoryError) -> c_int {
    let code = match error {
        DirectoryError::Name { .. } => libc::EINVAL,
        DirectoryError::NotFound => libc::ENOENT,
        DirectoryError::WrongType { .. } => libc::EPROTO,
        DirectoryError::Full { .. } | DirectoryError::NoRoom { .. } => libc::ENOSPC,
        _ => libc::EBADMSG,
    };
    failed(error, code)
}

/// # Safety
/// `region` is null or valid for a write.
unsafe fn opened(
    region: *mut *mut ulocks_region_t,
    open: impl FnOnce() -> Result<Region<Names>, RegionError>,
) -> c_int {
    if region.is_null() {
        return null("the place for the region");
    }
    match open() {
        Err(error) => region_code(&error),
        Ok(opened) => {
            // SAFETY: the caller's promise, and not null.
            unsafe { region.write(Box::into_raw(Box::new(ulocks_region_t(opened)))) };
            0
        }
    }
}

/// The same by the name of a file.
///
/// # Safety
/// As that, and `file` is null or a string.
unsafe fn opened_by_name(
    file: *const c_char,
    region: *mut *mut ulocks_region_t,
    open: impl FnOnce(&Path) -> Result<Region<Names>, RegionError>,
) -> c_int {
    let _call = Uncancelled::new();
    if file.is_null() {
        return null("the name of the file");
    }
    // SAFETY: the caller's promise.
    let path = Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(file) }.to_bytes()));
    // SAFETY: the caller's promise.
    unsafe { opened(region, || open(path)) }
}

/// Creates a region in a new file with these permissions, less the umask.
///
/// Returns 0; EEXIST: the file exists; ENOENT: its folder does not exist; EINVAL: a null pointer;
/// ENOSPC: no room; EBUSY: another process makes a region of the file; or why the system refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_region_create(
    file: *const c_char,
    mode: mode_t,
    region: *mut *mut ulocks_region_t,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { opened_by_name(file, region, |path| Region::options().create(path, mode)) }
}

/// Opens the region in a file.
///
/// Returns 0; ENOENT: there is no file; EACCES: it may not be written; EBADMSG: it is no region, or
/// is damaged; EPROTO: it is a region of another version or of another kind; EBUSY: a process
/// creates or resets it and does not finish; EINVAL: a null pointer; or why the system refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_region_open(file: *const c_char, region: *mut *mut ulocks_region_t) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { opened_by_name(file, region, |path| Region::options().open(path)) }
}

/// Opens the region in a file, or creates it if there is no file, or an empty one.
///
/// Returns what ulocks_region_create and ulocks_region_open do.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_region_create_or_open(
    file: *const c_char,
    mode: mode_t,
    region: *mut *mut ulocks_region_t,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { opened_by_name(file, region, |path| Region::options().create_or_open(path, mode)) }
}

/// Creates a region without a file: for children of fork, and for processes that get its
/// descriptor.
///
/// Returns 0; EINVAL: a null pointer; or why the system refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_region_anonymous(region: *mut *mut ulocks_region_t) -> c_int {
    let _call = Uncancelled::new();
    // SAFETY: the caller's promise.
    unsafe { opened(region, || Region::options().anonymous()) }
}

/// Opens the region of a descriptor that another process has passed on. The descriptor stays the
/// caller's.
///
/// Returns what ulocks_region_open does; EBADF: no descriptor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_region_from_fd(
    descriptor: c_int,
    region: *mut *mut ulocks_region_t,
) -> c_int {
    let _call = Uncancelled::new();
    if descriptor < 0 {
        return failed(&"a descriptor is not negative", libc::EBADF);
    }
    // SAFETY: it is no -1, and is used during this call. If it is not open, the system says so.
    let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
    // SAFETY: the caller's promise.
    unsafe { opened(region, || Region::options().from_fd(borrowed)) }
}

/// The descriptor of the region, to be passed to another process. It stays the region's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_region_fd(region: *const ulocks_region_t) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { &*region }.0.fd().as_raw_fd()
}

/// How the process came to the region: ULOCKS_REGION_CREATED, ULOCKS_REGION_RESET or
/// ULOCKS_REGION_JOINED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_region_attached(region: *const ulocks_region_t) -> c_int {
    // SAFETY: the caller's promise.
    match unsafe { &*region }.0.attached() {
        Attached::Created => ULOCKS_REGION_CREATED,
        Attached::Reset => ULOCKS_REGION_RESET,
        Attached::Joined => ULOCKS_REGION_JOINED,
    }
}

/// Closes the region in this process. No pointer into it may be used after that. Threads may leave
/// meanwhile.
///
/// Returns 0, or EBUSY: a thread that joined has not left, and the region stays open. It may have
/// ended since. In a child of fork the threads of its parent do not count.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_region_close(region: *mut ulocks_region_t) -> c_int {
    let _call = Uncancelled::new();
    // It stays in its place, where threads that leave meanwhile count themselves out.
    // SAFETY: the caller's promise.
    match unsafe { &*region }.0.taking_part() {
        0 => {
            // SAFETY: the caller's promise: it comes from a function that opened it, and is closed
            // once. No thread takes part, so none is in a call of it.
            drop(unsafe { Box::from_raw(region) });
            0
        }
        threads => {
            let why =
                format_args!("threads of this process take part in the region ({threads}): they leave first");
            failed(&why, libc::EBUSY)
        }
    }
}

/// Lets the calling thread take part in the region.
///
/// Returns 0; EAGAIN: 64 threads take part already; ENOSYS: the thread has no robust list that can
/// be used; EIO, ENOSPC: the file cannot be read, or is full of the dead; EINVAL: a null pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_region_join(
    region: *const ulocks_region_t,
    member: *mut *mut ulocks_member_t,
) -> c_int {
    let _call = Uncancelled::new();
    if member.is_null() {
        return null("the place for the member");
    }
    // SAFETY: the caller's promise: the region stays open until the member has left. Closing it
    // before is an error. The locks of C programs lend no references: each function forgets its
    // guard before it returns, and the thread is in that function until then.
    match unsafe { (*region).0.join() } {
        Ok(joined) => {
            // SAFETY: the caller's promise, and not null.
            unsafe { member.write(Box::into_raw(Box::new(ulocks_member_t(joined)))) };
            0
        }
        Err(error @ JoinError::Full(_)) => failed(&error, libc::EAGAIN),
        Err(error @ JoinError::Unread(_)) => failed(&error, libc::EIO),
        Err(error @ JoinError::Named { .. }) => failed(&error, libc::ENOSPC),
        Err(error) => failed(&error, libc::ENOSYS),
    }
}

/// Ends the part of the calling thread, which is the one that joined.
///
/// Returns 0, or EBUSY: the thread still holds a robust lock, and takes part as before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_member_leave(member: *mut ulocks_member_t) -> c_int {
    let _call = Uncancelled::new();
    // SAFETY: the caller's promise: it comes from a join, and leaves once.
    let left = unsafe { core::ptr::read(member) };
    match left.0.leave() {
        Ok(()) => {
            // SAFETY: as above. What was in it has been moved out.
            drop(unsafe { Box::from_raw(member.cast::<core::mem::MaybeUninit<ulocks_member_t>>()) });
            0
        }
        Err(busy) => {
            let code = failed(&busy, libc::EBUSY);
            // SAFETY: the place is the member's, and what was moved out of it comes back.
            unsafe { member.write(ulocks_member_t(busy.into_inner())) };
            code
        }
    }
}

/// Finds the `size` bytes of a name, or makes them, all zero. They are aligned to 64 bytes. The
/// bytes stay at their place while the region is open.
///
/// Returns 0; EINVAL: a null pointer, or the name is empty, longer than 64 bytes or no UTF-8;
/// EPROTO: the name stands for something else, or for another number of bytes; ENOSPC: no room;
/// EBADMSG: the region is damaged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_region_bytes(
    region: *const ulocks_region_t,
    member: *const ulocks_member_t,
    name: *const c_char,
    size: size_t,
    bytes: *mut *mut core::ffi::c_void,
) -> c_int {
    let _call = Uncancelled::new();
    if bytes.is_null() {
        return null("the place for the address");
    }
    // SAFETY: the caller's promise.
    let place = unsafe {
        text(name).and_then(|name| {
            let me = member_of(region, member)?;
            (*region).0.find_or_create_bytes(me, name, size).map_err(|error| name_code(&error))
        })
    };
    match place {
        Ok(place) => {
            // SAFETY: the caller's promise, and not null.
            unsafe { bytes.write(place.as_ptr().cast()) };
            0
        }
        Err(error) => error,
    }
}

/// # Safety
/// `name` is null or a string.
unsafe fn text<'a>(name: *const c_char) -> Result<&'a str, c_int> {
    if name.is_null() {
        return Err(null("the name"));
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(name) }.to_str();
    text.map_err(|error| failed(&error, libc::EINVAL))
}

/// The member, if it is one of the region and of this process.
///
/// # Safety
/// Both are valid.
unsafe fn member_of<'a>(
    region: *const ulocks_region_t,
    member: *const ulocks_member_t,
) -> Result<&'a Member<'static>, c_int> {
    // SAFETY: the caller's promise.
    let (region, me) = unsafe { (&*region, &(*member).0) };
    if !me.covers(&*region.0) {
        return Err(failed(&"the thread has joined another region", libc::EINVAL));
    }
    usable(me)
}

/// The member, if it is one of this process.
pub(crate) fn usable<'a>(me: &'a Member<'static>) -> Result<&'a Member<'static>, c_int> {
    if me.is_of_this_process() {
        return Ok(me);
    }
    OF_A_LOCK.set(Some(c"a child of fork uses its parent's member; join in the child"));
    Err(libc::EINVAL)
}

/// The member behind a pointer.
///
/// # Safety
/// It is valid.
pub(crate) unsafe fn me<'a>(member: *const ulocks_member_t) -> &'a Member<'static> {
    // SAFETY: the caller's promise.
    unsafe { &(*member).0 }
}

/// Finds the value of a name, or makes it, and writes where it is.
///
/// # Safety
/// All pointers are valid; those of the name and of the place may be null.
pub(crate) unsafe fn named<T: SharedSafe, C>(
    region: *const ulocks_region_t,
    member: *const ulocks_member_t,
    name: *const c_char,
    place: *mut *mut C,
) -> c_int {
    const { assert!(size_of::<C>() == size_of::<T>()) };
    let _call = Uncancelled::new();
    if place.is_null() {
        return null("the place for the address");
    }
    // SAFETY: the caller's promise.
    let value = unsafe {
        text(name).and_then(|name| {
            let me = member_of(region, member)?;
            (*region).0.find_or_create::<T>(me, name).map_err(|error| name_code(&error))
        })
    };
    match value {
        Ok(value) => {
            // SAFETY: the caller's promise, and not null.
            unsafe { place.write(core::ptr::from_ref(value).cast_mut().cast()) };
            0
        }
        Err(error) => error,
    }
}
