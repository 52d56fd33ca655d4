shardpack prune --help
