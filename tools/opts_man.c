/* Manual pages in man(7) macros, from the same tables as --help. Their date is the version's, so that the same sources
 * give the same bytes. */
#include <ctype.h>
#include <string.h>

#include "opts.h"

/* Text with what roff would interpret made literal. */
static void put_escaped(FILE *f, const char *text, size_t n)
{
    if (n && (*text == '.' || *text == '\''))
        fputs("\\&", f);
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\\')
            fputs("\\e", f);
        else if (text[i] == '-')
            fputs("\\-", f);
        else if (text[i] == '^' || text[i] == '~' || text[i] == '`' || text[i] == '\'')
            fputs(text[i] == '^' ? "\\(ha" : text[i] == '~' ? "\\(ti" : text[i] == '`' ? "\\(ga" : "\\(aq", f);
        else
            putc(text[i], f);
    }
}

static void put(FILE *f, const char *text)
{
    put_escaped(f, text, strlen(text));
}

typedef struct paragraphs {
    FILE *f;
    int literal; /* inside .nf */
    int gap;     /* an empty line went by */
} paragraphs;

static void put_paragraph_line(void *ctx, const char *line, size_t n)
{
    paragraphs *p = ctx;
    if (n == 0) {
        p->gap = 1;
        return;
    }
    int literal = *line == ' ';
    if (literal != p->literal) {
        if (literal)
            fputs(p->gap ? ".PP\n.nf\n" : ".nf\n", p->f);
        else
            fputs(p->gap ? ".fi\n.PP\n" : ".fi\n", p->f);
    } else if (p->gap) {
        fputs(".PP\n", p->f);
    }
    p->gap = 0;
    p->literal = literal;
    put_escaped(p->f, line, n);
    putc('\n', p->f);
}

static void put_text(FILE *f, const char *text)
{
    paragraphs p = {.f = f};
    opts_wrap(text, 76, put_paragraph_line, &p);
    if (p.literal)
        fputs(".fi\n", f);
}

static void put_option(void *ctx, const opt *r)
{
    FILE *f = ctx;
    char range[80];
    if (r->kind == OPT_GROUP) {
        fputs(".SS ", f);
        put(f, r->help);
        putc('\n', f);
        return;
    }
    fputs(".TP\n", f);
    if (r->letter)
        fprintf(f, "\\fB\\-%c\\fR, ", r->letter);
    fputs("\\fB\\-\\-", f);
    put(f, r->name);
    fputs("\\fR", f);
    if (r->arg) {
        fputs("=\\fI", f);
        put(f, r->arg);
        fputs("\\fR", f);
    }
    if (r->negatable) {
        fputs(", \\fB\\-\\-no\\-", f);
        put(f, r->name);
        fputs("\\fR", f);
    }
    putc('\n', f);
    put_text(f, r->help);
    if (r->kind == OPT_ENUM) {
        fputs("One of ", f);
        for (size_t i = 0; r->values[i]; i++) {
            fputs(i ? ", \\fB" : "\\fB", f);
            put(f, r->values[i]);
            fputs("\\fR", f);
        }
        fputs(".\n", f);
    } else if (r->min || r->max) {
        opts_range(r, range, sizeof range);
        fputs("Accepts ", f);
        put(f, range);
        fputs(".\n", f);
    }
    if (r->def) {
        fputs("Default: ", f);
        put(f, r->def);
        fputs(".\n", f);
    }
}

static void put_head(FILE *f, const tool_info *t, const char *page, const char *summary)
{
    char title[64];
    size_t n = strlen(page);
    for (size_t i = 0; i <= n && i < sizeof title; i++)
        title[i] = (char)toupper((unsigned char)page[i]);
    title[sizeof title - 1] = 0;
    fputs(".\\\" Made by shardpack help --man. Changes belong into the tables of the source.\n.TH ", f);
    put(f, title);
    fprintf(f, " 1 \"%s\" \"%s %s\" \"User Commands\"\n.SH NAME\n", t->date, t->name, t->version);
    put(f, page);
    fputs(" \\- ", f);
    put(f, summary);
    putc('\n', f);
}

static void put_example(FILE *f, const example *e)
{
    fputs(".TP\n.B ", f);
    put(f, e->command);
    putc('\n', f);
    put(f, e->text);
    putc('\n', f);
}

/* failure follows a comma in the help; here it begins a sentence. */
static void put_status(FILE *f, const char *failure)
{
    fputs(".SH EXIT STATUS\n.TP\n.B 0\nSuccess.\n.TP\n.B 1\n", f);
    putc(toupper((unsigned char)failure[0]), f);
    put_text(f, failure + 1);
    fputs(".TP\n.B 2\nThe command line was wrong; nothing was done.\n.TP\n.BR 130 \", \" 143\n"
          "Stopped by SIGINT or SIGTERM.\n",
          f);
}

static void put_command(FILE *f, const tool_info *t, const command *c)
{
    char page[64];
    snprintf(page, sizeof page, "%s-%s", t->name, c->name);
    put_head(f, t, page, c->summary);
    fprintf(f, ".SH SYNOPSIS\n.B %s %s\n", t->name, c->name);
    put(f, c->synopsis);
    fputs("\n.SH DESCRIPTION\n", f);
    put_text(f, c->description);
    for (const operand *o = c->operands; o && o->name; o++) {
        fputs(".TP\n.I ", f);
        put(f, o->name);
        putc('\n', f);
        put_text(f, o->help);
    }
    fputs(".SH OPTIONS\n", f);
    opts_each(c, put_option, f);
    put_status(f, c->failure);
    fputs(".SH EXAMPLES\n", f);
    for (const example *e = c->examples; e && e->command; e++)
        put_example(f, e);
    fprintf(f, ".SH SEE ALSO\n.BR %s (1)\n", t->name);
}

static void put_tool(FILE *f, const tool_info *t)
{
    put_head(f, t, t->name, "pack image folders into shards, and read them back");
    fprintf(f, ".SH SYNOPSIS\n.B %s\n.I COMMAND\n[\\fIOPTION\\fR]... \\fIOPERAND\\fR...\n.SH DESCRIPTION\n", t->name);
    put_text(f, t->description);
    fputs(".SH COMMANDS\n", f);
    for (const command *const *c = t->commands; *c; c++) {
        if ((*c)->hidden)
            continue;
        fputs(".TP\n.B ", f);
        put(f, (*c)->name);
        putc('\n', f);
        put(f, (*c)->summary);
        putc('\n', f);
    }
    fputs(".SH OPTIONS\n.TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nShow the list of commands and exit.\n"
          ".TP\n\\fB\\-\\-version\\fR\nShow the version and exit.\n",
          f);
    for (const topic *about = t->topics; about->name; about++) {
        fputs(".SH ", f);
        for (const char *p = about->title; *p; p++)
            putc(toupper((unsigned char)*p), f);
        putc('\n', f);
        put_text(f, about->text);
    }
    put_status(f, "A problem was found, or the operation failed.");
    fputs(".SH SEE ALSO\n", f);
    int first = 1;
    for (const command *const *c = t->commands; *c; c++) {
        if ((*c)->hidden)
            continue;
        fprintf(f, "%s.BR %s\\-%s (1)", first ? "" : ",\n", t->name, (*c)->name);
        first = 0;
    }
    putc('\n', f);
}

void opts_man(FILE *f, const tool_info *t, const command *c)
{
    if (c)
        put_command(f, t, c);
    else
        put_tool(f, t);
}
