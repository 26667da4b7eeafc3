/* What the functions of pthread.h cost: run it with and without the library, in turn.
 *
 *   cc -O2 -pthread crates/faces/pthread/examples/pairs.c -o target/pairs
 *   target/pairs
 *   LD_PRELOAD=target/release/libulocks_pthread.so target/pairs
 *
 * The pairs are of one thread, in a process with several; nanoseconds. The last rows are rates of
 * threads that meet: thousands of round trips or acquisitions each second.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PAIRS = 50000, ROUNDS = 200 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static long turn, stop;

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1e9 + time.tv_nsec;
}

static void *idle(void *argument)
{
	struct timespec day = {86400, 0};
	nanosleep(&day, NULL);
	return argument;
}

/* The least of many short rounds: what a pair takes if nothing disturbs it. */
#define PAIR(name, acquire, release)                                      \
	do {                                                              \
		double least = 1e9;                                       \
		for (int round = 0; round < ROUNDS; round++) {            \
			double start = now();                             \
			for (int pair = 0; pair < PAIRS; pair++) {        \
				acquire;                                  \
				release;                                  \
			}                                                 \
			double taken = (now() - start) / PAIRS;           \
			least = taken < least ? taken : least;            \
		}                                                         \
		printf("%-28s %8.2f ns\n", name, least);                  \
	} while (0)

static void *answer(void *argument)
{
	long mine = (long)argument;
	for (;;) {
		pthread_mutex_lock(&mutex);
		while (turn % 2 != mine && !stop)
			pthread_cond_wait(&condition, &mutex);
		turn++;
		pthread_cond_signal(&condition);
		int done = stop;
		pthread_mutex_unlock(&mutex);
		if (done)
			return NULL;
	}
}

static unsigned long spent[64 * 16];

static void work(int nanoseconds)
{
	double end = now() + nanoseconds;
	while (now() < end) {
	}
}

static void *contend(void *argument)
{
	unsigned long *count = argument;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		pthread_mutex_lock(&mutex);
		work(200);
		pthread_mutex_unlock(&mutex);
		work(500);
		++*count;
	}
	return NULL;
}

static void rate(const char *name, int threads, void *(*body)(void *), int counted)
{
	pthread_t thread[32];
	struct timespec second = {1, 0};
	turn = stop = 0;
	for (long index = 0; index < threads; index++)
		pthread_create(&thread[index], NULL, body, counted ? (void *)&spent[index * 16] : (void *)index);
	for (int index = 0; index < threads; index++)
		spent[index * 16] = 0;
	nanosleep(&second, NULL);
	unsigned long sum = counted ? 0 : (unsigned long)__atomic_load_n(&turn, __ATOMIC_RELAXED);
	pthread_mutex_lock(&mutex);
	stop = 1;
	pthread_cond_broadcast(&condition);
	pthread_mutex_unlock(&mutex);
	for (int index = 0; index < threads; index++)
		pthread_join(thread[index], NULL);
	for (int index = 0; index < threads && counted; index++)
		sum += spent[index * 16];
	printf("%-28s %8.1f k/s\n", name, sum / 1e3);
}

int main(void)
{
	pthread_t other;
	pthread_create(&other, NULL, idle, NULL);
	PAIR("mutex", pthread_mutex_lock(&mutex), pthread_mutex_unlock(&mutex));
	PAIR("mutex, attempt", pthread_mutex_trylock(&mutex), pthread_mutex_unlock(&mutex));
	PAIR("mutex, recursive", pthread_mutex_lock(&recursive), pthread_mutex_unlock(&recursive));
	PAIR("rwlock, read", pthread_rwlock_rdlock(&rwlock), pthread_rwlock_unlock(&rwlock));
	PAIR("rwlock, write", pthread_rwlock_wrlock(&rwlock), pthread_rwlock_unlock(&rwlock));
	PAIR("condition, nobody waits", pthread_cond_signal(&condition), (void)0);
	rate("two threads in turn", 2, answer, 0);
	rate("mutex, 2 threads", 2, contend, 1);
	rate("mutex, 8 threads", 8, contend, 1);
	return 0;
}
