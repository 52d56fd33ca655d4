shardpack cache --help
