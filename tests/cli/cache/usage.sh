unset SHARDPACK_CACHE_DIR
status_of shardpack cache info
status_of shardpack cache empty --cache-dir c
status_of shardpack cache info --cache-dir c
