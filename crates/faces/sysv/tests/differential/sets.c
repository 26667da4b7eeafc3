/* The cases of the oracle, 1: sets, errors, bookkeeping. Each prints one line. */
#include "oracle.h"

static void plus_minus(void) { fresh(1, "0"); OP(O(0, 3, 0)); OP(O(0, -2, 0)); values(); }
static void wait_zero_now(void) { fresh(1, "0"); OP(O(0, 0, 0)); pids(0); }
static void nowait_minus(void) { fresh(1, "1"); OP(O(0, -2, NW)); values(); pids(0); }
static void nowait_zero(void) { fresh(1, "1"); OP(O(0, 0, NW)); values(); }
static void range_single(void) { fresh(1, "32767"); OP(O(0, 1, 0)); OP(O(0, 1, NW)); values(); }
static void order_range_first(void) { fresh(2, "32767 0"); OP(O(0, 1, NW), O(1, -1, NW)); values(); }
static void order_again_first(void) { fresh(2, "32767 0"); OP(O(1, -1, NW), O(0, 1, NW)); values(); }
static void lock_by_duplicate(void) { fresh(1, "0"); OP(O(0, 0, NW), O(0, 1, 0)); OP(O(0, 0, NW), O(0, 1, 0)); values(); }
static void dup_minus_zero(void) { fresh(1, "10"); OP(O(0, -10, NW), O(0, 0, NW)); values(); }
static void dup_order(void) { fresh(1, "1"); OP(O(0, -2, NW), O(0, 5, 0)); OP(O(0, 5, 0), O(0, -2, NW)); values(); }
static void dup_range(void) { fresh(1, "32767"); OP(O(0, 1, 0), O(0, -1, 0)); OP(O(0, -1, 0), O(0, 1, 0)); values(); }
static void all_or_nothing(void) { fresh(3, "1 1 0"); OP(O(0, -1, NW), O(1, -1, NW), O(2, -1, NW)); values(); }
static void big_jump(void) { fresh(1, "0"); OP(O(0, 32767, 0)); OP(O(0, -32768, NW)); OP(O(0, -32767, 0)); values(); }
static void aliases(void) { fresh(64, 0); for (int i = 0; i < 3; i++) OP(O(0, 1, 0), O(63, 1, 0), O(0, 1, 0), O(1, 2, 0)); put(value(0)); put(value(1)); put(value(63)); }

static void large_set(void)
{
    struct sembuf ops[500];
    fresh(64, 0);
    for (int i = 0; i < 500; i++)
        ops[i] = (struct sembuf)O(i % 64, 1, 0);
    put(semop(id, ops, 500));
    values();
    for (int i = 0; i < 500; i++)
        ops[i].sem_op = -1;
    ops[499].sem_op = -100;
    ops[499].sem_flg = NW;
    put(semop(id, ops, 500));
    ops[499].sem_op = -1;
    put(semop(id, ops, 500));
    values();
}

static void too_many(void)
{
    static struct sembuf ops[501];
    fresh(1, 0);
    put(semop(id, ops, 501));
    put(semop(-1, ops, 501));
    put(semop(id, ops, 0));
    put(semop(-1, ops, 1));
    put(semop(id, ops, 500));
}

static void bad_number(void) { fresh(2, 0); OP(O(2, 1, 0)); OP(O(0, 1, 0), O(9, 1, NW)); OP(O(2, 0, UN)); values(); }
static void bad_id(void) { id = 0x7ffffff0; OP(O(0, 1, 0)); OP(O(0, 1, UN)); put(value(0)); put(ctl(0, IPC_RMID, 0)); id = -1; }
static void stale_id(void) { fresh(1, 0); put(ctl(0, IPC_RMID, 0)); OP(O(0, 1, 0)); OP(O(9, 1, 0)); put(value(0)); put(ctl(0, SETVAL, 1)); put(ctl(0, IPC_RMID, 0)); }
static void stale_after_new(void)
{
    fresh(1, "1");
    int old = id;
    put(ctl(0, IPC_RMID, 0));
    fresh(1, "2");
    say(old == id ? " same" : " different");
    int new = id;
    id = old;
    OP(O(0, 1, 0));
    put(value(0));
    id = new;
    values();
}

static void bad_time(void)
{
    struct sembuf op = O(0, 1, 0);
    struct timespec bad[] = {{-1, 0}, {0, -1}, {0, 1000000000}, {0, 999999999}};
    fresh(1, 0);
    for (int i = 0; i < 4; i++)
        put(semtimedop(id, &op, 1, &bad[i]));
    values();
}

static void null_pointers(void) { fresh(1, 0); put(semop(id, NULL, 1)); put(semtimedop(id, NULL, 1, NULL)); put(ctl(0, GETALL, 0)); put(ctl(0, SETALL, 0)); put(ctl(0, IPC_STAT, 0)); put(ctl(0, IPC_SET, 0)); put(semop(id, NULL, 501)); put(semop(id, NULL, 0)); }
static void timeout_zero(void) { fresh(1, 0); TOP(0, O(0, -1, 0)); TOP(0, O(0, 1, 0)); TOP(0, O(0, 0, 0)); values(); }
static void timeout_some(void) { fresh(2, "0 5"); TOP(20, O(0, -1, 0)); TOP(20, O(1, 0, 0)); TOP(20, O(1, -1, 0), O(0, -1, 0)); values(); put(ctl(0, GETNCNT, 0)); }

static void setval_range(void) { fresh(1, "5"); put(ctl(0, SETVAL, -1)); put(ctl(0, SETVAL, 32768)); put(ctl(0, SETVAL, 32767)); put(ctl(1, SETVAL, 1)); put(ctl(-1, SETVAL, 1)); put(ctl(7, SETVAL, 40000)); values(); pids(0); }
static void setall_range(void)
{
    unsigned short all[3] = {1, 2, 32768};
    fresh(3, "7 8 9");
    put(ctl(0, SETALL, (long)all));
    values();
    all[2] = 32767;
    put(ctl(99, SETALL, (long)all));
    values();
    pids(0);
}
static void bad_commands(void) { fresh(1, 0); put(ctl(0, 99, 0)); put(ctl(1, GETVAL, 0)); put(ctl(-1, GETPID, 0)); put(ctl(1, GETNCNT, 0)); put(ctl(5, GETZCNT, 0)); put(semctl(-1, 0, GETVAL)); put(semctl(-1, 0, SETVAL, 99999)); put(semctl(-5, 0, 99)); }

static void get_private(void) { int a = semget(IPC_PRIVATE, 1, 0), b = semget(IPC_PRIVATE, 1, 0); say(a != b && a >= 0 ? " two" : " bad"); semctl(a, 0, IPC_RMID); semctl(b, 0, IPC_RMID); }
static void get_errors(void) { put(semget(IPC_PRIVATE, 0, 0600)); put(semget(IPC_PRIVATE, -1, 0600)); put(semget(IPC_PRIVATE, 32001, 0600)); put(semget(0x51d00001, 1, 0600)); put(semget(0x51d00001, 0, 0600 | IPC_CREAT)); put(semget(0x51d00001, -1, 0600)); }
static void get_key(void)
{
    int key = 0x51d00002;
    id = semget(key, 3, 0600 | IPC_CREAT | IPC_EXCL);
    say(id >= 0 ? " made" : " failed");
    say(semget(key, 3, 0600) == id ? " same" : " other");
    say(semget(key, 0, 0) == id ? " same" : " other");
    say(semget(key, 2, 0600 | IPC_CREAT) == id ? " same" : " other");
    put(semget(key, 4, 0600));
    put(semget(key, 4, 0600 | IPC_CREAT | IPC_EXCL));
    put(ctl(0, IPC_RMID, 0));
    put(semget(key, 3, 0600));
}
static void zero_values(void) { fresh(4, 0); values(); pids(0); struct semid_ds ds = stat_of(); say(ds.sem_otime ? " otime" : " never"); say(labs(ds.sem_ctime - time(0)) < 5 ? " now" : " then"); }

static void stat_fields(void)
{
    int key = 0x51d00003;
    id = semget(key, 5, 0640 | IPC_CREAT);
    struct semid_ds ds = stat_of();
    say(" nsems %lu mode %o key %s uid %d gid %d cuid %d cgid %d", (unsigned long)ds.sem_nsems, ds.sem_perm.mode,
        ds.sem_perm.__key == key ? "yes" : "no", ds.sem_perm.uid, ds.sem_perm.gid, ds.sem_perm.cuid, ds.sem_perm.cgid);
}

static void otime_rules(void)
{
    fresh(2, "0 0");
    say(stat_of().sem_otime ? " set" : " never");
    put(ctl(0, SETVAL, 3));
    say(stat_of().sem_otime ? " set" : " never");
    OP(O(0, -9, NW));
    say(stat_of().sem_otime ? " set" : " never");
    OP(O(1, 0, 0));
    say(labs(stat_of().sem_otime - time(0)) < 5 ? " now" : " never");
}

static void ctime_rules(void)
{
    fresh(1, 0);
    long at = stat_of().sem_ctime;
    while (time(0) <= at) usleep(20000);
    OP(O(0, 1, 0));
    say(stat_of().sem_ctime == at ? " same" : " changed");
    put(ctl(0, SETVAL, 1));
    say(stat_of().sem_ctime == at ? " same" : " changed");
}

static void ipc_set(void)
{
    fresh(1, 0);
    struct semid_ds ds = stat_of();
    ds.sem_perm.mode = 0123456;
    ds.sem_perm.uid = 12;
    ds.sem_perm.gid = 34;
    put(ctl(0, IPC_SET, (long)&ds));
    ds = stat_of();
    say(" mode %o uid %d gid %d cuid %d", ds.sem_perm.mode, ds.sem_perm.uid, ds.sem_perm.gid, ds.sem_perm.cuid);
    ds.sem_perm.uid = -1;
    put(ctl(0, IPC_SET, (long)&ds));
    OP(O(0, 1, 0));
}

static void limits(void)
{
    struct seminfo info;
    fresh(1, 0);
    put(ctl(0, IPC_INFO, (long)&info) < 0 ? -1 : 0);
    say(" msl %d opm %d mni %d vmx %d usz %d aem %d mns %d mnu %d map %d ume %d", info.semmsl, info.semopm, info.semmni,
        info.semvmx, info.semusz, info.semaem, info.semmns, info.semmnu, info.semmap, info.semume);
}

static void find_by_index(void)
{
    struct semid_ds ds;
    struct seminfo info;
    fresh(7, 0);
    union semun u = {.info = &info};
    int most = semctl(0, 0, SEM_INFO, u), found = 0;
    for (int i = 0; i <= most; i++) {
        u.buf = &ds;
        int is = semctl(i, 0, SEM_STAT, u);
        if (is >= 0 && is == id)
            found += ds.sem_nsems;
        is = semctl(i, 0, 20, u);
        if (is >= 0 && is == id)
            found += 100 * ds.sem_nsems;
    }
    say(" %d", found);
    put(semctl(32000, 0, SEM_STAT, u));
    say(info.semusz >= 1 && info.semaem >= 7 ? " counted" : " not counted");
}

static void raw_calls(void)
{
    struct sembuf up = O(0, 2, 0), down = O(0, -5, 0);
    struct timespec limit = {0, 1000000};
    id = syscall(SYS_semget, IPC_PRIVATE, 1, 0600);
    say(id >= 0 ? " made" : " failed");
    put(syscall(SYS_semop, id, &up, 1));
    put(syscall(SYS_semtimedop, id, &down, 1, &limit));
    put(syscall(SYS_semctl, id, 0, GETVAL, 0));
    put(syscall(SYS_semctl, id, 0, SETVAL, 9));
    put(value(0));
    say(syscall(SYS_getpid) == getpid() ? " pid" : " wrong");
    put(syscall(SYS_close, -1) < 0 && errno == EBADF);
    put(syscall(SYS_semop, id, NULL, 1));
}

static void pid_rules(void)
{
    fresh(3, "0 0 1");
    pid_t pid = SLEEP(O(0, -1, 0), O(1, 0, 0));
    OP(O(0, 1, 0));
    join(pid);
    pids(pid);
    OP(O(1, 0, 0));
    pids(pid);
    OP(O(2, 0, NW));
    pids(pid);
}

#define C(function) {#function, function}
const struct named cases_of_sets[] = {
    C(plus_minus),
    C(wait_zero_now),
    C(nowait_minus),
    C(nowait_zero),
    C(range_single),
    C(order_range_first),
    C(order_again_first),
    C(lock_by_duplicate),
    C(dup_minus_zero),
    C(dup_order),
    C(dup_range),
    C(all_or_nothing),
    C(big_jump),
    C(aliases),
    C(large_set),
    C(too_many),
    C(bad_number),
    C(bad_id),
    C(stale_id),
    C(stale_after_new),
    C(bad_time),
    C(null_pointers),
    C(timeout_zero),
    C(timeout_some),
    C(setval_range),
    C(setall_range),
    C(bad_commands),
    C(get_private),
    C(get_errors),
    C(get_key),
    C(zero_values),
    C(stat_fields),
    C(otime_rules),
    C(ctime_rules),
    C(ipc_set),
    C(limits),
    C(find_by_index),
    C(raw_calls),
    C(pid_rules),
    {0, 0},
};
