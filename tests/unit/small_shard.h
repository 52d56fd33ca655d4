/* What the tests of whole shards share: one small shard in a folder of its own, and its bytes. */
#ifndef SMALL_SHARD_H
#define SMALL_SHARD_H

#include "check_main.h"

#include "shard_fixture.h"

static char *folder;
static char path[4096];
static spk_shard_info info;
static uint8_t *bytes;
static size_t bytes_n;

static inline void setup(void)
{
    folder = check_temp_folder();
    snprintf(path, sizeof path, "%s/small.tar.zst", folder);
    fixture_shard(path, fixture_small, 6, 3, 1, &info);
    bytes = fixture_load(path, &bytes_n);
}

static inline void teardown(void)
{
    free(bytes);
    check_remove_tree(folder);
}

#endif
