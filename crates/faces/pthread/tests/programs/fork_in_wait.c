// A signal handler forks in a wait. In the child the wait ends, too, and nothing is in use
// afterwards.
#include "case.h"
#include <signal.h>

static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int child = -1;
static atomic_int waiter;
static bool is_set;

static void on_signal(int signal) {
    (void)signal;
    child = fork();
}

static void *wait_for_signal(void *unused) {
    NEED(pthread_mutex_lock(&mutex));
    atomic_store(&waiter, thread_id());
    while (child != 0 && !is_set) {
        // In the child no thread notifies.
        struct timespec soon = from_now(CLOCK_REALTIME, 100);
        int error = pthread_cond_timedwait(&condition, &mutex, &soon);
        NEED(error == ETIMEDOUT ? 0 : error);
    }
    NEED(pthread_mutex_unlock(&mutex));
    if (child == 0) {
        show(pthread_mutex_destroy(&mutex), "child, destroy the mutex");
        show(pthread_cond_destroy(&condition), "child, destroy the condition");
        fflush(stdout);
        _exit(0);
    }
    return unused;
}

int main(void) {
    NEED(signal(SIGUSR1, on_signal) == SIG_ERR ? errno : 0);
    pthread_t thread = start(wait_for_signal, NULL);
    until_waits(&waiter);
    NEED(pthread_kill(thread, SIGUSR1));
    while (child == -1) {
        sleep_ms(1);
    }
    show_number(join_process(child), "how the child ended");
    NEED(pthread_mutex_lock(&mutex));
    is_set = true;
    NEED(pthread_cond_signal(&condition));
    NEED(pthread_mutex_unlock(&mutex));
    join(thread);
    show(pthread_mutex_destroy(&mutex), "destroy the mutex");
    return finish();
}
