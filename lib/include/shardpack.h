/* shardpack: every public header. */
#ifndef SHARDPACK_H
#define SHARDPACK_H

#include <shardpack/dataset.h>
#include <shardpack/error.h>
#include <shardpack/gpu.h>
#include <shardpack/image.h>
#include <shardpack/loader.h>
#include <shardpack/pack.h>
#include <shardpack/shard.h>
#include <shardpack/types.h>

#endif
