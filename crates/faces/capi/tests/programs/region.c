/* Regions: files, descriptors, names, errors. */

#include "check.h"
#include "ulocks.h"
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char path[64];

static void a_file_keeps_its_data(void) {
    ulocks_region_t *region;
    ulocks_member_t *me;
    char *bytes;
    RETURNS(ENOENT, ulocks_region_open(path, &region));
    CHECK(strlen(ulocks_region_error()) > 0);
    RETURNS(0, ulocks_region_create(path, 0600, &region));
    RETURNS(ULOCKS_REGION_CREATED, ulocks_region_attached(region));
    RETURNS(EEXIST, ulocks_region_create(path, 0600, &region));
    RETURNS(0, ulocks_region_join(region, &me));
    RETURNS(0, ulocks_region_bytes(region, me, "greeting", 6, (void **)&bytes));
    memcpy(bytes, "hello", 6);
    RETURNS(EBUSY, ulocks_region_close(region));
    RETURNS(0, ulocks_member_leave(me));
    RETURNS(0, ulocks_region_close(region));

    RETURNS(0, ulocks_region_create_or_open(path, 0600, &region));
    RETURNS(ULOCKS_REGION_RESET, ulocks_region_attached(region));
    RETURNS(0, ulocks_region_join(region, &me));
    RETURNS(EPROTO, ulocks_region_bytes(region, me, "greeting", 7, (void **)&bytes));
    RETURNS(ENOSPC, ulocks_region_bytes(region, me, "all", 1 << 20, (void **)&bytes));
    RETURNS(EINVAL, ulocks_region_bytes(region, me, "greeting", 6, NULL));
    RETURNS(0, ulocks_region_bytes(region, me, "greeting", 6, (void **)&bytes));
    CHECK(strcmp(bytes, "hello") == 0);

    ulocks_region_t *again;
    const int descriptor = ulocks_region_fd(region);
    CHECK(descriptor >= 0);
    RETURNS(0, ulocks_region_from_fd(descriptor, &again));
    RETURNS(ULOCKS_REGION_JOINED, ulocks_region_attached(again));
    RETURNS(EINVAL, ulocks_region_bytes(again, me, "greeting", 6, (void **)&bytes));
    RETURNS(0, ulocks_region_close(again));
    RETURNS(0, ulocks_member_leave(me));
    RETURNS(0, ulocks_region_close(region));
}

static void what_is_no_region_is_refused(void) {
    ulocks_region_t *region;
    const int file = open(path, O_WRONLY | O_TRUNC);
    CHECK(file >= 0);
    for (int i = 0; i < 4096; i++)
        CHECK(write(file, "no region", 9) == 9);
    CHECK(close(file) == 0);
    RETURNS(EBADMSG, ulocks_region_open(path, &region));
    RETURNS(EINVAL, ulocks_region_open(NULL, &region));
    RETURNS(ENOENT, ulocks_region_create("/no such folder/region", 0600, &region));
    CHECK(strstr(ulocks_region_error(), "folder") != NULL);
    RETURNS(EINVAL, ulocks_region_create(NULL, 0600, &region));
    CHECK(strstr(ulocks_region_error(), "null") != NULL);
    RETURNS(EBADF, ulocks_region_from_fd(-1, &region));
    CHECK(strstr(ulocks_region_error(), "negative") != NULL);
    RETURNS(EINVAL, ulocks_region_create_or_open(NULL, 0600, &region));
    RETURNS(EINVAL, ulocks_region_anonymous(NULL));
    RETURNS(EBADF, ulocks_region_from_fd(99, &region));
    /* Nor is it made when there is no place to say where it is. */
    CHECK(unlink(path) == 0);
    RETURNS(EINVAL, ulocks_region_create(path, 0600, NULL));
    RETURNS(ENOENT, ulocks_region_open(path, &region));
}

static ulocks_member_t *part;

/* What a thread does when its thread-local objects are gone: the library's sentence is one. */
static void leaves(void *unused) {
    (void)unused;
    RETURNS(EBUSY, ulocks_member_leave(part));
    CHECK(ulocks_region_error() != NULL);
}

static void *ends_with_an_error(void *region) {
    pthread_key_t key;
    ulocks_robust_mutex_t *mutex;
    RETURNS(0, ulocks_region_join(region, &part));
    RETURNS(EINVAL, ulocks_region_robust_mutex(region, part, "", &mutex));
    RETURNS(0, ulocks_region_robust_mutex(region, part, "held", &mutex));
    RETURNS(0, ulocks_robust_mutex_lock(mutex, part));
    CHECK(pthread_key_create(&key, leaves) == 0);
    CHECK(pthread_setspecific(key, part) == 0);
    return NULL;
}

static void a_thread_that_ends_may_fail(void) {
    pthread_t thread;
    ulocks_region_t *region;
    RETURNS(0, ulocks_region_anonymous(&region));
    CHECK(pthread_create(&thread, NULL, ends_with_an_error, region) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    RETURNS(EBUSY, ulocks_region_close(region));
}

static int allocations;

#ifdef __GLIBC__
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);

void *malloc(size_t size) {
    allocations++;
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    allocations++;
    return __libc_calloc(count, size);
}
#endif

static void no_error_of_a_lock_allocates(void) {
    int status;
    ulocks_region_t *region;
    ulocks_member_t *me;
    ulocks_robust_mutex_t *mutex;
    RETURNS(0, ulocks_region_anonymous(&region));
    RETURNS(0, ulocks_region_join(region, &me));
    RETURNS(0, ulocks_region_robust_mutex(region, me, "mutex", &mutex));
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        const int before = allocations;
        RETURNS(EINVAL, ulocks_robust_mutex_lock(mutex, me)); /* its parent's member */
        CHECK(allocations == before);
        CHECK(strstr(ulocks_region_error(), "join in the child") != NULL);
        RETURNS(EINVAL, ulocks_region_robust_mutex(region, me, "mutex", NULL));
        CHECK(strstr(ulocks_region_error(), "null") != NULL);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    RETURNS(0, ulocks_member_leave(me));
    RETURNS(0, ulocks_region_close(region));
}

static void a_child_closes_the_region_of_its_parent(void) {
    int status;
    ulocks_region_t *region;
    ulocks_member_t *me;
    RETURNS(0, ulocks_region_anonymous(&region));
    RETURNS(0, ulocks_region_join(region, &me));
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        RETURNS(0, ulocks_region_close(region));
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    RETURNS(EBUSY, ulocks_region_close(region));
    RETURNS(0, ulocks_member_leave(me));
    RETURNS(0, ulocks_region_close(region));
}

static pthread_barrier_t joined;

static void *leaves_at_once(void *region) {
    ulocks_member_t *me;
    RETURNS(0, ulocks_region_join(region, &me));
    pthread_barrier_wait(&joined);
    RETURNS(0, ulocks_member_leave(me));
    return NULL;
}

/* Until all have left, the region stays open for those that leave. */
static void threads_leave_while_it_is_closed(void) {
    enum { THREADS = 2, ROUNDS = 200 };
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[THREADS];
        ulocks_region_t *region;
        int closed = EBUSY;
        RETURNS(0, ulocks_region_anonymous(&region));
        CHECK(pthread_barrier_init(&joined, NULL, THREADS + 1) == 0);
        for (int i = 0; i < THREADS; i++)
            CHECK(pthread_create(&threads[i], NULL, leaves_at_once, region) == 0);
        pthread_barrier_wait(&joined);
        for (int looks = 0; closed == EBUSY && looks < 1000; looks++)
            closed = ulocks_region_close(region);
        for (int i = 0; i < THREADS; i++)
            CHECK(pthread_join(threads[i], NULL) == 0);
        if (closed == EBUSY)
            closed = ulocks_region_close(region);
        CHECK(closed == 0);
        CHECK(pthread_barrier_destroy(&joined) == 0);
    }
}

int main(void) {
    snprintf(path, sizeof path, "/tmp/ulocks-region-%d", (int)getpid());
    a_file_keeps_its_data();
    what_is_no_region_is_refused();
    a_thread_that_ends_may_fail();
    no_error_of_a_lock_allocates();
    a_child_closes_the_region_of_its_parent();
    threads_leave_while_it_is_closed();
    return 0;
}
