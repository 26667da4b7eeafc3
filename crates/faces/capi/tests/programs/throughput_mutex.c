/* ulocks_throughput_mutex_t, and its condition variable. */

#define MUTEX ulocks_throughput_mutex
#define NOTIFY(operation, cond, mutex) FN(_cond##operation)(cond)
#define RELOCK ETIMEDOUT
#include "mutex.h"

int main(void) {
    all_cases();
    return 0;
}
