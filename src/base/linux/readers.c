/* A thread that comes in stores the moment and then loads pointers, with nothing that keeps a processor from
 * doing it the other way round. membarrier makes it do as it is written at one point, on every processor that
 * runs a thread of this process: afterwards each thread either shows the moment of its coming in, or will
 * load the new pointers. */
#include "base/readers.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

_Thread_local khub__reader khub__reader_own = {.since = KHUB__READER_UNLISTED};
_Atomic uint64_t khub__readers_moment = 1;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards `readers` and the links in them */
static khub__reader *readers;
/* Threads inside that are in no list, because the system wouldn't tell of their end. */
static atomic_uint crowd;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t at_end;
static int has_key;

static void unlist(khub__reader *reader)
{
    *reader->at = reader->next;
    if (reader->next) reader->next->at = reader->at;
    atomic_store(&reader->since, KHUB__READER_UNLISTED);
}

static void end_of_thread(void *user)
{
    khub__reader *reader = user;
    pthread_mutex_lock(&lock);
    unlist(reader);
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

static void list(khub__reader *reader)
{
    reader->at = &readers;
    reader->next = readers;
    if (readers) readers->at = &reader->next;
    readers = reader;
}

/* Of all threads only this one is in the child, and the memory of the others may go. */
static void in_child(void)
{
    readers = NULL;
    khub__reader *own = &khub__reader_own;
    if (atomic_load(&own->since) != KHUB__READER_UNLISTED) list(own);
    atomic_store(&crowd, atomic_load(&own->since) == KHUB__READER_UNLISTED && own->depth);
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
static int join(khub__reader *own)
{
    pthread_once(&once, begin);
    if (!has_key || pthread_setspecific(at_end, own) != 0) return 0;
    pthread_mutex_lock(&lock);
    atomic_store(&own->since, KHUB__READER_OUTSIDE);
    list(own);
    pthread_mutex_unlock(&lock);
    return 1;
}

void khub__reader_enter(khub__reader *own)
{
    if (own->depth++) return;
    own->was = khub__reader_hop_in(own);
    if (own->was != KHUB__READER_UNLISTED) return;
    if (join(own))
        own->was = khub__reader_hop_in(own);
    else
        atomic_fetch_add(&crowd, 1);
}

void khub__reader_leave(khub__reader *own)
{
    if (--own->depth) return;
    if (own->was == KHUB__READER_UNLISTED)
        atomic_fetch_sub(&crowd, 1);
    else
        khub__reader_hop_out(own, own->was);
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
    uint64_t moment = atomic_fetch_add(&khub__readers_moment, 1) + 1;
    return fence_all() ? moment : 0;
}

int khub__readers_passed(uint64_t moment)
{
    int passed = moment != 0 && atomic_load(&crowd) == 0;
    pthread_mutex_lock(&lock);
    for (const khub__reader *r = readers; passed && r; r = r->next) {
        uint64_t since = atomic_load_explicit(&r->since, memory_order_acquire);
        passed = !since || since >= moment;
    }
    pthread_mutex_unlock(&lock);
    return passed;
}
