// A condition variable on which as many threads wait as it can count: the count is written here.
#include "case.h"

static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

int main(void) {
    const struct timespec past = from_now(CLOCK_REALTIME, -100), later = far(CLOCK_REALTIME);
    NEED(pthread_mutex_lock(&mutex));
    show(pthread_cond_timedwait(&condition, &mutex, &past), "few wait");
    // The low half of `counts`, behind `seq` and `target`.
    *(uint16_t *)((char *)&condition + 8) = UINT16_MAX;
    show(pthread_cond_timedwait(&condition, &mutex, &past), "many wait, past");
    show(pthread_cond_timedwait(&condition, &mutex, &later), "many wait, far");
    NEED(pthread_mutex_unlock(&mutex));
    return finish();
}
