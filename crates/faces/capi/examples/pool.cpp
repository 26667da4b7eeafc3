// Eight threads share three connections: a semaphore, a mutex, and the locks of the standard
// library.

#include "ulocks.hpp"

#include <iostream>
#include <mutex>
#include <thread>
#include <vector>

class Pool {
  public:
    // A connection, until the end of its scope.
    class Connection {
      public:
        explicit Connection(Pool &pool) : pool_(pool) {
            pool_.free_.acquire();
            std::lock_guard<ulocks::fair_mutex> guard(pool_.mutex_);
            number_ = pool_.numbers_.back();
            pool_.numbers_.pop_back();
        }

        ~Connection() {
            {
                std::lock_guard<ulocks::fair_mutex> guard(pool_.mutex_);
                pool_.numbers_.push_back(number_);
            }
            pool_.free_.release();
        }

        Connection(const Connection &) = delete;
        Connection &operator=(const Connection &) = delete;

        int number() const { return number_; }

      private:
        Pool &pool_;
        int number_;
    };

    std::size_t idle() {
        std::lock_guard<ulocks::fair_mutex> guard(mutex_);
        return numbers_.size();
    }

  private:
    ulocks::semaphore free_{3};
    ulocks::fair_mutex mutex_;
    std::vector<int> numbers_{0, 1, 2};
};

int main() {
    Pool pool;
    int used[3] = {0, 0, 0}; // each changed by the thread that has the connection
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; i++)
        threads.emplace_back([&pool, &used] {
            for (int request = 0; request < 1000; request++) {
                const Pool::Connection connection(pool);
                used[connection.number()]++;
            }
        });
    for (auto &thread : threads)
        thread.join();
    const int all = used[0] + used[1] + used[2];
    std::cout << all << " requests, " << pool.idle() << " idle connections\n";
    return all == 8000 && pool.idle() == 3 ? 0 : 1;
}
