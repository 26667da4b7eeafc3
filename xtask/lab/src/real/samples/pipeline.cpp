// A pipeline and containers of oneTBB, beside standard mutexes.
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <oneapi/tbb.h>
#include <shared_mutex>

int main(int count, char **words) {
    long items = count > 1 ? std::atol(words[1]) : 50000;
    oneapi::tbb::global_control limit(oneapi::tbb::global_control::max_allowed_parallelism, 4);
    oneapi::tbb::concurrent_hash_map<long, long> sums;
    oneapi::tbb::concurrent_bounded_queue<long> queue;
    queue.set_capacity(64);
    std::mutex mutex;
    std::shared_mutex shared;
    long next = 0, by_mutex = 0, by_shared = 0;
    oneapi::tbb::parallel_pipeline(
        16, oneapi::tbb::make_filter<void, long>(oneapi::tbb::filter_mode::serial_in_order,
                                                 [&](oneapi::tbb::flow_control &control) {
                                                     if (next == items) {
                                                         control.stop();
                                                         return 0L;
                                                     }
                                                     return next++;
                                                 }) &
                oneapi::tbb::make_filter<long, long>(oneapi::tbb::filter_mode::parallel,
                                                     [&](long item) {
                                                         decltype(sums)::accessor place;
                                                         sums.insert(place, item % 97);
                                                         place->second += item;
                                                         std::lock_guard<std::mutex> guard(mutex);
                                                         by_mutex += item % 3;
                                                         return item;
                                                     }) &
                oneapi::tbb::make_filter<long, void>(oneapi::tbb::filter_mode::parallel, [&](long item) {
                    std::unique_lock<std::shared_mutex> lock(shared);
                    by_shared += item;
                }));
    long sum = 0;
    for (auto &pair : sums) {
        sum += pair.first * pair.second;
    }
    std::printf("%ld %ld %ld\n", sum, by_mutex, by_shared);
    return 0;
}
