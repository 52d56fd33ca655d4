/* Command line options, described once per command in a table of rows. Parsing, --help, the man pages and the shell
 * completions all come from the same rows, so none of them can say something else. Single-threaded; only this part of
 * the tool looks at argv. */
#ifndef TOOLS_OPTS_H
#define TOOLS_OPTS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define OPTS_MAX 64 /* rows in one command's table */

typedef enum opt_kind {
    OPT_GROUP = 0, /* no option: a heading in the help */
    OPT_FLAG,      /* int: 1; with negatable also --no-NAME: 0 */
    OPT_U64,       /* uint64_t */
    OPT_INT,       /* int64_t */
    OPT_SIZE,      /* uint64_t, bytes: 64k, 256M, 1GiB */
    OPT_DOUBLE,    /* double */
    OPT_STRING,    /* const char *, borrowed from argv */
    OPT_LIST,      /* opts_list, one item per use */
    OPT_ENUM       /* int: position in values */
} opt_kind;

/* What a shell completes for an argument. */
typedef enum opt_complete { COMPLETE_NONE = 0, COMPLETE_FILE, COMPLETE_FOLDER } opt_complete;

typedef struct opt {
    const char *name; /* without dashes; NULL only for OPT_GROUP and at the end of the table */
    opt_kind kind;
    char letter;     /* 0: none */
    int negatable;   /* OPT_FLAG: --no-NAME is accepted as well */
    int hidden;      /* not shown in help and manual */
    const char *arg; /* name of the argument in the help; NULL: none */
    size_t offset;   /* of the member in the command's values */
    const char *def; /* default, as shown; NULL: not worth showing */
    const char *help;
    int64_t min;
    uint64_t max; /* range of numbers and sizes; 0: the kind's own */
    opt_complete complete;
    const char *const *values; /* OPT_ENUM: words, NULL at the end */
} opt;

typedef struct opts_list {
    const char **items;
    size_t count;
} opts_list;

/* Two options that exclude each other; "no-x" is the negative of the flag x. */
typedef struct opt_conflict {
    const char *a, *b;
} opt_conflict;

typedef struct operand {
    const char *name;
    const char *help;
    opt_complete complete;
    const char *const *values; /* words to complete, or NULL */
} operand;

typedef struct example {
    const char *command;
    const char *text;
} example;

typedef struct opts opts;

/* A command: one row of the table in main.c, defined by its cmd_*.c. All lists end with a zero row or NULL. */
typedef struct command {
    const char *name;
    const char *summary;     /* one line, no full stop */
    const char *synopsis;    /* what follows the name */
    const char *description; /* paragraphs, separated by an empty line; lines starting with a space stay as they are */
    const opt *options;      /* help and version are added by the parser */
    const opt_conflict *conflicts;
    const operand *operands;
    size_t min_operands, max_operands; /* SIZE_MAX: any number */
    const example *examples;
    const char *failure;        /* when the exit status is 1 */
    size_t values_size;         /* of the struct that the offsets of the rows refer to */
    void (*init)(void *values); /* sets defaults other than zero; may be NULL */
    int (*run)(const opts *o);  /* returns the exit status */
    int hidden;                 /* not in the overview, without a manual of its own */
} command;

/* A parsed command line. */
struct opts {
    const command *command;
    void *values;
    unsigned char given[OPTS_MAX]; /* per row: 1 given, 2 given in its negative form */
    const char **operands;
    size_t operand_count;
    int help; /* --help was given; nothing else was checked */
};

/* The options of every command: --help. */
extern const opt opts_common[];

/* Parses argv[0..argc), which follows the command's name. 0, or 2 after a message on stderr. o is freed by the caller
 * in either case. */
int opts_parse(opts *o, const command *c, int argc, char **argv);
void opts_free(opts *o);
/* Nonzero if the option of that name was given, in either form. */
int opts_given(const opts *o, const char *name);

/* Stores text as the value of row r at `values`. 0, or -1 with the reason in why. */
int opts_value(const opt *r, const char *text, void *values, char *why, size_t why_size);
/* Parses a size such as 64k, 1.5M or 1GiB. 0 or -1. */
int opts_size(const char *text, uint64_t *out);
/* The word nearest to `text` of a list that ends with NULL, or NULL if none is near. */
const char *opts_nearest(const char *text, const char *const *words);
/* Accepted range of a number or size row, as text. */
void opts_range(const opt *r, char *buf, size_t size);

/* ---- texts made from the tables ---- */

/* A text of its own, about no single command. */
typedef struct topic {
    const char *name, *title, *text;
} topic;

typedef struct tool_info {
    const char *name, *version, *date, *summary, *description;
    const command *const *commands; /* NULL at the end */
    const topic *topics;            /* the last one has no name */
} tool_info;

void opts_help(FILE *f, const tool_info *t, const command *c);
void opts_overview(FILE *f, const tool_info *t);
void opts_topic(FILE *f, const topic *about);
/* Manual in man(7) macros: of one command, or of the tool if c is NULL. */
void opts_man(FILE *f, const tool_info *t, const command *c);
void opts_completion_bash(FILE *f, const tool_info *t);
void opts_completion_zsh(FILE *f, const tool_info *t);
void opts_completion_fish(FILE *f, const tool_info *t);

/* Calls fn for each line of text wrapped to `width` columns; lines that start with a space are not wrapped, an empty
 * line separates paragraphs. */
void opts_wrap(const char *text, size_t width, void (*fn)(void *ctx, const char *line, size_t n), void *ctx);
/* Calls fn for each visible option of the command, groups included, then for the common ones. */
void opts_each(const command *c, void (*fn)(void *ctx, const opt *r), void *ctx);

#endif
