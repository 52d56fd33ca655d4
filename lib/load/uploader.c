/* Batches ahead in device memory. Buffer i % n takes batch i. A copy waits, on the device, for what was queued for the
 * buffer's last batch; the caller's stream waits for the copy. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/options.h"
#include "load/loader_parts.h"

#define BUFFERS 2u
#define BUFFERS_MAX 64u
#define COLUMN_ALIGN 256u /* of device memory, as cudaMalloc gives it */

typedef struct buffer {
    void *memory;
    void *pointers[SPK_COLUMNS_MAX];
    spk_view views[SPK_COLUMNS_MAX];
    spk_event *copied, *used;
    spk_cuda_stream stream; /* of the caller's work on it */
    bool was_used;
    char *state; /* of the loader, behind its batch */
    uint64_t rows, valid, number, position;
} buffer;

struct spk_uploader {
    spk_loader *loader;
    spk_pins *pins;
    spk_cuda_stream stream;
    size_t columns[SPK_COLUMNS_MAX];
    size_t columns_n;
    buffer *buffers;
    uint32_t buffers_n;
    uint64_t fetched, given; /* batches */
    bool lent;               /* the last one given may still be in use */
    uint64_t moves;          /* of the loader, when the last batch was fetched */
    char *state;             /* behind the last batch given, or an end */
    spk_status ended;        /* what follows the batches fetched; SPK_OK: more */
    spk_error error;
};

static spk_status fail(const spk_uploader *u, spk_cuda_status status, spk_error *err, const char *what)
{
    return status == SPK_CUDA_OK ? SPK_OK : spk_cuda_fail(&u->pins->cuda, status, err, "%s", what);
}

static spk_status choose_columns(spk_uploader *u, const spk_uploader_options *o, spk_error *err)
{
    const spk_load_spec *spec = &u->loader->core->spec;
    if (o->columns && o->column_count > SPK_COLUMNS_MAX)
        return spk_error_set(err, SPK_E_INVALID, "%zu columns: must be at most %u", o->column_count, SPK_COLUMNS_MAX);
    u->columns_n = o->columns ? o->column_count : 0;
    for (size_t i = 0; i < u->columns_n; i++)
        u->columns[i] = o->columns[i];
    for (uint32_t i = 0; !o->columns && i < spec->columns_n; i++)
        if (!spk_column_is_variable(spec->columns[i].kind))
            u->columns[u->columns_n++] = i;
    for (size_t i = 0; i < u->columns_n; i++) {
        if (u->columns[i] >= spec->columns_n)
            return spk_error_set(err, SPK_E_INVALID, "column %zu of a batch of %u", u->columns[i], spec->columns_n);
        const spk_load_column *c = &spec->columns[u->columns[i]];
        if (spk_column_is_variable(c->kind))
            return spk_error_set(err, SPK_E_INVALID, "column %zu: must be of fixed shape to be uploaded",
                                 u->columns[i]);
    }
    return u->columns_n > 0 ? SPK_OK : spk_error_set(err, SPK_E_INVALID, "columns: none is of fixed shape");
}

static spk_status make_buffer(spk_uploader *u, buffer *b, spk_error *err)
{
    const spk_load_spec *spec = &u->loader->core->spec;
    uint64_t bytes = 0, at[SPK_COLUMNS_MAX];
    for (size_t i = 0; i < u->columns_n; i++) {
        at[i] = bytes;
        bytes += (spec->columns[u->columns[i]].row_bytes * spec->batch_size + COLUMN_ALIGN - 1) / COLUMN_ALIGN *
                 COLUMN_ALIGN;
    }
    spk_cuda_status status = u->pins->cuda.Malloc(&b->memory, (size_t)bytes);
    if (status != SPK_CUDA_OK)
        return spk_cuda_fail(&u->pins->cuda, status, err, "%llu bytes of device memory for a batch",
                             (unsigned long long)bytes);
    for (size_t i = 0; i < u->columns_n; i++)
        b->pointers[i] = (uint8_t *)b->memory + at[i];
    SPK_TRY(spk_pins_event(u->pins, &b->copied, u->stream, &b->copied, err));
    return spk_pins_event(u->pins, &b->used, u->stream, &b->used, err);
}

static spk_status open_uploader(spk_uploader *u, const spk_uploader_options *o, spk_error *err)
{
    spk_loader *l = u->loader;
    SPK_TRY(spk_loader_check_owner(l, err));
    if (!l->core->pins)
        return spk_error_set(err, l->pin == SPK_PIN_AUTO ? SPK_E_UNSUPPORTED : SPK_E_INVALID,
                             "an uploader needs a loader with pin_memory on, or auto and a CUDA runtime");
    u->pins = l->core->pins;
    if (o->buffers > BUFFERS_MAX)
        return spk_error_set(err, SPK_E_INVALID, "buffers of %u: must be 0 to %u", o->buffers, BUFFERS_MAX);
    SPK_TRY(choose_columns(u, o, err));
    u->buffers = calloc(o->buffers ? o->buffers : BUFFERS, sizeof *u->buffers);
    if (!u->buffers)
        return spk_error_nomem(err, BUFFERS_MAX * sizeof *u->buffers);
    u->buffers_n = o->buffers ? o->buffers : BUFFERS;
    SPK_TRY(fail(u, u->pins->cuda.StreamCreateWithFlags(&u->stream, SPK_CUDA_NON_BLOCKING), err,
                 "a stream could not be made"));
    for (uint32_t i = 0; i < u->buffers_n; i++)
        SPK_TRY(make_buffer(u, &u->buffers[i], err));
    u->moves = l->moves;
    return spk_loader_state_save(l, &u->state, err);
}

spk_status spk_uploader_open(spk_uploader **out, spk_loader *loader, const spk_uploader_options *options,
                             spk_error *err)
{
    spk_uploader_options o;
    *out = NULL;
    memset(&o, 0, sizeof o);
    SPK_TRY(spk_options_copy(&o, sizeof o, options, err));
    spk_uploader *u = calloc(1, sizeof *u);
    if (!u)
        return spk_error_nomem(err, sizeof *u);
    u->loader = loader;
    spk_status status = open_uploader(u, &o, err);
    if (status < 0) {
        spk_error_prefix(err, "uploader");
        spk_uploader_close(u);
        return status;
    }
    *out = u;
    return SPK_OK;
}

/* ---- the copies ---- */

static spk_status describe(spk_uploader *u, buffer *b, const spk_batch *batch, spk_error *err)
{
    for (size_t i = 0; i < u->columns_n; i++) {
        SPK_TRY(spk_batch_column(batch, u->columns[i], &b->views[i], err));
        b->views[i].data = b->pointers[i];
    }
    b->rows = spk_batch_rows(batch);
    b->valid = spk_batch_valid_rows(batch);
    b->number = spk_batch_number(batch);
    b->position = spk_batch_position(batch);
    free(b->state);
    return spk_loader_state_save(u->loader, &b->state, err);
}

static spk_status copy_batch(spk_uploader *u, buffer *b, spk_batch *batch, spk_error *err)
{
    const spk_cuda *cuda = &u->pins->cuda;
    SPK_TRY(describe(u, b, batch, err));
    if (b->was_used)
        SPK_TRY(fail(u, cuda->StreamWaitEvent(u->stream, b->used->event, 0), err,
                     "the copies could not be made to wait for the device memory"));
    SPK_TRY(spk_batch_upload(batch, u->columns, u->columns_n, b->pointers, u->stream, err));
    return fail(u, cuda->EventRecord(b->copied->event, u->stream), err, "an event could not be recorded");
}

/* One more batch, END or an error: in u->ended from then on. */
static void fetch(spk_uploader *u)
{
    spk_batch *batch = NULL;
    spk_error_clear(&u->error);
    u->ended = spk_loader_next(u->loader, &batch, &u->error);
    if (u->ended == SPK_OK)
        u->ended = copy_batch(u, &u->buffers[u->fetched % u->buffers_n], batch, &u->error);
    spk_batch_release(batch);
    u->fetched += u->ended == SPK_OK;
}

/* What follows the last batch. An end and a cancelled wait are told once, other errors again and again. */
static spk_status tell_end(spk_uploader *u, spk_error *err)
{
    spk_status status = u->ended;
    if (status == SPK_END || status == SPK_E_CANCELLED)
        u->ended = SPK_OK;
    if (status < 0) {
        if (err)
            *err = u->error;
        return status;
    }
    char *state = NULL;
    SPK_TRY(spk_loader_state_save(u->loader, &state, err));
    free(u->state);
    u->state = state;
    return status;
}

static spk_status give(spk_uploader *u, spk_upload *out, void *stream, spk_error *err)
{
    buffer *b = &u->buffers[u->given % u->buffers_n];
    SPK_TRY(fail(u, u->pins->cuda.StreamWaitEvent(stream, b->copied->event, 0), err,
                 "the stream could not be made to wait for the copy"));
    b->stream = stream;
    *out = (spk_upload){.columns = b->views,
                        .column_count = u->columns_n,
                        .rows = b->rows,
                        .valid_rows = b->valid,
                        .number = b->number,
                        .position = b->position};
    free(u->state);
    u->state = b->state;
    b->state = NULL;
    u->given++;
    u->lent = true;
    return SPK_OK;
}

/* Everything queued for the batch given last was queued before this call, on the stream that it was given for. */
static spk_status take_back(spk_uploader *u, spk_error *err)
{
    if (!u->lent)
        return SPK_OK;
    buffer *b = &u->buffers[(u->given - 1) % u->buffers_n];
    SPK_TRY(fail(u, u->pins->cuda.EventRecord(b->used->event, b->stream), err, "an event could not be recorded"));
    b->was_used = true;
    u->lent = false;
    return SPK_OK;
}

spk_status spk_uploader_next(spk_uploader *u, spk_upload *out, void *stream, spk_error *err)
{
    memset(out, 0, sizeof *out);
    SPK_TRY(spk_loader_check_owner(u->loader, err));
    SPK_TRY(take_back(u, err));
    if (u->moves != u->loader->moves) { /* later copies to the same buffers come behind those of the dropped ones */
        u->moves = u->loader->moves;
        u->fetched = u->given;
        u->ended = SPK_OK;
    }
    if (u->fetched == u->given && u->ended == SPK_OK)
        fetch(u);
    if (u->fetched == u->given)
        return tell_end(u, err);
    SPK_TRY(give(u, out, stream, err));
    while (u->ended == SPK_OK && u->fetched - u->given + 1 < u->buffers_n && spk_loader_ready(u->loader))
        fetch(u);
    return SPK_OK;
}

spk_status spk_uploader_state_save(const spk_uploader *u, char **out, spk_error *err)
{
    if (u->moves != u->loader->moves)
        return spk_loader_state_save(u->loader, out, err);
    *out = strdup(u->state);
    return *out ? SPK_OK : spk_error_nomem(err, strlen(u->state) + 1);
}

void spk_uploader_close(spk_uploader *u)
{
    if (!u)
        return;
    bool mine = u->loader->owner == getpid();
    if (mine && u->stream)
        (void)u->pins->cuda.StreamSynchronize(u->stream);
    for (uint32_t i = 0; i < u->buffers_n; i++) {
        buffer *b = &u->buffers[i];
        if (mine && b->memory) /* waits for what still uses it */
            (void)u->pins->cuda.Free(b->memory);
        if (u->pins) {
            spk_pins_put(u->pins, &b->copied);
            spk_pins_put(u->pins, &b->used);
        }
        free(b->state);
    }
    if (mine && u->stream)
        (void)u->pins->cuda.StreamDestroy(u->stream);
    if (mine && u->pins)
        (void)u->pins->cuda.GetLastError();
    free(u->buffers);
    free(u->state);
    free(u);
}
