// Threads with the smallest stack, of which they use 2,000 bytes themselves, wait for a mutex, a
// rwlock and a condition variable.
#include "waiters.h"
#include <alloca.h>
#include <limits.h>

static void *wait_on_the_rest_of_the_stack(void *nth) {
    volatile char *own = alloca(2000);
    own[0] = 1;
    wait_as(nth);
    own[0] = 2;
    return NULL;
}

static int wait_all(void *unused) {
    (void)unused;
    pthread_attr_t small;
    NEED(pthread_attr_init(&small));
    NEED(pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN));
    let_all_wait(wait_on_the_rest_of_the_stack, &small);
    return 0;
}

int main(void) {
    show(IN_PROCESS(wait_all, NULL), "threads with the smallest stack");
    return finish();
}
