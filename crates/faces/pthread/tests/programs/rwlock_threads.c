// Readers and writers that wait for each other: recursion under a waiting writer, exclusion,
// processes, signal handlers, and memory that is reused at once.
#include "case.h"

static atomic_int waiter;

static void *write_once(void *argument) {
    atomic_store(&waiter, thread_id());
    int error = pthread_rwlock_wrlock(argument);
    return (void *)(intptr_t)(error == 0 ? pthread_rwlock_unlock(argument) : error);
}

static void *read_once(void *argument) {
    atomic_store(&waiter, thread_id());
    int error = pthread_rwlock_rdlock(argument);
    return (void *)(intptr_t)(error == 0 ? pthread_rwlock_unlock(argument) : error);
}

// The default kind promises that a reader may read again although a writer waits.
static void read_again_under_a_writer(const char *name, int kind) {
    pthread_rwlockattr_t attributes;
    pthread_rwlock_t lock;
    NEED(pthread_rwlockattr_init(&attributes));
    NEED(pthread_rwlockattr_setkind_np(&attributes, kind));
    NEED(pthread_rwlock_init(&lock, &attributes));
    NEED(pthread_rwlock_rdlock(&lock));
    atomic_store(&waiter, 0);
    pthread_t writer = start(write_once, &lock);
    until_waits(&waiter);
    struct timespec deadline = far(CLOCK_REALTIME);
    show(pthread_rwlock_rdlock(&lock), "%s, read again while a writer waits", name);
    show(pthread_rwlock_tryrdlock(&lock), "%s, try to read again while a writer waits", name);
    show(pthread_rwlock_timedrdlock(&lock, &deadline), "%s, timed read again while a writer waits", name);
    for (int depth = 4; depth > 0; --depth) {
        show(pthread_rwlock_unlock(&lock), "%s, unlock at depth %d", name, depth);
    }
    show((int)(intptr_t)join(writer), "%s, the writer", name);
    show(pthread_rwlock_destroy(&lock), "%s, destroy", name);
}

static void waits_are_served(void) {
    static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
    for (int held_by_writer = 0; held_by_writer < 2; ++held_by_writer) {
        pthread_t threads[6];
        NEED(held_by_writer ? pthread_rwlock_wrlock(&lock) : pthread_rwlock_rdlock(&lock));
        int waiting = 0;
        for (int nth = 0; nth < 6; ++nth) {
            bool writes = nth % 2 == 0;
            if (!writes && !held_by_writer) {
                continue; // Whether a new reader waits behind a writer is up to the lock.
            }
            atomic_store(&waiter, 0);
            threads[waiting++] = start(writes ? write_once : read_once, &lock);
            until_waits(&waiter);
        }
        show(pthread_rwlock_unlock(&lock), "unlock with %d waiters", waiting);
        for (int nth = 0; nth < waiting; ++nth) {
            show((int)(intptr_t)join(threads[nth]), "waiter %d", nth);
        }
    }
    show(pthread_rwlock_destroy(&lock), "destroy");
}

struct counted {
    pthread_rwlock_t lock;
    long first, second;
    atomic_long written;
    atomic_int torn, readers, together, wrong;
    atomic_int writer_inside;
};

static void *mix(void *argument) {
    struct counted *counted = argument;
    unsigned seed = (unsigned)thread_id() * 2654435761u;
    for (int round = 0; round < 2000; ++round) {
        seed = seed * 1103515245u + 12345u;
        unsigned way = seed >> 16;
        bool writes = way % 4 == 0;
        struct timespec soon = from_now(CLOCK_REALTIME, 1);
        int error;
        switch (way / 4 % 4) {
        case 0: error = writes ? pthread_rwlock_trywrlock(&counted->lock) : pthread_rwlock_tryrdlock(&counted->lock); break;
        case 1:
            error = writes ? pthread_rwlock_timedwrlock(&counted->lock, &soon)
                           : pthread_rwlock_timedrdlock(&counted->lock, &soon);
            break;
        default: error = writes ? pthread_rwlock_wrlock(&counted->lock) : pthread_rwlock_rdlock(&counted->lock);
        }
        if (error != 0) {
            bool may_fail = way / 4 % 4 <= 1 && (error == EBUSY || error == ETIMEDOUT);
            atomic_fetch_add(&counted->wrong, !may_fail);
            continue;
        }
        if (writes) {
            atomic_fetch_add(&counted->torn, atomic_load(&counted->readers) != 0);
            atomic_fetch_add(&counted->torn, atomic_fetch_add(&counted->writer_inside, 1) != 0);
            counted->first += 1;
            if (way % 64 == 0) {
                sched_yield();
            }
            counted->second += 1;
            atomic_fetch_add(&counted->written, 1);
            atomic_fetch_sub(&counted->writer_inside, 1);
        } else {
            atomic_fetch_add(&counted->readers, 1);
            atomic_fetch_add(&counted->torn, atomic_load(&counted->writer_inside) != 0);
            atomic_fetch_add(&counted->torn, counted->first != counted->second);
            atomic_fetch_sub(&counted->readers, 1);
        }
        NEED(pthread_rwlock_unlock(&counted->lock));
    }
    return NULL;
}

static int mix_in_process(void *argument) {
    mix(argument);
    return 0;
}

static void invariants(const char *name, int kind, int shared) {
    struct counted *counted = shared_memory(sizeof *counted);
    pthread_rwlockattr_t attributes;
    NEED(pthread_rwlockattr_init(&attributes));
    NEED(pthread_rwlockattr_setkind_np(&attributes, kind));
    NEED(pthread_rwlockattr_setpshared(&attributes, shared));
    NEED(pthread_rwlock_init(&counted->lock, &attributes));
    pthread_t threads[8];
    pid_t children[3];
    for (int nth = 0; shared && nth < 3; ++nth) {
        children[nth] = start_process(mix_in_process, counted);
    }
    for (int nth = 0; nth < 8; ++nth) {
        threads[nth] = start(mix, counted);
    }
    for (int nth = 0; nth < 8; ++nth) {
        join(threads[nth]);
    }
    for (int nth = 0; shared && nth < 3; ++nth) {
        show(join_process(children[nth]), "%s, process %d", name, nth);
    }
    show_number(atomic_load(&counted->torn), "%s, readers beside a writer", name);
    show_number(counted->first - counted->second, "%s, difference of the two counters", name);
    show_number(atomic_load(&counted->written) - counted->first, "%s, lost writes", name);
    show_number(atomic_load(&counted->wrong), "%s, results that cannot be", name);
    show(pthread_rwlock_destroy(&counted->lock), "%s, destroy", name);
}

// Readers are in the lock at the same time: each waits for the other inside of it.
static pthread_barrier_t both_inside;

static void *meet_inside(void *argument) {
    NEED(pthread_rwlock_rdlock(argument));
    pthread_barrier_wait(&both_inside);
    return (void *)(intptr_t)pthread_rwlock_unlock(argument);
}

static void readers_share(void) {
    static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
    NEED(pthread_barrier_init(&both_inside, NULL, 4));
    pthread_t threads[4];
    for (int nth = 0; nth < 4; ++nth) {
        threads[nth] = start(meet_inside, &lock);
    }
    for (int nth = 0; nth < 4; ++nth) {
        show((int)(intptr_t)join(threads[nth]), "reader %d beside three others", nth);
    }
}

static volatile sig_atomic_t handled;
static void handle(int signal) { handled += signal == SIGUSR1; }

static void handlers_interrupt(void) {
    static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
    struct sigaction action = {.sa_handler = handle};
    NEED(sigaction(SIGUSR1, &action, NULL) != 0 ? errno : 0);
    for (int writes = 0; writes < 2; ++writes) {
        NEED(pthread_rwlock_wrlock(&lock));
        atomic_store(&waiter, 0);
        handled = 0;
        pthread_t thread = start(writes ? write_once : read_once, &lock);
        until_waits(&waiter);
        for (int nth = 1; nth <= 3; ++nth) {
            NEED(pthread_kill(thread, SIGUSR1));
            while (handled < nth) {
                sleep_ms(1);
            }
        }
        NEED(pthread_rwlock_unlock(&lock));
        show((int)(intptr_t)join(thread), "%s through 3 handlers", writes ? "write" : "read");
    }
}

// The last of three holders destroys the lock and poisons its memory at once.
static struct {
    pthread_rwlock_t lock;
    int users;
} *memory;
static pthread_barrier_t begins, ends;

static void *leave(void *unused) {
    for (int round = 0; round < 2000; ++round) {
        pthread_barrier_wait(&begins);
        NEED(pthread_rwlock_rdlock(&memory->lock));
        NEED(pthread_rwlock_unlock(&memory->lock));
        NEED(pthread_rwlock_wrlock(&memory->lock));
        bool is_last = --memory->users == 0;
        NEED(pthread_rwlock_unlock(&memory->lock));
        if (is_last) {
            NEED(pthread_rwlock_destroy(&memory->lock));
            memset(memory, 0xee, sizeof *memory);
        }
        pthread_barrier_wait(&ends);
    }
    return unused;
}

static void late_touches(void) {
    long touched = 0;
    pthread_t threads[3];
    memory = malloc(sizeof *memory);
    NEED(pthread_barrier_init(&begins, NULL, 4));
    NEED(pthread_barrier_init(&ends, NULL, 4));
    for (int nth = 0; nth < 3; ++nth) {
        threads[nth] = start(leave, NULL);
    }
    for (int round = 0; round < 2000; ++round) {
        NEED(pthread_rwlock_init(&memory->lock, NULL));
        memory->users = 3;
        pthread_barrier_wait(&begins);
        pthread_barrier_wait(&ends);
        for (size_t nth = 0; nth < sizeof *memory; ++nth) {
            touched += ((unsigned char *)memory)[nth] != 0xee;
        }
    }
    for (int nth = 0; nth < 3; ++nth) {
        join(threads[nth]);
    }
    show_number(touched, "bytes touched after destroy");
}

static int child_uses(void *argument) {
    int error = pthread_rwlock_rdlock(argument) + pthread_rwlock_unlock(argument);
    return error + pthread_rwlock_wrlock(argument) + pthread_rwlock_unlock(argument);
}

int main(void) {
    static pthread_rwlock_t private_one = PTHREAD_RWLOCK_INITIALIZER;
    read_again_under_a_writer("prefers readers", PTHREAD_RWLOCK_PREFER_READER_NP);
    read_again_under_a_writer("prefers writers", PTHREAD_RWLOCK_PREFER_WRITER_NP);
    waits_are_served();
    invariants("prefers readers", PTHREAD_RWLOCK_PREFER_READER_NP, 0);
    invariants("prefers writers", PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP, 0);
    invariants("shared", PTHREAD_RWLOCK_PREFER_READER_NP, 1);
    readers_share();
    handlers_interrupt();
    late_touches();
    show(in_process(child_uses, &private_one), "a private lock in a child");
    NEED(pthread_rwlock_wrlock(&private_one));
    show(IN_PROCESS(pthread_rwlock_unlock, &private_one), "unlock by the child of what its thread held");
    NEED(pthread_rwlock_unlock(&private_one));
    return finish();
}
