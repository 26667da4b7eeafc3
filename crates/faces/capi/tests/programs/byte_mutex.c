/* ulocks_byte_mutex_t, and its condition variable. */

#define MUTEX ulocks_byte_mutex
#define NOTIFY(operation, cond, mutex) FN(_cond##operation)(cond)
#define RELOCK ETIMEDOUT
#include "mutex.h"

/* The other six bits, also while another thread's lock comes and goes. */
static void bits_of_the_program(void) {
    static ulocks_byte_mutex_t mutex;
    RETURNS(0, ulocks_byte_mutex_bits(&mutex));
    RETURNS(0, ulocks_byte_mutex_set_bits(&mutex, 0x84));
    RETURNS(0x84, ulocks_byte_mutex_bits(&mutex));
    RETURNS(0, ulocks_byte_mutex_is_locked(&mutex));
    RETURNS(0, ulocks_byte_mutex_lock(&mutex));
    /* The lock's bits are not the program's. */
    RETURNS(0x84, ulocks_byte_mutex_clear_bits(&mutex, 0x87));
    RETURNS(1, ulocks_byte_mutex_is_locked(&mutex));
    RETURNS(0, ulocks_byte_mutex_set_bits(&mutex, 0xff));
    RETURNS(ULOCKS_BYTE_MUTEX_BITS, ulocks_byte_mutex_bits(&mutex));
    RETURNS(0, ulocks_byte_mutex_unlock(&mutex));
    RETURNS(0, ulocks_byte_mutex_is_locked(&mutex));
    RETURNS(ULOCKS_BYTE_MUTEX_BITS, ulocks_byte_mutex_bits(&mutex));
}

int main(void) {
    CHECK(sizeof(ulocks_byte_mutex_t) == 1);
    all_cases();
    bits_of_the_program();
    return 0;
}
