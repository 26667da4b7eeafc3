//! What safe code must not be able to do with a member: to keep, for longer than the closure runs,
//! what a lock has lent. Each program that must not compile stands behind one that does, and that
//! differs from it in what it lets out.

/// The data of a mutex, by a guard that is leaked; as a value, and through a channel.
/// ```
/// use ulocks_shm::{Region, Mutex};
/// let region: &'static Region<Mutex<u64>> =
///     Box::leak(Box::new(Region::<Mutex<u64>>::options().anonymous().unwrap()));
/// let (send, receive) = std::sync::mpsc::channel::<&'static mut u64>();
/// let copy: Result<u64, _> = region.with_member(|me| {
///     let guard = Box::leak(Box::new(region.lock(me).unwrap()));
///     send.send(Box::leak(Box::new(**guard))).unwrap();
///     **guard
/// });
/// # assert_eq!((copy, receive.recv()), (Ok(0), Ok(&mut 0)));
/// ```
/// ```compile_fail,E0521
/// use ulocks_shm::{Region, Mutex};
/// let region: &'static Region<Mutex<u64>> =
///     Box::leak(Box::new(Region::<Mutex<u64>>::options().anonymous().unwrap()));
/// let (send, receive) = std::sync::mpsc::channel::<&'static mut u64>();
/// let copy: Result<u64, _> = region.with_member(|me| {
///     let guard = Box::leak(Box::new(region.lock(me).unwrap()));
///     send.send(&mut **guard).unwrap();
///     0
/// });
/// ```
/// ```compile_fail
/// use ulocks_shm::{Region, Mutex};
/// let region: &'static Region<Mutex<u64>> =
///     Box::leak(Box::new(Region::<Mutex<u64>>::options().anonymous().unwrap()));
/// let data: Result<&'static mut u64, _> = region.with_member(|me| {
///     let guard = Box::leak(Box::new(region.lock(me).unwrap()));
///     &mut **guard
/// });
/// ```
/// Nor by a thread whose scope is outside of the closure:
/// ```
/// use ulocks_shm::{Region, Mutex};
/// let region = Region::<Mutex<u64>>::options().anonymous().unwrap();
/// region.with_member(|me| {
///     std::thread::scope(|scope| {
///         let guard = Box::leak(Box::new(region.lock(me).unwrap()));
///         let data = &mut **guard;
///         scope.spawn(move || *data += 1);
///     })
/// }).unwrap();
/// ```
/// ```compile_fail,E0521
/// use ulocks_shm::{Region, Mutex};
/// let region = Region::<Mutex<u64>>::options().anonymous().unwrap();
/// std::thread::scope(|scope| {
///     region.with_member(|me| {
///         let guard = Box::leak(Box::new(region.lock(me).unwrap()));
///         let data = &mut **guard;
///         scope.spawn(move || *data += 1);
///     }).unwrap()
/// });
/// ```
struct Mutex;

/// The data of readers and writers.
/// ```
/// use ulocks_shm::{Region, RwLock};
/// let region = Region::<RwLock<u64>>::options().anonymous().unwrap();
/// let copy: u64 = region.with_member(|me| **Box::leak(Box::new(region.read(me).unwrap()))).unwrap();
/// let copy: u64 = region.with_member(|me| **Box::leak(Box::new(region.write(me).unwrap()))).unwrap();
/// ```
/// ```compile_fail
/// use ulocks_shm::{Region, RwLock};
/// let region = Region::<RwLock<u64>>::options().anonymous().unwrap();
/// let data: &u64 = region.with_member(|me| &**Box::leak(Box::new(region.read(me).unwrap()))).unwrap();
/// ```
/// ```compile_fail
/// use ulocks_shm::{Region, RwLock};
/// let region = Region::<RwLock<u64>>::options().anonymous().unwrap();
/// let data: &u64 = region.with_member(|me| &**Box::leak(Box::new(region.write(me).unwrap()))).unwrap();
/// ```
/// ```compile_fail
/// use ulocks_shm::{Region, RwLock};
/// let region = Region::<RwLock<u64>>::options().anonymous().unwrap();
/// region.with_member(|me| region.write(me).unwrap().downgrade()).unwrap();
/// ```
struct Readers;

/// A guard by which a thread waits.
/// ```
/// use ulocks_shm::{Condvar, Mutex};
/// # #[derive(ulocks_shm::SharedSafe)]
/// # #[repr(C)]
/// # struct Root { mutex: Mutex<u64>, arrived: Condvar }
/// let region = ulocks_shm::Region::<Root>::options().anonymous().unwrap();
/// let copy: u64 = region.with_member(|me| {
///     let mut guard = region.mutex.lock(me).unwrap();
///     region.arrived.wait_for(&mut guard, std::time::Duration::ZERO).unwrap();
///     *guard
/// }).unwrap();
/// ```
/// ```compile_fail
/// use ulocks_shm::{Condvar, Mutex};
/// # #[derive(ulocks_shm::SharedSafe)]
/// # #[repr(C)]
/// # struct Root { mutex: Mutex<u64>, arrived: Condvar }
/// let region = ulocks_shm::Region::<Root>::options().anonymous().unwrap();
/// let guard = region.with_member(|me| {
///     let mut guard = region.mutex.lock(me).unwrap();
///     region.arrived.wait_for(&mut guard, std::time::Duration::ZERO).unwrap();
///     guard
/// }).unwrap();
/// ```
struct Condvar;

/// A permit lends no memory, and is bound all the same.
/// ```
/// use ulocks_shm::{Region, Semaphore};
/// let region = Region::<Semaphore>::options().anonymous().unwrap();
/// region.with_member(|me| region.add_permits(me, 1)).unwrap().unwrap();
/// region.with_member(|me| drop(region.acquire(me).unwrap())).unwrap();
/// ```
/// ```compile_fail
/// use ulocks_shm::{Region, Semaphore};
/// let region = Region::<Semaphore>::options().anonymous().unwrap();
/// region.with_member(|me| region.add_permits(me, 1)).unwrap().unwrap();
/// region.with_member(|me| region.acquire(me).unwrap()).unwrap();
/// ```
struct Permit;

/// A value of a directory is the region's and may leave. What a lock in it has lent may not, nor
/// may the value that is still being prepared.
/// ```
/// use ulocks_shm::{Directory, Region, Mutex};
/// let region = Region::<Directory<8, 1024>>::options().anonymous().unwrap();
/// let prepare = |mutex: &Mutex<u64>, _| assert!(!mutex.is_locked());
/// let mutex = region
///     .with_member(|me| region.find_or_create_with(me, "name", prepare).unwrap())
///     .unwrap();
/// region.with_member(|me| drop(mutex.lock(me).unwrap())).unwrap();
/// ```
/// ```compile_fail
/// use ulocks_shm::{Directory, Region, Mutex};
/// let region = Region::<Directory<8, 1024>>::options().anonymous().unwrap();
/// let prepare = |mutex: &Mutex<u64>, _| assert!(!mutex.is_locked());
/// let mutex = region
///     .with_member(|me| region.find_or_create_with(me, "name", prepare).unwrap())
///     .unwrap();
/// region.with_member(|me| mutex.lock(me).unwrap()).unwrap();
/// ```
/// ```compile_fail,E0521
/// use ulocks_shm::{Directory, Region, Mutex};
/// let region = Region::<Directory<8, 1024>>::options().anonymous().unwrap();
/// let mut kept = None;
/// let prepare = |mutex: &Mutex<u64>, _| kept = Some(mutex);
/// let mutex = region
///     .with_member(|me| region.find_or_create_with(me, "name", prepare).unwrap())
///     .unwrap();
/// ```
struct Value;

/// The member itself: it does not leave, and is no other thread's.
/// ```
/// use ulocks_shm::{Region, Mutex};
/// let region = Region::<Mutex<u64>>::options().anonymous().unwrap();
/// let slot = region.with_member(|me| me.slot()).unwrap();
/// region.with_member(|me| {
///     let slot = me.slot();
///     std::thread::scope(|scope| _ = scope.spawn(move || slot))
/// }).unwrap();
/// ```
/// ```compile_fail
/// use ulocks_shm::{Region, Mutex};
/// let region = Region::<Mutex<u64>>::options().anonymous().unwrap();
/// let me = region.with_member(|me| me).unwrap();
/// ```
/// ```compile_fail,E0277
/// use ulocks_shm::{Region, Mutex};
/// let region = Region::<Mutex<u64>>::options().anonymous().unwrap();
/// region.with_member(|me| {
///     std::thread::scope(|scope| _ = scope.spawn(move || me.slot()))
/// }).unwrap();
/// ```
/// ```compile_fail,E0277
/// use ulocks_shm::{Region, Mutex};
/// let region = Region::<Mutex<u64>>::options().anonymous().unwrap();
/// region.with_member(|me| {
///     let guard = region.lock(me).unwrap();
///     std::thread::scope(|scope| _ = scope.spawn(move || *guard))
/// }).unwrap();
/// ```
/// The way in that can be leaked is unsafe, and no region goes while a thread takes part.
/// ```compile_fail,E0133
/// use ulocks_shm::{Region, Mutex};
/// let region = Region::<Mutex<u64>>::options().anonymous().unwrap();
/// let me = region.join().unwrap();
/// ```
/// ```compile_fail,E0505
/// use ulocks_shm::{Region, Mutex};
/// let region = Region::<Mutex<u64>>::options().anonymous().unwrap();
/// region.with_member(|me| {
///     drop(region);
///     me.slot()
/// }).unwrap();
/// ```
struct Membership;
