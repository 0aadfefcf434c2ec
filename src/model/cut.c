#include "model/cut.h"

#include "base/error.h"
#include "base/memory.h"

/* A piece must be worth its hand-over (a microsecond at most, bench/pool.c): about this many multiply-adds.
 */
#define GRAIN 50e3
/* More pieces than threads let a thread that isn't disturbed take over from one that is. */
enum { PIECES_PER_THREAD = 2, MAX_CALLS = 1 << 24 };

/* Part `index` of `of` of a call along an axis; axis NULL: the call as a whole. */
struct khub__piece {
    uint32_t call, index, of;
    const khub_slot_axis *axis;
};

int khub__calls_add(khub__calls *calls, const khub_slot *slot, const khub_value *args, int32_t n, double work,
                    khub_error *err)
{
    if (n > KHUB__MAX_ARGS)
        return khub__fail(err, KHUB_E_INVAL, "%s: %d arguments", khub_slot_path(slot), (int)n);
    if (khub__grow((void **)&calls->list, &calls->capacity, calls->count + 1, sizeof(*calls->list),
                   MAX_CALLS) != 0)
        return khub__fail_memory(err, "calling layers");
    khub__call *call = &calls->list[calls->count++];
    call->slot = slot;
    call->n = n;
    call->work = work;
    call->kept = NULL;
    memcpy(call->args, args, (size_t)n * sizeof(*args));
    memcpy(call->own, args, (size_t)n * sizeof(*args));
    return KHUB_OK;
}

int64_t khub__cut_at(int64_t extent, int64_t unit, int64_t pieces, int64_t i)
{
    int64_t steps = (extent + unit - 1) / unit;
    int64_t at = steps / pieces * i + steps % pieces * i / pieces;
    return at * unit < extent ? at * unit : extent;
}

/* The tensor in argument `arg` of the call; NULL: None, or no such argument. */
static const khub_tensor *tensor_of(const khub__call *call, int32_t arg)
{
    return arg >= 0 && arg < call->n ? khub_value_tensor(&call->args[arg]) : NULL;
}

/* An axis as it is in one call. */
struct extent {
    int64_t size, unit; /* cuts fall on multiples of unit */
    double shared;      /* bytes that every piece reads again */
};

/* How many of an argument's elements go with one of its unit: 1; of the queries' heads as many as share one
 * of the keys'. 0: its extent goes with no axis of that size. */
static int64_t share_of(int64_t extent, int64_t unit, int64_t size)
{
    if (unit > 1) return extent == size / unit + (size % unit != 0);
    return extent % size == 0 ? extent / size : 0;
}

static int parts_agree(int64_t size, const khub__call *call, const khub_slot_axis *axis)
{
    for (size_t i = 0; i < axis->part_count; i++) {
        const khub_tensor *t = tensor_of(call, axis->part[i].arg);
        if (t && !share_of(t->shape[axis->part[i].dim], axis->part[i].unit, size)) return 0;
    }
    return 1;
}

/* 0 when the axis can't be cut in this call. */
static int measure(struct extent *e, const khub__call *call, const khub_slot_axis *axis)
{
    *e = (struct extent){.unit = axis->step > 1 ? axis->step : 1};
    unsigned cut = 0;
    int64_t finest = INT64_MAX;
    for (size_t i = 0; i < axis->part_count; i++) {
        const khub_tensor *t = tensor_of(call, axis->part[i].arg);
        int32_t dim = axis->part[i].dim;
        int64_t unit = axis->part[i].unit;
        if (!t) continue;
        if (dim >= t->ndim || t->ndim < axis->part[i].min_ndim || t->dtype.bits * t->dtype.lanes % 8 != 0)
            return 0;
        cut |= 1u << axis->part[i].arg;
        if (unit > e->unit) e->unit = unit;
        if (unit < finest || (unit == finest && t->shape[dim] * unit < e->size))
            finest = unit, e->size = t->shape[dim] * unit;
    }
    for (int32_t i = 0; i < call->n; i++) {
        const khub_tensor *t = tensor_of(call, i);
        if (t && !(cut >> i & 1)) e->shared += (double)khub_tensor_bytes(t);
    }
    return cut != 0 && e->size > e->unit && parts_agree(e->size, call, axis);
}

/* The axis that can be cut into `wanted` pieces with the least read twice; failing that, the one with most
 * pieces. */
static const khub_slot_axis *choose_axis(int64_t *pieces, const khub__call *call, int64_t wanted)
{
    const khub_slot_axis *axes, *best = NULL;
    size_t count = khub_filling_axes(call->filling, &axes);
    struct extent e, chosen = {0};
    *pieces = 1;
    for (size_t i = 0; i < count; i++) {
        if (!measure(&e, call, &axes[i])) continue;
        int64_t steps = (e.size + e.unit - 1) / e.unit, possible = steps < wanted ? steps : wanted;
        if (possible < *pieces || (possible == *pieces && best && e.shared >= chosen.shared)) continue;
        *pieces = possible;
        chosen = e;
        best = &axes[i];
    }
    return best;
}

static int add_piece(khub__calls *calls, struct khub__piece piece, khub_error *err)
{
    if (khub__grow((void **)&calls->pieces, &calls->piece_capacity, calls->piece_count + 1,
                   sizeof(*calls->pieces), MAX_CALLS) != 0)
        return khub__fail_memory(err, "calling layers");
    calls->pieces[calls->piece_count++] = piece;
    return KHUB_OK;
}

/* Into how many pieces a call is best cut. */
static int64_t wanted_pieces(const khub__call *call, unsigned threads)
{
    double most = (double)threads * PIECES_PER_THREAD, worth = call->work / GRAIN;
    int64_t wanted = (int64_t)(worth < most ? worth : most);
    /* a few pieces more than threads would leave most threads idle in the second round */
    return wanted > threads ? wanted / threads * threads : wanted;
}

static int plan(khub__calls *calls, const khub__threads *threads, khub_error *err)
{
    calls->piece_count = 0;
    unsigned count = khub__threads_count(threads);
    for (size_t i = 0; i < calls->count; i++) {
        khub__call *call = &calls->list[i];
        call->filling = khub_slot_filling(call->slot);
        int rc = khub_filling_keep(&call->kept, call->slot, call->filling, call->own, call->n, err);
        if (rc != KHUB_OK) return rc;
        khub_filling_prepare_args(call->filling, call->args, call->n);
        int64_t pieces = 1, wanted = count > 1 ? wanted_pieces(call, count) : 1;
        const khub_slot_axis *axis = wanted > 1 ? choose_axis(&pieces, call, wanted) : NULL;
        for (int64_t k = 0; k < pieces; k++) {
            rc =
                add_piece(calls, (struct khub__piece){(uint32_t)i, (uint32_t)k, (uint32_t)pieces, axis}, err);
            if (rc != KHUB_OK) return rc;
        }
    }
    return KHUB_OK;
}

/* A tensor of a piece with the room for its shape. */
struct view {
    khub_tensor tensor;
    int64_t shape[KHUB_MAX_NDIM], strides[KHUB_MAX_NDIM];
};

static void copy_view(struct view *to, const khub_tensor *from)
{
    int64_t stride = 1;
    to->tensor = *from;
    to->tensor.shape = to->shape;
    to->tensor.strides = to->strides;
    for (int32_t i = from->ndim; i-- > 0;) {
        to->shape[i] = from->shape[i];
        to->strides[i] = from->strides ? from->strides[i] : stride;
        stride *= from->shape[i];
    }
}

/* Keeps [from, to) of one axis, in the tensor's own extents. */
static void narrow(struct view *v, int32_t dim, int64_t from, int64_t to)
{
    khub_tensor *t = &v->tensor;
    v->shape[dim] = to - from;
    if (t->data) t->data = (char *)t->data + from * v->strides[dim] * (t->dtype.bits * t->dtype.lanes / 8);
}

int khub__cut_extent(int64_t *size, int64_t *unit, const khub__call *call, const khub_slot_axis *axis)
{
    struct extent e;
    int can = measure(&e, call, axis);
    *size = e.size;
    *unit = e.unit;
    return can;
}

int khub__cut_call(const khub__call *call, const khub_slot_axis *axis, int64_t from, int64_t to,
                   khub_error *err)
{
    khub_value args[KHUB__MAX_ARGS];
    struct view views[KHUB__MAX_ARGS];
    struct extent e;
    memcpy(args, call->args, (size_t)call->n * sizeof(*args));
    measure(&e, call, axis);
    for (size_t i = 0; i < axis->part_count; i++) {
        int32_t arg = axis->part[i].arg, dim = axis->part[i].dim;
        int64_t unit = axis->part[i].unit;
        const khub_tensor *t = tensor_of(call, arg);
        if (!t) continue;
        if (args[arg].as.tensor != &views[arg].tensor) copy_view(&views[arg], t);
        args[arg] = khub_arg_tensor(&views[arg].tensor);
        int64_t share = share_of(t->shape[dim], unit, e.size);
        narrow(&views[arg], dim, from / unit * share, to >= e.size ? t->shape[dim] : to / unit * share);
    }
    return khub_filling_call(call->slot, call->filling, args, call->n, err);
}

static int call_piece(const khub__call *call, const struct khub__piece *piece, khub_error *err)
{
    int64_t size, unit;
    khub__cut_extent(&size, &unit, call, piece->axis);
    int64_t from = khub__cut_at(size, unit, piece->of, piece->index);
    int64_t to = khub__cut_at(size, unit, piece->of, (int64_t)piece->index + 1);
    return khub__cut_call(call, piece->axis, from, to, err);
}

static int call_part(const khub__call *call, const struct khub__piece *piece, khub_error *err)
{
    if (piece->axis) return call_piece(call, piece, err);
    return khub_filling_call(call->slot, call->filling, call->args, call->n, err);
}

static int run_piece(const khub__calls *calls, size_t i, khub_error *err)
{
    const struct khub__piece *piece = &calls->pieces[i];
    const khub__call *call = &calls->list[piece->call];
    if (!call->kept) return call_part(call, piece, err);
    khub_error why;
    khub_error_clear(&why);
    int rc = call_part(call, piece, &why);
    if (rc == KHUB_E_KERNEL) khub_kept_fail(call->kept, &why);
    return rc == KHUB_OK || rc == KHUB_E_KERNEL ? KHUB_OK : khub__fail(err, rc, "%s", why.message);
}

/* Pieces from one on, for the pool. */
struct stretch {
    const khub__calls *calls;
    size_t from;
};

static int run_one(void *user, size_t i, khub_error *err)
{
    const struct stretch *stretch = user;
    return run_piece(stretch->calls, stretch->from + i, err);
}

/* A function that declares no axis may have threads of its own (libtorch's, a BLAS's), a team of them for
 * each thread that calls it. */
static int may_have_threads(const khub__calls *calls, size_t i)
{
    const khub_slot_axis *axes;
    return khub_filling_axes(calls->list[calls->pieces[i].call].filling, &axes) == 0;
}

/* What may have threads of its own is called by this thread, in turn: the pool's don't multiply them. */
static int run_pieces(const khub__calls *calls, khub__threads *threads, khub_error *err)
{
    int rc = KHUB_OK;
    for (size_t from = 0, to; rc == KHUB_OK && from < calls->piece_count; from = to) {
        for (to = from; to < calls->piece_count && !may_have_threads(calls, to);)
            to++;
        struct stretch stretch = {calls, from};
        rc = to > from ? khub__threads_run(threads, to - from, run_one, &stretch, err)
                       : run_piece(calls, to++, err);
    }
    return rc;
}

/* Calls that a kernel failed in, once no piece runs any more. */
static int settle(khub__calls *calls, int rc, khub_error *err)
{
    for (size_t i = 0; i < calls->count; i++) {
        khub__call *call = &calls->list[i];
        int own = khub_kept_settle(call->kept, call->slot, call->own, call->n, err);
        if (rc == KHUB_OK) rc = own;
    }
    calls->count = 0;
    return rc;
}

int khub__calls_run(khub__calls *calls, khub__threads *threads, khub_error *err)
{
    khub_layers_enter();
    int rc = plan(calls, threads, err);
    if (rc == KHUB_OK) rc = run_pieces(calls, threads, err);
    rc = settle(calls, rc, err);
    khub_layers_leave();
    return rc;
}

void khub__calls_free(khub__calls *calls)
{
    khub__free(calls->list);
    khub__free(calls->pieces);
    memset(calls, 0, sizeof(*calls));
}
