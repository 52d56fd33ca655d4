# What is not there, and is called like a shard, a dataset, anything.
status_of shardpack verify nothing.tar.zst
status_of shardpack verify nothing/manifest.json
status_of shardpack verify nothing
status_of shardpack ls nothing.tar.zst
