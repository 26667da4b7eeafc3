/* ulocks_asym_mutex_t, and its condition variable. */

#define MUTEX ulocks_asym_mutex
#define NOTIFY(operation, cond, mutex) FN(_cond##operation)(cond)
#define RELOCK ETIMEDOUT
#include "mutex.h"

int main(void) {
    CHECK(sizeof(ulocks_asym_mutex_t) == 16);
    all_cases();
    return 0;
}
