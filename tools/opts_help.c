/* --help and the overview, wrapped to 80 columns. */
#include <ctype.h>
#include <string.h>

#include "opts.h"
#include "out.h"

#define WIDTH 80
#define HELP_COLUMN 27

void opts_wrap(const char *text, size_t width, void (*fn)(void *ctx, const char *line, size_t n), void *ctx)
{
    while (*text) {
        size_t end = strcspn(text, "\n"), n = end;
        if (*text != ' ' && n > width) {
            for (n = width; n > 0 && text[n] != ' '; n--)
                ;
            if (n == 0)
                n = strcspn(text, " \n");
        }
        fn(ctx, text, n);
        text += n;
        if (*text == '\n' || *text == ' ')
            text++;
    }
}

static void each_row(const opt *rows, void (*fn)(void *ctx, const opt *r), void *ctx)
{
    for (; rows && (rows->name || rows->help); rows++)
        if (!rows->hidden)
            fn(ctx, rows);
}

void opts_each(const command *c, void (*fn)(void *ctx, const opt *r), void *ctx)
{
    each_row(c->options, fn, ctx);
    each_row(opts_common, fn, ctx);
}

typedef struct column {
    FILE *f;
    int indent;
    int started; /* the first line continues what stands on it */
} column;

static void put_line(void *ctx, const char *line, size_t n)
{
    column *c = ctx;
    fprintf(c->f, "%*s%.*s\n", c->started && n ? c->indent : 0, "", (int)n, line);
    c->started = 1;
}

static void put_text(FILE *f, int indent, const char *text)
{
    column c = {.f = f, .indent = indent, .started = 1};
    opts_wrap(text, (size_t)(WIDTH - indent), put_line, &c);
}

/* A term and its explanation beside it, or below it where the term is long. */
static void put_entry(FILE *f, const char *term, const char *text)
{
    size_t n = strlen(term);
    column c = {.f = f, .indent = HELP_COLUMN};
    fputs(term, f);
    if (n + 2 > HELP_COLUMN) {
        putc('\n', f);
        c.started = 1;
    } else {
        fprintf(f, "%*s", (int)(HELP_COLUMN - n), "");
    }
    opts_wrap(text, WIDTH - HELP_COLUMN, put_line, &c);
}

static void put_option(void *ctx, const opt *r)
{
    FILE *f = ctx;
    char term[80], text[1024], range[80], *t = text;
    size_t left = sizeof text;
    if (r->kind == OPT_GROUP) {
        fprintf(f, "\n%s:\n", r->help);
        return;
    }
    snprintf(term, sizeof term, "  %c%c%s --%s%s%s%s", r->letter ? '-' : ' ', r->letter ? r->letter : ' ',
             r->letter ? "," : " ", r->negatable ? "[no-]" : "", r->name, r->arg ? "=" : "", r->arg ? r->arg : "");
    int n = snprintf(t, left, "%s", r->help);
    if (r->kind == OPT_ENUM || r->min || r->max) {
        char words[160] = "";
        for (size_t i = 0, used = 0; r->kind == OPT_ENUM && r->values[i] && used < sizeof words; i++)
            used += (size_t)snprintf(words + used, sizeof words - used, "%s%s", i ? ", " : "", r->values[i]);
        if (r->kind != OPT_ENUM)
            opts_range(r, range, sizeof range);
        snprintf(t + n, left - (size_t)n, " [%s%s%s]", r->kind == OPT_ENUM ? words : range, r->def ? "; default: " : "",
                 r->def ? r->def : "");
    } else if (r->def) {
        snprintf(t + n, left - (size_t)n, " [default: %s]", r->def);
    }
    put_entry(f, term, text);
}

static void put_usage(FILE *f, const tool_info *t, const command *c)
{
    fprintf(f, "Usage: %s %s %s\n\n", t->name, c->name, c->synopsis);
    fprintf(f, "%c%s.\n\n", toupper((unsigned char)c->summary[0]), c->summary + 1);
    put_text(f, 0, c->description);
    fprintf(f, "\n");
}

void opts_help(FILE *f, const tool_info *t, const command *c)
{
    char term[64];
    put_usage(f, t, c);
    for (const operand *o = c->operands; o && o->name; o++) {
        snprintf(term, sizeof term, "  %s", o->name);
        put_entry(f, term, o->help);
    }
    if (!c->options || c->options[0].kind != OPT_GROUP)
        fprintf(f, "%sOptions:\n", c->operands ? "\n" : "");
    opts_each(c, put_option, f);
    fprintf(f, "\nExamples:\n");
    for (const example *e = c->examples; e && e->command; e++) {
        fprintf(f, "  %s\n", e->command);
        put_text(f, 6, e->text);
    }
    fprintf(f, "\nExit status: 0 on success, 2 on wrong usage, 130 or 143 when interrupted, and 1\n");
    put_text(f, 0, c->failure);
}

void opts_topic(FILE *f, const topic *about)
{
    fprintf(f, "%s\n\n", about->title);
    put_text(f, 0, about->text);
}

void opts_overview(FILE *f, const tool_info *t)
{
    fprintf(f, "Usage: %s COMMAND [OPTION]... OPERAND...\n\n", t->name);
    put_text(f, 0, t->summary);
    fprintf(f, "\nCommands:\n");
    for (const command *const *c = t->commands; *c; c++)
        if (!(*c)->hidden)
            fprintf(f, "  %-10s %s\n", (*c)->name, (*c)->summary);
    fprintf(f, "\nFirst steps:\n"
               "  shardpack pack photos/ photos.shards    pack a folder of images\n"
               "  shardpack verify photos.shards          check every byte of the result\n"
               "  shardpack ls -l photos.shards           list what is inside\n\n"
               "\"shardpack help COMMAND\" or \"shardpack COMMAND --help\" explains a command,\n"
               "\"shardpack help urls\" datasets on S3 and web servers, \"shardpack help\n"
               "environment\" the variables; \"shardpack --version\" tells the version.\n");
}
