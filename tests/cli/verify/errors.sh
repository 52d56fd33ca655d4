mkdir folder
printf 'no shard\n' > file.tar.zst
status_of shardpack verify nothing
status_of shardpack verify folder
status_of shardpack verify file.tar.zst
