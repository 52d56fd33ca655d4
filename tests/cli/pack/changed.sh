# Another dataset in the target is replaced only with --force; the old shards stay until prune.
make_tree src
shardpack pack -q src out
printf 'one more\n' > src/ant/4.txt
status_of shardpack pack -q src out
status_of shardpack pack -q --force src out
shardpack ls out | wc -l
ls out | wc -l
shardpack prune out | steady | sed -E 's/  [0-9.]+ .*//; s/, [0-9.]+ (B|KiB) /, SIZE /'
ls out | wc -l
