/* What the cases of the oracle are written with. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NW IPC_NOWAIT
#define UN SEM_UNDO
#define O(num, op, flags) {num, op, flags}
/* A set of operations, and its outcome in the line. */
#define OP(...) do { struct sembuf s_[] = {__VA_ARGS__}; put(semop(id, s_, sizeof s_ / sizeof *s_)); } while (0)
/* The same with a time limit in milliseconds. */
#define TOP(ms, ...) do { struct sembuf s_[] = {__VA_ARGS__}; put(timed(s_, sizeof s_ / sizeof *s_, ms)); } while (0)
/* A child that performs a set; it is asleep when this returns. */
#define SLEEP(...) ({ struct sembuf s_[] = {__VA_ARGS__}; sleeper(s_, sizeof s_ / sizeof *s_, 1, 0); })
/* The same of a child that stays alive when it is done. */
#define SLEEPSTAY(...) ({ struct sembuf s_[] = {__VA_ARGS__}; sleeper(s_, sizeof s_ / sizeof *s_, 1, 1); })

union semun { int val; struct semid_ds *buf; unsigned short *array; struct seminfo *info; };

extern int id;      /* The array of the case. */
extern pid_t first; /* The process of the case. */

void say(const char *format, ...);
const char *line_of_case(void);
void replace_line(int fd);
const char *name_of(int error);
void put(long result);
int ctl(int num, int cmd, long arg);
int value(int num);
void values(void);
void pids(pid_t other);
void fresh(int nsems, const char *values);
int timed(struct sembuf *ops, unsigned n, int ms);
int asleep(void);
void await_asleep(int number);
void await_done(int number);
pid_t sleeper(struct sembuf *ops, unsigned n, int wait, int stay);
void join(pid_t child);
void end(pid_t child, int signal);
struct semid_ds stat_of(void);
pid_t child(void (*run)(void));

/* A case has a name, and prints one line. */
struct named { const char *name; void (*run)(void); };
extern const struct named cases_of_sets[], cases_of_sleepers[], cases_of_deaths[], cases_of_pointers[];
