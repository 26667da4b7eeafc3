// The thread that unlocks a mutex last may destroy it and reuse its memory at once, as POSIX says.
// An earlier holder may still be on its way out of unlock then, and must not touch that memory.
#include "case.h"

enum { ROUNDS = 3000, SHARERS = 3 };

struct shared {
    pthread_mutex_t mutex;
    int sharers;
};

static struct shared *memory;
static pthread_barrier_t round_begins, round_ends;
static atomic_int poisoned;

static bool drop_one(void) {
    NEED(pthread_mutex_lock(&memory->mutex));
    bool is_last = --memory->sharers == 0;
    NEED(pthread_mutex_unlock(&memory->mutex));
    return is_last;
}

static void destroy_and_poison(void) {
    NEED(pthread_mutex_destroy(&memory->mutex));
    memset(memory, 0xee, sizeof *memory);
    atomic_store(&poisoned, 1);
}

static void *share(void *unused) {
    for (int round = 0; round < ROUNDS; ++round) {
        pthread_barrier_wait(&round_begins);
        if (drop_one()) {
            destroy_and_poison();
        }
        pthread_barrier_wait(&round_ends);
    }
    return unused;
}

static long rounds_with_a_touch(const pthread_mutex_t *fresh) {
    static pthread_t threads[SHARERS];
    long touched = 0;
    NEED(pthread_barrier_init(&round_begins, NULL, SHARERS + 1));
    NEED(pthread_barrier_init(&round_ends, NULL, SHARERS + 1));
    memory = malloc(sizeof *memory);
    for (int nth = 0; nth < SHARERS; ++nth) {
        threads[nth] = start(share, NULL);
    }
    for (int round = 0; round < ROUNDS; ++round) {
        memory->mutex = *fresh;
        memory->sharers = SHARERS;
        atomic_store(&poisoned, 0);
        pthread_barrier_wait(&round_begins);
        pthread_barrier_wait(&round_ends);
        const unsigned char *bytes = (const unsigned char *)memory;
        bool was_touched = atomic_load(&poisoned) == 0;
        for (size_t nth = 0; nth < sizeof *memory; ++nth) {
            was_touched |= bytes[nth] != 0xee;
        }
        touched += was_touched;
    }
    for (int nth = 0; nth < SHARERS; ++nth) {
        join(threads[nth]);
    }
    free(memory);
    NEED(pthread_barrier_destroy(&round_begins));
    NEED(pthread_barrier_destroy(&round_ends));
    return touched;
}

// The memory is given back to the kernel, so a late touch ends the program.
static void *lock_once(void *argument) {
    pthread_mutex_t *mutex = argument;
    NEED(pthread_mutex_lock(mutex));
    NEED(pthread_mutex_unlock(mutex));
    return NULL;
}

static void unmapped_at_once(void) {
    long page = sysconf(_SC_PAGESIZE);
    for (int round = 0; round < 500; ++round) {
        struct shared *shared = mmap(NULL, (size_t)page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        NEED(pthread_mutex_init(&shared->mutex, NULL));
        NEED(pthread_mutex_lock(&shared->mutex));
        pthread_t thread = start(lock_once, &shared->mutex);
        NEED(pthread_mutex_unlock(&shared->mutex));
        join(thread);
        NEED(pthread_mutex_destroy(&shared->mutex));
        NEED(munmap(shared, (size_t)page) != 0 ? errno : 0);
    }
}

int main(void) {
    const pthread_mutex_t normal = PTHREAD_MUTEX_INITIALIZER;
    const pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    const pthread_mutex_t errorcheck = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    show_number(rounds_with_a_touch(&normal), "normal, late touches");
    show_number(rounds_with_a_touch(&recursive), "recursive, late touches");
    show_number(rounds_with_a_touch(&errorcheck), "errorcheck, late touches");
    unmapped_at_once();
    show(0, "memory that is unmapped at once");
    return finish();
}
