shardpack help --help
