/* shardpack info: totals of a dataset or shard. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "cmd.h"
#include "cmd_info.h"
#include "out.h"
#include "remote.h"

typedef struct info_values {
    int classes;
    int json;
    remote_values remote;
} info_values;

static const opt options[] = {
    {.name = "classes",
     .kind = OPT_FLAG,
     .letter = 'c',
     .offset = offsetof(info_values, classes),
     .help = "List all classes with the number of their samples. This reads the labels, and so all the data."},
    {.name = "json", .kind = OPT_FLAG, .offset = offsetof(info_values, json), .help = "Print one JSON object."},
    REMOTE_ROWS(info_values),
    {0},
};

static const operand operands[] = {
    {.name = "DATASET",
     .help = "Folder or manifest of a dataset, or one shard file; or a URL of these.",
     .complete = COMPLETE_FILE},
    {0},
};

static const example examples[] = {
    {"shardpack info photos.shards", "What is in it, how large, how it was packed."},
    {"shardpack info --classes photos.shards", "How many samples each class has."},
    {0},
};

/* Label in the data of a cls field: decimal digits. -1 if it is none. */
static int64_t parse_label(const spk_field *f)
{
    uint64_t n = 0;
    const char *s = f->data;
    if (f->size == 0 || f->size > 10)
        return -1;
    for (size_t i = 0; i < f->size; i++) {
        if (s[i] < '0' || s[i] > '9')
            return -1;
        n = n * 10 + (uint64_t)(s[i] - '0');
    }
    return n < INFO_LABELS_MAX ? (int64_t)n : -1;
}

static int count_label(label_counts *l, size_t label)
{
    if (label >= l->size) {
        size_t size = label + 1 > 2 * l->size ? label + 1 : 2 * l->size;
        uint64_t *grown = realloc(l->counts, size * sizeof *grown);
        if (!grown)
            return cli_no_memory();
        memset(grown + l->size, 0, (size - l->size) * sizeof *grown);
        l->counts = grown;
        l->size = size;
    }
    l->counts[label]++;
    return CLI_OK;
}

static int count_sample(label_counts *l, const spk_sample *sample)
{
    for (size_t i = 0; i < sample->field_count; i++) {
        if (strcmp(sample->fields[i].name, "cls") != 0)
            continue;
        int64_t label = parse_label(&sample->fields[i]);
        if (label >= 0)
            return count_label(l, (size_t)label);
        l->others++;
        return CLI_OK;
    }
    l->without++;
    return CLI_OK;
}

static int count_labels(const target *t, label_counts *l)
{
    spk_reader *reader = NULL;
    const spk_sample *sample;
    spk_error err;
    spk_status st = SPK_OK;
    spk_error_clear(&err);
    l->counts = calloc(1, sizeof *l->counts);
    l->size = 1;
    int rc = l->counts ? target_reader(t, 0, &reader) : cli_no_memory();
    while (rc == CLI_OK && (st = spk_reader_next(reader, &sample, &err)) == SPK_OK)
        rc = count_sample(l, sample);
    if (rc == CLI_OK && st < 0)
        rc = cli_fail(&err, NULL);
    spk_reader_close(reader);
    return rc;
}

/* The object under that key, made if it is missing. */
static json_t *child(json_t *object, const char *key)
{
    json_t *c = json_object_get(object, key);
    if (!c)
        json_object_set_new(object, key, c = json_object());
    return c;
}

static void add_count(json_t *object, const char *key, uint64_t n)
{
    out_json_count(object, key, (uint64_t)json_integer_value(json_object_get(object, key)) + n);
}

static json_t *shard_field(const char *name, json_t *encodings)
{
    json_t *field = json_object(), *stored = json_array(), *one;
    const char *encoding;
    out_json_text(field, "name", name);
    json_object_foreach(encodings, encoding, one)
    {
        add_count(field, "samples", (uint64_t)json_integer_value(json_object_get(one, "samples")));
        json_array_append(stored, one);
    }
    if (json_array_size(stored) > 1 || !json_object_get(encodings, "identity"))
        json_object_set(field, "stored", stored);
    json_decref(stored);
    return field;
}

/* The fields of a shard with their counts, as the manifest has them for a dataset. */
static json_t *shard_fields(const spk_shard *shard, uint64_t samples)
{
    json_t *counts = json_object(), *fields = json_array(), *encodings;
    const char *name;
    for (uint64_t i = 0; i < samples; i++) {
        size_t n = spk_shard_member_count(shard, i);
        for (size_t k = 0; k < n; k++) {
            spk_member m;
            if (spk_shard_get_member(shard, i, k, &m, NULL) < 0)
                continue;
            json_t *one = child(child(counts, m.field), m.encoding);
            out_json_text(one, "encoding", m.encoding);
            add_count(one, "samples", 1);
            add_count(one, "bytes", m.size);
            add_count(one, "original_bytes", m.original);
        }
    }
    json_object_foreach(counts, name, encodings)
    {
        json_array_append_new(fields, shard_field(name, encodings));
    }
    json_decref(counts);
    return fields;
}

static void add_labels(json_t *o, const label_counts *l, size_t classes)
{
    if (!l->counts)
        return;
    json_t *list = json_array(), *zero = json_integer(0); /* one for all: most of a sparse table */
    size_t n = l->size; /* room grows ahead of need: leave out what no sample and no class has */
    while (n > classes && l->counts[n - 1] == 0)
        n--;
    for (size_t i = 0; i < n || i < classes; i++)
        json_array_append_new(list, i < n && l->counts[i] ? json_integer((json_int_t)l->counts[i]) : json_incref(zero));
    json_decref(zero);
    json_object_set_new(o, "label_samples", list);
    out_json_count(o, "unlabelled", l->without);
    out_json_count(o, "other_labels", l->others);
}

static int show_dataset(const target *t, const label_counts *l, int json)
{
    json_error_t why;
    json_t *manifest = json_loads(spk_dataset_manifest(t->dataset), 0, &why);
    if (!manifest)
        return cli_error("%s: manifest: %s", t->path, why.text);
    if (!json) {
        info_print_dataset(t, manifest, l);
        json_decref(manifest);
        return CLI_OK;
    }
    json_t *o = json_object();
    out_json_text(o, "path", t->path);
    json_object_update_missing(o, manifest); /* a later version may have a member of that name */
    add_labels(o, l, spk_dataset_class_count(t->dataset));
    json_decref(manifest);
    return out_json(o);
}

static int show_shard(const target *t, const label_counts *l, int json)
{
    spk_shard_stat st;
    json_t *fields = shard_fields(t->shard, t->samples);
    if (!json) {
        info_print_shard(t, fields, l);
        json_decref(fields);
        return CLI_OK;
    }
    json_t *o = json_object();
    spk_shard_get_stat(t->shard, &st);
    out_json_text(o, "path", t->path);
    out_json_count(o, "samples", st.samples);
    out_json_count(o, "frames", st.frames);
    out_json_count(o, "bytes", st.bytes);
    out_json_count(o, "tar_bytes", st.tar_bytes);
    out_json_count(o, "index_offset", st.index_offset);
    json_object_set_new(o, "fields", fields);
    add_labels(o, l, 0);
    return out_json(o);
}

static int run(const opts *o)
{
    const info_values *v = o->values;
    label_counts labels = {0};
    target t;
    int rc = target_open(&t, o->operands[0], &((const info_values *)o->values)->remote);
    if (rc == CLI_OK && v->classes)
        rc = count_labels(&t, &labels);
    if (rc == CLI_OK)
        rc = t.shard ? show_shard(&t, &labels, v->json) : show_dataset(&t, &labels, v->json);
    free(labels.counts);
    target_close(&t);
    return rc;
}

const command cmd_info = {
    .name = "info",
    .summary = "describe a dataset or shard",
    .synopsis = "[OPTION]... DATASET",
    .description = "Prints totals, fields, classes, the sizes of the images if they were looked at when packing, and "
                   "the options and versions that made the dataset. Without --classes no data is read.",
    .options = options,
    .operands = operands,
    .min_operands = 1,
    .max_operands = 1,
    .examples = examples,
    .failure = "if the dataset could not be read.",
    .values_size = sizeof(info_values),
    .run = run,
};
