/* The option parser: GNU conventions (--name=value, --name value, -nvalue, -abc, operands anywhere, "--" ends options),
 * no abbreviations. Every refusal is one line that names the option and what would be accepted. */
#include "opts.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"

const opt opts_common[] = {
    {.name = "help", .kind = OPT_FLAG, .letter = 'h', .help = "Show this help and exit."},
    {0},
};

typedef struct parser {
    opts *o;
    int argc, next;
    char **argv;
} parser;

/* Is `name` the negative form of row r? */
static int is_negative(const opt *r, const char *name, size_t n)
{
    return r->negatable && n > 3 && memcmp(name, "no-", 3) == 0 && strlen(r->name) == n - 3 &&
           memcmp(r->name, name + 3, n - 3) == 0;
}

/* Row with this long name, or -1; *negative tells which form it was. */
static int find_long(const opt *rows, const char *name, size_t n, int *negative)
{
    *negative = 0;
    for (int i = 0; rows && (rows[i].name || rows[i].help); i++) {
        if (!rows[i].name)
            continue;
        if (strlen(rows[i].name) == n && memcmp(rows[i].name, name, n) == 0)
            return i;
        if (is_negative(&rows[i], name, n)) {
            *negative = 1;
            return i;
        }
    }
    return -1;
}

static int find_short(const opt *rows, char letter)
{
    for (int i = 0; rows && (rows[i].name || rows[i].help); i++)
        if (rows[i].name && rows[i].letter == letter)
            return i;
    return -1;
}

static int unknown_long(const parser *p, const char *name, size_t n)
{
    const opt *rows = p->o->command->options;
    const char *words[2 * OPTS_MAX + 2];
    char negatives[OPTS_MAX][40], given[64];
    size_t count = 0;
    for (size_t i = 0; rows && (rows[i].name || rows[i].help); i++) {
        if (!rows[i].name || rows[i].hidden)
            continue;
        words[count++] = rows[i].name;
        if (rows[i].negatable) {
            snprintf(negatives[i], sizeof negatives[i], "no-%s", rows[i].name);
            words[count++] = negatives[i];
        }
    }
    words[count++] = "help";
    words[count] = NULL;
    snprintf(given, sizeof given, "%.*s", (int)(n < 60 ? n : 60), name);
    const char *near = opts_nearest(given, words);
    if (near)
        return cli_usage(p->o->command->name, "unknown option --%s; did you mean --%s?", given, near);
    return cli_usage(p->o->command->name, "unknown option --%s", given);
}

/* Option i with an argument that may be NULL if there is none yet. */
static int store(parser *p, int i, int negative, const char *shown, const char *value)
{
    const opt *r = &p->o->command->options[i];
    char why[256];
    if (r->kind == OPT_FLAG) {
        if (value)
            return cli_usage(p->o->command->name, "%s takes no argument", shown);
        *(int *)(void *)((char *)p->o->values + r->offset) = !negative;
    } else {
        if (!value && p->next >= p->argc)
            return cli_usage(p->o->command->name, "%s needs an argument, %s", shown, r->arg);
        if (!value)
            value = p->argv[p->next++];
        if (opts_value(r, value, p->o->values, why, sizeof why))
            return cli_usage(p->o->command->name, "%s %s: %s", shown, *value ? value : "\"\"", why);
    }
    p->o->given[i] = negative ? 2 : 1;
    return 0;
}

static int parse_long(parser *p, const char *arg)
{
    const char *name = arg + 2, *eq = strchr(name, '=');
    size_t n = eq ? (size_t)(eq - name) : strlen(name);
    int negative, i = find_long(p->o->command->options, name, n, &negative);
    char shown[64];
    if (i < 0 && n == 4 && memcmp(name, "help", 4) == 0) {
        p->o->help = 1;
        return 0;
    }
    if (i < 0)
        return unknown_long(p, name, n);
    snprintf(shown, sizeof shown, "--%.*s", (int)n, name);
    return store(p, i, negative, shown, eq ? eq + 1 : NULL);
}

/* A cluster of short options, such as -qj4. */
static int parse_short(parser *p, const char *arg)
{
    for (const char *s = arg + 1; *s; s++) {
        char shown[3] = {'-', *s, 0};
        int i = find_short(p->o->command->options, *s);
        if (i < 0 && *s == 'h') {
            p->o->help = 1;
            continue;
        }
        if (i < 0)
            return cli_usage(p->o->command->name, "unknown option -%c in %s", *s, arg);
        int flag = p->o->command->options[i].kind == OPT_FLAG;
        int rc = store(p, i, 0, shown, flag || !s[1] ? NULL : s + 1);
        if (rc || !flag)
            return rc;
    }
    return 0;
}

/* Was the option given in the form that `name` spells? */
static int given_as(const opts *o, const char *name)
{
    int negative, i = find_long(o->command->options, name, strlen(name), &negative);
    return i >= 0 && o->given[i] == (negative ? 2 : 1);
}

static int check_conflicts(const parser *p)
{
    for (const opt_conflict *c = p->o->command->conflicts; c && c->a; c++)
        if (given_as(p->o, c->a) && given_as(p->o, c->b))
            return cli_usage(p->o->command->name, "--%s and --%s exclude each other", c->a, c->b);
    return 0;
}

static int check_operands(const parser *p)
{
    const command *c = p->o->command;
    size_t n = p->o->operand_count;
    if (n < c->min_operands) {
        const operand *missing = c->operands;
        for (size_t i = 0; i < n && missing[1].name; i++)
            missing++;
        return cli_usage(c->name, "%s is missing", missing->name);
    }
    if (n > c->max_operands)
        return cli_usage(c->name, "unexpected operand %s", p->o->operands[c->max_operands]);
    for (size_t i = 0; i < n; i++) { /* the unset variable of a script; the last row stands for all that follow */
        const operand *row = c->operands;
        for (size_t k = 0; k < i && row[1].name; k++)
            row++;
        if (!*p->o->operands[i])
            return cli_usage(c->name, "%s is empty", row->name);
    }
    return 0;
}

int opts_parse(opts *o, const command *c, int argc, char **argv)
{
    memset(o, 0, sizeof *o);
    o->command = c;
    o->values = calloc(1, c->values_size ? c->values_size : 1);
    o->operands = calloc((size_t)argc + 1, sizeof *o->operands);
    if (!o->values || !o->operands)
        return cli_no_memory();
    if (c->init)
        c->init(o->values);
    parser p = {.o = o, .argc = argc, .argv = argv};
    int only_operands = 0, rc = 0;
    while (p.next < argc && !rc && !o->help) {
        const char *arg = argv[p.next++];
        if (only_operands || arg[0] != '-' || !arg[1])
            o->operands[o->operand_count++] = arg;
        else if (strcmp(arg, "--") == 0)
            only_operands = 1;
        else if (arg[1] == '-')
            rc = parse_long(&p, arg);
        else
            rc = parse_short(&p, arg);
    }
    if (rc || o->help)
        return rc;
    rc = check_conflicts(&p);
    return rc ? rc : check_operands(&p);
}

void opts_free(opts *o)
{
    const opt *rows = o->command ? o->command->options : NULL;
    for (int i = 0; o->values && rows && (rows[i].name || rows[i].help); i++)
        if (rows[i].kind == OPT_LIST)
            free(((opts_list *)(void *)((char *)o->values + rows[i].offset))->items);
    free(o->values);
    free(o->operands);
    o->values = NULL;
    o->operands = NULL;
}

int opts_given(const opts *o, const char *name)
{
    int negative, i = find_long(o->command->options, name, strlen(name), &negative);
    return i >= 0 && o->given[i] != 0;
}
