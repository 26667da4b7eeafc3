// boost.interprocess on the programs of `benches/peers`; `src/measure.rs` has the same numbers.

#include <boost/date_time/posix_time/posix_time_types.hpp>
#include <boost/interprocess/anonymous_shared_memory.hpp>
#include <boost/interprocess/ipc/message_queue.hpp>
#include <boost/interprocess/managed_heap_memory.hpp>
#include <boost/interprocess/sync/interprocess_condition.hpp>
#include <boost/interprocess/sync/interprocess_mutex.hpp>
#include <boost/interprocess/sync/scoped_lock.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <sched.h>
#include <signal.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace bi = boost::interprocess;
using Lock = bi::scoped_lock<bi::interprocess_mutex>;

constexpr unsigned PAIRS = 2'000'000, TRIPS = 20'000, MESSAGES = 200'000, ROOM = 256;

struct Shared {
    bi::interprocess_mutex pair, turn;
    bi::interprocess_condition turned;
    std::uint64_t at = 0;
};

template <class Run> void tell(const char *figure, unsigned times, Run run) {
    const auto begun = std::chrono::steady_clock::now();
    run();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begun;
    std::printf("boost %s %f\n", figure, took.count() / times);
    std::fflush(stdout);
}

void pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set)) std::abort();
}

template <class Child, class Parent> void beside(int first, int second, Child child, Parent parent) {
    const pid_t pid = fork();
    if (pid < 0) std::abort();
    if (pid == 0) {
        pin(first);
        child();
        _exit(0);
    }
    pin(second);
    parent();
    waitpid(pid, nullptr, 0);
}

int main() {
    auto memory = bi::anonymous_shared_memory(sizeof(Shared));
    auto &shared = *new (memory.get_address()) Shared;

    tell("pair", PAIRS, [&] {
        for (unsigned n = 0; n < PAIRS; ++n) Lock guard(shared.pair);
    });

    auto turns = [&](std::uint64_t parity) {
        for (unsigned n = 0; n < TRIPS; ++n) {
            Lock guard(shared.turn);
            while (shared.at % 2 != parity) shared.turned.wait(guard);
            ++shared.at;
            shared.turned.notify_one();
        }
    };
    beside(0, 0, [&] { turns(1); }, [&] { tell("trip", TRIPS, [&] { turns(0); }); });
    beside(0, 1, [&] { turns(1); }, [&] { tell("trip2", TRIPS, [&] { turns(0); }); });

    const std::string name = "ulocks-peer-" + std::to_string(getpid());
    struct Message { std::uint64_t words[8]; };
    bi::message_queue queue(bi::create_only, name.c_str(), ROOM, sizeof(Message));
    bi::message_queue::remove(name.c_str()); // both processes have it
    auto sends = [&] {
        for (std::uint64_t n = 0; n < MESSAGES; ++n) {
            const Message message = {{n, n, n, n, n, n, n, n}};
            queue.send(&message, sizeof message, 0);
        }
    };
    auto receives = [&] {
        for (std::uint64_t n = 0; n < MESSAGES; ++n) {
            Message message;
            bi::message_queue::size_type size;
            unsigned priority;
            queue.receive(&message, sizeof message, size, priority);
            if (message.words[7] != n) std::abort();
        }
    };
    beside(0, 1, sends, [&] { tell("message", MESSAGES, receives); });

    beside(0, 1, [&] { shared.pair.lock(); kill(getpid(), SIGKILL); }, [] {});
    const auto second = boost::posix_time::microsec_clock::universal_time() + boost::posix_time::seconds(1);
    const bool got = shared.pair.timed_lock(second);
    std::printf("boost death the next one gets %s\n", got ? "the mutex, and is not told" : "no mutex");

    bi::managed_heap_memory heap(4096);
    heap.construct<std::int32_t>("value")(7);
    const bool found = heap.find<float>("value").first;
    std::printf("boost layout an integer %s as a float\n", found ? "is found" : "is not found");
}
