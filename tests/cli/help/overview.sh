shardpack --help
