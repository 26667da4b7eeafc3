// A library that `start_up` loads while threads run. It uses locks in its constructor and destructor.
#include "case.h"

static pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int constructed;

static void *signal_constructor(void *unused) {
    NEED(pthread_mutex_lock(&mutex));
    constructed = 1;
    NEED(pthread_cond_signal(&condition));
    NEED(pthread_mutex_unlock(&mutex));
    return unused;
}

__attribute__((constructor)) static void construct(void) {
    NEED(pthread_mutex_lock(&mutex));
    pthread_t thread = start(signal_constructor, NULL);
    while (!constructed) {
        NEED(pthread_cond_wait(&condition, &mutex));
    }
    NEED(pthread_mutex_unlock(&mutex));
    join(thread);
}

__attribute__((destructor)) static void destruct(void) {
    NEED(pthread_mutex_lock(&mutex));
    NEED(pthread_mutex_unlock(&mutex));
}

// For the program, by dlsym.
int plugin_add(int *number);
int plugin_add(int *number) {
    NEED(pthread_mutex_lock(&mutex));
    int result = *number += constructed;
    NEED(pthread_mutex_unlock(&mutex));
    return result;
}
