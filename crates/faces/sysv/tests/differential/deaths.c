/* The cases of the oracle, 3: adjustments, deaths, permissions. */
#include "oracle.h"
#include <pthread.h>

static struct sembuf ops[8];
static unsigned nops;
static int how; /* The signal that ends the child; 0 is exit. */
static int ready[2];

/* A child that performs a set, says so, and then ends in some way. */
static pid_t performer(int signal)
{
    char byte;
    how = signal;
    if (pipe(ready))
        abort();
    pid_t pid = fork();
    if (pid == 0) {
        int result = semop(id, ops, nops);
        byte = result < 0 ? errno : 0;
        if (write(ready[1], &byte, 1) != 1)
            _exit(99);
        if (how == 0)
            exit(0);
        if (how == -1)
            _exit(0);
        pause();
    }
    if (read(ready[0], &byte, 1) == 1)
        say(" %s", byte ? name_of(byte) : "ok");
    close(ready[0]);
    close(ready[1]);
    return pid;
}
#define DO(signal, ...) ({ struct sembuf s_[] = {__VA_ARGS__}; memcpy(ops, s_, sizeof s_); nops = sizeof s_ / sizeof *s_; performer(signal); })
#define WAIT(pid) waitpid(pid, NULL, 0)

static void undo_exit(void) { fresh(1, "5"); pid_t a = DO(0, O(0, -3, UN)); WAIT(a); values(); pids(a); }
static void undo_quick_exit(void) { fresh(1, "5"); pid_t a = DO(-1, O(0, -3, UN)); WAIT(a); values(); pids(a); }
static void undo_kill(void) { fresh(1, "5"); pid_t a = DO(SIGKILL, O(0, -3, UN)); values(); end(a, SIGKILL); values(); pids(a); }
static void undo_kill_plus(void) { fresh(1, "5"); pid_t a = DO(SIGKILL, O(0, 3, UN)); values(); end(a, SIGKILL); OP(O(0, -6, NW)); values(); pids(a); }
static void undo_kill_then_op(void) { fresh(1, "1"); pid_t a = DO(SIGKILL, O(0, -1, UN)); OP(O(0, -1, NW)); end(a, SIGKILL); OP(O(0, -1, NW)); OP(O(0, -1, NW)); values(); }
static void undo_wakes(void) { fresh(1, "1"); pid_t a = DO(SIGKILL, O(0, -1, UN)), b = SLEEP(O(0, -1, 0)); end(a, SIGKILL); join(b); values(); pids(b); }
static void undo_exit_wakes(void) { fresh(1, "1"); pid_t a = DO(SIGTERM, O(0, -1, UN)), b = SLEEP(O(0, -1, UN)); end(a, SIGTERM); join(b); values(); pids(b); }
static void undo_zero_wakes(void) { fresh(1, "0"); pid_t a = DO(SIGKILL, O(0, 1, UN)), b = SLEEP(O(0, 0, 0)); end(a, SIGKILL); join(b); values(); }
static void undo_none_without_flag(void) { fresh(2, "5 5"); pid_t a = DO(SIGKILL, O(0, -3, 0), O(1, -2, UN)); end(a, SIGKILL); values(); pids(a); }
static void undo_clamped(void) { fresh(1, "5"); pid_t a = DO(SIGKILL, O(0, 3, UN)); OP(O(0, -7, 0)); end(a, SIGKILL); values(); }
static void undo_clamped_high(void) { fresh(1, "9"); pid_t a = DO(SIGKILL, O(0, -9, UN)); OP(O(0, 32765, 0)); end(a, SIGKILL); values(); }
static void undo_set(void) { fresh(3, "5 6 7"); pid_t a = DO(SIGKILL, O(0, -1, UN), O(1, -2, UN), O(2, 3, UN), O(0, -1, UN)); values(); end(a, SIGKILL); values(); pids(a); }
static void undo_setval(void) { fresh(2, "5 5"); pid_t a = DO(SIGKILL, O(0, -3, UN), O(1, -3, UN)); put(ctl(0, SETVAL, 10)); end(a, SIGKILL); values(); pids(a); }
static void undo_setall(void) { unsigned short all[2] = {1, 2}; fresh(2, "5 5"); pid_t a = DO(SIGKILL, O(0, -3, UN), O(1, -3, UN)); put(ctl(0, SETALL, (long)all)); end(a, SIGKILL); values(); pids(a); }
static void undo_overflow(void) { fresh(1, "0"); OP(O(0, 32767, UN)); OP(O(0, -32767, 0)); OP(O(0, 1, UN)); OP(O(0, 1, UN | NW)); values(); OP(O(0, -1, UN)); }
static void undo_overflow_low(void) { fresh(1, "32767"); OP(O(0, -32767, UN)); OP(O(0, 1, 0)); OP(O(0, -1, UN)); values(); put(ctl(0, SETVAL, 9)); OP(O(0, -1, UN)); values(); }
static void undo_failed_set(void) { fresh(2, "5 0"); pid_t a = DO(SIGKILL, O(0, -3, UN), O(1, -1, UN | NW)); end(a, SIGKILL); values(); }
static void undo_zero_op(void) { fresh(1, "0"); pid_t a = DO(SIGKILL, O(0, 0, UN)); end(a, SIGKILL); values(); pids(a); say(stat_of().sem_otime ? " otime" : " never"); }
static void undo_taken_back(void) { fresh(1, "3"); pid_t a = DO(SIGKILL, O(0, -2, UN), O(0, 2, UN)); end(a, SIGKILL); values(); pids(a); }
static void undo_asleep(void) { fresh(2, "1 0"); pid_t a = SLEEPSTAY(O(0, -1, UN), O(1, -1, UN)); OP(O(1, 1, 0)); await_done(0); values(); end(a, SIGKILL); values(); pids(a); }
static void undo_two(void) { fresh(1, "10"); pid_t a = DO(SIGKILL, O(0, -2, UN)), b = DO(SIGKILL, O(0, -3, UN)); values(); end(a, SIGKILL); values(); end(b, SIGKILL); values(); pids(b); }

static void parent_with_undo(void)
{
    struct sembuf op = O(0, -1, UN);
    semop(id, &op, 1);
    pid_t inner = fork();
    if (inner == 0)
        exit(0);
    waitpid(inner, 0, 0);
    ctl(1, SETVAL, 1);
    pause();
}
static void undo_not_inherited(void) { fresh(2, "4 0"); pid_t a = child(parent_with_undo); while (value(1) == 0) usleep(1000); values(); end(a, SIGKILL); values(); }
static void before_exec(void)
{
    struct sembuf op = O(0, -1, UN);
    semop(id, &op, 1);
    ctl(1, SETVAL, 1);
    execl("/bin/sleep", "sleep", "30", (char *)0);
    _exit(77);
}
static void undo_over_exec(void) { fresh(2, "4 0"); pid_t a = child(before_exec); while (value(1) == 0) usleep(1000); usleep(50000); values(); end(a, SIGKILL); values(); pids(a); }

/* The next process gets this number, if the caller may say so. */
static int set_next_number(pid_t number)
{
    FILE *file = fopen("/proc/sys/kernel/ns_last_pid", "w");
    return file && fprintf(file, "%d", number - 1) > 0 && fclose(file) == 0;
}
static void undo_same_number(void)
{
    fresh(1, "1");
    pid_t a = DO(SIGKILL, O(0, -1, UN)), b = 0;
    end(a, SIGKILL);
    usleep(30000); /* Its time of start has a resolution of 10 ms. */
    /* Beside programs that start processes, too, the number is another's most times. */
    for (int i = 0; i < 100000 && b != a; i++) {
        if (!set_next_number(a)) {
            say(" cannot");
            return;
        }
        b = fork();
        if (b == 0) {
            struct sembuf op = O(0, -1, NW);
            _exit(getpid() != a ? 0 : semop(id, &op, 1) < 0 ? errno : 0);
        }
        if (b != a)
            WAIT(b);
    }
    join(b);
    values();
}

/* Ends as a process does, but for its last step: the C library waits to write to a full pipe. */
static void lingering(void)
{
    static char bytes[4096];
    int full[2];
    struct sembuf op = O(1, 0, UN);
    if (pipe(full) || fcntl(full[1], F_SETFL, O_NONBLOCK))
        _exit(1);
    while (write(full[1], bytes, sizeof bytes) > 0) { }
    fcntl(full[1], F_SETFL, 0);
    dup2(full[1], 1);
    semop(id, &op, 1);
    printf("x");
    exit(0);
}
static void undo_beside_lingering(void)
{
    fresh(2, "1 0");
    pid_t a = child(lingering);
    usleep(100000);
    pid_t b = DO(SIGKILL, O(0, -1, UN));
    end(b, SIGKILL);
    TOP(3000, O(0, -1, 0));
    values();
    end(a, SIGKILL);
}
static void *take_and_stay(void *unused)
{
    struct sembuf op = O(0, -1, UN);
    semop(id, &op, 1);
    pause();
    return unused;
}
static void lingering_with_sleeper(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, take_and_stay, 0);
    await_asleep(1);
    lingering();
}
static void lingering_with_holder(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, take_and_stay, 0);
    while (value(0) != 0)
        usleep(1000);
    ctl(2, SETVAL, 1);
    lingering();
}
static void undo_exit_beside_holder(void) { fresh(3, "1 0 0"); pid_t a = child(lingering_with_holder); while (value(2) == 0) usleep(1000); usleep(100000); OP(O(0, -1, NW)); values(); end(a, SIGKILL); values(); }
static void undo_slept_while_exiting(void)
{
    fresh(2, "0 0");
    pid_t a = child(lingering_with_sleeper);
    await_asleep(1);
    usleep(100000);
    OP(O(0, 1, 0));
    values();
    end(a, SIGKILL);
    values();
}
static void *take_for_good(void *unused)
{
    struct sembuf op = O(0, -1, 0);
    semop(id, &op, 1);
    return unused;
}
static void exits_beside_a_sleeper(void)
{
    pthread_t thread;
    struct sembuf op = O(0, -1, UN);
    semop(id, &op, 1);
    pthread_create(&thread, 0, take_for_good, 0);
    await_asleep(1);
    exit(0);
}
static void undo_exit_beside_own_sleeper(void) { fresh(1, "1"); pid_t a = child(exits_beside_a_sleeper); WAIT(a); values(); pids(a); OP(O(0, -1, NW)); }

static void killed_sleeper(void) { fresh(1, 0); pid_t a = SLEEP(O(0, -1, 0)); end(a, SIGKILL); put(ctl(0, GETNCNT, 0)); OP(O(0, 1, 0)); values(); pids(a); }
static void killed_older(void) { fresh(1, 0); pid_t a = SLEEP(O(0, -1, 0)), b = SLEEP(O(0, -1, 0)); end(a, SIGKILL); OP(O(0, 1, 0)); join(b); values(); pids(b); }
static void killed_complex(void) { fresh(2, "0 0"); pid_t a = SLEEP(O(0, -1, UN), O(1, -1, UN)), b = SLEEP(O(0, -1, 0)); OP(O(1, 1, 0)); end(a, SIGKILL); put(ctl(0, GETNCNT, 0)); OP(O(0, 1, 0)); join(b); values(); }
static void killed_zero_waiter(void) { fresh(1, "1"); pid_t a = SLEEP(O(0, 0, 0)); end(a, SIGKILL); put(ctl(0, GETZCNT, 0)); OP(O(0, -1, 0)); values(); pids(a); }
static void killed_holder_chain(void) { fresh(1, "1"); pid_t a = DO(SIGKILL, O(0, -1, UN)), b = SLEEPSTAY(O(0, -1, UN)), c = SLEEP(O(0, -1, UN)); end(a, SIGKILL); await_done(1); values(); end(b, SIGKILL); join(c); values(); }

static void stream(void)
{
    struct sembuf down[] = {O(0, -1, UN), O(1, 1, UN)}, up[] = {O(1, -1, UN), O(0, 1, UN)};
    for (;;) {
        semop(id, down, 2);
        semop(id, up, 2);
    }
}
static void killed_in_stream(void)
{
    fresh(2, "3 0");
    for (int i = 0; i < 30; i++) {
        pid_t a = child(stream), b = child(stream);
        usleep(500 + 333 * i % 2000);
        end(a, SIGKILL);
        end(b, SIGKILL);
    }
    values();
}
static void plain_stream(void) { struct sembuf op = O(0, 1, 0), back = O(0, -1, 0); for (;;) { semop(id, &op, 1); semop(id, &back, 1); } }
static void *becomes_another(void *unused)
{
    await_asleep(1);
    execl("/bin/sleep", "sleep", "30", (char *)0);
    return unused;
}
static void sleeper_before_exec(void)
{
    pthread_t thread;
    struct sembuf op = O(0, -1, 0);
    pthread_create(&thread, 0, becomes_another, 0);
    semop(id, &op, 1);
}
static void *takes_and_becomes_another(void *unused)
{
    before_exec();
    return unused;
}
static void undo_by_exec_of_thread(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, takes_and_becomes_another, 0);
    pthread_join(thread, 0);
}
static void undo_over_exec_of_thread(void) { fresh(2, "4 0"); pid_t a = child(undo_by_exec_of_thread); while (value(1) == 0) usleep(1000); usleep(50000); values(); end(a, SIGKILL); usleep(100000); values(); pids(a); }
static void killed_by_exec(void)
{
    fresh(1, "0");
    pid_t a = child(sleeper_before_exec);
    await_asleep(1);
    await_asleep(0);
    put(ctl(0, GETNCNT, 0));
    OP(O(0, 1, 0));
    values();
    end(a, SIGKILL);
    values();
}
static void killed_plain(void)
{
    fresh(1, "1000");
    for (int i = 0; i < 20; i++) {
        pid_t a = child(plain_stream);
        usleep(1000);
        end(a, SIGKILL);
    }
    int now = value(0);
    say(now >= 1000 && now <= 1020 ? " within" : " wrong");
}
static void ping_stream(void) { struct sembuf wait = O(0, -1, 0), post = O(1, 1, 0); for (;;) { semop(id, &wait, 1); semop(id, &post, 1); } }
static void killed_ping(void)
{
    fresh(2, "0 0");
    pid_t a = child(ping_stream);
    for (int i = 0; i < 200; i++) {
        struct sembuf post = O(0, 1, 0), wait = O(1, -1, 0);
        semop(id, &post, 1);
        timed(&wait, 1, 10000);
    }
    await_asleep(1);
    values();
    end(a, SIGKILL);
    put(asleep());
    OP(O(0, 2, 0));
    values();
}

/* Permissions. A child gives up root's rights first. */
static void as_other(void (*run)(void))
{
    int status;
    fflush(stdout);
    int out[2];
    if (pipe(out))
        abort();
    pid_t pid = fork();
    if (pid == 0) {
        if (setgid(54321) || setuid(54321))
            say(" cannot");
        else
            run();
        const char *text = line_of_case();
        if (write(out[1], text, strlen(text) + 1) < 0)
            _exit(1);
        _exit(0);
    }
    close(out[1]);
    replace_line(out[0]);
    close(out[0]);
    waitpid(pid, &status, 0);
}
static void with_mode(int mode) { id = semget(IPC_PRIVATE, 2, mode); ctl(0, SETVAL, 1); ctl(1, SETVAL, 0); }
static void all_kinds(void)
{
    unsigned short all[2] = {1, 0};
    struct semid_ds ds;
    OP(O(0, 1, NW));
    OP(O(1, 0, NW));
    OP(O(7, 0, NW));
    put(value(0));
    put(value(9));
    put(ctl(0, GETALL, (long)all));
    put(ctl(0, SETVAL, 1));
    put(ctl(9, SETVAL, 1));
    put(ctl(0, SETVAL, -1));
    put(ctl(0, SETALL, (long)all));
    put(ctl(0, IPC_STAT, (long)&ds));
    memset(&ds, 0, sizeof ds);
    put(ctl(0, IPC_SET, (long)&ds));
    put(ctl(0, IPC_RMID, 0));
}
static void others_none(void) { with_mode(0600); as_other(all_kinds); }
static void others_read(void) { with_mode(0604); as_other(all_kinds); }
static void others_write(void) { with_mode(0602); as_other(all_kinds); }
static void others_both(void) { with_mode(0666); as_other(all_kinds); }
static void get_by_key(void) { put(semget(0x51d00009, 0, 0)  >= 0 ? 0 : -1); put(semget(0x51d00009, 0, 0004) >= 0 ? 0 : -1); put(semget(0x51d00009, 0, 0600) >= 0 ? 0 : -1); put(semget(0x51d00009, 9, 0600)); put(semget(0x51d00009, 1, IPC_CREAT | IPC_EXCL)); }
static void others_get(void) { id = semget(0x51d00009, 2, 0600 | IPC_CREAT); as_other(get_by_key); ctl(0, IPC_RMID, 0); id = semget(0x51d00009, 2, 0604 | IPC_CREAT); as_other(get_by_key); }
/* The same of an array that another process has made, so that this one has not opened it. */
static void make_with_key(void) { exit(semget(0x51d00009, 2, 0600 | IPC_CREAT) < 0); }
static void others_get_first(void) { pid_t a = child(make_with_key); waitpid(a, NULL, 0); as_other(get_by_key); id = semget(0x51d00009, 0, 0); }
static void given_away(void) { with_mode(0600); struct semid_ds ds = stat_of(); ds.sem_perm.uid = 54321; put(ctl(0, IPC_SET, (long)&ds)); as_other(all_kinds); }
static void own_no_rights(void) { int mine = semget(IPC_PRIVATE, 1, 0); id = mine; put(value(0)); OP(O(0, 0, NW)); put(ctl(0, IPC_RMID, 0)); }
static void owner_without_bits(void) { as_other(own_no_rights); }
static void other_undo(void) { struct sembuf op = O(0, -1, UN); put(semop(id, &op, 1)); }
static void others_undo(void) { with_mode(0666); as_other(other_undo); values(); }

#define C(function) {#function, function}
const struct named cases_of_deaths[] = {
    C(undo_exit),
    C(undo_quick_exit),
    C(undo_kill),
    C(undo_kill_plus),
    C(undo_kill_then_op),
    C(undo_wakes),
    C(undo_exit_wakes),
    C(undo_zero_wakes),
    C(undo_none_without_flag),
    C(undo_clamped),
    C(undo_clamped_high),
    C(undo_set),
    C(undo_setval),
    C(undo_setall),
    C(undo_overflow),
    C(undo_overflow_low),
    C(undo_failed_set),
    C(undo_zero_op),
    C(undo_taken_back),
    C(undo_asleep),
    C(undo_two),
    C(undo_not_inherited),
    C(undo_over_exec),
    C(undo_over_exec_of_thread),
    C(undo_same_number),
    C(undo_beside_lingering),
    C(undo_exit_beside_holder),
    C(undo_slept_while_exiting),
    C(undo_exit_beside_own_sleeper),
    C(killed_sleeper),
    C(killed_older),
    C(killed_complex),
    C(killed_zero_waiter),
    C(killed_holder_chain),
    C(killed_in_stream),
    C(killed_by_exec),
    C(killed_plain),
    C(killed_ping),
    C(others_none),
    C(others_read),
    C(others_write),
    C(others_both),
    C(others_get),
    C(others_get_first),
    C(given_away),
    C(owner_without_bits),
    C(others_undo),
    {0, 0},
};
