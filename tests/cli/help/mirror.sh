shardpack mirror --help
