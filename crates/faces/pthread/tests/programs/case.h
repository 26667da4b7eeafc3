// What every program here uses: lines of results by name, deadlines, and threads whose sleep is seen.
//
// A program prints one line for each case, "name: result". A line must not depend on the schedule,
// on times or on addresses, since the lines of two runs are compared.
#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// The name of an error number; "ok" for zero.
static inline const char *error_name(int error) {
    switch (error) {
    case 0: return "ok";
    case EAGAIN: return "EAGAIN";
    case EBUSY: return "EBUSY";
    case ECANCELED: return "ECANCELED";
    case EDEADLK: return "EDEADLK";
    case EEXIST: return "EEXIST";
    case EINTR: return "EINTR";
    case EINVAL: return "EINVAL";
    case ENOENT: return "ENOENT";
    case ENOTRECOVERABLE: return "ENOTRECOVERABLE";
    case ENOTSUP: return "ENOTSUP";
    case EOVERFLOW: return "EOVERFLOW";
    case EOWNERDEAD: return "EOWNERDEAD";
    case EPERM: return "EPERM";
    case ESRCH: return "ESRCH";
    case ETIMEDOUT: return "ETIMEDOUT";
    default: {
        static _Thread_local char number[32];
        snprintf(number, sizeof number, "error %d", error);
        return number;
    }
    }
}

// Prints a case that ends with an error number, as functions of pthread.h return it.
__attribute__((format(printf, 2, 3))) static inline int show(int error, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf(": %s\n", error_name(error));
    fflush(stdout);
    return error;
}

// Prints a case that ends with a number.
__attribute__((format(printf, 2, 3))) static inline void show_number(long number, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf(": %ld\n", number);
    fflush(stdout);
}

// The error number of a function that returns -1 and sets errno, as those of semaphore.h.
static inline int by_errno(int result) { return result == 0 ? 0 : errno; }

// Ends the program when a step that no case is about fails.
#define NEED(expression)                                                                           \
    do {                                                                                           \
        int need_error = (expression);                                                             \
        if (need_error != 0) {                                                                     \
            printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #expression, error_name(need_error));    \
            fflush(stdout);                                                                        \
            _exit(3);                                                                              \
        }                                                                                          \
    } while (0)

// The time that is `milliseconds` from now on this clock; a negative number is the past.
static inline struct timespec from_now(clockid_t clock, long milliseconds) {
    struct timespec time;
    clock_gettime(clock, &time);
    long long nanoseconds = time.tv_nsec + (milliseconds % 1000) * 1000000LL;
    time.tv_sec += milliseconds / 1000 + (nanoseconds >= 1000000000) - (nanoseconds < 0);
    time.tv_nsec = (nanoseconds + 1000000000) % 1000000000;
    return time;
}

// Long after any hang guard.
static inline struct timespec far(clockid_t clock) { return from_now(clock, 3600 * 1000L); }

static inline void sleep_ms(long milliseconds) {
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    while (nanosleep(&time, &time) != 0 && errno == EINTR) {
    }
}

static inline int thread_id(void) { return (int)syscall(SYS_gettid); }

static inline pthread_t start(void *(*body)(void *), void *argument) {
    pthread_t thread;
    NEED(pthread_create(&thread, NULL, body, argument));
    return thread;
}

static inline void *join(pthread_t thread) {
    void *result = NULL;
    NEED(pthread_join(thread, &result));
    return result;
}

// What `call(argument)` returns on a thread of its own.
struct elsewhere {
    int (*call)(void *);
    void *argument;
    int result;
};

static inline void *elsewhere_body(void *argument) {
    struct elsewhere *elsewhere = argument;
    elsewhere->result = elsewhere->call(elsewhere->argument);
    return NULL;
}

static inline int on_thread(int (*call)(void *), void *argument) {
    struct elsewhere elsewhere = {call, argument, -1};
    join(start(elsewhere_body, &elsewhere));
    return elsewhere.result;
}

// The same for the functions of one lock: on_thread_(pthread_mutex_trylock, &mutex).
#define ON_THREAD(function, lock) on_thread((int (*)(void *))(void (*)(void))(function), (lock))

// Returns after this thread of this process has slept for some milliseconds without a break.
static inline void until_asleep(int thread) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    for (int in_sleep = 0; in_sleep < 5;) {
        char text[512] = {0};
        FILE *file = fopen(path, "r");
        if (file == NULL) {
            return; // It has ended; the case will show that.
        }
        size_t length = fread(text, 1, sizeof text - 1, file);
        fclose(file);
        const char *state = length == 0 ? NULL : strrchr(text, ')');
        in_sleep = state != NULL && state[2] == 'S' ? in_sleep + 1 : 0;
        sleep_ms(1);
    }
}

// Returns the number after another thread has stored it; zero means "not yet".
static inline int until_set(atomic_int *number) {
    int value;
    while ((value = atomic_load(number)) == 0) {
        sleep_ms(1);
    }
    return value;
}

// Returns after a thread has stored its id there and gone to sleep.
static inline void until_waits(atomic_int *thread) { until_asleep(until_set(thread)); }

// Zeroed memory that a forked child shares.
static inline void *shared_memory(size_t size) {
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    NEED(memory == MAP_FAILED ? errno : 0);
    return memory;
}

// Forks; in the child `call(argument)` gives the exit code.
static inline pid_t start_process(int (*call)(void *), void *argument) {
    fflush(stdout);
    pid_t child = fork();
    NEED(child < 0 ? errno : 0);
    if (child == 0) {
        int code = call(argument);
        fflush(stdout);
        _exit(code);
    }
    return child;
}

// The exit code of a child, or 1000 and the signal that ended it.
static inline int join_process(pid_t child) {
    int status;
    while (waitpid(child, &status, 0) < 0) {
        NEED(errno == EINTR ? 0 : errno);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static inline int in_process(int (*call)(void *), void *argument) {
    return join_process(start_process(call, argument));
}

#define IN_PROCESS(function, lock) in_process((int (*)(void *))(void (*)(void))(function), (lock))

// The last line of a program that reached its end.
static inline int finish(void) {
    printf("end\n");
    return 0;
}
