shardpack pack --help
