mkdir folder
printf 'no shard\n' > file.tar.zst
printf '{}' > file.json
status_of shardpack ls nothing
status_of shardpack ls nothing.tar.zst
status_of shardpack ls folder
status_of shardpack ls file.tar.zst
status_of shardpack ls file.json
