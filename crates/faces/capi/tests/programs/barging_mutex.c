/* ulocks_barging_mutex_t, and its condition variable, in one process and between two. */

#define MUTEX ulocks_barging_mutex
#define NOTIFY(operation, cond, mutex) FN(_cond##operation)(cond)
#define RELOCK ETIMEDOUT
#include "mutex.h"
#include "process.h"

int main(void) {
    all_cases();
    between_processes();
    return 0;
}
