// A mutex in memory that processes share, and a private mutex that a forked child gets a copy of.
#include "case.h"

enum { PROCESSES = 4, ROUNDS = 3000 };

struct shared {
    pthread_mutex_t mutex;
    long exact;
    atomic_int waiter;
};

static void init(pthread_mutex_t *mutex, int type) {
    pthread_mutexattr_t attributes;
    NEED(pthread_mutexattr_init(&attributes));
    NEED(pthread_mutexattr_settype(&attributes, type));
    NEED(pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED));
    NEED(pthread_mutex_init(mutex, &attributes));
    NEED(pthread_mutexattr_destroy(&attributes));
}

static int count(void *argument) {
    struct shared *shared = argument;
    for (int round = 0; round < ROUNDS; ++round) {
        NEED(pthread_mutex_lock(&shared->mutex));
        shared->exact += 1;
        NEED(pthread_mutex_unlock(&shared->mutex));
    }
    return 0;
}

static int wait_for_parent(void *argument) {
    struct shared *shared = argument;
    atomic_store(&shared->waiter, 1);
    int error = pthread_mutex_lock(&shared->mutex);
    return error == 0 ? pthread_mutex_unlock(&shared->mutex) : error;
}

static int wait_with_deadline(void *argument) {
    struct shared *shared = argument;
    struct timespec soon = from_now(CLOCK_REALTIME, 20);
    return pthread_mutex_timedlock(&shared->mutex, &soon);
}

static void shared_by_processes(const char *name, int type) {
    struct shared *shared = shared_memory(sizeof *shared);
    init(&shared->mutex, type);
    pid_t children[PROCESSES];
    for (int nth = 0; nth < PROCESSES; ++nth) {
        children[nth] = start_process(count, shared);
    }
    count(shared);
    for (int nth = 0; nth < PROCESSES; ++nth) {
        show(join_process(children[nth]), "%s, process %d", name, nth);
    }
    show_number(shared->exact, "%s, increments of all processes", name);

    NEED(pthread_mutex_lock(&shared->mutex));
    show(IN_PROCESS(pthread_mutex_trylock, &shared->mutex), "%s, try by another process", name);
    show(in_process(wait_with_deadline, shared), "%s, timed lock by another process", name);
    if (type != PTHREAD_MUTEX_NORMAL) {
        show(IN_PROCESS(pthread_mutex_unlock, &shared->mutex), "%s, unlock by another process", name);
    }
    pid_t child = start_process(wait_for_parent, shared);
    until_set(&shared->waiter);
    sleep_ms(20);
    show(pthread_mutex_unlock(&shared->mutex), "%s, unlock while a process waits", name);
    show(join_process(child), "%s, the process that waited", name);
    show(pthread_mutex_destroy(&shared->mutex), "%s, destroy", name);
}

static pthread_mutex_t private_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t private_recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t private_errorcheck = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;

static int use_copies(void *unused) {
    (void)unused;
    int error = pthread_mutex_lock(&private_mutex);
    error += pthread_mutex_trylock(&private_mutex) != EBUSY;
    error += pthread_mutex_unlock(&private_mutex);
    error += pthread_mutex_lock(&private_recursive) + pthread_mutex_lock(&private_recursive);
    error += pthread_mutex_unlock(&private_recursive) + pthread_mutex_unlock(&private_recursive);
    error += pthread_mutex_lock(&private_errorcheck);
    error += pthread_mutex_lock(&private_errorcheck) != EDEADLK;
    error += pthread_mutex_unlock(&private_errorcheck);
    error += pthread_mutex_unlock(&private_errorcheck) != EPERM;
    return error;
}

static int inits_again(void *unused) {
    (void)unused;
    // The parent holds it. The child may only make a new one in the same memory.
    int error = pthread_mutex_trylock(&private_mutex) != EBUSY;
    error += pthread_mutex_init(&private_mutex, NULL);
    error += pthread_mutex_lock(&private_mutex);
    return error + pthread_mutex_unlock(&private_mutex);
}

// The thread of the parent that held the mutex at the fork is the child's thread: it may unlock.
static int unlocks_what_it_held(void *unused) {
    (void)unused;
    int error = pthread_mutex_unlock(&private_mutex);
    error += pthread_mutex_lock(&private_mutex);
    return error + pthread_mutex_unlock(&private_mutex);
}

static void copies_of_a_child(void) {
    show(in_process(use_copies, NULL), "free mutexes in a child");
    NEED(pthread_mutex_lock(&private_mutex));
    show(in_process(inits_again, NULL), "init of a mutex that the parent holds");
    show(in_process(unlocks_what_it_held, NULL), "unlock by the child of what its thread held");
    show(ON_THREAD(pthread_mutex_trylock, &private_mutex), "the parent still holds its own");
    NEED(pthread_mutex_unlock(&private_mutex));
}

static int lines;
static void before(void) { lines = lines * 10 + 1; NEED(pthread_mutex_lock(&private_mutex)); }
static void after_in_parent(void) { lines = lines * 10 + 2; NEED(pthread_mutex_unlock(&private_mutex)); }
static void after_in_child(void) { lines = lines * 10 + 3; NEED(pthread_mutex_unlock(&private_mutex)); }

static atomic_int stop;

static void *keep_locking(void *unused) {
    while (!atomic_load(&stop)) {
        NEED(pthread_mutex_lock(&private_mutex));
        NEED(pthread_mutex_unlock(&private_mutex));
    }
    return unused;
}

static int child_of_handlers(void *unused) {
    (void)unused;
    int error = pthread_mutex_lock(&private_mutex);
    error += pthread_mutex_unlock(&private_mutex);
    return error == 0 ? lines % 100 : 99;
}

// Threads use the mutex all the time; the handlers make each child find it free.
static void fork_handlers(void) {
    NEED(pthread_atfork(before, after_in_parent, after_in_child));
    pthread_t threads[3];
    for (int nth = 0; nth < 3; ++nth) {
        threads[nth] = start(keep_locking, NULL);
    }
    int wrong = 0;
    for (int round = 0; round < 40; ++round) {
        lines = 0;
        wrong += in_process(child_of_handlers, NULL) != 13;
        wrong += lines != 12;
    }
    atomic_store(&stop, 1);
    for (int nth = 0; nth < 3; ++nth) {
        join(threads[nth]);
    }
    show_number(wrong, "forks with handlers that went wrong");
}

int main(void) {
    shared_by_processes("normal", PTHREAD_MUTEX_NORMAL);
    shared_by_processes("recursive", PTHREAD_MUTEX_RECURSIVE);
    shared_by_processes("errorcheck", PTHREAD_MUTEX_ERRORCHECK);
    copies_of_a_child();
    fork_handlers();
    return finish();
}
