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

// Threads that have to wait for a mutex of this library, which is unmapped afterwards. The next time
// other locks may be in its place.
static pthread_mutex_t contended = PTHREAD_MUTEX_INITIALIZER;
static int contended_count;

static void *contend(void *unused) {
    for (int round = 0; round < 2000; ++round) {
        NEED(pthread_mutex_lock(&contended));
        contended_count += 1;
        NEED(pthread_mutex_unlock(&contended));
    }
    return unused;
}

int plugin_contend(void);
int plugin_contend(void) {
    pthread_t threads[3];
    NEED(pthread_mutex_lock(&contended));
    for (int nth = 0; nth < 3; ++nth) {
        threads[nth] = start(contend, NULL);
    }
    NEED(pthread_mutex_unlock(&contended));
    for (int nth = 0; nth < 3; ++nth) {
        join(threads[nth]);
    }
    return contended_count;
}

// For the program, by dlsym.
int plugin_add(int *number);
int plugin_add(int *number) {
    NEED(pthread_mutex_lock(&mutex));
    int result = *number += constructed;
    NEED(pthread_mutex_unlock(&mutex));
    return result;
}
