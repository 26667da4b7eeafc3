// The classes of ulocks.hpp, with the locks of the standard library on them.

#include "check.h"
#include "ulocks.hpp"

#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <type_traits>
#include <vector>

using namespace std::chrono;

// A static object is initialised by the compiler: it is used before main, and before an object of
// another file is made.
#if __cplusplus >= 202002L
#define CONSTINIT constinit
#else
#define CONSTINIT
#endif

// As a program may have read it from its options.
using unsigned_milliseconds = duration<std::uint64_t, std::milli>;
// A hundred days in each direction, and no more.
using picoseconds = duration<std::int64_t, std::pico>;

constexpr int THREADS = 4;
constexpr int ROUNDS = 5000;

template <class Body> void in_threads(Body body) {
    std::vector<std::thread> threads;
    for (int i = 0; i < THREADS; i++)
        threads.emplace_back(body);
    for (auto &thread : threads)
        thread.join();
}

template <class Body> void in_another_thread(Body body) { std::thread(body).join(); }

template <class Error> std::error_code thrown(Error error) {
    try {
        error();
    } catch (const std::system_error &caught) {
        return caught.code();
    }
    return {};
}

// And nothing is done at its end.
template <class Lock> void is_a_lock() {
    static_assert(!std::is_move_constructible<Lock>::value, "a lock is not moved");
    static_assert(!std::is_move_assignable<Lock>::value, "a lock is not moved");
    static_assert(std::is_trivially_destructible<Lock>::value, "a static lock outlives its users");
}

template <class Mutex> void mutexes() {
    CONSTINIT static Mutex mutex;
    static int counter;
    is_a_lock<Mutex>();

    in_threads([] {
        for (int round = 0; round < ROUNDS; round++) {
            if (round % 2 == 0) {
                std::lock_guard<Mutex> guard(mutex);
                counter++;
            } else {
                std::unique_lock<Mutex> lock(mutex, seconds(40));
                CHECK(lock.owns_lock());
                counter++;
            }
        }
    });
    CHECK(counter == THREADS * ROUNDS);

    std::unique_lock<Mutex> held(mutex);
    CHECK(mutex.is_locked());
    in_another_thread([] {
        CHECK(!mutex.try_lock());
        CHECK(!mutex.try_lock_for(milliseconds(2)));
        CHECK(!mutex.try_lock_for(-hours(1)));
        CHECK(!mutex.try_lock_until(steady_clock::now() + milliseconds(2)));
        CHECK(!mutex.try_lock_until(system_clock::now() + milliseconds(2)));
        CHECK(!mutex.try_lock_until(steady_clock::time_point::min()));
        CHECK(!mutex.try_lock_until(time_point<system_clock, seconds>::min()));
        CHECK(!mutex.try_lock_until(steady_clock::now() + unsigned_milliseconds(2)));
        // These have passed long ago.
        CHECK(!mutex.try_lock_until(time_point<system_clock, picoseconds>::min()));
        CHECK(!mutex.try_lock_until(time_point<system_clock, picoseconds>()));
        CHECK(!mutex.try_lock_until(time_point<system_clock, picoseconds>::max()));
        CHECK(!mutex.try_lock_until(time_point<steady_clock, picoseconds>::min()));
        // A century is more of them than there are.
        CHECK(!mutex.try_lock_for(duration<std::int64_t, std::atto>(1)));
        CHECK(!mutex.try_lock_for(duration<std::int64_t, std::ratio<1, 100000000000>>(1)));
    });
    static std::atomic<bool> comes{false};
    std::thread other_waits([] {
        comes = true;
        CHECK(mutex.try_lock_until(time_point<system_clock, seconds>::max()));
        mutex.unlock();
    });
    while (!comes)
        std::this_thread::yield();
    // It has found the mutex locked by then, or this tests less.
    std::this_thread::sleep_for(milliseconds(20));
    held.unlock();
    other_waits.join();

    // Timeouts that no clock can show.
    CHECK(mutex.try_lock_for(hours::max()));
    mutex.unlock();
    CHECK(mutex.try_lock_for(duration<double>(1e300)));
    mutex.unlock();
    CHECK(mutex.try_lock_for(duration<std::int64_t, std::atto>::max()));
    mutex.unlock();

    static Mutex other;
    in_threads([] {
        for (int round = 0; round < ROUNDS; round++) {
            // std::lock backs off, whatever the order.
            round % 2 ? std::lock(mutex, other) : std::lock(other, mutex);
            mutex.unlock();
            other.unlock();
        }
    });
}

template <class Mutex, class Condvar, class Notify> void condition_variables(Notify notify) {
    static Mutex mutex;
    CONSTINIT static Condvar changed;
    static int turn;
    is_a_lock<Condvar>();

    std::thread other([notify] {
        std::unique_lock<Mutex> lock(mutex);
        for (int i = 0; i < 500; i++) {
            changed.wait(lock, [] { return turn % 2 == 1; });
            turn++;
            notify(changed, mutex);
        }
    });
    {
        std::unique_lock<Mutex> lock(mutex);
        for (int i = 0; i < 500; i++) {
            turn++;
            notify(changed, mutex);
            const auto answered = [] { return turn % 2 == 0; };
            if (i % 3 == 0)
                CHECK(changed.wait_for(lock, seconds(40), answered));
            else if (i % 3 == 1)
                CHECK(changed.wait_until(lock, steady_clock::now() + seconds(40), answered));
            else
                CHECK(changed.wait_until(lock, system_clock::now() + seconds(40), answered));
        }
    }
    other.join();
    CHECK(turn == 1000);

    std::unique_lock<Mutex> lock(mutex);
    CHECK(changed.wait_for(lock, milliseconds(2)) == std::cv_status::timeout);
    CHECK(changed.wait_until(lock, steady_clock::now()) == std::cv_status::timeout);
    CHECK(changed.wait_until(lock, steady_clock::time_point::min()) == std::cv_status::timeout);
    const auto soon = steady_clock::now() + unsigned_milliseconds(2);
    CHECK(!changed.wait_until(lock, soon, [] { return false; }));
    CHECK(!changed.wait_for(lock, milliseconds(2), [] { return false; }));
    CHECK(lock.owns_lock() && mutex.is_locked());
}

struct notify_all {
    template <class Condvar, class Mutex> void operator()(Condvar &condvar, Mutex &) const {
        condvar.notify_all();
        condvar.notify_one();
    }
    void operator()(ulocks::pi_condition_variable &condvar, ulocks::pi_mutex &mutex) const {
        condvar.notify_all(mutex);
        condvar.notify_one(mutex);
    }
};

static void pi_errors() {
    static ulocks::pi_mutex mutex;
    CHECK(thrown([] { mutex.unlock(); }) == std::errc::operation_not_permitted);
    mutex.lock();
    CHECK(thrown([] { mutex.lock(); }) == std::errc::resource_deadlock_would_occur);
    mutex.unlock();

    static ulocks::pi_condition_variable condvar;
    static ulocks::pi_mutex not_held;
    std::unique_lock<ulocks::pi_mutex> lock(not_held, std::adopt_lock);
    CHECK(thrown([&lock] { condvar.wait(lock); }) == std::errc::operation_not_permitted);
    CHECK(!lock.owns_lock());
    lock = std::unique_lock<ulocks::pi_mutex>(not_held);
    CHECK(thrown([&lock] { condvar.wait_until_deadline(lock, &bad[0]); }) == std::errc::invalid_argument);
    CHECK(!lock.owns_lock() && !not_held.is_locked());
}

// An owner ends while this thread waits.
static void pi_owner_dies() {
    for (;;) {
        ulocks::pi_mutex mutex;
        std::atomic<int> step{0};
        std::thread owner([&] {
            mutex.lock();
            step = 1;
            while (step != 2)
                std::this_thread::yield();
            std::this_thread::sleep_for(milliseconds(5));
        });
        while (step != 1)
            std::this_thread::yield();
        step = 2;
        const std::error_code code = thrown([&mutex] { mutex.lock(); });
        owner.join();
        if (code == std::errc::state_not_recoverable)
            continue; // It has ended before.
        CHECK(code == std::errc::owner_dead);
        CHECK(!mutex.is_locked());
        CHECK(mutex.try_lock_for(seconds(40)));
        mutex.unlock();
        return;
    }
}

static void reader_writer_locks() {
    CONSTINIT static ulocks::rwlock lock;
    static int first, second;
    is_a_lock<ulocks::rwlock>();
    in_threads([] {
        for (int round = 0; round < ROUNDS; round++) {
            if (round % 4 == 0) {
                std::unique_lock<ulocks::rwlock> writer(lock);
                first++;
                second++;
            } else if (round % 4 == 1) {
                std::shared_lock<ulocks::rwlock> reader(lock);
                CHECK(first == second);
                ulocks::nested_view view(lock);
                std::shared_lock<ulocks::nested_view> nested(view);
                CHECK(first == second);
            } else if (round % 4 == 2) {
                ulocks::urgent_view view(lock);
                std::shared_lock<ulocks::urgent_view> urgent(view, seconds(40));
                CHECK(urgent.owns_lock() && first == second);
            } else {
                lock.lock_upgrade();
                const int before = first;
                lock.unlock_upgrade_and_lock();
                CHECK(first == before);
                first++;
                second++;
                lock.unlock_and_lock_shared();
                CHECK(first == second);
                lock.unlock_shared();
            }
        }
    });
    CHECK(first == THREADS * ROUNDS / 2);

    std::shared_lock<ulocks::rwlock> reader(lock);
    in_another_thread([] {
        CHECK(!lock.try_lock());
        CHECK(!lock.try_lock_for(milliseconds(2)));
        CHECK(!lock.try_lock_until(steady_clock::now() + milliseconds(2)));
        CHECK(lock.try_lock_shared_for(seconds(40)));
        CHECK(lock.try_lock_upgrade());
        CHECK(!lock.try_unlock_upgrade_and_lock());
        lock.unlock_upgrade_and_lock_shared();
        lock.unlock_shared();
        lock.unlock_shared();
    });
    reader.unlock();
    lock.lock();
    in_another_thread([] {
        CHECK(!lock.try_lock_shared());
        CHECK(!lock.try_lock_shared_until(system_clock::now() + milliseconds(2)));
        ulocks::nested_view view(lock);
        CHECK(!view.try_lock_shared());
        CHECK(!view.try_lock_shared_until(steady_clock::now() + milliseconds(2)));
    });
    lock.unlock_and_lock_upgrade();
    lock.unlock_upgrade();
    CHECK(lock.try_lock());
    lock.unlock();
}

CONSTINIT static ulocks::semaphore two(2);

static void semaphores() {
    is_a_lock<ulocks::semaphore>();
    static int inside;
    in_threads([] {
        for (int round = 0; round < ROUNDS; round++) {
            two.acquire();
            CHECK(__atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST) <= 2);
            __atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
            two.release();
        }
    });
    CHECK(two.available() == 2);
    CHECK(!two.try_acquire(3));
    CHECK(two.try_acquire(2));
    CHECK(!two.try_acquire_for(milliseconds(2)));
    CHECK(!two.try_acquire_until(steady_clock::now() + milliseconds(2)));
    CHECK(thrown([] { two.acquire(UINT32_MAX); }) == std::errc::invalid_argument);
    CHECK(thrown([] { ulocks::semaphore many(UINT32_MAX); }) == std::errc::invalid_argument);
    two.release(static_cast<std::uint32_t>(two.max()));
    CHECK(thrown([] { two.release(); }) == std::errc::value_too_large);
}

static void arrays_of_semaphores() {
    static ulocks::semarray array{0, 2};
    static int inside;
    CHECK(array.size() == 2);
    in_threads([] {
        for (int round = 0; round < ROUNDS; round++) {
            array.apply({{0, 0, 0}, {0, 1, 0}});
            CHECK(++inside == 1);
            inside--;
            array.give_back({{0, 1, 0}});
        }
    });
    CHECK(array.value(0) == 0);
    CHECK(!array.try_apply({{1, -1, 0}, {0, -1, 0}}));
    CHECK(!array.try_apply_for(milliseconds(2), {{1, -1, 0}, {0, -1, 0}}));
    CHECK(!array.try_apply_until(system_clock::now() + milliseconds(2), {{0, -1, 0}}));
    const auto much_later = system_clock::now() + hours(1);
    CHECK(!array.try_apply_for(hours(1), {{0, -1, ULOCKS_SEMOP_NOWAIT}}));
    CHECK(!array.try_apply_until(much_later, {{0, -1, ULOCKS_SEMOP_NOWAIT}}));
    CHECK(array.value(1) == 2);
    array.set_value(0, 1);
    CHECK(array.try_apply({{1, -1, 0}, {0, -1, 0}}));
    CHECK(thrown([] { array.apply({{2, 1, 0}}); }) == std::errc::file_too_large);
    CHECK(thrown([] { ulocks::semarray beyond{40000}; }) == std::errc::result_out_of_range);
    array.close();
    CHECK(thrown([] { array.apply({{0, 1, 0}}); }).value() == EIDRM);
}

int main() {
    mutexes<ulocks::mutex>();
    mutexes<ulocks::barging_mutex>();
    mutexes<ulocks::fair_mutex>();
    mutexes<ulocks::pi_mutex>();
    condition_variables<ulocks::mutex, ulocks::condition_variable>(notify_all{});
    condition_variables<ulocks::barging_mutex, ulocks::barging_condition_variable>(notify_all{});
    condition_variables<ulocks::fair_mutex, ulocks::fair_condition_variable>(notify_all{});
    condition_variables<ulocks::pi_mutex, ulocks::pi_condition_variable>(notify_all{});
    pi_errors();
    pi_owner_dies();
    reader_writer_locks();
    semaphores();
    arrays_of_semaphores();
    return 0;
}
