shardpack ls --help
