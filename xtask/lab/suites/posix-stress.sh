#!/bin/sh
# Builds the stress tests of the Open POSIX Test Suite that its makefiles leave out:
# posix-stress.sh SUITE OUT
#
# Each `stress` runs until it gets SIGUSR1. Here it sends that to itself after ten seconds. The
# `s-c` programs measure how times grow with the number of objects. Five of them make as many
# semaphores, processes or threads as the machine has room for, and are left out.
set -eu
suite=$(cd "$1" && pwd)
mkdir -p "$2"
cat > "$2/end.c" << 'END'
#include <signal.h>
#include <string.h>
#include <time.h>

__attribute__((constructor)) static void end(void)
{
    struct sigevent event;
    struct itimerspec when = { .it_value.tv_sec = 10 };
    timer_t timer;
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGUSR1;
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &when, NULL);
}
END
for file in "$suite"/stress/threads/*/s*.c "$suite"/stress/semaphores/*.c; do
    folder=$(basename "$(dirname "$file")")
    name=$folder-$(basename "$file" .c)
    case $name in
        sem_*-s-c1 | fork-s-c1 | pthread_mutex_lock-s-c*) continue ;;
        *stress*) end=$2/end.c ;;
        *) end= ;;
    esac
    gcc -std=gnu11 -O2 -w -D_GNU_SOURCE -I"$suite/include" -I"$suite/stress/threads" "$file" "$suite/lib/common.c" $end -o "$2/$name" -lpthread -lrt -lm \
        || echo "$name does not build"
done
