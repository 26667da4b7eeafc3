// ulocks.hpp: the locks of ulocks.h for C++14, with the requirements of the standard library.
//
// A mutex of this file is TimedLockable, and `rwlock` is SharedTimedLockable too. So they work with
// std::lock_guard, std::unique_lock, std::scoped_lock, std::shared_lock and std::lock.
//
// | class | lock |
// |---|---|
// | ulocks::mutex, ulocks::condition_variable | ulocks_mutex_t |
// | ulocks::barging_mutex, ulocks::barging_condition_variable | ulocks_barging_mutex_t |
// | ulocks::fair_mutex, ulocks::fair_condition_variable | ulocks_fair_mutex_t |
// | ulocks::pi_mutex, ulocks::pi_condition_variable | ulocks_pi_mutex_t |
// | ulocks::rwlock, ulocks::urgent_view, ulocks::nested_view | ulocks_rwlock_t |
// | ulocks::semaphore | ulocks_semaphore_t |
// | ulocks::semarray | ulocks_semarray_t |
//
// A static object is initialised by the compiler, and a destructor does nothing, except for
// semarray. Errors are exceptions of the type std::system_error. The functions of pi_mutex and its
// condition variable, of semaphore and of semarray have some, and wait_until_deadline has one:
// std::errc::invalid_argument for what is no moment.

#ifndef ULOCKS_HPP
#define ULOCKS_HPP

#include "ulocks.h"

#include <cerrno>
#include <chrono>
#include <condition_variable> // std::cv_status
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <mutex>
#include <system_error>
#include <time.h>

namespace ulocks {
namespace detail {

inline void check(int error) {
    if (error != 0)
        throw std::system_error(error, std::generic_category());
}

// Whether a call was in time. Other errors are thrown.
inline bool in_time(int error) {
    if (error == ETIMEDOUT || error == EBUSY)
        return false;
    check(error);
    return true;
}

// A century fits into this, in any unit.
using rough = std::chrono::duration<double>;

constexpr std::chrono::nanoseconds century() { return std::chrono::hours(24 * 36525); }

// A duration in whole nanoseconds: none if it is negative, a century at most.
template <class Rep, class Period>
std::chrono::nanoseconds whole(const std::chrono::duration<Rep, Period> &timeout) {
    using std::chrono::nanoseconds;
    if (timeout <= timeout.zero())
        return nanoseconds::zero();
    if (!(rough(timeout) < century()))
        return century();
    const auto down = std::chrono::duration_cast<nanoseconds>(timeout);
    // Rounded up: a wait is never shorter than asked for.
    return down < timeout ? down + nanoseconds(1) : down;
}

// How long it is until `moment` on its own clock: none if it has passed, a century at most. What is
// more than an hour may be too short by some hundred nanoseconds.
template <class Clock, class Duration>
std::chrono::nanoseconds left(const std::chrono::time_point<Clock, Duration> &moment) {
    const auto now = Clock::now();
    const rough about = rough(moment.time_since_epoch()) - rough(now.time_since_epoch());
    // Both in one unit: that may be too short for a moment far from now. Unsigned numbers have no
    // difference below zero.
    if (about < -std::chrono::seconds(1) || std::chrono::hours(1) < about)
        return whole(about);
    return moment <= now ? std::chrono::nanoseconds::zero() : whole(moment - now);
}

// The moment of CLOCK_MONOTONIC that is so far from now, a century at most.
template <class Rep, class Period>
timespec after(const std::chrono::duration<Rep, Period> &timeout) {
    timespec moment{};
    clock_gettime(CLOCK_MONOTONIC, &moment);
    const std::int64_t count = whole(timeout).count();
    moment.tv_sec += static_cast<time_t>(count / 1000000000);
    moment.tv_nsec += static_cast<long>(count % 1000000000);
    if (moment.tv_nsec >= 1000000000) {
        moment.tv_sec += 1;
        moment.tv_nsec -= 1000000000;
    }
    return moment;
}

// Calls `attempt` with deadlines until it does not time out, or `moment` has passed on its own
// clock, which may be set while a thread waits. Returns what the last attempt did.
template <class Clock, class Duration, class Attempt>
int until(const std::chrono::time_point<Clock, Duration> &moment, Attempt attempt) {
    for (;;) {
        const timespec deadline = after(left(moment));
        const int error = attempt(&deadline);
        if (error != ETIMEDOUT || left(moment) == std::chrono::nanoseconds::zero())
            return error;
    }
}

template <class T, int (*Lock)(T *), int (*TryLock)(T *), int (*LockUntil)(T *, const timespec *),
          int (*Unlock)(T *), bool (*IsLocked)(const T *)>
class basic_mutex {
  public:
    using native_handle_type = T *;

    constexpr basic_mutex() noexcept : raw_{} {}
    basic_mutex(const basic_mutex &) = delete;
    basic_mutex &operator=(const basic_mutex &) = delete;

    void lock() { check(Lock(&raw_)); }
    bool try_lock() { return in_time(TryLock(&raw_)); }
    void unlock() { check(Unlock(&raw_)); }

    template <class Rep, class Period>
    bool try_lock_for(const std::chrono::duration<Rep, Period> &timeout) {
        const timespec deadline = after(timeout);
        return in_time(LockUntil(&raw_, &deadline));
    }

    template <class Clock, class Duration>
    bool try_lock_until(const std::chrono::time_point<Clock, Duration> &moment) {
        return in_time(until(
            moment, [this](const timespec *deadline) { return LockUntil(&raw_, deadline); }));
    }

    // Whether a thread holds the mutex at this moment.
    bool is_locked() const noexcept { return IsLocked(&raw_); }
    native_handle_type native_handle() noexcept { return &raw_; }

  private:
    T raw_;
};

// The waits of a condition variable whose `wait_` and `wait_raw_until` are those of `Self`.
template <class Self, class Mutex> class waits {
  public:
    template <class Predicate> void wait(std::unique_lock<Mutex> &lock, Predicate predicate) {
        while (!predicate())
            self().wait(lock);
    }

    template <class Clock, class Duration>
    std::cv_status wait_until(std::unique_lock<Mutex> &lock,
                              const std::chrono::time_point<Clock, Duration> &moment) {
        const timespec deadline = after(left(moment));
        if (self().wait_until_deadline(lock, &deadline) ||
            left(moment) != std::chrono::nanoseconds::zero())
            return std::cv_status::no_timeout;
        return std::cv_status::timeout;
    }

    template <class Clock, class Duration, class Predicate>
    bool wait_until(std::unique_lock<Mutex> &lock,
                    const std::chrono::time_point<Clock, Duration> &moment, Predicate predicate) {
        while (!predicate())
            if (wait_until(lock, moment) == std::cv_status::timeout)
                return predicate();
        return true;
    }

    template <class Rep, class Period>
    std::cv_status wait_for(std::unique_lock<Mutex> &lock,
                            const std::chrono::duration<Rep, Period> &timeout) {
        const timespec deadline = after(timeout);
        return self().wait_until_deadline(lock, &deadline) ? std::cv_status::no_timeout
                                                            : std::cv_status::timeout;
    }

    template <class Rep, class Period, class Predicate>
    bool wait_for(std::unique_lock<Mutex> &lock, const std::chrono::duration<Rep, Period> &timeout,
                  Predicate predicate) {
        const timespec deadline = after(timeout);
        while (!predicate())
            if (!self().wait_until_deadline(lock, &deadline))
                return predicate();
        return true;
    }

  private:
    Self &self() noexcept { return static_cast<Self &>(*this); }
};

template <class Mutex, class M, class T, int (*Wait)(T *, M *),
          int (*WaitUntil)(T *, M *, const timespec *), int (*Signal)(T *), int (*Broadcast)(T *)>
class basic_condition_variable
    : public waits<basic_condition_variable<Mutex, M, T, Wait, WaitUntil, Signal, Broadcast>, Mutex> {
  public:
    using native_handle_type = T *;

    constexpr basic_condition_variable() noexcept : raw_{} {}
    basic_condition_variable(const basic_condition_variable &) = delete;
    basic_condition_variable &operator=(const basic_condition_variable &) = delete;

    using waits<basic_condition_variable, Mutex>::wait;
    void wait(std::unique_lock<Mutex> &lock) { check(Wait(&raw_, lock.mutex()->native_handle())); }

    // Waits until a moment of CLOCK_MONOTONIC: false if no notification came.
    bool wait_until_deadline(std::unique_lock<Mutex> &lock, const timespec *deadline) {
        return in_time(WaitUntil(&raw_, lock.mutex()->native_handle(), deadline));
    }

    void notify_one() noexcept { Signal(&raw_); }
    void notify_all() noexcept { Broadcast(&raw_); }
    native_handle_type native_handle() noexcept { return &raw_; }

  private:
    T raw_;
};

} // namespace detail

// The two classes of a mutex, by the name of its functions.
#define ULOCKS_HPP_MUTEX(name, condition, c)                                                          \
    using name = detail::basic_mutex<c##_t, c##_lock, c##_trylock, c##_lock_until, c##_unlock,         \
                                     c##_is_locked>;                                                   \
    using condition =                                                                                  \
        detail::basic_condition_variable<name, c##_t, c##_cond_t, c##_cond_wait, c##_cond_wait_until,  \
                                         c##_cond_signal, c##_cond_broadcast>;

ULOCKS_HPP_MUTEX(mutex, condition_variable, ulocks_mutex)
ULOCKS_HPP_MUTEX(barging_mutex, barging_condition_variable, ulocks_barging_mutex)
ULOCKS_HPP_MUTEX(fair_mutex, fair_condition_variable, ulocks_fair_mutex)

#undef ULOCKS_HPP_MUTEX

// A mutex with priority inheritance.
//
// lock, try_lock and the like throw an error of the kernel, as ulocks_pi_mutex_t lists them. For
// std::errc::owner_dead they unlock the mutex first, and no later call says so again. To repair
// what an ended thread has left, call ulocks_pi_mutex_lock with native_handle() in their place.
// unlock throws std::errc::operation_not_permitted if the calling thread does not hold the mutex.
class pi_mutex {
  public:
    using native_handle_type = ulocks_pi_mutex_t *;

    constexpr pi_mutex() noexcept : raw_{} {}
    pi_mutex(const pi_mutex &) = delete;
    pi_mutex &operator=(const pi_mutex &) = delete;

    void lock() { locked(ulocks_pi_mutex_lock(&raw_)); }
    bool try_lock() { return locked(ulocks_pi_mutex_trylock(&raw_)); }
    void unlock() { detail::check(ulocks_pi_mutex_unlock(&raw_)); }

    template <class Rep, class Period>
    bool try_lock_for(const std::chrono::duration<Rep, Period> &timeout) {
        const timespec deadline = detail::after(timeout);
        return locked(ulocks_pi_mutex_lock_until(&raw_, &deadline));
    }

    template <class Clock, class Duration>
    bool try_lock_until(const std::chrono::time_point<Clock, Duration> &moment) {
        return locked(detail::until(moment, [this](const timespec *deadline) {
            return ulocks_pi_mutex_lock_until(&raw_, deadline);
        }));
    }

    bool is_locked() const noexcept { return ulocks_pi_mutex_is_locked(&raw_); }
    native_handle_type native_handle() noexcept { return &raw_; }

  private:
    bool locked(int error) {
        if (error == EOWNERDEAD)
            ulocks_pi_mutex_unlock(&raw_);
        return detail::in_time(error);
    }

    ulocks_pi_mutex_t raw_;
};

// A condition variable for one pi_mutex, which a notification names.
//
// If a wait throws, `lock` owns the mutex after std::errc::owner_dead only.
class pi_condition_variable : public detail::waits<pi_condition_variable, pi_mutex> {
  public:
    using native_handle_type = ulocks_pi_mutex_cond_t *;

    constexpr pi_condition_variable() noexcept : raw_{} {}
    pi_condition_variable(const pi_condition_variable &) = delete;
    pi_condition_variable &operator=(const pi_condition_variable &) = delete;

    using waits::wait;
    void wait(std::unique_lock<pi_mutex> &lock) {
        waited(lock, ulocks_pi_mutex_cond_wait(&raw_, lock.mutex()->native_handle()));
    }

    // Waits until a moment of CLOCK_MONOTONIC: false if no notification came.
    bool wait_until_deadline(std::unique_lock<pi_mutex> &lock, const timespec *deadline) {
        const auto held = lock.mutex()->native_handle();
        return waited(lock, ulocks_pi_mutex_cond_wait_until(&raw_, held, deadline));
    }

    void notify_one(pi_mutex &of) {
        detail::check(ulocks_pi_mutex_cond_signal(&raw_, of.native_handle()));
    }
    void notify_all(pi_mutex &of) {
        detail::check(ulocks_pi_mutex_cond_broadcast(&raw_, of.native_handle()));
    }
    native_handle_type native_handle() noexcept { return &raw_; }

  private:
    static bool waited(std::unique_lock<pi_mutex> &lock, int error) {
        // A wait may fail before it has unlocked, or after.
        if (error != 0 && error != ETIMEDOUT && error != EOWNERDEAD)
            ulocks_pi_mutex_unlock(lock.release()->native_handle());
        return detail::in_time(error);
    }

    ulocks_pi_mutex_cond_t raw_;
};

// A reader-writer lock where readers and writers take turns. See ulocks_rwlock_t.
//
// The functions of upgradable readers have the names of Boost.Thread's UpgradeLockable.
class rwlock {
  public:
    using native_handle_type = ulocks_rwlock_t *;

    constexpr rwlock() noexcept : raw_{} {}
    rwlock(const rwlock &) = delete;
    rwlock &operator=(const rwlock &) = delete;

    void lock() { ulocks_rwlock_write_lock(&raw_); }
    bool try_lock() { return ulocks_rwlock_write_trylock(&raw_) == 0; }
    void unlock() { ulocks_rwlock_write_unlock(&raw_); }

    template <class Rep, class Period>
    bool try_lock_for(const std::chrono::duration<Rep, Period> &timeout) {
        const timespec deadline = detail::after(timeout);
        return ulocks_rwlock_write_lock_until(&raw_, &deadline) == 0;
    }

    template <class Clock, class Duration>
    bool try_lock_until(const std::chrono::time_point<Clock, Duration> &moment) {
        return detail::until(moment, [this](const timespec *deadline) {
                   return ulocks_rwlock_write_lock_until(&raw_, deadline);
               }) == 0;
    }

    void lock_shared() { ulocks_rwlock_read_lock(&raw_); }
    bool try_lock_shared() { return ulocks_rwlock_read_trylock(&raw_) == 0; }
    void unlock_shared() { ulocks_rwlock_read_unlock(&raw_); }

    template <class Rep, class Period>
    bool try_lock_shared_for(const std::chrono::duration<Rep, Period> &timeout) {
        const timespec deadline = detail::after(timeout);
        return ulocks_rwlock_read_lock_until(&raw_, &deadline) == 0;
    }

    template <class Clock, class Duration>
    bool try_lock_shared_until(const std::chrono::time_point<Clock, Duration> &moment) {
        return detail::until(moment, [this](const timespec *deadline) {
                   return ulocks_rwlock_read_lock_until(&raw_, deadline);
               }) == 0;
    }

    void lock_upgrade() { ulocks_rwlock_upgradable_lock(&raw_); }
    bool try_lock_upgrade() { return ulocks_rwlock_upgradable_trylock(&raw_) == 0; }
    void unlock_upgrade() { ulocks_rwlock_upgradable_unlock(&raw_); }
    void unlock_upgrade_and_lock() { ulocks_rwlock_upgrade(&raw_); }
    bool try_unlock_upgrade_and_lock() { return ulocks_rwlock_tryupgrade(&raw_) == 0; }
    void unlock_upgrade_and_lock_shared() { ulocks_rwlock_upgradable_downgrade(&raw_); }
    void unlock_and_lock_shared() { ulocks_rwlock_downgrade(&raw_); }
    void unlock_and_lock_upgrade() { ulocks_rwlock_downgrade_to_upgradable(&raw_); }

    native_handle_type native_handle() noexcept { return &raw_; }

  private:
    ulocks_rwlock_t raw_;
};

namespace detail {

template <int (*Lock)(ulocks_rwlock_t *), int (*TryLock)(ulocks_rwlock_t *),
          int (*LockUntil)(ulocks_rwlock_t *, const timespec *), int (*Unlock)(ulocks_rwlock_t *)>
class reader_view {
  public:
    explicit reader_view(rwlock &lock) noexcept : raw_(lock.native_handle()) {}

    void lock_shared() { Lock(raw_); }
    bool try_lock_shared() { return TryLock(raw_) == 0; }
    void unlock_shared() { Unlock(raw_); }

    template <class Rep, class Period>
    bool try_lock_shared_for(const std::chrono::duration<Rep, Period> &timeout) {
        const timespec deadline = after(timeout);
        return LockUntil(raw_, &deadline) == 0;
    }

    template <class Clock, class Duration>
    bool try_lock_shared_until(const std::chrono::time_point<Clock, Duration> &moment) {
        return until(moment, [this](const timespec *deadline) {
                   return LockUntil(raw_, deadline);
               }) == 0;
    }

  private:
    ulocks_rwlock_t *raw_;
};

} // namespace detail

// A rwlock as its urgent readers see it, for std::shared_lock. The view must outlive the lock on it.
using urgent_view = detail::reader_view<ulocks_rwlock_urgent_lock, ulocks_rwlock_urgent_trylock,
                                        ulocks_rwlock_urgent_lock_until, ulocks_rwlock_urgent_unlock>;

// A rwlock as its nested readers see it, for std::shared_lock. The view must outlive the lock on it.
using nested_view = detail::reader_view<ulocks_rwlock_nested_lock, ulocks_rwlock_nested_trylock,
                                        ulocks_rwlock_nested_lock_until, ulocks_rwlock_nested_unlock>;

// A counting semaphore, first come, first served. The functions are those of
// std::counting_semaphore, and each takes a number of permits.
//
// More permits than max() are the error std::errc::invalid_argument, or value_too_large if release
// finds so many.
class semaphore {
  public:
    using native_handle_type = ulocks_semaphore_t *;

    constexpr explicit semaphore(std::uint32_t permits)
        : raw_ ULOCKS_SEMAPHORE_INIT(permits <= max() ? permits : throw too_many()) {}
    semaphore(const semaphore &) = delete;
    semaphore &operator=(const semaphore &) = delete;

    static constexpr std::ptrdiff_t max() noexcept { return 1073741823; }

    void acquire(std::uint32_t count = 1) { detail::check(ulocks_semaphore_acquire(&raw_, count)); }
    bool try_acquire(std::uint32_t count = 1) {
        return detail::in_time(ulocks_semaphore_tryacquire(&raw_, count));
    }
    void release(std::uint32_t count = 1) { detail::check(ulocks_semaphore_release(&raw_, count)); }

    template <class Rep, class Period>
    bool try_acquire_for(const std::chrono::duration<Rep, Period> &timeout, std::uint32_t count = 1) {
        const timespec deadline = detail::after(timeout);
        return detail::in_time(ulocks_semaphore_acquire_until(&raw_, count, &deadline));
    }

    template <class Clock, class Duration>
    bool try_acquire_until(const std::chrono::time_point<Clock, Duration> &moment,
                           std::uint32_t count = 1) {
        return detail::in_time(detail::until(moment, [this, count](const timespec *deadline) {
            return ulocks_semaphore_acquire_until(&raw_, count, deadline);
        }));
    }

    // How many permits are free at this moment.
    std::uint32_t available() const noexcept { return ulocks_semaphore_available(&raw_); }
    native_handle_type native_handle() noexcept { return &raw_; }

  private:
    static std::system_error too_many() {
        return std::system_error(EINVAL, std::generic_category());
    }

    ulocks_semaphore_t raw_;
};

// Semaphores on which sets of operations take effect all at one moment, or not at all. See
// ulocks_semarray_t, which lists the errors.
//
//     ulocks::semarray array{1, 0};
//     array.apply({{0, -1, 0}, {1, 2, 0}}); // takes one of semaphore 0, adds two to semaphore 1
class semarray {
  public:
    using native_handle_type = ulocks_semarray_t *;
    using set = std::initializer_list<ulocks_semop_t>;

    // Semaphores with these values.
    semarray(std::initializer_list<std::uint32_t> values,
             const ulocks_semarray_options_t &options = ulocks_semarray_options_t()) {
        detail::check(ulocks_semarray_create(values.size(), values.begin(), &options, &raw_));
    }
    semarray(const semarray &) = delete;
    semarray &operator=(const semarray &) = delete;
    ~semarray() { ulocks_semarray_destroy(raw_); }

    void apply(set ops) { detail::check(ulocks_semarray_apply(raw_, ops.begin(), ops.size())); }
    bool try_apply(set ops) {
        return detail::in_time(ulocks_semarray_tryapply(raw_, ops.begin(), ops.size()));
    }

    template <class Rep, class Period>
    bool try_apply_for(const std::chrono::duration<Rep, Period> &timeout, set ops) {
        const timespec deadline = detail::after(timeout);
        return detail::in_time(
            ulocks_semarray_apply_until(raw_, ops.begin(), ops.size(), &deadline));
    }

    template <class Clock, class Duration>
    bool try_apply_until(const std::chrono::time_point<Clock, Duration> &moment, set ops) {
        return detail::in_time(detail::until(moment, [this, ops](const timespec *deadline) {
            return ulocks_semarray_apply_until(raw_, ops.begin(), ops.size(), deadline);
        }));
    }

    // Undoes the changes of a set. It never waits.
    void give_back(set ops) { detail::check(ulocks_semarray_give_back(raw_, ops.begin(), ops.size())); }

    std::uint32_t value(std::uint32_t index) const {
        std::uint32_t found;
        detail::check(ulocks_semarray_value(raw_, index, &found));
        return found;
    }
    void set_value(std::uint32_t index, std::uint32_t value) {
        detail::check(ulocks_semarray_set(raw_, index, value));
    }
    std::size_t size() const noexcept { return ulocks_semarray_count(raw_); }

    // Sets that wait, and later ones, throw std::errc::identifier_removed.
    void close() noexcept { ulocks_semarray_close(raw_); }
    native_handle_type native_handle() noexcept { return raw_; }

  private:
    ulocks_semarray_t *raw_;
};

} // namespace ulocks

#endif // ULOCKS_HPP
