/* The "pack" object of a dataset that is made from another: what was decided then still holds, but for the form of JPEG
 * and the versions that made the bytes. */
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "image/check.h"
#include "pack/describe.h"
#include "shard/frame.h"

static json_t *load(const char *source)
{
    json_t *o = source ? json_loads(source, 0, NULL) : NULL;
    if (json_is_object(o))
        return o;
    json_decref(o);
    return json_object();
}

spk_status spk_describe_again(char **out, const char *source, const spk_pack_options *o,
                              const spk_pack_plan_digest *digest, spk_error *err)
{
    char plan[SPK_SHA256_HEX];
    json_t *root = load(source);
    *out = NULL;
    spk_hex(plan, digest->plan, 32);
    int failed = json_object_set_new(root, "shardpack", json_string(spk_version()));
    failed |= json_object_set_new(root, "zstd", json_string(spk_zstd_version()));
    if (json_object_get(root, "jpeg"))
        failed |= json_object_set_new(root, "jpeg", json_string(spk_jpeg_version()));
    if (json_object_get(root, "png"))
        failed |= json_object_set_new(root, "png", json_string(spk_png_version()));
    failed |= json_object_set_new(root, "plan", json_string(plan));
    (void)json_object_del(root, "jpeg_mode");
    (void)json_object_del(root, "allow_unrestorable");
    const char *check = json_string_value(json_object_get(root, "check"));
    if (check && strcmp(check, "none") == 0)
        (void)json_object_del(root, "max_pixels");
    failed |= spk_describe_jpeg(root, o);
    if (!failed)
        *out = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(15));
    json_decref(root);
    return *out ? SPK_OK : spk_error_set(err, SPK_E_NOMEM, "out of memory for the manifest's \"pack\" object");
}

void spk_describe_settings(const char *source, spk_pack_options *o, char prefix[SPK_PREFIX_MAX + 1])
{
    json_t *root = load(source);
    const json_t *level = json_object_get(root, "level");
    const char *frames = json_string_value(json_object_get(root, "frames"));
    const char *given = json_string_value(json_object_get(root, "prefix"));
    json_int_t value = json_integer_value(level);
    o->has_level = json_is_integer(level) && value >= SPK_LEVEL_MIN && value <= SPK_LEVEL_MAX;
    o->level = o->has_level ? (int)value : 0;
    o->single_frame = frames && strcmp(frames, "single") == 0;
    o->max_pixels = spk_describe_number(root, "max_pixels");
    if (given && strlen(given) <= SPK_PREFIX_MAX) {
        snprintf(prefix, SPK_PREFIX_MAX + 1, "%s", given);
        o->prefix = prefix;
    }
    json_decref(root);
}
