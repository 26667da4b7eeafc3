// The locks of the C++ library, with exceptions and cancellation through waits.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <future>
#include <mutex>
#include <pthread.h>
#include <semaphore.h>
#include <shared_mutex>
#include <stdexcept>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace std::chrono_literals;

static void show(const char *name, long result) {
    std::printf("%s: %ld\n", name, result);
    std::fflush(stdout);
}

template <class Mutex> static long counted() {
    Mutex mutex;
    long count = 0;
    std::vector<std::thread> threads;
    for (int nth = 0; nth < 6; ++nth) {
        threads.emplace_back([&] {
            for (int round = 0; round < 2000; ++round) {
                std::lock_guard<Mutex> guard(mutex);
                ++count;
            }
        });
    }
    for (auto &thread : threads) {
        thread.join();
    }
    return count;
}

template <class Mutex> static long times_out() {
    Mutex mutex;
    std::lock_guard<Mutex> guard(mutex);
    bool locked = true;
    std::thread([&] { locked = mutex.try_lock_for(10ms) || mutex.try_lock_until(std::chrono::steady_clock::now() + 10ms); }).join();
    return locked;
}

// An exception leaves a region, and the guard frees the mutex.
static long thrown_through_guards() {
    std::recursive_mutex mutex;
    long caught = 0;
    for (int round = 0; round < 100; ++round) {
        try {
            std::lock_guard<std::recursive_mutex> outer(mutex);
            std::lock_guard<std::recursive_mutex> inner(mutex);
            throw std::runtime_error("in the region");
        } catch (const std::runtime_error &) {
            ++caught;
        }
    }
    bool is_free = false;
    std::thread([&] {
        is_free = mutex.try_lock();
        if (is_free) {
            mutex.unlock();
        }
    }).join();
    return is_free ? caught : -1;
}

// The predicate of a wait throws, with the mutex held.
static long thrown_through_wait() {
    std::mutex mutex;
    std::condition_variable condition;
    bool ready = false;
    long result = -1;
    std::thread waiter([&] {
        std::unique_lock<std::mutex> lock(mutex);
        try {
            condition.wait(lock, [&]() -> bool {
                if (ready) {
                    throw 42;
                }
                return false;
            });
        } catch (int thrown) {
            result = lock.owns_lock() ? thrown : -2;
        }
    });
    {
        std::lock_guard<std::mutex> guard(mutex);
        ready = true;
    }
    condition.notify_all();
    waiter.join();
    return mutex.try_lock() ? (mutex.unlock(), result) : -3;
}

struct Unwound {
    long &count;
    ~Unwound() { ++count; }
};

static std::mutex cancel_mutex;
static std::condition_variable cancel_condition;
static sem_t cancel_semaphore;
static std::atomic<int> ready;
static long unwound;

// glibc cancels by unwinding, so destructors run, and the guard frees the mutex.
static void *wait_until_cancelled(void *use_semaphore) {
    Unwound outer{unwound};
    if (use_semaphore != nullptr) {
        ready = 1;
        for (;;) {
            sem_wait(&cancel_semaphore);
        }
    }
    std::unique_lock<std::mutex> lock(cancel_mutex);
    ready = 1;
    // The plain function: std::condition_variable::wait may not throw.
    for (;;) {
        pthread_cond_wait(cancel_condition.native_handle(), cancel_mutex.native_handle());
    }
}

static long cancelled(bool use_semaphore) {
    ready = 0;
    unwound = 0;
    pthread_t thread;
    pthread_create(&thread, nullptr, wait_until_cancelled, use_semaphore ? &ready : nullptr);
    while (ready == 0) {
        std::this_thread::sleep_for(1ms);
    }
    std::this_thread::sleep_for(5ms);
    pthread_cancel(thread);
    void *result = nullptr;
    pthread_join(thread, &result);
    bool is_free = cancel_mutex.try_lock();
    if (is_free) {
        cancel_mutex.unlock();
    }
    return result == PTHREAD_CANCELED && is_free ? unwound : -1;
}

static long readers_and_writers() {
    std::shared_timed_mutex mutex;
    long value = 0, torn = 0;
    std::vector<std::thread> threads;
    for (int nth = 0; nth < 6; ++nth) {
        threads.emplace_back([&, nth] {
            for (int round = 0; round < 1000; ++round) {
                if (nth % 3 == 0) {
                    std::unique_lock<std::shared_timed_mutex> lock(mutex);
                    value += 1;
                } else if (std::shared_lock<std::shared_timed_mutex> lock(mutex, 1s); !lock.owns_lock() || value < 0) {
                    torn += 1;
                }
            }
        });
    }
    for (auto &thread : threads) {
        thread.join();
    }
    return torn == 0 ? value : -1;
}

static long futures() {
    long sum = 0;
    std::vector<std::future<long>> all;
    for (long nth = 0; nth < 20; ++nth) {
        all.push_back(std::async(std::launch::async, [nth] {
            if (nth % 5 == 0) {
                throw std::runtime_error("a task");
            }
            return nth;
        }));
    }
    for (auto &one : all) {
        try {
            sum += one.get();
        } catch (const std::runtime_error &) {
            sum += 1000;
        }
    }
    return sum;
}

static long turns() {
    std::mutex mutex;
    std::condition_variable condition;
    std::condition_variable_any any;
    int turn = 0;
    std::thread other([&] {
        for (int round = 0; round < 500; ++round) {
            std::unique_lock<std::mutex> lock(mutex);
            condition.wait(lock, [&] { return turn == 1; });
            turn = 0;
            any.notify_one();
        }
    });
    for (int round = 0; round < 500; ++round) {
        std::unique_lock<std::mutex> lock(mutex);
        any.wait(lock, [&] { return turn == 0; });
        turn = 1;
        condition.notify_one();
    }
    other.join();
    return turn;
}

static long waits_time_out() {
    std::mutex mutex;
    std::condition_variable condition;
    std::unique_lock<std::mutex> lock(mutex);
    long timed_out = condition.wait_for(lock, 5ms, [] { return false; });
    timed_out += condition.wait_until(lock, std::chrono::system_clock::now() + 5ms, [] { return false; });
    timed_out += condition.wait_until(lock, std::chrono::steady_clock::now() - 5ms, [] { return false; });
    return timed_out;
}

int main() {
    show("mutex", counted<std::mutex>());
    show("recursive_mutex", counted<std::recursive_mutex>());
    show("timed_mutex", counted<std::timed_mutex>());
    show("shared_mutex", counted<std::shared_mutex>());
    show("timed_mutex, locked", times_out<std::timed_mutex>());
    show("recursive_timed_mutex, locked", times_out<std::recursive_timed_mutex>());
    show("shared_timed_mutex, locked", times_out<std::shared_timed_mutex>());
    show("exceptions through guards", thrown_through_guards());
    show("an exception through a wait", thrown_through_wait());
    sem_init(&cancel_semaphore, 0, 0);
    show("a cancelled wait, destructors", cancelled(false));
    show("a cancelled semaphore, destructors", cancelled(true));
    show("readers and writers", readers_and_writers());
    show("futures", futures());
    show("turns", turns());
    show("waits that time out", waits_time_out());
    std::once_flag once;
    long calls = 0;
    for (int round = 0; round < 3; ++round) {
        try {
            std::call_once(once, [&] { if (++calls < 2) throw calls; });
        } catch (long) {
        }
    }
    show("call_once after an exception", calls);
    std::printf("end\n");
}
