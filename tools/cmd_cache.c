/* shardpack cache: what a cache folder holds, and emptying it. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "cmd.h"
#include "out.h"
#include "remote.h"

typedef struct cache_values {
    const char *folder;
    int json;
} cache_values;

static const opt options[] = {
    {.name = "cache-dir",
     .kind = OPT_STRING,
     .arg = "FOLDER",
     .offset = offsetof(cache_values, folder),
     .def = "SHARDPACK_CACHE_DIR",
     .complete = COMPLETE_FOLDER,
     .help = "The cache."},
    {.name = "json", .kind = OPT_FLAG, .offset = offsetof(cache_values, json), .help = "Print one JSON object."},
    {0},
};

static const char *const words[] = {"info", "clear", NULL};

static const operand operands[] = {
    {.name = "info|clear", .help = "Tell what is in it; or remove all that no process has open.", .values = words},
    {0},
};

static const example examples[] = {
    {"shardpack cache info --cache-dir /local/cache", "How much it takes."},
    {"shardpack cache clear --cache-dir /local/cache", "Free the space."},
    {0},
};

static int run(const opts *o)
{
    const cache_values *v = o->values;
    const char *folder = v->folder ? v->folder : getenv("SHARDPACK_CACHE_DIR"), *word = o->operands[0];
    int clear = strcmp(word, "clear") == 0;
    char a[48], b[48], c[48];
    spk_cache_stat before, left;
    spk_error err;
    spk_error_clear(&err);
    if (!clear && strcmp(word, "info") != 0)
        return cli_usage("cache", "%s: must be info or clear", word);
    if (!folder || !*folder)
        return cli_usage("cache", "no cache: give --cache-dir, or set SHARDPACK_CACHE_DIR");
    if (spk_cache_get_stat(folder, &before, &err) < 0)
        return cli_fail(&err, NULL);
    left = before;
    if (clear && spk_cache_clear(folder, &left, &err) < 0)
        return cli_fail(&err, NULL);
    if (v->json) {
        json_t *j = json_object();
        out_json_text(j, "folder", folder);
        out_json_count(j, "entries", left.entries);
        out_json_count(j, "bytes", left.bytes);
        out_json_count(j, "in_use", left.in_use);
        if (clear)
            out_json_count(j, "bytes_removed", before.bytes > left.bytes ? before.bytes - left.bytes : 0);
        return out_json(j);
    }
    if (clear) {
        out_name(stdout, folder);
        printf(": removed %s\n", out_size(c, sizeof c, before.bytes > left.bytes ? before.bytes - left.bytes : 0));
    }
    if (!clear || left.entries) {
        out_name(stdout, folder);
        printf(": %s, %s, %s in use\n", out_plural(a, sizeof a, left.entries, "entry", "entries"),
               out_size(b, sizeof b, left.bytes), out_count(c, sizeof c, left.in_use));
    }
    return CLI_OK;
}

const command cmd_cache = {
    .name = "cache",
    .summary = "look at or clear the cache of datasets by URL",
    .synopsis = "[OPTION]... info|clear",
    .description =
        "A cache holds shards and shard tables that were read by URL, whole or in part, under their SHA-256. "
        "Its size is bounded where it is used: --cache-limit of the commands that read.",
    .options = options,
    .operands = operands,
    .min_operands = 1,
    .max_operands = 1,
    .examples = examples,
    .failure = "if there is no cache, or it cannot be read.",
    .values_size = sizeof(cache_values),
    .run = run,
};
