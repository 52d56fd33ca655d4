shardpack repack --help
