/* The summary at the end of shardpack pack. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "cmd_pack.h"
#include "out.h"

#define REASONS_SHOWN 3 /* bad files named in the summary, unless --verbose */

typedef struct line {
    char a[48], b[48], c[48], d[48];
} line;

static int print_json(const pack_job *job, const spk_pack_result *r)
{
    json_t *o = json_object();
    out_json_text(o, "dataset", job->dst);
    out_json_text(o, "fingerprint", r->fingerprint[0] ? r->fingerprint : NULL);
    json_object_set_new(o, "dry_run", json_boolean(job->values->dry_run));
    json_object_set_new(o, "up_to_date", json_boolean(r->up_to_date));
    const struct {
        const char *name;
        uint64_t n;
    } counts[] = {
        {"samples", r->samples},
        {"files", r->files},
        {"classes", r->classes},
        {"shards", r->shards},
        {"shards_resumed", r->shards_resumed},
        {"frames", r->frames},
        {"bytes_in", r->bytes_in},
        {"bytes_out", r->bytes_out},
        {"bad", r->bad},
        {"bad_skipped_samples", r->bad_skipped_samples},
        {"junk", r->junk},
        {"other_skipped", r->other_skipped},
        {"excluded", r->excluded},
        {"excluded_folders", r->excluded_folders},
        {"jpeg_fast", r->jpeg_fast},
        {"jpeg_pixels", r->jpeg_pixels},
        {"jpeg_other", r->jpeg_other},
        {"jpeg_damaged", r->jpeg_damaged},
        {"jpeg_unequal", r->jpeg_unequal},
        {"jpeg_no_gain", r->jpeg_no_gain},
    };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        out_json_count(o, counts[i].name, counts[i].n);
    json_object_set_new(o, "seconds", json_real(job->seconds));
    return out_json(o);
}

/* One row of bad-files.tsv: path, what was done, why. */
static void print_bad_row(char *row)
{
    char *action = strchr(row, '\t'), *reason = action ? strchr(action + 1, '\t') : NULL;
    row[strcspn(row, "\n")] = 0;
    if (!reason)
        return;
    *action = *reason = 0;
    fputs("    ", stdout);
    out_name(stdout, row);
    fputs(": ", stdout);
    out_name(stdout, reason + 1);
    putchar('\n');
}

static void print_bad(const pack_job *job, const spk_pack_result *r)
{
    line t;
    char path[4096], *row = NULL;
    size_t room = 0;
    uint64_t left = job->values->verbose ? UINT64_MAX : REASONS_SHOWN;
    printf("  %s", out_plural(t.a, sizeof t.a, r->bad, "bad file", NULL));
    if (r->bad_skipped_samples)
        printf(", %s left out", out_plural(t.b, sizeof t.b, r->bad_skipped_samples, "sample", NULL));
    else if (job->values->on_bad == SPK_ON_BAD_KEEP)
        printf(", kept");
    printf(":\n");
    snprintf(path, sizeof path, "%s/bad-files.tsv", job->dst); /* one list, whatever the splits */
    FILE *f = fopen(path, "re");
    while (f && left && getline(&row, &room, f) > 0) {
        if (*row == '#')
            continue;
        print_bad_row(row);
        left--;
    }
    if (f)
        fclose(f);
    printf("    %s ", r->bad <= REASONS_SHOWN || job->values->verbose ? "listed in" : "all of them:");
    out_name(stdout, path);
    putchar('\n');
    free(row);
}

static void print_skipped(const spk_pack_result *r)
{
    line t;
    const char *sep = "  skipped: ";
    if (r->junk) {
        printf("%s%s", sep,
               out_plural(t.a, sizeof t.a, r->junk, "system file (such as .DS_Store)",
                          "system files (such as .DS_Store)"));
        sep = ", ";
    }
    if (r->other_skipped) {
        printf("%s%s", sep,
               out_plural(t.b, sizeof t.b, r->other_skipped, "link or special file", "links or special files"));
        sep = ", ";
    }
    if (r->excluded) {
        printf("%s%s", sep, out_plural(t.c, sizeof t.c, r->excluded, "file not selected", "files not selected"));
        sep = ", ";
    }
    if (r->excluded_folders) {
        printf("%s%s", sep,
               out_plural(t.d, sizeof t.d, r->excluded_folders, "folder not selected", "folders not selected"));
        sep = ", ";
    }
    if (sep[0] == ',')
        putchar('\n');
}

static void print_head(const pack_job *job, const spk_pack_result *r)
{
    line t;
    printf("%s %s (%s)", job->values->dry_run ? job->would : job->done,
           out_plural(t.a, sizeof t.a, r->samples, "sample", NULL),
           out_plural(t.b, sizeof t.b, r->files, "file", NULL));
    if (r->classes)
        printf(" of %s", out_plural(t.c, sizeof t.c, r->classes, "class", "classes"));
    printf(" into %s", out_plural(t.d, sizeof t.d, r->shards, "shard", NULL));
    if (r->shards_resumed)
        printf(", %s of them already there", out_count(t.a, sizeof t.a, r->shards_resumed));
    putchar('\n');
}

static void print_bytes(const pack_job *job, const spk_pack_result *r)
{
    line t;
    double seconds = job->seconds > 0.001 ? job->seconds : 0.001;
    if (job->values->dry_run) {
        printf("  %s of source files\n", out_size(t.a, sizeof t.a, r->bytes_in));
        return;
    }
    printf("  %s in, %s out", out_size(t.a, sizeof t.a, r->bytes_in), out_size(t.b, sizeof t.b, r->bytes_out));
    if (r->bytes_in)
        printf(" (%.1f %%)", 100.0 * (double)r->bytes_out / (double)r->bytes_in);
    printf(", in %s", out_time(t.a, sizeof t.a, job->seconds));
    if (!r->shards_resumed)
        printf(" (%s/s, %s samples/s)", out_size(t.b, sizeof t.b, (uint64_t)((double)r->bytes_in / seconds)),
               out_count(t.c, sizeof t.c, (uint64_t)((double)r->samples / seconds)));
    putchar('\n');
}

/* How the JPEG images are stored, and why some are as they were. */
static void print_jpeg(const spk_pack_result *r)
{
    const struct {
        uint64_t n;
        const char *why;
    } kept[] = {{r->jpeg_other, "of other kinds"},
                {r->jpeg_damaged, "damaged"},
                {r->jpeg_unequal, "not restored exactly"},
                {r->jpeg_no_gain, "not smaller"}};
    line t;
    uint64_t others = r->jpeg_other + r->jpeg_damaged + r->jpeg_unequal + r->jpeg_no_gain;
    const char *sep = ": ";
    printf("  %s stored as coefficients", out_plural(t.a, sizeof t.a, r->jpeg_fast, "JPEG", NULL));
    if (r->jpeg_pixels)
        printf(", %s as those of other files with the same pixels", out_count(t.a, sizeof t.a, r->jpeg_pixels));
    if (others)
        printf(", %s as they are", out_count(t.a, sizeof t.a, others));
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (kept[i].n) {
            printf("%s%s %s", sep, out_count(t.a, sizeof t.a, kept[i].n), kept[i].why);
            sep = ", ";
        }
    putchar('\n');
}

static void print_where(const pack_job *job)
{
    if (job->values->dry_run)
        return;
    printf("  dataset: ");
    out_name(stdout, job->dst);
    for (size_t i = 0; i < job->split_count; i++) {
        if (i) {
            fputs(", ", stdout);
            out_name(stdout, job->dst);
        }
        printf("/%s", job->splits[i].name);
    }
    putchar('\n');
}

int pack_report(const pack_job *job, const spk_pack_result *r)
{
    if (job->values->json)
        return print_json(job, r);
    if (job->values->quiet)
        return CLI_OK;
    if (r->up_to_date) {
        line t;
        out_name(stdout, job->dst);
        printf(": up to date, %s in %s\n", out_plural(t.a, sizeof t.a, r->samples, "sample", NULL),
               out_plural(t.b, sizeof t.b, r->shards, "shard", NULL));
        return CLI_OK;
    }
    print_head(job, r);
    print_bytes(job, r);
    print_skipped(r);
    if (job->values->jpeg == SPK_JPEG_FAST && !job->values->dry_run)
        print_jpeg(r);
    if (r->bad)
        print_bad(job, r);
    print_where(job);
    if (job->values->verbose && r->fingerprint[0])
        printf("  fingerprint: %s\n", r->fingerprint);
    return CLI_OK;
}
