shardpack bench --help
