// Locks that a program takes before every constructor, also those of its libraries, and keeps.
#include "case.h"

static pthread_mutex_t kept = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_mutex_t freed = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t read_lock = PTHREAD_RWLOCK_INITIALIZER;
static int results[8];

static void early(int argc, char **argv, char **environment) {
    (void)argc, (void)argv, (void)environment;
    results[0] = pthread_mutex_lock(&kept);
    results[1] = pthread_mutex_lock(&kept);
    results[2] = pthread_mutex_lock(&freed);
    results[3] = pthread_mutex_trylock(&freed);
    results[4] = pthread_mutex_unlock(&freed);
    results[5] = pthread_rwlock_rdlock(&read_lock);
}
__attribute__((section(".preinit_array"), used)) static void (*const first)(int, char **, char **) = early;

int main(void) {
    for (int nth = 0; nth < 6; ++nth) {
        show(results[nth], "before constructors, step %d", nth);
    }
    show(ON_THREAD(pthread_mutex_trylock, &kept), "try what was kept, by another thread");
    show(pthread_mutex_lock(&kept), "lock what was kept");
    show(pthread_mutex_unlock(&kept), "unlock what was kept");
    show(ON_THREAD(pthread_mutex_trylock, &freed), "try what was freed");
    show(ON_THREAD(pthread_rwlock_trywrlock, &read_lock), "try to write what is read");
    show(pthread_rwlock_unlock(&read_lock), "unlock what is read");
    show(pthread_rwlock_trywrlock(&read_lock), "try to write then");
    return finish();
}
