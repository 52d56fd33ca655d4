/* Finds a file of a dataset or shard by what a user calls it. */
#ifndef TOOLS_FIND_H
#define TOOLS_FIND_H

#include "target.h"

typedef struct found_member {
    uint64_t number; /* of the sample */
    char field[64];
} found_member;

/* name: KEY.FIELD, #NUMBER.FIELD or an original path. Returns the exit status, after a message if there is none. */
int find_member(const target *t, const char *name, found_member *out);

#endif
