/* The frames in which a thread may be cancelled, and the thread-local memory.
 *
 * A thread that is cancelled in its sleep unwinds from the system call to its caller. No frame of
 * Rust that owns something may be in between, so these functions are C. What they call in Rust
 * returns before the sleep begins.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* `Wait` of condvar.rs. It names Rust's functions, since a name that both sides know would be a
 * symbol of the library. */
struct ulocks_wait {
	void *cond;
	void *mutex;
	const uint32_t *word; /* what to sleep on, or NULL: the wait is over */
	uint32_t expected;
	uint32_t bits;
	const struct timespec *deadline; /* or NULL */
	int realtime;
	int reserved;
	void (*slept)(struct ulocks_wait *wait, int error);
	void (*cancelled)(void *wait);
	uint64_t state[4]; /* Rust's */
};

/* One sleep: zero, or the error number. All in which the thread may be cancelled is one call.
 *
 * It must not be part of the frame that has the handler, for two reasons. `syscall` takes seven
 * arguments, the last on the stack. gcc believes that it never unwinds, and does not say how far
 * the stack is from where the handler's frame expects it. And a thread that is cancelled between
 * two calls of that frame finds no handler. */
static __attribute__((noinline)) int sleep_once(const struct ulocks_wait *wait)
{
	int operation = FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG | (wait->realtime ? FUTEX_CLOCK_REALTIME : 0);
	int type, error;

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	error = syscall(SYS_futex, wait->word, operation, wait->expected, wait->deadline, NULL, wait->bits)
		? errno : 0;
	pthread_setcanceltype(type, NULL);
	return error;
}

/* Sleeps until the wait is over. A cancelled thread has the mutex again when its own handlers run. */
void ulocks_cond_sleep(struct ulocks_wait *wait)
{
	int before = errno;

	pthread_cleanup_push(wait->cancelled, wait);
	while (wait->word)
		wait->slept(wait, sleep_once(wait));
	pthread_cleanup_pop(0);
	errno = before;
}

/* `Relay` of condvar.rs: a wait of glibc's condition variable for a mutex that is not glibc's. */
int ulocks_relay_wait(void *relay, int (*call)(void *relay), void (*end)(void *relay))
{
	int result;

	pthread_cleanup_push(end, relay);
	result = call(relay);
	pthread_cleanup_pop(0);
	return result;
}

/* The read locks of the calling thread: `Holds` of holds.rs. The model of thread-local storage is
 * the one that needs no call; a library that is loaded at start has room for it. holds.rs reads
 * the variable itself on x86-64. */
struct ulocks_holds {
	const void *one;
	uint64_t count;
	struct {
		const void *lock;
		uint64_t depth;
	} entries[32];
};

__thread __attribute__((tls_model("initial-exec"))) struct ulocks_holds ulocks_holds;

struct ulocks_holds *ulocks_holds_of_thread(void)
{
	return &ulocks_holds;
}
