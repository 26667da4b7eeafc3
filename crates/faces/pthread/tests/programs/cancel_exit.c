// A thread with a pending cancellation ends the program. Nothing is left for stdio to write.
#include "case.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

int main(void) {
    NEED(pthread_mutex_lock(&mutex));
    NEED(pthread_mutex_unlock(&mutex));
    finish();
    fflush(stdout);
    NEED(pthread_cancel(pthread_self()));
    exit(7);
}
