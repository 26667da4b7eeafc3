// The first call of a process: another thread makes its own first call when this one looks at the
// first page of the library's data, or, as the variable AT says, at a later one.
#include "case.h"
#include <link.h>
#include <signal.h>

static pthread_mutex_t mine = PTHREAD_MUTEX_INITIALIZER, others = PTHREAD_MUTEX_INITIALIZER;
static uintptr_t start_of_data, end_of_data;
static int pages_to_go;
static atomic_int may_call, has_called;

static uintptr_t page_size(void) { return (uintptr_t)sysconf(_SC_PAGESIZE); }

static uintptr_t page_of(uintptr_t address) { return address & ~(page_size() - 1); }

static int find_data(struct dl_phdr_info *object, size_t size, void *unused) {
    (void)size, (void)unused;
    if (strstr(object->dlpi_name, "libulocks_pthread") == NULL) {
        return 0;
    }
    uintptr_t read_only = 0;
    for (int nth = 0; nth < object->dlpi_phnum; ++nth) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[nth];
        uintptr_t start = object->dlpi_addr + part->p_vaddr, end = start + part->p_memsz;
        if (part->p_type == PT_GNU_RELRO) {
            read_only = page_of(end);
        } else if (part->p_type == PT_LOAD && (part->p_flags & PF_W) != 0) {
            start_of_data = page_of(start);
            end_of_data = page_of(end - 1) + page_size();
        }
    }
    start_of_data = read_only > start_of_data ? read_only : start_of_data;
    return 1;
}

static void protect(uintptr_t start, uintptr_t end, int protection) {
    NEED(mprotect((void *)start, end - start, protection) == 0 ? 0 : errno);
}

static void *call_first(void *unused) {
    until_set(&may_call);
    NEED(pthread_mutex_lock(&others));
    NEED(pthread_mutex_unlock(&others));
    atomic_store(&has_called, 1);
    return unused;
}

static void on_fault(int signal, siginfo_t *information, void *unused) {
    (void)unused;
    uintptr_t page = page_of((uintptr_t)information->si_addr);
    NEED(page < start_of_data || page >= end_of_data ? signal : 0);
    if (--pages_to_go > 0) {
        protect(page, page + page_size(), PROT_READ | PROT_WRITE);
        return;
    }
    protect(start_of_data, end_of_data, PROT_READ | PROT_WRITE);
    atomic_store(&may_call, 1);
    until_set(&has_called);
}

// Before the library is initialised.
static void before(int argc, char **argv, char **environment) {
    (void)argc, (void)argv;
    environ = environment; // As the constructors of libraries find it.
    const char *at = getenv("AT");
    pages_to_go = at == NULL ? 0 : atoi(at);
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
    NEED(sigaction(SIGSEGV, &action, NULL) == 0 ? 0 : errno);
    pthread_t other = start(call_first, NULL);
    if (dl_iterate_phdr(find_data, NULL) != 0) {
        protect(start_of_data, end_of_data, PROT_NONE);
    }
    NEED(pthread_mutex_lock(&mine));
    NEED(pthread_mutex_unlock(&mine));
    // It looked at fewer pages, or the library is not there.
    atomic_store(&may_call, 1);
    join(other);
}

__attribute__((section(".preinit_array"), used)) static void (*const first)(int, char **, char **) = before;

int main(void) {
    pthread_mutex_t made = PTHREAD_MUTEX_INITIALIZER;
    int words[4];
    NEED(pthread_mutex_lock(&made));
    NEED(pthread_mutex_unlock(&made));
    memcpy(words, &made, sizeof words);
    // glibc's count of users, or the number of forks that a mutex of this library has lived
    // through.
    show_number(words[3], "the forks that a mutex has lived through");
    return finish();
}
