/* A thread that comes in stores the moment and then loads pointers, with nothing that keeps a processor from
 * doing it the other way round. membarrier makes it do as it is written at one point, on every processor that
 * runs a thread of this process: afterwards each thread either shows the moment of its coming in, or will
 * load the new pointers. */
#include "base/readers.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

__thread uint64_t khub__inside = KHUB__READER_UNLISTED;
uint64_t khub__swapped = 1;

/* One thread, in the list of all of them. */
typedef struct reader {
    uint64_t *inside;
    unsigned depth; /* of enterings not yet left, where they nest */
    uint64_t was;   /* before the first of them */
    struct reader *next, **at;
} reader;
static __thread reader own_reader;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards `readers` and the links in them */
static reader *readers;
/* Threads inside that are in no list, because the system wouldn't tell of their end. */
static atomic_uint crowd;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t at_end;
static int has_key;

static void unlist(reader *r)
{
    *r->at = r->next;
    if (r->next) r->next->at = r->at;
    __atomic_store_n(r->inside, KHUB__READER_UNLISTED, __ATOMIC_RELEASE);
}

static void end_of_thread(void *user)
{
    reader *r = user;
    pthread_mutex_lock(&lock);
    unlist(r);
    pthread_mutex_unlock(&lock);
}

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

static void list(reader *r)
{
    r->at = &readers;
    r->next = readers;
    if (readers) readers->at = &r->next;
    readers = r;
}

/* Of all threads only this one is in the child, and the memory of the others may go. */
static void in_child(void)
{
    readers = NULL;
    if (khub__inside != KHUB__READER_UNLISTED) list(&own_reader);
    atomic_store(&crowd, khub__inside == KHUB__READER_UNLISTED && own_reader.depth);
    pthread_mutex_unlock(&lock);
}

static void begin(void)
{
    has_key = pthread_key_create(&at_end, end_of_thread) == 0 &&
              pthread_atfork(before_fork, after_fork, in_child) == 0;
}

/* A library that is unloaded has no code for ends of threads. */
__attribute__((destructor)) static void end(void)
{
    if (has_key) pthread_key_delete(at_end);
}

/* The first coming in of a thread. 0: the system has no room to tell of its end. */
static int join(reader *own)
{
    pthread_once(&once, begin);
    if (!has_key || pthread_setspecific(at_end, own) != 0) return 0;
    own->inside = &khub__inside;
    pthread_mutex_lock(&lock);
    __atomic_store_n(own->inside, KHUB__READER_OUTSIDE, __ATOMIC_RELEASE);
    list(own);
    pthread_mutex_unlock(&lock);
    return 1;
}

void khub__reader_enter(void)
{
    reader *own = &own_reader;
    if (own->depth++) return;
    own->was = khub__reader_hop_in();
    if (own->was != KHUB__READER_UNLISTED) return;
    if (join(own))
        own->was = khub__reader_hop_in();
    else
        atomic_fetch_add(&crowd, 1);
}

void khub__reader_leave(void)
{
    reader *own = &own_reader;
    if (--own->depth) return;
    if (own->was == KHUB__READER_UNLISTED)
        atomic_fetch_sub(&crowd, 1);
    else
        khub__reader_hop_out(own->was);
}

/* A process says once that it will ask; one that was forked may have to say it again. */
static int fence_all(void)
{
    atomic_thread_fence(memory_order_seq_cst);
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0) return 1;
    return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0 &&
           syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

uint64_t khub__readers_replaced(void)
{
    uint64_t moment = __atomic_add_fetch(&khub__swapped, 1, __ATOMIC_SEQ_CST);
    return fence_all() ? moment : 0;
}

int khub__readers_passed(uint64_t moment)
{
    int passed = moment != 0 && atomic_load(&crowd) == 0;
    pthread_mutex_lock(&lock);
    for (const reader *r = readers; passed && r; r = r->next) {
        uint64_t since = __atomic_load_n(r->inside, __ATOMIC_ACQUIRE);
        passed = !since || since >= moment;
    }
    pthread_mutex_unlock(&lock);
    return passed;
}
