// Locks before main, in loaded libraries, by dlsym, in thread-local destructors, and at exit.
#include "case.h"
#include <dlfcn.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static int by_constructor, constructor_thread;

static void *thread_of_constructor(void *unused) {
    NEED(pthread_mutex_lock(&mutex));
    constructor_thread += 1;
    NEED(pthread_cond_broadcast(&condition));
    NEED(pthread_mutex_unlock(&mutex));
    NEED(by_errno(sem_post(&semaphore)));
    return unused;
}

__attribute__((constructor(101))) static void construct(void) {
    NEED(by_errno(sem_init(&semaphore, 0, 0)));
    NEED(pthread_mutex_lock(&mutex));
    NEED(pthread_rwlock_wrlock(&rwlock));
    by_constructor += 1;
    NEED(pthread_rwlock_unlock(&rwlock));
    pthread_t thread = start(thread_of_constructor, NULL);
    while (constructor_thread == 0) {
        NEED(pthread_cond_wait(&condition, &mutex));
    }
    NEED(pthread_mutex_unlock(&mutex));
    NEED(by_errno(sem_wait(&semaphore)));
    join(thread);
}

static atomic_int stop;

static void *keep_locking(void *unused) {
    while (!atomic_load(&stop)) {
        NEED(pthread_mutex_lock(&mutex));
        NEED(pthread_mutex_unlock(&mutex));
        NEED(pthread_rwlock_rdlock(&rwlock));
        NEED(pthread_rwlock_unlock(&rwlock));
    }
    return unused;
}

// The plugin lies beside the program.
static void load_plugin(void) {
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 16);
    NEED(length < 0 ? errno : 0);
    path[length] = 0;
    strcpy(strrchr(path, '/') + 1, "plugin");
    pthread_t thread = start(keep_locking, NULL);
    for (int round = 0; round < 5; ++round) {
        void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (plugin == NULL) {
            printf("%s\n", dlerror());
            _exit(3);
        }
        int number = 10;
        int (*add)(int *) = (int (*)(int *))dlsym(plugin, "plugin_add");
        show_number(add(&number), "a loaded library, round %d", round);
        int (*contend)(void) = (int (*)(void))dlsym(plugin, "plugin_contend");
        show_number(contend(), "its threads, round %d", round);
        NEED(dlclose(plugin));
    }
    atomic_store(&stop, 1);
    join(thread);
}

// A program may look functions up; what it finds must work on the same locks. (With a version the
// program asks for glibc's own function, and gets it.)
static void looked_up(void) {
    static const char *const NAMES[] = {"pthread_mutex_lock", "pthread_mutex_unlock", "pthread_mutex_trylock"};
    int (*found[3])(pthread_mutex_t *);
    for (int nth = 0; nth < 3; ++nth) {
        void *symbol = dlsym(RTLD_DEFAULT, NAMES[nth]);
        memcpy(&found[nth], &symbol, sizeof symbol);
    }
    pthread_mutex_t looked = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    show(found[0](&looked), "looked up, lock");
    show(pthread_mutex_trylock(&looked), "try by the linked function");
    show(found[2](&looked), "looked up, try");
    show(pthread_mutex_lock(&looked), "lock by the linked function");
    show(found[1](&looked), "looked up, unlock");
    show(pthread_mutex_unlock(&looked), "unlock by the linked function");
}

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int once_calls, destructor_calls;

static void make_key_value(void *value) {
    NEED(pthread_mutex_lock(&mutex));
    destructor_calls += value != NULL;
    NEED(pthread_mutex_unlock(&mutex));
}

static void make_key(void) {
    NEED(pthread_mutex_lock(&mutex));
    once_calls += 1;
    NEED(pthread_key_create(&key, make_key_value));
    NEED(pthread_mutex_unlock(&mutex));
}

static void *use_key(void *unused) {
    NEED(pthread_once(&once, make_key));
    NEED(pthread_setspecific(key, &key));
    return unused;
}

static void once_and_keys(void) {
    pthread_t threads[6];
    for (int nth = 0; nth < 6; ++nth) {
        threads[nth] = start(use_key, NULL);
    }
    for (int nth = 0; nth < 6; ++nth) {
        join(threads[nth]);
    }
    show_number(once_calls, "calls of the function that runs once");
    show_number(destructor_calls, "destructors of thread-local values");
}

// Locks of many threads that begin and end: thread ids and thread-local data are used again.
static void many_short_threads(void) {
    int before = destructor_calls;
    for (int round = 0; round < 300; ++round) {
        pthread_t thread = start(use_key, NULL);
        join(thread);
    }
    show_number(destructor_calls - before, "destructors of short threads");
}

static int child_of_many(void *unused) {
    (void)unused;
    pthread_mutex_t own = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    int error = pthread_mutex_lock(&own) + pthread_mutex_lock(&own);
    error += pthread_mutex_unlock(&own) + pthread_mutex_unlock(&own);
    error += pthread_mutex_unlock(&own) != EPERM;
    pthread_t thread = start(thread_of_constructor, NULL);
    NEED(by_errno(sem_wait(&semaphore)));
    join(thread);
    return error;
}

// The threads of the parent use other locks than the child.
static void *keep_locking_others(void *unused) {
    static pthread_mutex_t other = PTHREAD_MUTEX_INITIALIZER;
    while (!atomic_load(&stop)) {
        NEED(pthread_mutex_lock(&other));
        NEED(pthread_mutex_unlock(&other));
    }
    return unused;
}

static void forks_of_threads(void) {
    pthread_t threads[3];
    int wrong = 0;
    atomic_store(&stop, 0);
    for (int nth = 0; nth < 3; ++nth) {
        threads[nth] = start(keep_locking_others, NULL);
    }
    for (int round = 0; round < 20; ++round) {
        wrong += in_process(child_of_many, NULL) != 0;
    }
    atomic_store(&stop, 1);
    for (int nth = 0; nth < 3; ++nth) {
        join(threads[nth]);
    }
    show_number(wrong, "children of a process with threads that went wrong");
}

static void at_exit(void) {
    show(pthread_mutex_lock(&mutex), "lock at exit");
    show(pthread_mutex_unlock(&mutex), "unlock at exit");
    finish();
}

int main(void) {
    show_number(by_constructor, "locks before main");
    show_number(constructor_thread, "threads before main");
    load_plugin();
    looked_up();
    once_and_keys();
    many_short_threads();
    forks_of_threads();
    NEED(atexit(at_exit));
    return 0;
}
