/* Order, splits and shards (spk_pack_plan_make), members and frames on the fly. Integers only but for the splits'
 * shares. */
#include "pack/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "dataset/table.h"
#include "pack/names.h"
#include "pack/options.h"
#include "shard/format.h"
#include "shard/tar.h"

#define SHUFFLE_STREAM 0x7061636bu /* "pack" */
/* A shard is closed when the sample list of its index is estimated above this: many tiny files with long paths. */
#define LIST_BYTES_MAX (64u << 20)

/* Runs once or twice per sample, where snprintf would show. */
static void put_label(char out[16], uint32_t label)
{
    char digits[10];
    unsigned n = 0;
    do
        digits[n++] = (char)('0' + label % 10);
    while ((label /= 10) > 0);
    for (unsigned i = 0; i < n; i++)
        out[i] = digits[n - 1 - i];
    out[n] = '\0';
}

void spk_pack_plan_members_begin(spk_pack_plan_members *m, const spk_pack_plan *plan, uint32_t sample)
{
    const spk_input_sample *s = &plan->in->samples[sample];
    *m = (spk_pack_plan_members){.plan = plan, .sample = s, .cls_due = s->label >= 0, .json_due = s->json != 0};
    if (m->cls_due)
        put_label(m->label, (uint32_t)s->label);
}

bool spk_pack_plan_members_next(spk_pack_plan_members *m, spk_pack_plan_member *out)
{
    const spk_pack_plan *plan = m->plan;
    const spk_input_file *file =
        m->next_file < m->sample->files ? &plan->in->files[m->sample->first + m->next_file] : NULL;
    const char *name = file ? plan->fields[file->field] : NULL;

    if (m->cls_due && (!name || strcmp("cls", name) < 0)) {
        m->cls_due = false;
        *out = (spk_pack_plan_member){.field = plan->cls, .text = m->label, .size = strlen(m->label)};
        return true;
    }
    if (m->json_due && (!name || strcmp("json", name) < 0)) {
        const char *text = spk_input_str(plan->in, m->sample->json - 1);
        m->json_due = false;
        *out = (spk_pack_plan_member){.field = plan->json, .text = text, .size = strlen(text)};
        return true;
    }
    if (!file)
        return false;
    m->next_file++;
    *out = (spk_pack_plan_member){.field = file->field, .file = file, .size = file->size};
    return true;
}

static void add_to(uint32_t *sum, uint64_t more)
{
    *sum = more > UINT32_MAX - *sum ? UINT32_MAX : *sum + (uint32_t)more;
}

static spk_pack_plan_size measure(const spk_pack_plan *plan, uint32_t sample)
{
    const spk_input *in = plan->in;
    const uint64_t max = (SPK_FRAME_CONTENT_MAX - SPK_TAR_END) / SPK_TAR_BLOCK;
    spk_pack_plan_size z = {.list = 16};
    spk_pack_plan_members m;
    spk_pack_plan_member member;
    add_to(&z.list, strlen(spk_input_str(in, in->samples[sample].key)));
    for (spk_pack_plan_members_begin(&m, plan, sample); spk_pack_plan_members_next(&m, &member);) {
        add_to(&z.blocks,
               member.size > SPK_FRAME_CONTENT_MAX ? UINT32_MAX : spk_tar_member_bytes(member.size) / SPK_TAR_BLOCK);
        z.list += 8;
        if (spk_input_made(in, member.file))
            continue;
        add_to(&z.list, strlen(spk_input_str(in, member.file->path)));
        add_to(&z.payload, member.size);
        if (plan->packed[member.field])
            add_to(&z.packed, member.size);
    }
    if (z.blocks > max)
        z.payload = UINT32_MAX;
    return z;
}

static spk_status make_sizes(spk_pack_plan *plan, spk_error *err)
{
    size_t n = plan->in->samples_n;
    plan->sizes = malloc((n ? n : 1) * sizeof *plan->sizes);
    if (!plan->sizes)
        return spk_error_nomem(err, n * sizeof *plan->sizes);
    for (size_t i = 0; i < n; i++)
        plan->sizes[i] = measure(plan, (uint32_t)i);
    return SPK_OK;
}

static uint64_t tar_bytes(const spk_pack_plan_size *z)
{
    return (uint64_t)z->blocks * SPK_TAR_BLOCK;
}

/* Whether the sample at order[i] is too much for a frame of that many samples, which would have that many bytes. */
static bool ends_frame(const spk_pack_plan *plan, uint32_t i, uint32_t samples, uint64_t bytes)
{
    const spk_pack_options *o = plan->o;
    if (plan->in->cuts)
        return plan->in->cuts[i] & SPK_CUT_FRAME;
    return !o->single_frame && (samples >= o->frame_samples || bytes > o->frame_size);
}

void spk_pack_plan_frame_at(const spk_pack_plan *plan, const spk_pack_plan_shard *s, uint32_t from,
                            spk_pack_plan_frame *out)
{
    const spk_pack_options *o = plan->o;
    uint32_t end = s->first + s->samples, i = from;
    uint64_t packed = 0;
    *out = (spk_pack_plan_frame){.first = from};
    for (; i < end; i++) {
        const spk_pack_plan_size *z = &plan->sizes[plan->order[i]];
        if (i > from && ends_frame(plan, i, i - from, out->tar_bytes + tar_bytes(z)))
            break;
        out->tar_bytes += tar_bytes(z);
        out->payload += z->payload;
        packed += z->packed;
    }
    out->samples = i - from;
    out->last = i == end;
    /* Entropy coding gains nothing on JPEG and its like; level -1 has none and costs next to nothing. */
    bool hard = out->payload > 0 && out->payload - packed <= out->payload / 16;
    out->level = o->has_level ? o->level : hard ? -1 : 3;
}

static spk_status make_fields(spk_pack_plan *plan, spk_error *err)
{
    const spk_input *in = plan->in;
    size_t room = in->fields_n + 2;
    plan->fields = calloc(room, sizeof *plan->fields);
    plan->packed = calloc(room, sizeof *plan->packed);
    plan->image = calloc(room, sizeof *plan->image);
    if (!plan->fields || !plan->packed || !plan->image)
        return spk_error_nomem(err, room * sizeof *plan->fields);
    plan->cls = plan->json = UINT32_MAX;
    for (size_t i = 0; i < in->fields_n; i++) {
        plan->fields[i] = in->fields[i];
        plan->packed[i] = spk_field_is_compressed(in->fields[i]);
        plan->image[i] = strcmp(spk_field_kind(in->fields[i]), "image") == 0;
        if (strcmp(in->fields[i], "cls") == 0)
            plan->cls = (uint32_t)i;
        if (strcmp(in->fields[i], "json") == 0)
            plan->json = (uint32_t)i;
    }
    plan->fields_n = in->fields_n;
    if (plan->cls == UINT32_MAX) {
        plan->cls = (uint32_t)plan->fields_n;
        plan->fields[plan->fields_n++] = "cls";
    }
    if (plan->json == UINT32_MAX) {
        plan->json = (uint32_t)plan->fields_n;
        plan->fields[plan->fields_n++] = "json";
    }
    return SPK_OK;
}

static spk_status make_order(spk_pack_plan *plan, spk_error *err)
{
    const spk_pack_options *o = plan->o;
    size_t n = plan->in->samples_n;
    if (n > UINT32_MAX)
        return spk_error_set(err, SPK_E_LIMIT, "%zu samples: at most %u are possible", n, UINT32_MAX);
    plan->order = malloc((n ? n : 1) * sizeof *plan->order);
    if (!plan->order)
        return spk_error_nomem(err, n * sizeof *plan->order);
    for (size_t i = 0; i < n; i++)
        plan->order[i] = (uint32_t)i;
    if (!o->no_shuffle) {
        spk_rng rng = {.seed = o->seed, .stream = SHUFFLE_STREAM};
        for (size_t i = n; i > 1; i--) { /* Fisher and Yates, from the top */
            size_t k = (size_t)spk_rng_below(&rng, i);
            uint32_t t = plan->order[i - 1];
            plan->order[i - 1] = plan->order[k];
            plan->order[k] = t;
        }
    }
    plan->order_n = (uint32_t)(o->limit > 0 && o->limit < n ? o->limit : n);
    return SPK_OK;
}

static size_t split_of(const spk_pack_plan *plan, uint32_t sample)
{
    const spk_input *in = plan->in;
    const char *path = spk_input_str(in, in->files[in->samples[sample].first].path);
    double at = spk_split_position(path, spk_name_stem(path, strlen(path), plan->o->stem)), end = 0;
    for (size_t i = 0; i + 1 < plan->splits_n; i++) {
        end += plan->o->splits[i].share;
        if (at < end)
            return i;
    }
    return plan->splits_n - 1;
}

/* Sorts order[] by split, keeping the order within each. */
static spk_status make_splits(spk_pack_plan *plan, spk_error *err)
{
    const spk_pack_options *o = plan->o;
    uint32_t n = plan->order_n, at[SPK_SPLITS_MAX] = {0}, *sorted = NULL;
    uint8_t *split = NULL;
    spk_status status = SPK_OK;

    plan->splits_n = o->split_count ? o->split_count : 1;
    plan->splits = calloc(plan->splits_n, sizeof *plan->splits);
    if (!plan->splits)
        return spk_error_nomem(err, plan->splits_n * sizeof *plan->splits);
    plan->splits[0].samples = n;
    if (plan->splits_n == 1)
        return SPK_OK;
    plan->splits[0].samples = 0;
    split = malloc(n ? n : 1);
    sorted = malloc((n ? n : 1) * sizeof *sorted);
    if (!split || !sorted) {
        status = spk_error_nomem(err, n * sizeof *sorted);
        goto out;
    }
    for (uint32_t i = 0; i < n; i++) {
        split[i] = (uint8_t)split_of(plan, plan->order[i]);
        plan->splits[split[i]].samples++;
    }
    for (size_t k = 0; k < plan->splits_n; k++) {
        plan->splits[k].first = k ? plan->splits[k - 1].first + plan->splits[k - 1].samples : 0;
        at[k] = plan->splits[k].first;
        if (plan->splits[k].samples == 0) {
            status = spk_error_set(err, SPK_E_INVALID, "split %s: no sample of %u falls on its share of %.9g",
                                   o->splits[k].name, n, o->splits[k].share);
            goto out;
        }
    }
    for (uint32_t i = 0; i < n; i++)
        sorted[at[split[i]]++] = plan->order[i];
    free(plan->order);
    plan->order = sorted;
    sorted = NULL;
out:
    free(split);
    free(sorted);
    return status;
}

/* Of a sample whose size is too large to be known. */
static spk_status too_large(const spk_pack_plan *plan, uint32_t sample, const char *src, spk_error *err)
{
    const spk_input *in = plan->in;
    uint64_t sum = 0;
    spk_pack_plan_members m;
    spk_pack_plan_member one;
    for (spk_pack_plan_members_begin(&m, plan, sample); spk_pack_plan_members_next(&m, &one);)
        sum += one.size < UINT64_MAX >> 16 ? spk_tar_member_bytes(one.size) : UINT64_MAX >> 16;
    (void)spk_error_set(err, SPK_E_LIMIT, "its sample has %llu bytes as a tar, at most %u are possible",
                        (unsigned long long)sum, SPK_FRAME_CONTENT_MAX - SPK_TAR_END);
    spk_input_prefix(in, src, &in->files[in->samples[sample].first], err);
    return SPK_E_LIMIT;
}

/* Totals of the split, and every sample's limits. */
static spk_status measure_split(spk_pack_plan *plan, spk_pack_plan_split *split, const char *src, spk_error *err)
{
    for (uint32_t i = split->first; i < split->first + split->samples; i++) {
        uint32_t sample = plan->order[i];
        if (plan->sizes[sample].payload == UINT32_MAX)
            return too_large(plan, sample, src, err);
        split->payload += plan->sizes[sample].payload; /* at most 2^32 samples of 2^30 bytes */
    }
    plan->payload += split->payload;
    return SPK_OK;
}

/* What is not summed by split; in the order of memory unless a limit leaves samples out. */
static spk_status measure_files(spk_pack_plan *plan, const char *src, spk_error *err)
{
    const spk_input *in = plan->in;
    bool all = plan->order_n == in->samples_n;
    uint32_t most = in->dataset ? SPK_MEMBERS_MAX : SPK_MEMBERS_MAX - 2; /* a label and more columns may be added */
    for (uint32_t i = 0; i < plan->order_n; i++) {
        const spk_input_sample *s = &in->samples[all ? i : plan->order[i]];
        if (s->files > most) {
            (void)spk_error_set(err, SPK_E_LIMIT, "its sample has %u files, at most %u are possible", s->files, most);
            spk_input_prefix(in, src, &in->files[s->first], err);
            return SPK_E_LIMIT;
        }
        for (uint32_t f = 0; f < s->files; f++) {
            const spk_input_file *file = &in->files[s->first + f];
            plan->files += !spk_input_made(in, file);
            plan->largest_file = file->size > plan->largest_file ? file->size : plan->largest_file;
        }
    }
    return SPK_OK;
}

/* Frames of a dataset hold more than they were made for once their files are back as they were. */
static spk_status check_frames(const spk_pack_plan *plan, const spk_pack_plan_shard *shard, spk_error *err)
{
    spk_pack_plan_frame f;
    uint32_t number = 0;
    for (uint32_t i = shard->first; i < shard->first + shard->samples; i += f.samples, number++) {
        spk_pack_plan_frame_at(plan, shard, i, &f);
        if (f.tar_bytes > SPK_FRAME_CONTENT_MAX - SPK_TAR_END)
            return spk_error_set(err, SPK_E_LIMIT, "shard %zu: frame %u would hold %llu bytes, at most %u are possible",
                                 plan->shards_n, number, (unsigned long long)f.tar_bytes,
                                 SPK_FRAME_CONTENT_MAX - SPK_TAR_END);
    }
    return SPK_OK;
}

static spk_status add_shard(spk_pack_plan *plan, const spk_pack_plan_shard *shard, uint64_t tar, spk_error *err)
{
    if (plan->shards_n - plan->splits[shard->split].first_shard == SPK_TABLE_ROWS_MAX)
        return spk_error_set(err, SPK_E_LIMIT, "more than %llu shards: choose a larger shard size",
                             (unsigned long long)SPK_TABLE_ROWS_MAX);
    if (plan->o->single_frame && tar > SPK_FRAME_CONTENT_MAX - SPK_TAR_END)
        return spk_error_set(err, SPK_E_LIMIT,
                             "a single frame would hold %llu bytes (shard %zu: %u samples), at most %u are possible: "
                             "choose a smaller shard size",
                             (unsigned long long)tar, plan->shards_n, shard->samples,
                             SPK_FRAME_CONTENT_MAX - SPK_TAR_END);
    if (plan->in->cuts)
        SPK_TRY(check_frames(plan, shard, err));
    SPK_TRY(spk_grow(&plan->shards, &plan->shards_cap, plan->shards_n + 1, sizeof *plan->shards, err));
    plan->shards[plan->shards_n++] = *shard;
    return SPK_OK;
}

/* Shards of nearly equal payload rather than full ones and a small rest. */
static spk_status cut_shards(spk_pack_plan *plan, uint32_t number, spk_error *err)
{
    const spk_pack_options *o = plan->o;
    spk_pack_plan_split *split = &plan->splits[number];
    uint64_t n = split->payload / o->shard_size + (split->payload % o->shard_size != 0), cumulative = 0;
    uint64_t tar = 0, list = 0, k = 0;
    spk_pack_plan_shard cur = {.first = split->first, .split = number};

    split->first_shard = (uint32_t)plan->shards_n;
    for (uint32_t i = split->first; i < split->first + split->samples; i++) {
        const spk_pack_plan_size *z = &plan->sizes[plan->order[i]];
        bool full = cur.payload + z->payload > o->shard_size || (o->shard_samples && cur.samples >= o->shard_samples) ||
                    list + z->list > LIST_BYTES_MAX;
        bool share = k + 1 < n && (__uint128_t)cumulative * n >= (__uint128_t)split->payload * (k + 1);
        bool cut = plan->in->cuts ? plan->in->cuts[i] & SPK_CUT_SHARD : full || share;
        if (cur.samples > 0 && cut) {
            SPK_TRY(add_shard(plan, &cur, tar, err));
            cur = (spk_pack_plan_shard){.first = i, .split = number};
            tar = list = 0;
            k++;
        }
        cur.samples++;
        cur.payload += z->payload;
        cumulative += z->payload;
        tar += tar_bytes(z);
        list += z->list;
    }
    SPK_TRY(add_shard(plan, &cur, tar, err));
    split->shards = (uint32_t)plan->shards_n - split->first_shard;
    return SPK_OK;
}

spk_status spk_pack_plan_make(spk_pack_plan *plan, const spk_input *in, const spk_pack_options *o, const char *src,
                              spk_error *err)
{
    plan->in = in;
    plan->o = o;
    SPK_TRY(make_fields(plan, err));
    SPK_TRY(make_order(plan, err));
    if (plan->order_n == 0)
        return spk_error_set(err, SPK_E_NOT_FOUND, "%s: nothing to pack", src);
    SPK_TRY(make_sizes(plan, err));
    SPK_TRY(make_splits(plan, err));
    SPK_TRY(measure_files(plan, src, err));
    for (uint32_t i = 0; i < plan->splits_n; i++) {
        SPK_TRY(measure_split(plan, &plan->splits[i], src, err));
        SPK_TRY(cut_shards(plan, i, err));
    }
    return SPK_OK;
}

void spk_pack_plan_free(spk_pack_plan *plan)
{
    free(plan->sizes);
    free(plan->order);
    free(plan->splits);
    free(plan->shards);
    free(plan->fields);
    free(plan->packed);
    free(plan->image);
    memset(plan, 0, sizeof *plan);
}
