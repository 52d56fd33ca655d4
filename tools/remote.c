/* Options of datasets by URL, and the figures of loaders that read from them. */
#include "remote.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "out.h"

#define LINE 1024

/* What is counted of a mirror: its name in JSON, and in words what failed. */
static const struct {
    const char *name, *words;
    size_t offset;
} counts[] = {
    {"requests", NULL, offsetof(spk_mirror_stats, requests)},
    {"bytes", NULL, offsetof(spk_mirror_stats, bytes)},
    {"retries", NULL, offsetof(spk_mirror_stats, retries)},
    {"failovers", NULL, offsetof(spk_mirror_stats, failovers)},
    {"hedges", NULL, offsetof(spk_mirror_stats, hedges)},
    {"no_connection", "without connection", offsetof(spk_mirror_stats, no_connection)},
    {"broken", "broken off", offsetof(spk_mirror_stats, broken)},
    {"stalled", "stalled", offsetof(spk_mirror_stats, stalled)},
    {"denied", "denied (401, 403)", offsetof(spk_mirror_stats, denied)},
    {"missing", "missing (404, 410)", offsetof(spk_mirror_stats, missing)},
    {"throttled", "throttled (429, 503)", offsetof(spk_mirror_stats, throttled)},
    {"server_errors", "server errors (5xx)", offsetof(spk_mirror_stats, server_errors)},
    {"bad_replies", "other replies", offsetof(spk_mirror_stats, bad_replies)},
    {"changed", "changed objects", offsetof(spk_mirror_stats, changed)},
    {"wrong_bytes", "wrong bytes (SHA-256)", offsetof(spk_mirror_stats, wrong_bytes)},
};
#define COUNTS (sizeof counts / sizeof *counts)

/* Of commands that catch signals; the others are ended by them. */
static int on_wait(void *user)
{
    (void)user;
    return cli_interrupted();
}

spk_dataset_options remote_options(const remote_values *v)
{
    return (spk_dataset_options){.size = sizeof(spk_dataset_options),
                                 .mirrors = v->mirrors.items,
                                 .on_wait = on_wait,
                                 .mirror_count = v->mirrors.count,
                                 .deadline = v->deadline,
                                 .cache_dir = v->cache_dir,
                                 .cache_limit = v->cache_limit};
}

static uint64_t count_of(const spk_mirror_stats *m, size_t i)
{
    uint64_t n;
    memcpy(&n, (const char *)m + counts[i].offset, sizeof n);
    return n;
}

void remote_report_take(remote_report *r, const spk_loader *loader)
{
    spk_loader_stats s;
    memset(r, 0, sizeof *r);
    spk_loader_get_stats(loader, &s);
    for (size_t i = 0; i < REMOTE_MIRRORS_MAX && spk_loader_get_mirror(loader, i, &r->mirrors[i]) == SPK_OK; i++) {
        r->urls[i] = strdup(r->mirrors[i].url);
        if (!r->urls[i])
            break;
        r->count = i + 1;
    }
    r->cache_hits = s.cache_hits;
    r->cache_hit_bytes = s.cache_hit_bytes;
    r->cache_misses = s.cache_misses;
}

void remote_report_free(remote_report *r)
{
    for (size_t i = 0; i < r->count; i++)
        free(r->urls[i]);
    memset(r, 0, sizeof *r);
}

static void add(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(char *text, const char *format, ...)
{
    size_t n = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + n, LINE - n, format, args);
    va_end(args);
}

/* "; HTTP 404 x1, 503 x4" */
static void add_codes(char *text, const spk_mirror_stats *m)
{
    const char *between = "; HTTP ";
    char count[48];
    for (size_t i = 0; i < sizeof m->codes / sizeof *m->codes; i++)
        if (m->codes[i] > 0) {
            add(text, "%s%zu x%s", between, 100 + i, out_count(count, sizeof count, m->codes[i]));
            between = ", ";
        }
}

static void print_mirror(const remote_report *r, size_t i, void (*line)(const char *text))
{
    const spk_mirror_stats *m = &r->mirrors[i];
    char text[LINE] = "", a[48], b[48];
    const char *between = "; failed: ";
    add(text, "%.400s: %s in %s", r->urls[i], out_size(a, sizeof a, m->bytes),
        out_plural(b, sizeof b, m->requests, "request", NULL));
    if (m->latency_p50 > 0)
        add(text, ", first byte after %s (p99 %s)", out_time(a, sizeof a, m->latency_p50),
            out_time(b, sizeof b, m->latency_p99));
    add(text, "; %s", out_plural(a, sizeof a, m->retries, "retry", "retries"));
    add(text, ", %s, %s", out_plural(a, sizeof a, m->failovers, "failover", NULL),
        out_plural(b, sizeof b, m->hedges, "hedge", NULL));
    for (size_t k = 0; k < COUNTS; k++)
        if (counts[k].words && count_of(m, k) > 0) {
            add(text, "%s%s %s", between, out_count(a, sizeof a, count_of(m, k)), counts[k].words);
            between = ", ";
        }
    add_codes(text, m);
    line(text);
}

void remote_report_print(const remote_report *r, void (*line)(const char *text))
{
    char text[LINE] = "", a[48], b[48], c[48];
    for (size_t i = 0; i < r->count; i++)
        print_mirror(r, i, line);
    if (r->cache_hits == 0 && r->cache_misses == 0)
        return;
    add(text, "cache: %s (%s), %s fetched", out_plural(a, sizeof a, r->cache_hits, "hit", NULL),
        out_size(b, sizeof b, r->cache_hit_bytes), out_plural(c, sizeof c, r->cache_misses, "piece", NULL));
    line(text);
}

static json_t *seconds(double value)
{
    return value > 0 ? json_real(value) : json_null();
}

static json_t *codes_json(const spk_mirror_stats *m)
{
    json_t *o = json_object();
    char status[8];
    for (size_t i = 0; i < sizeof m->codes / sizeof *m->codes; i++)
        if (m->codes[i] > 0) {
            snprintf(status, sizeof status, "%zu", 100 + i);
            out_json_count(o, status, m->codes[i]);
        }
    return o;
}

void remote_report_json(const remote_report *r, json_t *object)
{
    if (r->count == 0)
        return;
    json_t *list = json_array(), *cache = json_object();
    for (size_t i = 0; i < r->count; i++) {
        json_t *o = json_object();
        out_json_text(o, "url", r->urls[i]);
        for (size_t k = 0; k < COUNTS; k++)
            out_json_count(o, counts[k].name, count_of(&r->mirrors[i], k));
        json_object_set_new(o, "codes", codes_json(&r->mirrors[i]));
        json_object_set_new(o, "latency_p50", seconds(r->mirrors[i].latency_p50));
        json_object_set_new(o, "latency_p99", seconds(r->mirrors[i].latency_p99));
        json_array_append_new(list, o);
    }
    out_json_count(cache, "hits", r->cache_hits);
    out_json_count(cache, "hit_bytes", r->cache_hit_bytes);
    out_json_count(cache, "misses", r->cache_misses);
    json_object_set_new(object, "mirrors", list);
    json_object_set_new(object, "cache", cache);
}
