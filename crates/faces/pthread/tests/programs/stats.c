// Threads that contend for a mutex, and a program that then changes what names the file of the report.
#include "case.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int waiter;

static void *contend(void *unused) {
    atomic_store(&waiter, thread_id());
    for (int round = 0; round < 50; ++round) {
        NEED(pthread_mutex_lock(&mutex));
        usleep(20);
        NEED(pthread_mutex_unlock(&mutex));
    }
    return unused;
}

static pthread_mutex_t *made;

static void *contend_for_another(void *unused) {
    atomic_store(&waiter, thread_id());
    for (int round = 0; round < 50; ++round) {
        NEED(pthread_mutex_lock(made));
        usleep(20);
        NEED(pthread_mutex_unlock(made));
    }
    return unused;
}

int main(void) {
    made = malloc(sizeof *made);
    NEED(made == NULL);
    NEED(pthread_mutex_init(made, NULL));
    for (int which = 0; which < 2; ++which) {
        pthread_mutex_t *first = which ? made : &mutex;
        void *(*body)(void *) = which ? contend_for_another : contend;
        atomic_store(&waiter, 0);
        NEED(pthread_mutex_lock(first));
        pthread_t threads[2] = {start(body, NULL), start(body, NULL)};
        until_waits(&waiter);
        NEED(pthread_mutex_unlock(first));
        join(threads[0]);
        join(threads[1]);
    }
    NEED(clearenv() != 0);
    NEED(by_errno(chdir("/")));
    return finish();
}
