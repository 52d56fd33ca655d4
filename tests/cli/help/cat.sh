shardpack cat --help
