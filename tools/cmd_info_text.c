/* What shardpack info prints for people. */
#include <stdlib.h>
#include <string.h>

#include "cmd_info.h"
#include "out.h"

#define CLASSES_SHOWN 12 /* names printed without --classes */
#define BAR 40

static void print_name(const char *name)
{
    printf("%-13s", name);
}

static uint64_t count_of(const json_t *object, const char *key)
{
    json_int_t n = json_integer_value(json_object_get(object, key));
    return n > 0 ? (uint64_t)n : 0;
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *s = json_string_value(json_object_get(object, key));
    return s ? s : "";
}

static void print_totals(const target *t, const json_t *manifest)
{
    char a[48], b[48], c[48];
    print_name("samples");
    printf("%s in %s, %s", out_count(a, sizeof a, t->samples), out_plural(b, sizeof b, t->shards, "shard", NULL),
           out_plural(c, sizeof c, t->frames, "frame", NULL));
    if (manifest)
        printf("; order: %s", text_of(manifest, "order"));
    putchar('\n');
    print_name("size");
    printf("%s stored, %s as tar", out_size(a, sizeof a, t->bytes), out_size(b, sizeof b, t->tar_bytes));
    if (manifest)
        printf(", %s of source files", out_size(c, sizeof c, count_of(manifest, "payload_bytes")));
    putchar('\n');
}

/* What becomes of files that are not stored as they are. */
static const char *meaning_of(const char *encoding)
{
    if (strcmp(encoding, "jpeg_coefficients") == 0)
        return " of files, which come back byte for byte";
    if (strcmp(encoding, "jpeg_pixels") == 0)
        return " of files, which are not those packed, but have their pixels";
    return "";
}

static void print_stored(const json_t *stored)
{
    char a[48], b[48], c[48];
    size_t i;
    json_t *s;
    json_array_foreach(stored, i, s)
    {
        uint64_t bytes = count_of(s, "bytes"), original = count_of(s, "original_bytes");
        print_name("");
        printf("  %s as ", out_count(a, sizeof a, count_of(s, "samples")));
        out_name(stdout, strcmp(text_of(s, "encoding"), "identity") == 0 ? "they are" : text_of(s, "encoding"));
        printf(": %s", out_size(b, sizeof b, bytes));
        if (original != bytes)
            printf(" for %s", out_size(c, sizeof c, original));
        puts(meaning_of(text_of(s, "encoding")));
    }
}

static void print_fields(const json_t *fields)
{
    char a[48];
    size_t i;
    json_t *f;
    json_array_foreach(fields, i, f)
    {
        print_name(i ? "" : "fields");
        out_name(stdout, text_of(f, "name"));
        fputs("  ", stdout);
        out_name(stdout, text_of(f, "kind")); /* any text: later versions may have other kinds */
        printf("%sin %s\n", json_object_get(f, "kind") ? ", " : "",
               out_plural(a, sizeof a, count_of(f, "samples"), "sample", NULL));
        print_stored(json_object_get(f, "stored"));
    }
}

static void print_class_names(const target *t, size_t n)
{
    char a[48];
    print_name("classes");
    printf("%s", out_count(a, sizeof a, n));
    for (size_t i = 0; i < n && i < CLASSES_SHOWN; i++) {
        fputs(i ? ", " : ": ", stdout);
        out_name(stdout, spk_dataset_class_name(t->dataset, i));
    }
    printf("%s\n", n > CLASSES_SHOWN ? ", ... (--classes lists all)" : "");
}

static void print_class_counts(const target *t, const label_counts *l)
{
    char a[48];
    size_t classes = t->dataset ? spk_dataset_class_count(t->dataset) : 0;
    print_name(t->dataset ? "classes" : "labels");
    if (t->dataset)
        fputs(out_count(a, sizeof a, classes), stdout);
    putchar('\n');
    for (size_t i = 0; i < classes || i < l->size; i++) {
        uint64_t n = i < l->size ? l->counts[i] : 0;
        if (i >= classes && n == 0)
            continue;
        printf("%12zu  %10s", i, out_count(a, sizeof a, n));
        if (i < classes) {
            fputs("  ", stdout);
            out_name(stdout, spk_dataset_class_name(t->dataset, i));
        }
        putchar('\n');
    }
    if (l->without)
        printf("%12s  %10s  without a label\n", "-", out_count(a, sizeof a, l->without));
    if (l->others)
        printf("%12s  %10s  with other labels than 0 to %u\n", "-", out_count(a, sizeof a, l->others),
               INFO_LABELS_MAX - 1);
}

static void print_range(const json_t *images, const char *key, uint64_t count)
{
    const json_t *r = json_object_get(images, key);
    print_name("");
    printf("%s %llu to %llu, mean %llu\n", key, (unsigned long long)count_of(r, "min"),
           (unsigned long long)count_of(r, "max"), (unsigned long long)(count_of(r, "sum") / count));
}

/* Bucket b holds the images whose longer side is above 2^(b-1) and at most 2^b pixels. */
static void print_histogram(const json_t *buckets)
{
    uint64_t most = 0;
    size_t first = json_array_size(buckets), last = 0, i;
    char a[48];
    json_t *v;
    json_array_foreach(buckets, i, v)
    {
        uint64_t n = json_integer_value(v) > 0 ? (uint64_t)json_integer_value(v) : 0;
        most = n > most ? n : most;
        first = n && i < first ? i : first;
        last = n ? i : last;
    }
    for (i = first; i <= last && i < 63 && most; i++) {
        uint64_t n = (uint64_t)json_integer_value(json_array_get(buckets, i));
        int bar = (int)((double)n / (double)most * BAR + 0.5);
        print_name(i == first ? "longer side" : "");
        printf("%6llu to %-6llu  %10s  %.*s\n", i ? (1ULL << (i - 1)) + 1 : 1, 1ULL << i, out_count(a, sizeof a, n),
               bar || !n ? bar : 1, "########################################");
    }
}

static void print_images(const json_t *images)
{
    char a[48], b[48], c[48], d[48];
    uint64_t count = count_of(images, "count");
    if (!count)
        return;
    print_name("images");
    printf("%s: %s JPEG, %s PNG, %s other\n", out_count(a, sizeof a, count),
           out_count(b, sizeof b, count_of(images, "jpeg")), out_count(c, sizeof c, count_of(images, "png")),
           out_count(d, sizeof d, count_of(images, "other")));
    print_range(images, "width", count);
    print_range(images, "height", count);
    print_histogram(json_object_get(images, "longer_side"));
}

/* A number, an array, true, false or null as JSON. Its strings are a stranger's: nothing that a terminal obeys. */
static void print_value(const json_t *v)
{
    char *text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
    for (const char *p = text; p && *p;)
        p += out_safe_char(stdout, p);
    free(text);
}

/* Options and versions, whatever the packer recorded; objects in it as NAME.MEMBER. */
static void print_settings(const json_t *object, const char *prefix, int *first)
{
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)(uintptr_t)object, key, v)
    {
        char name[128];
        snprintf(name, sizeof name, "%s%s%s", prefix, *prefix ? "." : "", key);
        if (json_is_object(v)) {
            print_settings(v, name, first);
            continue;
        }
        print_name(*first ? "packed with" : "");
        *first = 0;
        out_name(stdout, name);
        fputs(" = ", stdout);
        if (json_is_string(v))
            out_name(stdout, json_string_value(v));
        else
            print_value(v);
        putchar('\n');
    }
}

void info_print_dataset(const target *t, const json_t *manifest, const label_counts *labels)
{
    size_t classes = spk_dataset_class_count(t->dataset);
    print_name("dataset");
    out_name(stdout, t->path);
    putchar('\n');
    print_name("fingerprint");
    puts(spk_dataset_fingerprint(t->dataset));
    print_totals(t, manifest);
    print_fields(json_object_get(manifest, "fields"));
    if (labels->counts)
        print_class_counts(t, labels);
    else if (classes)
        print_class_names(t, classes);
    print_images(json_object_get(manifest, "images"));
    print_settings(json_object_get(manifest, "pack"), "", &(int){1});
}

void info_print_shard(const target *t, const json_t *fields, const label_counts *labels)
{
    print_name("shard");
    out_name(stdout, t->path);
    putchar('\n');
    print_totals(t, NULL);
    print_fields(fields);
    if (labels->counts)
        print_class_counts(t, labels);
}
