/* ulocks_robust_mutex_t. */

#define MUTEX ulocks_robust_mutex
#define SHORT robust_mutex
#include "robust.h"

int main(void) {
    all_cases();
    return 0;
}
