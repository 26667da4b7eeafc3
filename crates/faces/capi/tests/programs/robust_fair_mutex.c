/* ulocks_robust_fair_mutex_t. */

#define MUTEX ulocks_robust_fair_mutex
#define SHORT robust_fair_mutex
#include "robust.h"

int main(void) {
    all_cases();
    return 0;
}
