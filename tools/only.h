/* The option --only of stream and bench: samples named by their keys, in a file. */
#ifndef TOOLS_ONLY_H
#define TOOLS_ONLY_H

#include <shardpack/dataset.h>

/* Reads keys from path, one in a line, and makes ascending indices of them; free *out. Returns the exit status, after a
 * message if the file cannot be read, is empty, names a key twice or one that no sample has. */
int only_read(const char *path, spk_dataset *dataset, uint64_t **out, size_t *n);

#endif
