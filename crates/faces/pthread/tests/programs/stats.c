// Threads that contend for a mutex, and a program that then changes what names the file of the report.
#include "case.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *contend(void *unused) {
    for (int round = 0; round < 50; ++round) {
        NEED(pthread_mutex_lock(&mutex));
        usleep(20);
        NEED(pthread_mutex_unlock(&mutex));
    }
    return unused;
}

int main(void) {
    pthread_t threads[2] = {start(contend, NULL), start(contend, NULL)};
    join(threads[0]);
    join(threads[1]);
    NEED(clearenv() != 0);
    NEED(by_errno(chdir("/")));
    return finish();
}
