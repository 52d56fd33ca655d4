/* "pack" object to and from JSON (jansson). */
#include "pack/describe.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/utf8.h"
#include "image/check.h"
#include "pack/options.h"
#include "shard/frame.h"

#define EXACT_MAX (UINT64_C(1) << 53) /* above it a JSON reader may round */

/* A number that every reader takes exactly, or its digits as text. */
static json_t *number(uint64_t v)
{
    char text[24];
    if (v <= EXACT_MAX)
        return json_integer((json_int_t)v);
    snprintf(text, sizeof text, "%" PRIu64, v);
    return json_string(text);
}

/* Text of any bytes. */
static json_t *text_of(const char *s)
{
    size_t n = strlen(s), cap = 3 * n + 1;
    char *clean = malloc(cap);
    if (!clean)
        return NULL;
    spk_utf8_percent(clean, cap, s, n);
    json_t *value = json_string(spk_utf8_valid(s, n) ? s : clean);
    free(clean);
    return value;
}

/* jansson's *_new functions take the value, also when it is NULL; nonzero if that failed. */
static int put(json_t *o, const char *key, json_t *value)
{
    return json_object_set_new(o, key, value);
}

static json_t *list_of(const char *const *items, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        if (json_array_append_new(list, text_of(items[i])) != 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static int put_versions(json_t *o, const spk_pack_options *opt)
{
    int failed = put(o, "shardpack", json_string(spk_version()));
    failed |= put(o, "zstd", json_string(spk_zstd_version()));
    if (opt->check != SPK_CHECK_NONE) {
        failed |= put(o, "jpeg", json_string(spk_jpeg_version()));
        failed |= put(o, "png", json_string(spk_png_version()));
    }
    return failed;
}

static int put_cuts(json_t *o, const spk_pack_options *opt)
{
    int failed = put(o, "shard_size", number(opt->shard_size));
    if (opt->shard_samples)
        failed |= put(o, "shard_samples", number(opt->shard_samples));
    if (opt->single_frame) {
        failed |= put(o, "frames", json_string("single"));
    } else {
        failed |= put(o, "frame_size", number(opt->frame_size));
        failed |= put(o, "frame_samples", number(opt->frame_samples));
    }
    return failed | put(o, "level", opt->has_level ? json_integer(opt->level) : json_string("auto"));
}

static int put_input(json_t *o, const spk_pack_options *opt)
{
    static const char *const labels[] = {"auto", "folders", "none"}, *const stems[] = {"last-dot", "first-dot"};
    int failed = put(o, "shuffle", json_boolean(!opt->no_shuffle));
    if (!opt->no_shuffle)
        failed |= put(o, "seed", number(opt->seed));
    failed |= put(o, "list", json_boolean(opt->list != NULL));
    failed |= put(o, "labels", json_string(labels[opt->labels]));
    failed |= put(o, "stem", json_string(stems[opt->stem]));
    failed |= put(o, "follow_symlinks", json_boolean(opt->follow_symlinks));
    if (opt->limit)
        failed |= put(o, "limit", number(opt->limit));
    if (opt->include_count)
        failed |= put(o, "include", list_of(opt->include, opt->include_count));
    if (opt->exclude_count)
        failed |= put(o, "exclude", list_of(opt->exclude, opt->exclude_count));
    return failed;
}

static int put_check(json_t *o, const spk_pack_options *opt)
{
    static const char *const checks[] = {"decode", "header", "none"}, *const bad[] = {"fail", "skip", "keep"};
    int failed = put(o, "check", json_string(checks[opt->check]));
    if (opt->check != SPK_CHECK_NONE) {
        failed |= put(o, "on_bad", json_string(bad[opt->on_bad]));
        failed |= put(o, "max_pixels", number(opt->max_pixels));
    }
    return failed;
}

int spk_describe_jpeg(json_t *o, const spk_pack_options *opt)
{
    int failed = 0;
    if (opt->jpeg == SPK_JPEG_FAST)
        failed |= put(o, "jpeg_mode", json_string("fast"));
    if (opt->jpeg == SPK_JPEG_FAST && !json_object_get(o, "max_pixels")) /* without a check it is for this alone */
        failed |= put(o, "max_pixels", number(opt->max_pixels));
    if (opt->allow_unrestorable)
        failed |= put(o, "allow_unrestorable", json_true());
    return failed;
}

static int put_splits(json_t *o, const spk_pack_options *opt, size_t split)
{
    if (opt->split_count == 0)
        return 0;
    json_t *shares = json_object();
    int failed = put(o, "split", json_string(opt->splits[split].name));
    for (size_t i = 0; i < opt->split_count; i++)
        failed |= put(shares, opt->splits[i].name, json_real(opt->splits[i].share));
    return failed | put(o, "splits", shares);
}

spk_status spk_describe(char **out, const spk_pack_options *o, const spk_pack_plan_digest *digest, size_t split,
                        const spk_tally *total, spk_error *err)
{
    char plan[SPK_SHA256_HEX], prefix[SPK_PREFIX_MAX + 1];
    json_t *root = json_object();
    *out = NULL;
    spk_hex(plan, digest->plan, 32);
    spk_pack_prefix(o, split, prefix);
    int failed = put_versions(root, o);
    failed |= put(root, "plan", json_string(plan));
    failed |= put_splits(root, o, split);
    failed |= put(root, "prefix", json_string(prefix));
    failed |= put_cuts(root, o);
    failed |= put_input(root, o);
    failed |= put_check(root, o);
    failed |= put(root, "files", number(total->files));
    failed |= put(root, "bad_files", number(total->bad));
    failed |= put(root, "skipped_samples", number(total->skipped_samples));
    failed |= spk_describe_jpeg(root, o);
    if (!failed)
        *out = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(15));
    json_decref(root);
    return *out ? SPK_OK : spk_error_set(err, SPK_E_NOMEM, "out of memory for the manifest's \"pack\" object");
}

/* Also one that is too large for a number. */
uint64_t spk_describe_number(const json_t *o, const char *key)
{
    const json_t *value = json_object_get(o, key);
    json_int_t v = json_integer_value(value);
    if (json_is_string(value))
        return strtoull(json_string_value(value), NULL, 10);
    return v > 0 ? (uint64_t)v : 0;
}

bool spk_describe_read(const char *text, spk_described *out)
{
    uint8_t raw[32];
    memset(out, 0, sizeof *out);
    json_t *root = text ? json_loads(text, 0, NULL) : NULL;
    const char *plan = json_string_value(json_object_get(root, "plan"));
    bool ok = plan && spk_unhex(raw, sizeof raw, plan, strlen(plan));
    if (ok) {
        spk_hex(out->plan, raw, sizeof raw);
        out->files = spk_describe_number(root, "files");
        out->bad = spk_describe_number(root, "bad_files");
        out->skipped_samples = spk_describe_number(root, "skipped_samples");
    }
    json_decref(root);
    return ok;
}
