// A program with an allocator of its own, whose first call makes the lock of the allocator.
#include "case.h"

static pthread_mutex_t mutex;
static bool is_made;
static int calls_before;
static _Alignas(16) char heap[1 << 26];
static size_t used;

static void *take(size_t size) {
    if (!is_made) {
        if (calls_before++ > 0) {
            static const char line[] = "the allocator is called as it makes its lock\n";
            _exit(write(STDOUT_FILENO, line, sizeof line - 1) < 0 ? 8 : 9);
        }
        pthread_mutexattr_t attributes;
        NEED(pthread_mutexattr_init(&attributes));
        NEED(pthread_mutex_init(&mutex, &attributes));
        is_made = true;
    }
    NEED(pthread_mutex_lock(&mutex));
    char *start = heap + used;
    used += (size + 31) & ~(size_t)15;
    NEED(used > sizeof heap ? ENOMEM : 0);
    NEED(pthread_mutex_unlock(&mutex));
    *(size_t *)start = size;
    return start + 16;
}

void *malloc(size_t size) { return take(size); }
void *calloc(size_t count, size_t size) { return take(count * size); }
void free(void *place) { (void)place; }

void *realloc(void *old, size_t size) {
    void *place = take(size);
    if (old != NULL) {
        size_t before = *(size_t *)((char *)old - 16);
        memcpy(place, old, before < size ? before : size);
    }
    return place;
}

static void *allocate(void *unused) {
    for (int round = 0; round < 1000; ++round) {
        void *volatile place = malloc(16);
        free(place);
    }
    return unused;
}

int main(void) {
    enum { THREADS = 3 };
    pthread_t threads[THREADS];
    for (int nth = 0; nth < THREADS; ++nth) {
        threads[nth] = start(allocate, NULL);
    }
    for (int nth = 0; nth < THREADS; ++nth) {
        join(threads[nth]);
    }
    show_number(THREADS, "threads that allocate");
    return finish();
}
