#include "emulated.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { MOST_THREADS = 1024, WARP = 32, STACK = 256 << 10, ROOM = 48 << 10 };

dim3 threadIdx, blockIdx, blockDim, gridDim;
_Alignas(16) char emulated_room[ROOM];

/* Where threads meet: the last that arrives begins the next turn. */
typedef struct meeting {
    unsigned arrived, turn;
} meeting;

typedef struct fiber {
    void *at[5]; /* where it goes on (__builtin_setjmp) */
    const meeting *waits;
    unsigned turn; /* of `waits`, for whose end it waits */
    int done, started;
} fiber;

static fiber fibers[MOST_THREADS];
static meeting block, warps[MOST_THREADS / WARP];
static float sent[2][MOST_THREADS];
static ucontext_t home, first[MOST_THREADS];
static void *home_at[5];
static unsigned here; /* the running thread */
static void (*current)(const void *);
static const void *current_job;

/* Who jumps away, or calls who does, doesn't return: a call of it is no reason to give up the frame that is
 * jumped back to. */
__attribute__((noinline)) static _Noreturn void jump(void **to)
{
    __builtin_longjmp(to, 1);
}

static int waits(const fiber *f)
{
    return f->done || (f->waits && f->waits->turn == f->turn);
}

static _Noreturn void thread(void);

static void *stack(unsigned i)
{
    static char *stacks;
    if (!stacks)
        stacks = mmap(NULL, (size_t)STACK * MOST_THREADS, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stacks == MAP_FAILED) abort();
    return stacks + (size_t)STACK * i;
}

static _Noreturn void enter(unsigned i)
{
    here = i;
    threadIdx.x = i;
    if (fibers[i].started) jump(fibers[i].at);
    fibers[i].started = 1;
    getcontext(&first[i]);
    first[i].uc_stack.ss_sp = stack(i);
    first[i].uc_stack.ss_size = STACK;
    first[i].uc_link = &home;
    makecontext(&first[i], thread, 0);
    setcontext(&first[i]);
    abort();
}

/* The next thread's turn, in the order of their numbers in even blocks and backwards in odd ones, which lets
 * results show a barrier too few. */
static _Noreturn void pass_on(void)
{
    unsigned n = blockDim.x, step = blockIdx.x % 2 ? n - 1 : 1, i = here, finished = 0;
    for (unsigned k = 0; k < n; k++) {
        i = (i + step) % n;
        if (!waits(&fibers[i])) enter(i);
        finished += (unsigned)fibers[i].done;
    }
    if (finished == n) jump(home_at);
    fprintf(stderr, "emulated kernel: %u of %u threads have ended, the others wait for them\n", finished, n);
    abort();
}

__attribute__((noinline)) static void rest(fiber *f)
{
    if (!__builtin_setjmp(f->at)) pass_on();
}

static _Noreturn void thread(void)
{
    fiber *f = &fibers[here];
    for (;;) {
        current(current_job);
        f->done = 1;
        rest(f);
    }
}

static void meet(meeting *m, unsigned count)
{
    fiber *f = &fibers[here];
    f->waits = m;
    f->turn = m->turn;
    if (++m->arrived == count) {
        m->arrived = 0;
        m->turn++;
    } else {
        rest(f);
    }
}

void __syncthreads(void)
{
    meet(&block, blockDim.x);
}

/* What was sent may be overwritten in the turn after the next: everybody has it then. */
float __shfl_xor_sync(unsigned mask, float v, int by)
{
    unsigned me = here, left = blockDim.x - me / WARP * WARP;
    meeting *warp = &warps[me / WARP];
    float *slots = sent[warp->turn % 2];
    (void)mask;
    slots[me] = v;
    meet(warp, left < WARP ? left : WARP);
    return slots[me ^ (unsigned)by];
}

__attribute__((noinline)) static void run_block(void)
{
    for (unsigned i = 0; i < blockDim.x; i++) {
        fibers[i].done = 0;
        fibers[i].waits = NULL;
    }
    if (!__builtin_setjmp(home_at)) enter(blockIdx.x % 2 ? blockDim.x - 1 : 0);
}

void emulated_launch(void (*body)(const void *job), const void *job, dim3 grid, unsigned threads, size_t room)
{
    if (threads == 0 || threads > MOST_THREADS || room > ROOM) {
        fprintf(stderr, "emulated kernel: %u threads and %zu bytes can't be had\n", threads, room);
        abort();
    }
    current = body;
    current_job = job;
    gridDim = grid;
    blockDim = (dim3){threads, 1, 1};
    for (blockIdx.z = 0; blockIdx.z < grid.z; blockIdx.z++)
        for (blockIdx.y = 0; blockIdx.y < grid.y; blockIdx.y++)
            for (blockIdx.x = 0; blockIdx.x < grid.x; blockIdx.x++)
                run_block();
}

/* queue.c's part: memory that is here, and nothing to wait for. */
#include "ffi.h"

int khub__run(const khub__call *call, int (*run)(const khub__call *))
{
    return run(call);
}
