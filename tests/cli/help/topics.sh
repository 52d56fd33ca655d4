shardpack help urls
shardpack help environment
status_of shardpack help --man urls
