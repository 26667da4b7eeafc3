// Readers that come while readers hold the lock and writers wait. With two of the three kinds they
// come in, whoever asks and how. So a reader may wait, inside, for another thread to read.
#include "case.h"

static atomic_int waiter, done;

static void *write_once(void *lock) {
    atomic_store(&waiter, thread_id());
    NEED(pthread_rwlock_wrlock(lock));
    return (void *)(intptr_t)pthread_rwlock_unlock(lock);
}

static void *read_once(void *lock) {
    NEED(pthread_rwlock_rdlock(lock));
    atomic_fetch_add(&done, 1);
    return (void *)(intptr_t)pthread_rwlock_unlock(lock);
}

static int try_once(void *lock) {
    int error = pthread_rwlock_tryrdlock(lock);
    NEED(error == 0 ? pthread_rwlock_unlock(lock) : 0);
    return error;
}

static int timed_once(void *lock) {
    struct timespec soon = from_now(CLOCK_REALTIME, 30);
    int error = pthread_rwlock_timedrdlock(lock, &soon);
    NEED(error == 0 ? pthread_rwlock_unlock(lock) : 0);
    return error;
}

static int clock_once(void *lock) {
    struct timespec soon = from_now(CLOCK_MONOTONIC, 30);
    int error = pthread_rwlock_clockrdlock(lock, CLOCK_MONOTONIC, &soon);
    NEED(error == 0 ? pthread_rwlock_unlock(lock) : 0);
    return error;
}

static int from_process(void *lock) { return try_once(lock) == EBUSY ? 2 : timed_once(lock) != 0; }

static void kind_of_lock(const char *name, int kind, int shared, int writers) {
    pthread_rwlockattr_t attributes;
    pthread_rwlock_t *lock = shared_memory(sizeof *lock);
    pthread_t threads[4];
    NEED(pthread_rwlockattr_init(&attributes));
    NEED(pthread_rwlockattr_setkind_np(&attributes, kind));
    NEED(pthread_rwlockattr_setpshared(&attributes, shared));
    NEED(pthread_rwlock_init(lock, &attributes));
    NEED(pthread_rwlock_rdlock(lock));
    for (int nth = 0; nth < writers; ++nth) {
        atomic_store(&waiter, 0);
        threads[nth] = start(write_once, lock);
        until_waits(&waiter);
    }
    show(on_thread(try_once, lock), "%s, %d writers wait, another thread tries to read", name, writers);
    show(on_thread(timed_once, lock), "%s, %d writers wait, a timed read of another thread", name, writers);
    show(on_thread(clock_once, lock), "%s, %d writers wait, the same by another clock", name, writers);
    if (shared) {
        show_number(in_process(from_process, lock), "%s, %d writers wait, a process reads", name, writers);
    }
    if (kind != PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP) {
        // This thread reads until others have read.
        pthread_t readers[3];
        atomic_store(&done, 0);
        for (int nth = 0; nth < 3; ++nth) {
            readers[nth] = start(read_once, lock);
        }
        for (int nth = 0; nth < 3; ++nth) {
            show((int)(intptr_t)join(readers[nth]), "%s, reader %d beside this one", name, nth);
        }
        show_number(atomic_load(&done), "%s, readers inside", name);
    }
    NEED(pthread_rwlock_unlock(lock));
    for (int nth = 0; nth < writers; ++nth) {
        show((int)(intptr_t)join(threads[nth]), "%s, writer %d", name, nth);
    }
    show(pthread_rwlock_destroy(lock), "%s, destroy", name);
}

// A reader waits inside for news from a thread that reads, too. Writers come again and again.
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t news_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;
static int sent, received;
static atomic_int over;
enum { MESSAGES = 2000 };

static void *write_often(void *unused) {
    while (!atomic_load(&over)) {
        NEED(pthread_rwlock_wrlock(&table));
        NEED(pthread_rwlock_unlock(&table));
    }
    return unused;
}

static void *send(void *unused) {
    for (int is_last = 0; !is_last;) {
        NEED(pthread_rwlock_rdlock(&table));
        NEED(pthread_mutex_lock(&news_mutex));
        if (sent == received) {
            ++sent;
            NEED(pthread_cond_signal(&news));
        }
        is_last = sent == MESSAGES;
        NEED(pthread_mutex_unlock(&news_mutex));
        NEED(pthread_rwlock_unlock(&table));
    }
    return unused;
}

static void *receive(void *unused) {
    for (int is_last = 0; !is_last;) {
        NEED(pthread_rwlock_rdlock(&table));
        NEED(pthread_mutex_lock(&news_mutex));
        while (sent == received) {
            NEED(pthread_cond_wait(&news, &news_mutex));
        }
        is_last = ++received == MESSAGES;
        NEED(pthread_mutex_unlock(&news_mutex));
        NEED(pthread_rwlock_unlock(&table));
    }
    return unused;
}

static void news_between_readers(void) {
    pthread_t threads[4] = {start(write_often, NULL), start(write_often, NULL), start(receive, NULL), start(send, NULL)};
    join(threads[2]);
    join(threads[3]);
    atomic_store(&over, 1);
    join(threads[0]);
    join(threads[1]);
    show_number(received, "messages between readers, beside two writers");
}

int main(void) {
    for (int writers = 1; writers <= 3; ++writers) {
        kind_of_lock("prefers readers", PTHREAD_RWLOCK_PREFER_READER_NP, 0, writers);
        kind_of_lock("prefers writers", PTHREAD_RWLOCK_PREFER_WRITER_NP, 0, writers);
        kind_of_lock("does not recur", PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP, 0, writers);
        kind_of_lock("shared", PTHREAD_RWLOCK_PREFER_READER_NP, PTHREAD_PROCESS_SHARED, writers);
    }
    news_between_readers();
    return finish();
}
