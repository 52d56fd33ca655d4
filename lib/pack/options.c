/* Defaults and bounds of the pack options. */
#include "pack/options.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/cpu.h"
#include "shard/format.h"

static spk_status take_copy(spk_pack_options *out, const spk_pack_options *given, spk_error *err)
{
    memset(out, 0, sizeof *out);
    out->size = sizeof *out;
    if (!given)
        return SPK_OK;
    if (given->size < offsetof(spk_pack_options, frame_size))
        return spk_error_set(err, SPK_E_INVALID, "pack options: size is %zu: set it to sizeof(spk_pack_options)",
                             given->size);
    size_t n = given->size < sizeof *out ? given->size : sizeof *out;
    const unsigned char *bytes = (const unsigned char *)given;
    for (size_t i = n; i < given->size; i++)
        if (bytes[i] != 0)
            return spk_error_set(err, SPK_E_INVALID,
                                 "pack options: this version of the library lacks an option in use");
    memcpy(out, given, n);
    out->size = sizeof *out;
    return SPK_OK;
}

static spk_status check_range(const char *what, int64_t value, int64_t min, int64_t max, spk_error *err)
{
    if (value < min || value > max)
        return spk_error_set(err, SPK_E_INVALID, "%s is %lld: %lld to %lld are possible", what, (long long)value,
                             (long long)min, (long long)max);
    return SPK_OK;
}

static bool made_of(const char *s, const char *allowed)
{
    size_t n = strlen(s);
    return n > 0 && n <= SPK_PREFIX_MAX && strspn(s, allowed) == n;
}

static spk_status check_splits(const spk_pack_options *o, spk_error *err)
{
    if (o->split_count > SPK_SPLITS_MAX)
        return spk_error_set(err, SPK_E_INVALID, "%zu splits: at most %u are possible", o->split_count, SPK_SPLITS_MAX);
    double sum = 0;
    for (size_t i = 0; i < o->split_count; i++) {
        const spk_split *s = &o->splits[i];
        if (!s->name || !made_of(s->name, "abcdefghijklmnopqrstuvwxyz0123456789_-") || s->name[0] == '-')
            return spk_error_set(err, SPK_E_INVALID,
                                 "split \"%s\": a name has 1 to %u of the characters a-z 0-9 _ and, not first, -",
                                 s->name ? s->name : "", SPK_PREFIX_MAX);
        if (!(s->share > 0 && s->share <= 1))
            return spk_error_set(err, SPK_E_INVALID, "split %s: a share is above 0 and at most 1", s->name);
        for (size_t k = 0; k < i; k++)
            if (strcmp(s->name, o->splits[k].name) == 0)
                return spk_error_set(err, SPK_E_INVALID, "split %s is given twice", s->name);
        sum += s->share;
    }
    if (o->split_count > 0 && fabs(sum - 1) > 1e-6)
        return spk_error_set(err, SPK_E_INVALID, "the shares of the splits add up to %.9g, not 1", sum);
    return SPK_OK;
}

static spk_status check_enums(const spk_pack_options *o, spk_error *err)
{
    SPK_TRY(check_range("check", (int)o->check, SPK_CHECK_DECODE, SPK_CHECK_NONE, err));
    SPK_TRY(check_range("on_bad", (int)o->on_bad, SPK_ON_BAD_FAIL, SPK_ON_BAD_KEEP, err));
    SPK_TRY(check_range("labels", (int)o->labels, SPK_LABELS_AUTO, SPK_LABELS_NONE, err));
    SPK_TRY(check_range("jpeg", (int)o->jpeg, SPK_JPEG_KEEP, SPK_JPEG_FAST, err));
    if (o->jpeg == SPK_JPEG_FAST && o->single_frame)
        return spk_error_set(err, SPK_E_INVALID, "JPEG as coefficients needs more than a single frame per shard");
    return check_range("stem", (int)o->stem, SPK_STEM_LAST_DOT, SPK_STEM_FIRST_DOT, err);
}

static spk_status check_sizes(const spk_pack_options *o, spk_error *err)
{
    const uint64_t frame_max = SPK_FRAME_CONTENT_MAX - SPK_TAR_END;
    if (o->frame_size < 2 * SPK_TAR_BLOCK || o->frame_size > frame_max)
        return spk_error_set(err, SPK_E_INVALID, "frame size is %llu bytes: %u to %llu are possible",
                             (unsigned long long)o->frame_size, 2 * SPK_TAR_BLOCK, (unsigned long long)frame_max);
    if (o->shard_size > (uint64_t)1 << 50)
        return spk_error_set(err, SPK_E_INVALID, "shard size is %llu bytes: at most %llu are possible",
                             (unsigned long long)o->shard_size, 1ull << 50);
    if (o->has_level)
        SPK_TRY(check_range("level", o->level, SPK_LEVEL_MIN, SPK_LEVEL_MAX, err));
    return check_range("jobs", o->jobs, 1, SPK_JOBS_MAX, err);
}

static void drop_idle_options(spk_pack_options *o)
{
    if (o->no_shuffle)
        o->seed = 0;
    if (!o->has_level)
        o->level = 0;
    if (o->single_frame) {
        o->frame_size = SPK_DEFAULT_FRAME_SIZE;
        o->frame_samples = SPK_DEFAULT_FRAME_SAMPLES;
    }
    if (o->check == SPK_CHECK_NONE)
        o->on_bad = SPK_ON_BAD_FAIL;
    if (o->check == SPK_CHECK_NONE && o->jpeg == SPK_JPEG_KEEP)
        o->max_pixels = SPK_DEFAULT_MAX_PIXELS;
    o->allow_unrestorable = o->allow_unrestorable != 0;
}

spk_status spk_pack_options_settle(spk_pack_options *out, const spk_pack_options *given, spk_error *err)
{
    SPK_TRY(take_copy(out, given, err));
    if (out->shard_size == 0)
        out->shard_size = SPK_DEFAULT_SHARD_SIZE;
    if (out->frame_size == 0)
        out->frame_size = SPK_DEFAULT_FRAME_SIZE;
    if (out->frame_samples == 0)
        out->frame_samples = SPK_DEFAULT_FRAME_SAMPLES;
    if (out->max_pixels == 0)
        out->max_pixels = SPK_DEFAULT_MAX_PIXELS;
    if (out->jobs == 0)
        out->jobs = spk_cpu_quota();
    SPK_TRY(check_enums(out, err));
    drop_idle_options(out);
    SPK_TRY(check_sizes(out, err));
    if (out->prefix && !made_of(out->prefix, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"))
        return spk_error_set(err, SPK_E_INVALID, "prefix \"%s\": 1 to %u of the characters A-Z a-z 0-9 _ are possible",
                             out->prefix, SPK_PREFIX_MAX);
    return check_splits(out, err);
}

void spk_pack_prefix(const spk_pack_options *o, size_t split, char out[SPK_PREFIX_MAX + 1])
{
    const char *name = o->prefix ? o->prefix : split < o->split_count ? o->splits[split].name : "shard";
    size_t n = strlen(name); /* at most SPK_PREFIX_MAX: settled options */
    for (size_t i = 0; i < n && i < SPK_PREFIX_MAX; i++)
        out[i] = name[i];
    out[n < SPK_PREFIX_MAX ? n : SPK_PREFIX_MAX] = '\0';
    for (char *p = out; *p; p++)
        if (*p == '-') /* separates the parts of a shard's name */
            *p = '_';
}
