/* Progress on stderr. */
#include "progress.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli.h"
#include "out.h"

enum { MODE_NONE, MODE_TERMINAL, MODE_LINES };
enum { PART_SHARE, PART_COUNT, PART_BYTES, PART_RATE, PART_LEFT, PARTS };

#define BAR_MIN 10
#define BAR_MAX 30

typedef struct parts {
    char text[PARTS][64];
    double share; /* 0 to 1; negative: unknown */
} parts;

void progress_start(progress *p, int quiet)
{
    memset(p, 0, sizeof *p);
    p->mode = quiet ? MODE_NONE : isatty(STDERR_FILENO) ? MODE_TERMINAL : MODE_LINES;
    p->shown_at = out_now();
}

/* Columns of the terminal, one less than it has: writing into the last one may wrap. */
static size_t terminal_width(void)
{
    struct winsize w;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 1)
        return (size_t)w.ws_col - 1;
    return 79;
}

static void describe_rate(parts *t, const progress_now *now, double seconds)
{
    char a[32];
    double bytes = (double)(now->bytes - (now->bytes_before < now->bytes ? now->bytes_before : now->bytes));
    if (seconds < 1 || bytes <= 0)
        return;
    double rate = bytes / seconds;
    snprintf(t->text[PART_RATE], sizeof t->text[0], "%s/s", out_size(a, sizeof a, (uint64_t)rate));
    /* A guess from the first moments would be wild. */
    if (now->bytes_total >= now->bytes && (t->share >= 0.01 || seconds >= 10) && rate >= 1)
        snprintf(t->text[PART_LEFT], sizeof t->text[0], "%s left",
                 out_time(a, sizeof a, (double)(now->bytes_total - now->bytes) / rate + 0.5));
}

static void describe(parts *t, const progress_now *now, double seconds)
{
    char a[32], b[32];
    memset(t, 0, sizeof *t);
    t->share = -1;
    if (now->bytes_total)
        t->share = (double)now->bytes / (double)now->bytes_total;
    else if (now->total)
        t->share = (double)now->done / (double)now->total;
    if (t->share > 1)
        t->share = 1;
    if (t->share >= 0)
        snprintf(t->text[PART_SHARE], sizeof t->text[0], "%3d %%", (int)(t->share * 100));
    if (now->total)
        snprintf(t->text[PART_COUNT], sizeof t->text[0], "%s/%s %s", out_count(a, sizeof a, now->done),
                 out_count(b, sizeof b, now->total), now->units);
    else if (now->units && now->done)
        snprintf(t->text[PART_COUNT], sizeof t->text[0], "%s %s", out_count(a, sizeof a, now->done), now->units);
    if (now->bytes)
        snprintf(t->text[PART_BYTES], sizeof t->text[0], "%s", out_size(a, sizeof a, now->bytes));
    describe_rate(t, now, seconds);
}

static size_t parts_width(const parts *t)
{
    size_t n = 0;
    for (int i = 0; i < PARTS; i++)
        n += t->text[i][0] ? strlen(t->text[i]) + 2 : 0;
    return n;
}

static void draw_bar(size_t columns, double share)
{
    size_t inner = columns - 2, full = (size_t)(share * (double)inner);
    fputs("  [", stderr);
    for (size_t i = 0; i < inner; i++)
        putc(i < full ? '=' : i == full ? '>' : ' ', stderr);
    putc(']', stderr);
}

/* What does not fit goes: first the bytes, then the count, the rate, the time left. */
static void draw(parts *t, const char *what)
{
    static const int order[] = {PART_BYTES, PART_COUNT, PART_RATE, PART_LEFT};
    size_t width = terminal_width(), used = strlen(what);
    int bar = t->share >= 0;
    for (size_t i = 0; i < 4 && used + parts_width(t) + (bar ? BAR_MIN + 2 : 0) > width; i++)
        t->text[order[i]][0] = 0;
    used += parts_width(t);
    if (used > width)
        return;
    fprintf(stderr, "\r\033[K%s", what);
    if (bar && width - used >= BAR_MIN + 2)
        draw_bar(width - used - 2 < BAR_MAX ? width - used - 2 : BAR_MAX, t->share);
    for (int i = 0; i < PARTS; i++)
        if (t->text[i][0])
            fprintf(stderr, "  %s", t->text[i]);
    fflush(stderr);
    cli_set_line_open(1);
}

static void print_line(const parts *t, const char *what)
{
    fprintf(stderr, "shardpack: %s", what);
    for (int i = 0, first = 1; i < PARTS; i++) {
        const char *s = t->text[i];
        if (!*s)
            continue;
        fprintf(stderr, "%s%s", first ? " " : ", ", s + strspn(s, " "));
        first = 0;
    }
    putc('\n', stderr);
}

void progress_show(progress *p, const progress_now *now)
{
    if (p->mode == MODE_NONE)
        return;
    double t = out_now();
    parts text;
    if (!p->timing && now->bytes_total) {
        p->timing = 1;
        p->started = t;
    }
    describe(&text, now, p->timing ? t - p->started : 0);
    if (p->mode == MODE_TERMINAL) {
        draw(&text, now->what);
        return;
    }
    double since = t - p->shown_at;
    if (since < 1 || (since < 5 && text.share - p->shown_share < 0.05))
        return;
    print_line(&text, now->what);
    p->shown_at = t;
    p->shown_share = text.share > 0 ? text.share : 0;
}

void progress_end(progress *p)
{
    if (p->mode == MODE_TERMINAL) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
        cli_set_line_open(0);
    }
    p->mode = MODE_NONE;
}
