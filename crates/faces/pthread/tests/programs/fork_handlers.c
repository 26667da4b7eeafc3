// Forks beside threads that contend for a mutex which handlers of pthread_atfork hold over the fork. The
// handlers are registered before any library's constructor has run, so they run before those of libraries.
#include "case.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int stop;

static void lock(void) { NEED(pthread_mutex_lock(&mutex)); }
static void unlock(void) { NEED(pthread_mutex_unlock(&mutex)); }

static void before_all(void) { NEED(pthread_atfork(lock, unlock, unlock)); }
__attribute__((section(".preinit_array"), used)) static void (*const BEFORE_ALL)(void) = before_all;

static void *contend(void *unused) {
    while (!atomic_load(&stop)) {
        lock();
        for (volatile int spin = 0; spin < 2000; ++spin) {
        }
        unlock();
    }
    return unused;
}

int main(void) {
    enum { THREADS = 3, FORKS = 60 };
    pthread_t threads[THREADS];
    for (int nth = 0; nth < THREADS; ++nth) {
        threads[nth] = start(contend, NULL);
    }
    int good = 0;
    for (int nth = 0; nth < FORKS; ++nth) {
        pid_t child = fork();
        if (child == 0) {
            alarm(20);
            lock();
            unlock();
            _exit(0);
        }
        int status = 0;
        NEED(by_errno(waitpid(child, &status, 0) == child ? 0 : -1));
        good += status == 0;
    }
    atomic_store(&stop, 1);
    for (int nth = 0; nth < THREADS; ++nth) {
        join(threads[nth]);
    }
    show_number(good, "children that lock after the fork");
    return finish();
}
