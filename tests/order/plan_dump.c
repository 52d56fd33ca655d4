/* Prints the order of an epoch as the library makes it.
 *
 *     plan_dump shards=1000*50 batch=256 [seed= epoch= chunk= groups= buffer= span= echo= shuffle= from= count=]
 *
 * Writes the delivery numbers (format-spec/epoch-order.md section 14; the samples, unless echo is above 1) of the
 * positions from, from + 1, ... to stdout as 64-bit integers of this machine. Exit status 1 with a text on stderr if it
 * fails. */
#include "../unit/plan_fixture.h"

#include <stdio.h>
#include <string.h>

typedef struct arguments {
    const char *shards;
    unsigned long long seed, epoch, batch, chunk, groups, buffer, span, echo, shuffle, from, count;
} arguments;

static int parse(arguments *a, int argc, char **argv)
{
    const struct {
        const char *name;
        unsigned long long *value;
    } keys[] = {{"seed=", &a->seed},     {"epoch=", &a->epoch},   {"batch=", &a->batch}, {"chunk=", &a->chunk},
                {"groups=", &a->groups}, {"buffer=", &a->buffer}, {"echo=", &a->echo},   {"shuffle=", &a->shuffle},
                {"from=", &a->from},     {"count=", &a->count},   {"span=", &a->span},   {"shards=", NULL}};
    for (int i = 1; i < argc; i++) {
        size_t k = 0, n = sizeof keys / sizeof *keys;
        while (k < n && strncmp(argv[i], keys[k].name, strlen(keys[k].name)) != 0)
            k++;
        if (k == n)
            return -1;
        const char *text = argv[i] + strlen(keys[k].name);
        if (keys[k].value)
            *keys[k].value = strtoull(text, NULL, 10);
        else
            a->shards = text;
    }
    return a->shards ? 0 : -1;
}

static int dump(const arguments *a, const uint64_t *first, uint64_t shards)
{
    const spk_plan_spec spec = {.seed = a->seed,
                                .global_batch = a->batch,
                                .epoch = (uint32_t)a->epoch,
                                .chunk = (uint32_t)a->chunk,
                                .groups = (uint32_t)a->groups,
                                .buffer = (uint32_t)a->buffer,
                                .span = (uint32_t)a->span,
                                .echo = (uint32_t)a->echo,
                                .shuffle = a->shuffle != 0};
    spk_error err;
    spk_plan *plan = NULL;
    uint64_t *order = NULL;
    int failed = 1;

    memset(&err, 0, sizeof err);
    if (spk_plan_new(&plan, first, shards, &spec, &err) != SPK_OK)
        goto out;
    uint64_t left = a->from < plan->total ? plan->total - a->from : 0, count = a->count < left ? a->count : left;
    order = malloc((size_t)(count + 1) * sizeof *order);
    if (order && plan_order(plan, a->from, count, order, &err) == SPK_OK)
        failed = fwrite(order, sizeof *order, (size_t)count, stdout) != count || fflush(stdout) != 0;
out:
    if (failed)
        fprintf(stderr, "plan_dump: %s\n", err.text[0] ? err.text : "out of memory, or nobody reads");
    free(order);
    spk_plan_free(plan);
    return failed;
}

int main(int argc, char **argv)
{
    arguments a = {.shuffle = 1, .count = UINT64_MAX};
    uint64_t shards = 0, *first = parse(&a, argc, argv) == 0 ? plan_shards(a.shards, &shards) : NULL;

    if (!first) {
        fprintf(stderr, "usage: plan_dump shards=1000*50 batch=256 [seed= epoch= chunk= groups= buffer= span= echo= "
                        "shuffle= from= count=]\n");
        return 2;
    }
    int failed = dump(&a, first, shards);
    free(first);
    return failed;
}
