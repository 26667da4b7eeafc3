/* What the test programs have in common: a failed check ends the program with 1. */

#ifndef CHECK_H
#define CHECK_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* An error number that no function of this library sets. */
#define UNTOUCHED 4242

/* A call returns this number, and leaves errno alone. */
#define RETURNS(number, call)                                                                      \
    do {                                                                                           \
        errno = UNTOUCHED;                                                                         \
        const long found_ = (long)(call);                                                          \
        const int errno_ = errno;                                                                  \
        if (found_ != (long)(number) || errno_ != UNTOUCHED) {                                     \
            fprintf(stderr, "%s:%d: %s returned %ld instead of %s, and errno is %d\n", __FILE__,   \
                    __LINE__, #call, found_, #number, errno_);                                     \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* The moment of CLOCK_MONOTONIC that is so many milliseconds from now. */
static inline struct timespec after(long milliseconds) {
    struct timespec now;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    now.tv_sec += milliseconds / 1000;
    now.tv_nsec += milliseconds % 1000 * 1000000;
    if (now.tv_nsec >= 1000000000) {
        now.tv_sec += 1;
        now.tv_nsec -= 1000000000;
    }
    return now;
}

/* Much later than any test needs. */
static inline struct timespec late(void) {
    return after(40000);
}

/* A moment that has passed. */
static const struct timespec past = { 0, 1 };

/* What is no moment. */
static const struct timespec bad[] = { { 5, -1 }, { 5, 1000000000 } };

#endif
