/* ulocks.h: locks for C and C++ programs on Linux.
 *
 * Written by `cargo xtask header` from crates/faces/capi/src. Do not edit.
 *
 * All locks: a function that may fail returns 0 or an error number; each other function that
 * returns an int returns 0. No function changes errno. All bytes zero, or the INIT of this file, is
 * an unlocked lock, and a condition variable without waiters. None of them needs destruction: the
 * thread that unlocks a lock last may free its memory at once, and the memory of a condition
 * variable may be freed when no thread is inside of one of its functions. No function of a lock
 * allocates memory, but for those of ulocks_semarray_t, and those that open or join a region.
 *
 * EBUSY: what a function with `try` in its name returns if it would have to wait.
 *
 * Deadlines are moments of CLOCK_MONOTONIC, as clock_gettime writes them. A function with `_until`
 * in its name returns ETIMEDOUT if the moment has passed, and EINVAL if the pointer to it is null,
 * or its tv_nsec is not from 0 to 999999999.
 *
 * Processes: ulocks_barging_mutex_t, and what a region has, are for processes too, in memory that
 * these map. All others are for the threads of one process.
 *
 * Pointers: a pointer to a lock or to a condition variable must be valid and aligned, and point to
 * an object that is not copied or moved while it is in use. Only a thread that holds a lock may
 * unlock it. In a child of fork, a lock that another thread used may not be used.
 *
 * Signals and cancellation: a wait goes on after a signal handler has run. No function is a
 * cancellation point. A signal handler may not use a lock that the interrupted code may hold.
 *
 * Aborts: if the kernel refuses a futex call, as a seccomp filter may do, the process ends.
 */

#ifndef ULOCKS_H
#define ULOCKS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* <time.h> of strict C99 declares no such structure. */
struct timespec;

/* A mutex of any type, unlocked. */
#define ULOCKS_MUTEX_INIT { { 0 } }

/* A condition variable of any type, without waiters. */
#define ULOCKS_COND_INIT { { 0 } }

/* An unlocked reader-writer lock. */
#define ULOCKS_RWLOCK_INIT { { 0 } }

/* A semaphore with this many permits, 1073741823 at most. */
#define ULOCKS_SEMAPHORE_INIT(permits) { { (permits), 0 } }

/** The process has created the region: all data is zero. */
#define ULOCKS_REGION_CREATED 0

/** No other process had the region open: the locks are unlocked, the data is as it was left. */
#define ULOCKS_REGION_RESET 1

/** Other processes have the region open. */
#define ULOCKS_REGION_JOINED 2

/** The set fails with EBUSY if it stops at this operation. */
#define ULOCKS_SEMOP_NOWAIT 1

/** An arriving set is tried first, past those that wait: as semop on Linux. */
#define ULOCKS_SEMARRAY_BARGING 0

/** A set that has waited for `strict_after_ns` stops later sets from taking what it needs. */
#define ULOCKS_SEMARRAY_STRICT 1

/** The most semaphores of an array. */
#define ULOCKS_SEMARRAY_MOST 1048576

/**
 * A thread that takes part in a region. Only that thread may pass it to functions, and only until
 * the thread ends. A child of fork joins by itself.
 */
typedef struct ulocks_member_t ulocks_member_t;

/**
 * Locks and data by name, in memory that processes share: in a file, or without one. It has room
 * for 256 names, and 256 KiB for what they stand for. 64 threads can take part at a time.
 *
 * A process opens a region once, and all its threads use that. When a process opens a region that
 * no other process has open, the region is reset: all locks in it are unlocked, and the data stays
 * as it was left.
 */
typedef struct ulocks_region_t ulocks_region_t;

/**
 * Semaphores on which sets of operations take effect all at one moment, or not at all: those of
 * semop, in user space, for the threads of one process.
 *
 * ulocks_semarray_create makes an array, ulocks_semarray_destroy frees it. A value is from 0 to a
 * limit. The operations of a set are looked at in their order, and each sees what the earlier ones
 * did. A set that fails has changed nothing. Sets of more than eight operations allocate, and so
 * may waits.
 *
 * Errors, as those of semop but for EBUSY:
 *
 * | number | why |
 * |---|---|
 * | EBUSY | the set cannot be performed now, and the call or the operation does not wait |
 * | ETIMEDOUT | the moment has passed |
 * | EINTR | a signal handler ran in an interruptible wait |
 * | ERANGE | a value would be greater than the limit |
 * | EFBIG | there is no semaphore of that index |
 * | E2BIG | the set has too many operations |
 * | EIDRM | the array was closed |
 * | EINVAL | a null pointer, flags that do not exist, a number of values that is not the array's |
 */
typedef struct ulocks_semarray_t ulocks_semarray_t;

/**
 * A mutex. A thread may be overtaken for a tenth of a millisecond, but not for ever. It belongs to
 * one process. A thread that locks a mutex that it holds waits for ever.
 */
typedef struct {
    uint64_t _words[1];
} ulocks_mutex_t;

/** A condition variable for mutexes of the type ulocks_mutex_t. */
typedef struct {
    uint64_t _words[2];
} ulocks_mutex_cond_t;

/**
 * A mutex of four bytes. Any thread may take it next: no order, and no bound on a wait. It may lie
 * in memory that several processes map, at any addresses; so may its condition variable. If a
 * process dies with it, it stays locked.
 */
typedef struct {
    uint32_t _words[1];
} ulocks_barging_mutex_t;

/** A condition variable for mutexes of the type ulocks_barging_mutex_t. */
typedef struct {
    uint64_t _words[2];
} ulocks_barging_mutex_cond_t;

/** A mutex that threads get in the order in which they came. It belongs to one process. */
typedef struct {
    uint64_t _words[2];
} ulocks_fair_mutex_t;

/** A condition variable for mutexes of the type ulocks_fair_mutex_t. */
typedef struct {
    uint64_t _words[2];
} ulocks_fair_mutex_cond_t;

/**
 * A mutex of four bytes with priority inheritance. The thread that holds it runs with the highest
 * priority of those that wait for it. It belongs to one process.
 *
 * The errors of its functions, beside those of all mutexes: EOWNERDEAD: the mutex is locked, but
 * the thread that held it has ended without unlocking; EDEADLK: the calling thread holds it
 * already, or a thread that waits for the calling thread does; ENOTRECOVERABLE: the thread that
 * holds it has ended, and no thread waited then; EPERM or EINVAL: the memory has been overwritten;
 * ENOMEM or ENOSYS: the kernel has no memory, or no priority inheritance.
 */
typedef struct {
    uint32_t _words[1];
} ulocks_pi_mutex_t;

/**
 * A condition variable for one ulocks_pi_mutex_t. It notifies the thread of the highest priority
 * first.
 */
typedef struct {
    uint32_t _words[2];
} ulocks_pi_mutex_cond_t;

/** A condition variable in a region, for either mutex. */
typedef struct {
    uint64_t _words[2];
} ulocks_robust_cond_t;

/**
 * A mutex in a region that goes to the next thread if its holder dies. An arriving thread may take
 * it past the waiters.
 *
 * The errors of its functions, and of ulocks_robust_fair_mutex_t: EOWNERDEAD: locked, but the last
 * holder died with it, so repair the data and say that it is consistent; ENOTRECOVERABLE: not
 * locked, because the mutex was unlocked without that; EDEADLK: the thread holds it; EPERM: the
 * thread holds no robust lock; EINVAL: the mutex is not in the member's region, or the member is
 * that of another process; EBADMSG: the memory was overwritten.
 */
typedef struct {
    uint32_t _words[3];
} ulocks_robust_mutex_t;

/** The same, in order of arrival. */
typedef struct {
    uint64_t _words[4];
} ulocks_robust_fair_mutex_t;

/**
 * A reader-writer lock in a region that a holder's death does not keep locked. A reader that dies
 * leaves no trace. If a writer dies, the next holder is told: EOWNERDEAD.
 *
 * | functions | for |
 * |---|---|
 * | ulocks_robust_rwlock_read_ | readers; they and the writers get the lock in order of arrival |
 * | ulocks_robust_rwlock_urgent_ | readers that pass all writers that wait |
 * | ulocks_robust_rwlock_write_ | writers |
 *
 * Urgent readers that always overlap shut out a writer for ever.
 *
 * The errors of its functions: EOWNERDEAD: locked, but a writer has died, so the data may be half
 * changed; a writer repairs it, and says that it is consistent; ENOTRECOVERABLE: not locked,
 * because a writer unlocked without that; EDEADLK: the thread reads or writes already; EINVAL: the
 * lock is not in the member's region, or the member is that of another process; EBADMSG: the
 * memory was overwritten.
 */
typedef struct {
    uint64_t _words[36];
} ulocks_robust_rwlock_t;

/**
 * A counting semaphore in a region. The permits that a thread has come back when it dies.
 *
 * Of the threads that wait, the one that came first and can have what it asks for is served.
 */
typedef struct {
    uint64_t _words[264];
} ulocks_robust_semaphore_t;

/**
 * A reader-writer lock where readers and writers take turns, with three classes of readers.
 *
 * | functions | for |
 * |---|---|
 * | ulocks_rwlock_read_ | ordinary readers, which may take long |
 * | ulocks_rwlock_urgent_ | readers with short sections: they wait for no ordinary reader, and not for a writer that waits for one |
 * | ulocks_rwlock_nested_ | code that may run while its thread reads the lock already, by another class |
 * | ulocks_rwlock_write_ | writers |
 * | ulocks_rwlock_upgradable_ | a reader that may become a writer; one at a time, beside other readers |
 *
 * It belongs to one process. A thread that asks for it again waits for ever, unless it reads
 * already and asks for a later class of readers. More than 131072 readers at once, or 6000 that
 * wait, end the process.
 */
typedef struct {
    uint64_t _words[2];
} ulocks_rwlock_t;

/**
 * A counting semaphore. Threads get permits in the order in which they came.
 *
 * `ULOCKS_SEMAPHORE_INIT(n)` has n permits; all bytes zero has none. More than 1073741823 are the
 * error EINVAL. It belongs to one process.
 */
typedef struct {
    uint64_t _words[3];
} ulocks_semaphore_t;

/** How an array is made. All bytes zero has the defaults. */
typedef struct {
    /** The greatest value of a semaphore: 134217727 at most. 0 is the default, 32767. */
    uint32_t limit;
    /** The most operations of a set. 0 is the default, 500. */
    uint32_t max_ops;
    /** ULOCKS_SEMARRAY_BARGING or ULOCKS_SEMARRAY_STRICT. */
    uint32_t fairness;
    /** Zero. */
    uint32_t reserved;
    /** For how many nanoseconds sets may pass another one, if fairness is strict. */
    uint64_t strict_after_ns;
} ulocks_semarray_options_t;

/** One operation of a set. */
typedef struct {
    /** The semaphore, from 0 on. */
    uint32_t index;
    /**
     * Greater than 0: added to the value. Less than 0: subtracted, when the value is great enough.
     * 0: waits until the value is 0.
     */
    int32_t change;
    /** 0 or ULOCKS_SEMOP_NOWAIT. */
    uint32_t flags;
} ulocks_semop_t;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/** Locks the mutex, and waits as long as that takes. */
int ulocks_mutex_lock(ulocks_mutex_t *mutex);

/** Locks the mutex if that needs no waiting. EBUSY: a thread holds it, or has a right to it. */
int ulocks_mutex_trylock(ulocks_mutex_t *mutex);

/** Locks the mutex, or gives up at a moment. It tries at least once. */
int ulocks_mutex_lock_until(ulocks_mutex_t *mutex, const struct timespec *monotonic_deadline);

/** Unlocks the mutex. The calling thread must hold it. */
int ulocks_mutex_unlock(ulocks_mutex_t *mutex);

/** Whether a thread holds the mutex at this moment. */
bool ulocks_mutex_is_locked(const ulocks_mutex_t *mutex);

/**
 * Unlocks the mutex, which the calling thread must hold, waits until notified, and locks the mutex
 * again. No notification is missed that comes after the unlocking. A wait may end without one, so
 * look at the condition again.
 */
int ulocks_mutex_cond_wait(ulocks_mutex_cond_t *cond, ulocks_mutex_t *mutex);

/**
 * The same, until a moment. The mutex is locked again in every case; after EINVAL it was not
 * unlocked.
 */
int ulocks_mutex_cond_wait_until(ulocks_mutex_cond_t *cond,
                                 ulocks_mutex_t *mutex,
                                 const struct timespec *monotonic_deadline);

/** Notifies one thread that waits, with or without the mutex locked. */
int ulocks_mutex_cond_signal(ulocks_mutex_cond_t *cond);

/** Notifies all threads that wait, with or without the mutex locked. */
int ulocks_mutex_cond_broadcast(ulocks_mutex_cond_t *cond);

/** Locks the mutex, and waits as long as that takes. */
int ulocks_barging_mutex_lock(ulocks_barging_mutex_t *mutex);

/** Locks the mutex if that needs no waiting. EBUSY: a thread holds it, or has a right to it. */
int ulocks_barging_mutex_trylock(ulocks_barging_mutex_t *mutex);

/** Locks the mutex, or gives up at a moment. It tries at least once. */
int ulocks_barging_mutex_lock_until(ulocks_barging_mutex_t *mutex,
                                    const struct timespec *monotonic_deadline);

/** Unlocks the mutex. The calling thread must hold it. */
int ulocks_barging_mutex_unlock(ulocks_barging_mutex_t *mutex);

/** Whether a thread holds the mutex at this moment. */
bool ulocks_barging_mutex_is_locked(const ulocks_barging_mutex_t *mutex);

/**
 * Unlocks the mutex, which the calling thread must hold, waits until notified, and locks the mutex
 * again. No notification is missed that comes after the unlocking. A wait may end without one, so
 * look at the condition again.
 */
int ulocks_barging_mutex_cond_wait(ulocks_barging_mutex_cond_t *cond,
                                   ulocks_barging_mutex_t *mutex);

/**
 * The same, until a moment. The mutex is locked again in every case; after EINVAL it was not
 * unlocked.
 */
int ulocks_barging_mutex_cond_wait_until(ulocks_barging_mutex_cond_t *cond,
                                         ulocks_barging_mutex_t *mutex,
                                         const struct timespec *monotonic_deadline);

/** Notifies one thread that waits, with or without the mutex locked. */
int ulocks_barging_mutex_cond_signal(ulocks_barging_mutex_cond_t *cond);

/** Notifies all threads that wait, with or without the mutex locked. */
int ulocks_barging_mutex_cond_broadcast(ulocks_barging_mutex_cond_t *cond);

/** Locks the mutex, and waits as long as that takes. */
int ulocks_fair_mutex_lock(ulocks_fair_mutex_t *mutex);

/** Locks the mutex if that needs no waiting. EBUSY: a thread holds it, or has a right to it. */
int ulocks_fair_mutex_trylock(ulocks_fair_mutex_t *mutex);

/** Locks the mutex, or gives up at a moment. It tries at least once. */
int ulocks_fair_mutex_lock_until(ulocks_fair_mutex_t *mutex,
                                 const struct timespec *monotonic_deadline);

/** Unlocks the mutex. The calling thread must hold it. */
int ulocks_fair_mutex_unlock(ulocks_fair_mutex_t *mutex);

/** Whether a thread holds the mutex at this moment. */
bool ulocks_fair_mutex_is_locked(const ulocks_fair_mutex_t *mutex);

/**
 * Unlocks the mutex, which the calling thread must hold, waits until notified, and locks the mutex
 * again. No notification is missed that comes after the unlocking. A wait may end without one, so
 * look at the condition again.
 */
int ulocks_fair_mutex_cond_wait(ulocks_fair_mutex_cond_t *cond, ulocks_fair_mutex_t *mutex);

/**
 * The same, until a moment. The mutex is locked again in every case; after EINVAL it was not
 * unlocked.
 */
int ulocks_fair_mutex_cond_wait_until(ulocks_fair_mutex_cond_t *cond,
                                      ulocks_fair_mutex_t *mutex,
                                      const struct timespec *monotonic_deadline);

/** Notifies one thread that waits, with or without the mutex locked. */
int ulocks_fair_mutex_cond_signal(ulocks_fair_mutex_cond_t *cond);

/** Notifies all threads that wait, with or without the mutex locked. */
int ulocks_fair_mutex_cond_broadcast(ulocks_fair_mutex_cond_t *cond);

/** Locks the mutex, and waits as long as that takes. The errors: see ulocks_pi_mutex_t. */
int ulocks_pi_mutex_lock(ulocks_pi_mutex_t *mutex);

/** Locks the mutex if that needs no waiting. EBUSY: a thread holds it; this one, too. */
int ulocks_pi_mutex_trylock(ulocks_pi_mutex_t *mutex);

/** Locks the mutex, or gives up at a moment. */
int ulocks_pi_mutex_lock_until(ulocks_pi_mutex_t *mutex, const struct timespec *monotonic_deadline);

/** Unlocks the mutex. Returns 0, or EPERM: the calling thread does not hold it. */
int ulocks_pi_mutex_unlock(ulocks_pi_mutex_t *mutex);

/** Whether a thread holds the mutex at this moment. */
bool ulocks_pi_mutex_is_locked(const ulocks_pi_mutex_t *mutex);

/**
 * As ulocks_mutex_cond_wait. All waits use the same mutex. EPERM: the calling thread does not hold
 * it. The mutex is locked again after 0 and EOWNERDEAD only.
 */
int ulocks_pi_mutex_cond_wait(ulocks_pi_mutex_cond_t *cond, ulocks_pi_mutex_t *mutex);

/**
 * The same, until a moment. The mutex is locked again after ETIMEDOUT, too. After EINVAL it may be
 * that it was not unlocked.
 */
int ulocks_pi_mutex_cond_wait_until(ulocks_pi_mutex_cond_t *cond,
                                    ulocks_pi_mutex_t *mutex,
                                    const struct timespec *monotonic_deadline);

/** Notifies the waiter of the highest priority. The mutex is that of the waits. */
int ulocks_pi_mutex_cond_signal(ulocks_pi_mutex_cond_t *cond, ulocks_pi_mutex_t *mutex);

/** Notifies all threads that wait. The mutex is that of the waits. */
int ulocks_pi_mutex_cond_broadcast(ulocks_pi_mutex_cond_t *cond, ulocks_pi_mutex_t *mutex);

/**
 * What the calling thread's last error of a region, of a member or of a name was, as a sentence
 * that says what to do. The text is empty if there was none, and valid until the next error. While
 * the thread ends, in a destructor of a thread-local object or of a pthread key, it may be empty.
 */
const char *ulocks_region_error(void);

/**
 * Creates a region in a new file with these permissions, less the umask.
 *
 * Returns 0; EEXIST: the file exists; ENOENT: its folder does not exist; EINVAL: a null pointer;
 * ENOSPC: no room; EBUSY: another process makes a region of the file; or why the system refused.
 */
int ulocks_region_create(const char *file, mode_t mode, ulocks_region_t **region);

/**
 * Opens the region in a file.
 *
 * Returns 0; ENOENT: there is no file; EACCES: it may not be written; EBADMSG: it is no region, or
 * is damaged; EPROTO: it is a region of another version or of another kind; EBUSY: a process
 * creates or resets it and does not finish; EINVAL: a null pointer; or why the system refused.
 */
int ulocks_region_open(const char *file, ulocks_region_t **region);

/**
 * Opens the region in a file, or creates it if there is no file, or an empty one.
 *
 * Returns what ulocks_region_create and ulocks_region_open do.
 */
int ulocks_region_create_or_open(const char *file, mode_t mode, ulocks_region_t **region);

/**
 * Creates a region without a file: for children of fork, and for processes that get its
 * descriptor.
 *
 * Returns 0; EINVAL: a null pointer; or why the system refused.
 */
int ulocks_region_anonymous(ulocks_region_t **region);

/**
 * Opens the region of a descriptor that another process has passed on. The descriptor stays the
 * caller's.
 *
 * Returns what ulocks_region_open does; EBADF: no descriptor.
 */
int ulocks_region_from_fd(int descriptor, ulocks_region_t **region);

/** The descriptor of the region, to be passed to another process. It stays the region's. */
int ulocks_region_fd(const ulocks_region_t *region);

/**
 * How the process came to the region: ULOCKS_REGION_CREATED, ULOCKS_REGION_RESET or
 * ULOCKS_REGION_JOINED.
 */
int ulocks_region_attached(const ulocks_region_t *region);

/**
 * Closes the region in this process. No pointer into it may be used after that. Threads may leave
 * meanwhile.
 *
 * Returns 0, or EBUSY: a thread that joined has not left, and the region stays open. It may have
 * ended since. In a child of fork the threads of its parent do not count.
 */
int ulocks_region_close(ulocks_region_t *region);

/**
 * Lets the calling thread take part in the region.
 *
 * Returns 0; EAGAIN: 64 threads take part already; ENOSYS: the thread has no robust list that can
 * be used; EIO, ENOSPC: the file cannot be read, or is full of the dead; EINVAL: a null pointer.
 */
int ulocks_region_join(const ulocks_region_t *region, ulocks_member_t **member);

/**
 * Ends the part of the calling thread, which is the one that joined.
 *
 * Returns 0, or EBUSY: the thread still holds a robust lock, and takes part as before.
 */
int ulocks_member_leave(ulocks_member_t *member);

/**
 * Finds the `size` bytes of a name, or makes them, all zero. They are aligned to 64 bytes. The
 * bytes stay at their place while the region is open.
 *
 * Returns 0; EINVAL: a null pointer, or the name is empty, longer than 64 bytes or no UTF-8;
 * EPROTO: the name stands for something else, or for another number of bytes; ENOSPC: no room;
 * EBADMSG: the region is damaged.
 */
int ulocks_region_bytes(const ulocks_region_t *region,
                        const ulocks_member_t *member,
                        const char *name,
                        size_t size,
                        void **bytes);

/** Finds the condition variable of a name in a region, or makes it, without waiters. */
int ulocks_region_robust_cond(const ulocks_region_t *region,
                              const ulocks_member_t *member,
                              const char *name,
                              ulocks_robust_cond_t **cond);

/**
 * Notifies the thread that has waited longest. Returns 0; EINVAL: the condition variable is not in
 * the member's region, or the member is that of another process.
 */
int ulocks_robust_cond_signal(ulocks_robust_cond_t *cond, const ulocks_member_t *member);

/** Notifies all threads that wait. Returns what ulocks_robust_cond_signal does. */
int ulocks_robust_cond_broadcast(ulocks_robust_cond_t *cond, const ulocks_member_t *member);

/** Finds the mutex of a name in a region, or makes it, unlocked. */
int ulocks_region_robust_mutex(const ulocks_region_t *region,
                               const ulocks_member_t *member,
                               const char *name,
                               ulocks_robust_mutex_t **mutex);

/** Locks the mutex, and waits as long as that takes. The errors: see ulocks_robust_mutex_t. */
int ulocks_robust_mutex_lock(ulocks_robust_mutex_t *mutex, const ulocks_member_t *member);

/** Locks the mutex if that needs no waiting. EBUSY: a living thread holds it. */
int ulocks_robust_mutex_trylock(ulocks_robust_mutex_t *mutex, const ulocks_member_t *member);

/** Locks the mutex, or gives up at a moment. */
int ulocks_robust_mutex_lock_until(ulocks_robust_mutex_t *mutex,
                                   const ulocks_member_t *member,
                                   const struct timespec *monotonic_deadline);

/**
 * Unlocks the mutex, which the calling thread must hold. If the last holder died, and the data was
 * not said to be consistent, the mutex is not recoverable from here on.
 */
int ulocks_robust_mutex_unlock(ulocks_robust_mutex_t *mutex, const ulocks_member_t *member);

/** Says that the data is whole again, after EOWNERDEAD. EINVAL also: no holder had died. */
int ulocks_robust_mutex_consistent(ulocks_robust_mutex_t *mutex, const ulocks_member_t *member);

/**
 * Locks the mutex although it is not recoverable. Returns EOWNERDEAD: the data is dirty until it
 * is said to be consistent.
 */
int ulocks_robust_mutex_reset(ulocks_robust_mutex_t *mutex, const ulocks_member_t *member);

/**
 * Unlocks the mutex, waits until notified, and locks the mutex again. A wait may end without a
 * notification, so look at the condition again. The mutex is locked after 0 and EOWNERDEAD; after
 * EINVAL it was not unlocked.
 */
int ulocks_robust_mutex_cond_wait(ulocks_robust_cond_t *cond,
                                  ulocks_robust_mutex_t *mutex,
                                  const ulocks_member_t *member);

/** The same, until a moment. The mutex is locked after ETIMEDOUT, too. */
int ulocks_robust_mutex_cond_wait_until(ulocks_robust_cond_t *cond,
                                        ulocks_robust_mutex_t *mutex,
                                        const ulocks_member_t *member,
                                        const struct timespec *monotonic_deadline);

/** Finds the fair mutex of a name in a region, or makes it, unlocked. */
int ulocks_region_robust_fair_mutex(const ulocks_region_t *region,
                                    const ulocks_member_t *member,
                                    const char *name,
                                    ulocks_robust_fair_mutex_t **mutex);

/** Locks the mutex, and waits as long as that takes. The errors: see ulocks_robust_mutex_t. */
int ulocks_robust_fair_mutex_lock(ulocks_robust_fair_mutex_t *mutex, const ulocks_member_t *member);

/** Locks the mutex if that needs no waiting. EBUSY: a living thread holds it. */
int ulocks_robust_fair_mutex_trylock(ulocks_robust_fair_mutex_t *mutex,
                                     const ulocks_member_t *member);

/** Locks the mutex, or gives up at a moment. */
int ulocks_robust_fair_mutex_lock_until(ulocks_robust_fair_mutex_t *mutex,
                                        const ulocks_member_t *member,
                                        const struct timespec *monotonic_deadline);

/**
 * Unlocks the mutex, which the calling thread must hold. If the last holder died, and the data was
 * not said to be consistent, the mutex is not recoverable from here on.
 */
int ulocks_robust_fair_mutex_unlock(ulocks_robust_fair_mutex_t *mutex,
                                    const ulocks_member_t *member);

/** Says that the data is whole again, after EOWNERDEAD. EINVAL also: no holder had died. */
int ulocks_robust_fair_mutex_consistent(ulocks_robust_fair_mutex_t *mutex,
                                        const ulocks_member_t *member);

/**
 * Locks the mutex although it is not recoverable. Returns EOWNERDEAD: the data is dirty until it
 * is said to be consistent.
 */
int ulocks_robust_fair_mutex_reset(ulocks_robust_fair_mutex_t *mutex,
                                   const ulocks_member_t *member);

/**
 * Unlocks the mutex, waits until notified, and locks the mutex again. A wait may end without a
 * notification, so look at the condition again. The mutex is locked after 0 and EOWNERDEAD; after
 * EINVAL it was not unlocked.
 */
int ulocks_robust_fair_mutex_cond_wait(ulocks_robust_cond_t *cond,
                                       ulocks_robust_fair_mutex_t *mutex,
                                       const ulocks_member_t *member);

/** The same, until a moment. The mutex is locked after ETIMEDOUT, too. */
int ulocks_robust_fair_mutex_cond_wait_until(ulocks_robust_cond_t *cond,
                                             ulocks_robust_fair_mutex_t *mutex,
                                             const ulocks_member_t *member,
                                             const struct timespec *monotonic_deadline);

/** Finds the reader-writer lock of a name in a region, or makes it, unlocked. */
int ulocks_region_robust_rwlock(const ulocks_region_t *region,
                                const ulocks_member_t *member,
                                const char *name,
                                ulocks_robust_rwlock_t **lock);

/** Locks for reading, behind the writers that wait. */
int ulocks_robust_rwlock_read_lock(ulocks_robust_rwlock_t *lock, const ulocks_member_t *member);

/** Locks for reading if that needs no waiting. EBUSY: a writer has the lock or waits. */
int ulocks_robust_rwlock_read_trylock(ulocks_robust_rwlock_t *lock, const ulocks_member_t *member);

/** Locks for reading, or gives up at a moment. */
int ulocks_robust_rwlock_read_lock_until(ulocks_robust_rwlock_t *lock,
                                         const ulocks_member_t *member,
                                         const struct timespec *monotonic_deadline);

/** Locks for an urgent reader, before all writers that wait. */
int ulocks_robust_rwlock_urgent_lock(ulocks_robust_rwlock_t *lock, const ulocks_member_t *member);

/** Locks for an urgent reader if that needs no waiting. EBUSY: a writer has the lock. */
int ulocks_robust_rwlock_urgent_trylock(ulocks_robust_rwlock_t *lock,
                                        const ulocks_member_t *member);

/** Locks for an urgent reader, or gives up at a moment. */
int ulocks_robust_rwlock_urgent_lock_until(ulocks_robust_rwlock_t *lock,
                                           const ulocks_member_t *member,
                                           const struct timespec *monotonic_deadline);

/** Unlocks for a reader of either class. EPERM: the thread does not read. */
int ulocks_robust_rwlock_read_unlock(ulocks_robust_rwlock_t *lock, const ulocks_member_t *member);

/** Locks for writing, and waits as long as that takes. */
int ulocks_robust_rwlock_write_lock(ulocks_robust_rwlock_t *lock, const ulocks_member_t *member);

/** Locks for writing if that needs no waiting. EBUSY: a thread has the lock or waits. */
int ulocks_robust_rwlock_write_trylock(ulocks_robust_rwlock_t *lock, const ulocks_member_t *member);

/** Locks for writing, or gives up at a moment. */
int ulocks_robust_rwlock_write_lock_until(ulocks_robust_rwlock_t *lock,
                                          const ulocks_member_t *member,
                                          const struct timespec *monotonic_deadline);

/**
 * Unlocks for a writer. If a writer had died, and the data was not said to be consistent, the lock
 * is not recoverable from here on. EPERM: the thread does not write.
 */
int ulocks_robust_rwlock_write_unlock(ulocks_robust_rwlock_t *lock, const ulocks_member_t *member);

/**
 * Turns the lock of a writer into that of a reader, and lets other readers in. No writer comes in
 * between. If the data is not consistent, it stays so. Unlock with
 * ulocks_robust_rwlock_read_unlock. EPERM: the thread does not write.
 */
int ulocks_robust_rwlock_downgrade(ulocks_robust_rwlock_t *lock, const ulocks_member_t *member);

/**
 * Says that the data is whole again, after EOWNERDEAD. EINVAL also: no writer had died. EPERM: the
 * thread does not write.
 */
int ulocks_robust_rwlock_consistent(ulocks_robust_rwlock_t *lock, const ulocks_member_t *member);

/**
 * Locks for writing although the lock is not recoverable. Returns EOWNERDEAD: the data is dirty
 * until it is said to be consistent.
 */
int ulocks_robust_rwlock_reset(ulocks_robust_rwlock_t *lock, const ulocks_member_t *member);

/** Whether a thread has the lock at this moment, living or dead. */
bool ulocks_robust_rwlock_is_locked(const ulocks_robust_rwlock_t *lock);

/** Finds the semaphore of a name in a region, or makes it, without permits. */
int ulocks_region_robust_semaphore(const ulocks_region_t *region,
                                   const ulocks_member_t *member,
                                   const char *name,
                                   ulocks_robust_semaphore_t **semaphore);

/**
 * Takes this many permits together, and waits as long as that takes. They come back when the
 * thread dies.
 *
 * Returns 0; EINVAL: the thread would have more than 32767 permits, or the semaphore is not in the
 * member's region, or the member is that of another process; EBADMSG: the memory was overwritten.
 */
int ulocks_robust_semaphore_acquire(ulocks_robust_semaphore_t *semaphore,
                                    const ulocks_member_t *member,
                                    uint32_t count);

/** Takes this many permits together if that needs no waiting. EBUSY: there are fewer permits. */
int ulocks_robust_semaphore_tryacquire(ulocks_robust_semaphore_t *semaphore,
                                       const ulocks_member_t *member,
                                       uint32_t count);

/** Takes this many permits together, or gives up at a moment. */
int ulocks_robust_semaphore_acquire_until(ulocks_robust_semaphore_t *semaphore,
                                          const ulocks_member_t *member,
                                          uint32_t count,
                                          const struct timespec *monotonic_deadline);

/**
 * Gives back this many of the permits that the calling thread has taken. Permits beyond 32767 free
 * ones are lost; there are so many only if some were added while others were out.
 *
 * Returns 0; EPERM: the thread has fewer; EINVAL: the semaphore is not in the member's region, or
 * the member is that of another process.
 */
int ulocks_robust_semaphore_release(ulocks_robust_semaphore_t *semaphore,
                                    const ulocks_member_t *member,
                                    uint32_t count);

/**
 * Adds this many permits. They stay when the thread dies.
 *
 * Returns 0; EOVERFLOW: there would be more than 32767 free permits, and nothing has changed;
 * EINVAL and EBADMSG: as ulocks_robust_semaphore_acquire.
 */
int ulocks_robust_semaphore_add(ulocks_robust_semaphore_t *semaphore,
                                const ulocks_member_t *member,
                                uint32_t count);

/** How many permits are free at this moment. */
uint32_t ulocks_robust_semaphore_available(const ulocks_robust_semaphore_t *semaphore);

/** Locks for reading, and waits as long as that takes. */
int ulocks_rwlock_read_lock(ulocks_rwlock_t *lock);

/** Locks for reading if that needs no waiting, or EBUSY. */
int ulocks_rwlock_read_trylock(ulocks_rwlock_t *lock);

/** Locks for reading, or gives up at a moment. */
int ulocks_rwlock_read_lock_until(ulocks_rwlock_t *lock, const struct timespec *monotonic_deadline);

/** Unlocks what was locked for reading. */
int ulocks_rwlock_read_unlock(ulocks_rwlock_t *lock);

/** Locks for an urgent reader, and waits as long as that takes. */
int ulocks_rwlock_urgent_lock(ulocks_rwlock_t *lock);

/** Locks for an urgent reader if that needs no waiting, or EBUSY. */
int ulocks_rwlock_urgent_trylock(ulocks_rwlock_t *lock);

/** Locks for an urgent reader, or gives up at a moment. */
int ulocks_rwlock_urgent_lock_until(ulocks_rwlock_t *lock,
                                    const struct timespec *monotonic_deadline);

/** Unlocks what was locked for an urgent reader. */
int ulocks_rwlock_urgent_unlock(ulocks_rwlock_t *lock);

/** Locks for a nested reader, and waits as long as that takes. */
int ulocks_rwlock_nested_lock(ulocks_rwlock_t *lock);

/** Locks for a nested reader if that needs no waiting, or EBUSY. */
int ulocks_rwlock_nested_trylock(ulocks_rwlock_t *lock);

/** Locks for a nested reader, or gives up at a moment. */
int ulocks_rwlock_nested_lock_until(ulocks_rwlock_t *lock,
                                    const struct timespec *monotonic_deadline);

/** Unlocks what was locked for a nested reader. */
int ulocks_rwlock_nested_unlock(ulocks_rwlock_t *lock);

/** Locks for writing, and waits as long as that takes. */
int ulocks_rwlock_write_lock(ulocks_rwlock_t *lock);

/** Locks for writing if that needs no waiting, or EBUSY. */
int ulocks_rwlock_write_trylock(ulocks_rwlock_t *lock);

/** Locks for writing, or gives up at a moment. */
int ulocks_rwlock_write_lock_until(ulocks_rwlock_t *lock,
                                   const struct timespec *monotonic_deadline);

/** Unlocks what was locked for writing. */
int ulocks_rwlock_write_unlock(ulocks_rwlock_t *lock);

/** Turns the lock of a writer into that of an ordinary reader. No writer comes in between. */
int ulocks_rwlock_downgrade(ulocks_rwlock_t *lock);

/** Locks for an upgradable reader, and waits as long as that takes. */
int ulocks_rwlock_upgradable_lock(ulocks_rwlock_t *lock);

/** Locks for an upgradable reader if that needs no waiting, or EBUSY. */
int ulocks_rwlock_upgradable_trylock(ulocks_rwlock_t *lock);

/** Locks for an upgradable reader, or gives up at a moment. */
int ulocks_rwlock_upgradable_lock_until(ulocks_rwlock_t *lock,
                                        const struct timespec *monotonic_deadline);

/** Unlocks what was locked for an upgradable reader. */
int ulocks_rwlock_upgradable_unlock(ulocks_rwlock_t *lock);

/** Turns an upgradable lock into that of a writer, and waits until the other readers have left. */
int ulocks_rwlock_upgrade(ulocks_rwlock_t *lock);

/**
 * The same if that needs no waiting. EBUSY: there are other readers, and the lock is upgradable as
 * before.
 */
int ulocks_rwlock_tryupgrade(ulocks_rwlock_t *lock);

/**
 * As ulocks_rwlock_upgrade, or gives up at a moment. After an error the lock is upgradable as
 * before.
 */
int ulocks_rwlock_upgrade_until(ulocks_rwlock_t *lock, const struct timespec *monotonic_deadline);

/** Turns an upgradable lock into that of an ordinary reader. */
int ulocks_rwlock_upgradable_downgrade(ulocks_rwlock_t *lock);

/** Turns the lock of a writer into an upgradable one. No writer comes in between. */
int ulocks_rwlock_downgrade_to_upgradable(ulocks_rwlock_t *lock);

/** Whether a thread holds the lock at this moment, in any way. */
bool ulocks_rwlock_is_locked(const ulocks_rwlock_t *lock);

/** Whether a writer holds the lock at this moment. */
bool ulocks_rwlock_is_write_locked(const ulocks_rwlock_t *lock);

/**
 * Makes a semaphore with this many permits of memory with any content. EINVAL: they are more than
 * 1073741823.
 */
int ulocks_semaphore_init(ulocks_semaphore_t *semaphore, uint32_t permits);

/**
 * Takes this many permits together, and waits as long as that takes. Zero permits need
 * no waiting. EINVAL: they are more than 1073741823.
 */
int ulocks_semaphore_acquire(ulocks_semaphore_t *semaphore, uint32_t count);

/**
 * Takes this many permits together if that needs no waiting. EBUSY: there are fewer, or
 * other threads wait. EINVAL: they are more than 1073741823.
 */
int ulocks_semaphore_tryacquire(ulocks_semaphore_t *semaphore, uint32_t count);

/**
 * Takes this many permits together, or gives up at a moment. EINVAL: they are more than
 * 1073741823.
 */
int ulocks_semaphore_acquire_until(ulocks_semaphore_t *semaphore,
                                   uint32_t count,
                                   const struct timespec *monotonic_deadline);

/**
 * Puts this many permits in. It never waits. Any thread may do so. EOVERFLOW: there would be more
 * than 1073741823, and nothing has changed.
 */
int ulocks_semaphore_release(ulocks_semaphore_t *semaphore, uint32_t count);

/** How many permits are free at this moment. */
uint32_t ulocks_semaphore_available(const ulocks_semaphore_t *semaphore);

/**
 * Makes an array of `count` semaphores with these values. Without values they are all 0, without
 * options the options are the defaults.
 *
 * Returns 0; ERANGE: a value is greater than the limit; EINVAL: the options are not possible, or
 * more than ULOCKS_SEMARRAY_MOST semaphores, or `array` is a null pointer. If there is no memory,
 * the process ends.
 */
int ulocks_semarray_create(size_t count,
                           const uint32_t *values,
                           const ulocks_semarray_options_t *options,
                           ulocks_semarray_t **array);

/**
 * Frees the array. No thread may be inside of one of its functions. A null pointer is ignored.
 * Returns 0.
 */
int ulocks_semarray_destroy(ulocks_semarray_t *array);

/**
 * Performs a set of operations, and waits as long as that takes.
 *
 * Returns 0, or an error of ulocks_semarray_t; EBUSY: it stopped at an operation with
 * ULOCKS_SEMOP_NOWAIT.
 */
int ulocks_semarray_apply(ulocks_semarray_t *array, const ulocks_semop_t *ops, size_t count);

/**
 * Performs a set of operations if that needs no waiting.
 *
 * Returns 0, or an error of ulocks_semarray_t; EBUSY: it would have to wait.
 */
int ulocks_semarray_tryapply(ulocks_semarray_t *array, const ulocks_semop_t *ops, size_t count);

/** As ulocks_semarray_apply, or gives up at a moment. It tries at least once. */
int ulocks_semarray_apply_until(ulocks_semarray_t *array,
                                const ulocks_semop_t *ops,
                                size_t count,
                                const struct timespec *monotonic_deadline);

/**
 * As ulocks_semarray_apply_until, or without a moment as ulocks_semarray_apply. But a signal
 * handler that runs while the set sleeps ends the wait.
 *
 * Returns what those do; EINTR: a signal handler ran.
 */
int ulocks_semarray_apply_interruptible(ulocks_semarray_t *array,
                                        const ulocks_semop_t *ops,
                                        size_t count,
                                        const struct timespec *monotonic_deadline);

/**
 * Undoes the changes of a set, and never waits. A value that would fall below 0 becomes 0, one
 * that would exceed the limit becomes the limit.
 *
 * Returns 0, or EFBIG, E2BIG, EIDRM or EINVAL.
 */
int ulocks_semarray_give_back(ulocks_semarray_t *array, const ulocks_semop_t *ops, size_t count);

/**
 * Writes the value of a semaphore at this moment.
 *
 * Returns 0; EFBIG: there is no such semaphore; EINVAL: a null pointer.
 */
int ulocks_semarray_value(const ulocks_semarray_t *array, uint32_t index, uint32_t *value);

/**
 * Writes all values, as they are at one moment. `count` is how many semaphores there are.
 *
 * Returns 0; EINVAL: another number, or a null pointer.
 */
int ulocks_semarray_values(const ulocks_semarray_t *array, size_t count, uint32_t *values);

/**
 * Gives a semaphore a value, and performs the waiting sets that can proceed then.
 *
 * Returns 0, or EFBIG, ERANGE or EIDRM.
 */
int ulocks_semarray_set(ulocks_semarray_t *array, uint32_t index, uint32_t value);

/**
 * Gives all semaphores values at one moment, and performs the waiting sets that can proceed then.
 * `count` is how many semaphores there are.
 *
 * Returns 0, or ERANGE, EIDRM or EINVAL.
 */
int ulocks_semarray_set_all(ulocks_semarray_t *array, size_t count, const uint32_t *values);

/**
 * Writes how many sets wait at a semaphore at this moment: until its value is greater, and until
 * it is 0.
 *
 * Returns 0; EFBIG: there is no such semaphore; EINVAL: a null pointer.
 */
int ulocks_semarray_waiters(const ulocks_semarray_t *array,
                            uint32_t index,
                            uint32_t *increase,
                            uint32_t *zero);

/** How many semaphores there are. */
size_t ulocks_semarray_count(const ulocks_semarray_t *array);

/** Closes the array: sets that wait, and later ones, return EIDRM. It is not freed. Returns 0. */
int ulocks_semarray_close(ulocks_semarray_t *array);

/** Whether the array was closed. */
bool ulocks_semarray_is_closed(const ulocks_semarray_t *array);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* ULOCKS_H */
