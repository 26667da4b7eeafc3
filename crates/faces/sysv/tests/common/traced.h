/* What programs use that step through a child. */
#pragma once
#include <sched.h>
#include <sys/types.h>

/* Puts `pid` and this process on one CPU, and tells which ones this process had. A stop that wakes
   an idle CPU takes longer. (Two CPUs of an EPYC under KVM, once each: 86 and 24 s with
   `cargo test -p ulocks-sysv --all-features --test shared -- any_instruction`.) */
static void stay_beside(pid_t pid, cpu_set_t *before)
{
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(sched_getcpu(), &here);
    sched_getaffinity(0, sizeof *before, before);
    sched_setaffinity(0, sizeof here, &here);
    sched_setaffinity(pid, sizeof here, &here);
}
