/* The cases of the oracle, 2: sets that sleep, and how that ends. */
#include "oracle.h"

static void wake_minus(void) { fresh(1, 0); pid_t a = SLEEP(O(0, -2, 0)); put(ctl(0, GETNCNT, 0)); OP(O(0, 1, 0)); put(ctl(0, GETNCNT, 0)); OP(O(0, 1, 0)); join(a); values(); pids(a); }
static void wake_zero(void) { fresh(1, "2"); pid_t a = SLEEP(O(0, 0, 0)); put(ctl(0, GETZCNT, 0)); OP(O(0, -1, 0)); put(ctl(0, GETZCNT, 0)); OP(O(0, -1, 0)); join(a); values(); pids(a); }
static void zero_between(void) { fresh(1, "1"); pid_t a = SLEEP(O(0, 0, 0)); OP(O(0, -1, 0)); OP(O(0, 1, 0)); join(a); values(); }
static void zero_inside(void) { fresh(1, "1"); pid_t a = SLEEP(O(0, 0, 0)); OP(O(0, -1, 0), O(0, 1, 0)); put(ctl(0, GETZCNT, 0)); put(ctl(0, SETVAL, 0)); join(a); }
static void skip_older(void) { fresh(1, 0); pid_t a = SLEEP(O(0, -3, 0)), b = SLEEP(O(0, -1, 0)); OP(O(0, 1, 0)); join(b); put(ctl(0, GETNCNT, 0)); OP(O(0, 3, 0)); join(a); values(); }
static void oldest_first(void) { fresh(1, 0); pid_t a = SLEEP(O(0, -1, 0)), b = SLEEP(O(0, -1, 0)); OP(O(0, 1, 0)); join(a); put(ctl(0, GETNCNT, 0)); OP(O(0, 1, 0)); join(b); values(); }
static void newcomer_first(void) { fresh(1, "1"); pid_t a = SLEEP(O(0, -2, 0)); OP(O(0, -1, NW)); put(ctl(0, GETNCNT, 0)); OP(O(0, 2, 0)); join(a); values(); }
static void many_at_once(void) { fresh(1, 0); pid_t a[4]; for (int i = 0; i < 4; i++) a[i] = SLEEP(O(0, -1, 0)); OP(O(0, 3, 0)); for (int i = 0; i < 3; i++) join(a[i]); put(ctl(0, GETNCNT, 0)); OP(O(0, 7, 0)); join(a[3]); values(); }
static void complex_both(void) { fresh(2, 0); pid_t a = SLEEP(O(0, -1, 0), O(1, -1, 0)); put(ctl(0, GETNCNT, 0)); put(ctl(1, GETNCNT, 0)); OP(O(0, 1, 0)); put(ctl(0, GETNCNT, 0)); put(ctl(1, GETNCNT, 0)); OP(O(1, 1, 0)); join(a); values(); pids(a); }
static void complex_age(void) { fresh(2, 0); pid_t a = SLEEP(O(0, -1, 0), O(1, -1, 0)), b = SLEEP(O(1, -1, 0)); OP(O(0, 1, 0)); OP(O(1, 1, 0)); join(a); put(ctl(1, GETNCNT, 0)); OP(O(1, 1, 0)); join(b); values(); }
static void sleeper_again(void) { fresh(2, "0 0"); pid_t a = SLEEP(O(0, -1, 0), O(1, -1, NW)); OP(O(0, 1, 0)); join(a); values(); }
static void sleeper_range(void) { fresh(2, "0 32767"); pid_t a = SLEEP(O(0, -1, 0), O(1, 1, 0)); OP(O(0, 1, 0)); join(a); values(); }
static void earlier_drained(void) { fresh(2, "1 0"); pid_t a = SLEEP(O(0, -1, NW), O(1, -1, 0)); OP(O(0, -1, 0)); join(a); values(); }
static void earlier_full(void) { fresh(2, "32766 0"); pid_t a = SLEEP(O(0, 1, 0), O(1, -1, 0)); OP(O(0, 1, 0)); join(a); values(); }
static void earlier_counted(void) { fresh(2, "1 0"); pid_t a = SLEEP(O(0, -1, 0), O(1, -1, 0)); put(ctl(0, GETNCNT, 0)); put(ctl(1, GETNCNT, 0)); OP(O(0, -1, 0)); put(ctl(0, GETNCNT, 0)); put(ctl(1, GETNCNT, 0)); OP(O(0, 1, 0), O(1, 1, 0)); join(a); }
static void zero_then_plus(void) { fresh(1, "1"); pid_t a = SLEEP(O(0, 0, 0), O(0, 1, 0)), b = SLEEP(O(0, 0, 0), O(0, 1, 0)); OP(O(0, -1, 0)); join(a); put(ctl(0, GETZCNT, 0)); OP(O(0, -1, 0)); join(b); values(); }
static void const_complex(void) { fresh(2, "1 1"); pid_t a = SLEEP(O(0, 0, 0), O(1, 0, 0)); OP(O(0, -1, 0)); put(ctl(0, GETZCNT, 0)); put(ctl(1, GETZCNT, 0)); OP(O(1, -1, 0)); join(a); values(); }
static void const_before_alter(void) { fresh(1, "2"); pid_t a = SLEEP(O(0, -3, 0)), b = SLEEP(O(0, 0, 0)); OP(O(0, -2, 0)); join(b); put(ctl(0, GETNCNT, 0)); OP(O(0, 3, 0)); join(a); values(); }
static void chain(void) { fresh(3, 0); pid_t a = SLEEP(O(0, -1, 0), O(1, 1, 0)), b = SLEEP(O(1, -1, 0), O(2, 1, 0)), c = SLEEP(O(2, -1, 0)); OP(O(0, 1, 0)); join(a); join(b); join(c); values(); }
static void chain_back(void) { fresh(3, 0); pid_t c = SLEEP(O(2, -1, 0)), b = SLEEP(O(1, -1, 0), O(2, 1, 0)), a = SLEEP(O(0, -1, 0), O(1, 1, 0)); OP(O(0, 1, 0)); join(a); join(b); join(c); values(); }
static void chain_zero(void) { fresh(2, "1 0"); pid_t a = SLEEP(O(0, 0, 0)), b = SLEEP(O(1, -1, 0), O(0, -1, 0)); OP(O(1, 1, 0)); join(b); join(a); values(); }
static void philosophers(void) { fresh(3, "1 1 1"); OP(O(0, -1, 0), O(1, -1, 0)); pid_t a = SLEEP(O(1, -1, 0), O(2, -1, 0)), b = SLEEP(O(2, -1, 0), O(0, -1, 0)); OP(O(0, 1, 0), O(1, 1, 0)); join(a); put(asleep()); OP(O(1, 1, 0), O(2, 1, 0)); join(b); values(); }
static void read_write_lock(void) { fresh(2, "0 0"); OP(O(1, 0, 0), O(0, 1, 0)); OP(O(1, 0, 0), O(0, 1, 0)); pid_t w = SLEEP(O(0, 0, 0), O(1, 0, 0), O(1, 1, 0)); OP(O(0, -1, 0)); put(asleep()); OP(O(0, -1, 0)); join(w); values(); }
static void merged_order(void) { fresh(2, 0); pid_t a = SLEEP(O(1, -1, 0)), b = SLEEP(O(0, -1, 0)), c = SLEEP(O(0, -1, 0), O(1, -1, 0)); OP(O(0, 1, 0), O(1, 1, 0)); join(a); join(b); put(asleep()); OP(O(0, 1, 0), O(1, 1, 0)); join(c); values(); }
static void const_complex_last(void) { fresh(2, "1 0"); pid_t a = SLEEP(O(0, 0, 0), O(1, 0, 0)), b = SLEEP(O(0, 0, 0)); OP(O(0, -1, 0)); join(a); join(b); pids(a); }

static void setval_wakes(void) { fresh(1, 0); pid_t a = SLEEP(O(0, -4, 0)); put(ctl(0, SETVAL, 3)); put(ctl(0, GETNCNT, 0)); put(ctl(0, SETVAL, 6)); join(a); values(); pids(a); say(stat_of().sem_otime ? " otime" : " never"); }
static void setval_zero_wakes(void) { fresh(1, "9"); pid_t a = SLEEP(O(0, 0, 0)); put(ctl(0, SETVAL, 0)); join(a); values(); }
static void setall_wakes(void) { unsigned short all[3] = {0, 5, 1}; fresh(3, "7 0 0"); pid_t a = SLEEP(O(0, 0, 0)), b = SLEEP(O(1, -2, 0), O(2, -1, 0)); put(ctl(0, SETALL, (long)all)); join(a); join(b); values(); pids(b); }
static void removed_asleep(void) { fresh(2, "0 1"); pid_t a = SLEEP(O(0, -1, 0)), b = SLEEP(O(1, 0, 0)), c = SLEEP(O(0, -1, 0), O(1, -1, UN)); put(ctl(0, IPC_RMID, 0)); join(a); join(b); join(c); OP(O(0, 1, 0)); }
static void timeout_asleep(void) { fresh(1, 0); TOP(60, O(0, -1, 0)); put(ctl(0, GETNCNT, 0)); OP(O(0, 1, 0)); values(); }

static volatile int hits;
static void hit(int signal) { (void)signal; hits++; }
static int restart;
static void interrupted(void)
{
    struct sigaction action;
    struct sembuf op = O(0, -1, 0);
    memset(&action, 0, sizeof action);
    action.sa_handler = hit;
    action.sa_flags = restart ? SA_RESTART : 0;
    sigaction(SIGUSR1, &action, 0);
    _exit(semop(id, &op, 1) < 0 ? errno : hits);
}
static void eintr(void) { fresh(1, 0); restart = 0; pid_t a = child(interrupted); await_asleep(1); kill(a, SIGUSR1); join(a); put(ctl(0, GETNCNT, 0)); OP(O(0, 1, 0)); values(); }
static void eintr_restart(void) { fresh(1, 0); restart = 1; pid_t a = child(interrupted); await_asleep(1); kill(a, SIGUSR1); join(a); put(ctl(0, GETNCNT, 0)); }
/* Signals of timers that end a whole number of seconds after the call. On a loaded machine one may
   come before the call, or while a sleeper that looks for deaths waits for a CPU: see the README. */
static void interrupted_by_alarm(void)
{
    struct sembuf op = O(0, -1, 0);
    int error = EAGAIN;
    signal(SIGALRM, hit);
    timed(&op, 1, 1); /* The first sleep takes longer to begin. */
    for (int attempt = 0; error == EAGAIN && attempt < 4; attempt++) {
        alarm(1);
        error = timed(&op, 1, 4000) < 0 ? errno : 0;
    }
    _exit(error);
}
static void eintr_alarm(void)
{
    enum { MANY = 30 };
    pid_t all[MANY];
    fresh(1, 0);
    for (int i = 0; i < MANY; i++)
        all[i] = child(interrupted_by_alarm), usleep(5000);
    for (int i = 0; i < MANY; i++)
        join(all[i]);
}
static void interrupted_timed(void)
{
    struct sembuf op = O(0, -1, 0);
    signal(SIGUSR1, hit);
    _exit(timed(&op, 1, 9000) < 0 ? errno : 0);
}
static void eintr_timed(void) { fresh(1, 0); pid_t a = child(interrupted_timed); await_asleep(1); kill(a, SIGUSR1); join(a); values(); }
static void ignoring(void) { struct sembuf op = O(0, -1, 0); signal(SIGUSR1, SIG_IGN); _exit(semop(id, &op, 1) < 0 ? errno : 0); }
static void ignored_signal(void) { fresh(1, 0); pid_t a = child(ignoring); await_asleep(1); kill(a, SIGUSR1); usleep(20000); put(ctl(0, GETNCNT, 0)); OP(O(0, 1, 0)); join(a); }

static void in_handler(int signal)
{
    struct sembuf op = O(1, 3, 0);
    (void)signal;
    semop(id, &op, 1);
    ctl(2, SETVAL, 100 + ctl(0, GETNCNT, 0));
}
static void handled(void)
{
    struct sembuf op = O(0, -1, 0);
    signal(SIGUSR1, in_handler);
    _exit(semop(id, &op, 1) < 0 ? errno : 0);
}
static void semop_in_handler(void) { fresh(3, 0); pid_t a = child(handled); await_asleep(1); kill(a, SIGUSR1); join(a); values(); }

static void forked_child(void) { struct sembuf op = O(0, -1, 0); pid_t inner = fork(); if (!inner) _exit(semop(id, &op, 1) < 0); waitpid(inner, 0, 0); _exit(semop(id, &op, 1) < 0); }
static void fork_of_fork(void) { fresh(1, 0); pid_t a = child(forked_child); await_asleep(1); OP(O(0, 1, 0)); await_asleep(1); OP(O(0, 1, 0)); join(a); values(); }
static void stay_pid(void) { fresh(1, 0); pid_t a = SLEEPSTAY(O(0, -1, 0)); OP(O(0, 1, 0)); pids(a); end(a, SIGKILL); pids(a); values(); }

#define C(function) {#function, function}
const struct named cases_of_sleepers[] = {
    C(wake_minus),
    C(wake_zero),
    C(zero_between),
    C(zero_inside),
    C(skip_older),
    C(oldest_first),
    C(newcomer_first),
    C(many_at_once),
    C(complex_both),
    C(complex_age),
    C(sleeper_again),
    C(sleeper_range),
    C(earlier_drained),
    C(earlier_full),
    C(earlier_counted),
    C(zero_then_plus),
    C(const_complex),
    C(const_before_alter),
    C(const_complex_last),
    C(chain),
    C(chain_back),
    C(chain_zero),
    C(philosophers),
    C(read_write_lock),
    C(merged_order),
    C(setval_wakes),
    C(setval_zero_wakes),
    C(setall_wakes),
    C(removed_asleep),
    C(timeout_asleep),
    C(eintr),
    C(eintr_restart),
    C(eintr_timed),
    C(eintr_alarm),
    C(ignored_signal),
    C(semop_in_handler),
    C(fork_of_fork),
    C(stay_pid),
    {0, 0},
};
