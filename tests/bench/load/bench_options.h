/* Command lines of the form NAME=VALUE ... */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bench_option {
    const char *name;
    const char *choices; /* "a|b|c": value is the place of the word; NULL: a number */
    uint64_t value;      /* before: the default */
};

/* Number of the word among the choices, -1 if it is none. */
static inline int bench_choice(const char *choices, const char *word)
{
    size_t n = strlen(word);
    for (int i = 0; *choices; i++) {
        size_t have = strcspn(choices, "|");
        if (have == n && memcmp(choices, word, n) == 0)
            return i;
        choices += have + (choices[have] == '|');
    }
    return -1;
}

/* Options end with a NULL name. 0, or -1 after a message. */
static inline int bench_parse(struct bench_option *options, int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        struct bench_option *o = options;
        size_t n = strcspn(argv[i], "=");
        while (o->name && (strlen(o->name) != n || memcmp(o->name, argv[i], n) != 0))
            o++;
        const char *text = argv[i] + n + (argv[i][n] == '=');
        char *end = NULL;
        uint64_t number = (uint64_t)strtoull(text, &end, 10);
        int choice = o->name && o->choices ? bench_choice(o->choices, text) : -1;
        if (!o->name || (o->choices ? choice < 0 : !*text || *end)) {
            fprintf(stderr, "%s: not understood\n", argv[i]);
            return -1;
        }
        o->value = o->choices ? (uint64_t)choice : number;
    }
    return 0;
}

#endif
