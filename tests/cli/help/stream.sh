shardpack stream --help
