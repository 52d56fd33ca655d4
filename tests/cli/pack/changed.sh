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
# Two classes change places: the files keep their names, sizes and times.
mkdir -p swap/a swap/b
printf one > swap/a/1.txt
printf two > swap/b/1.txt
shardpack pack -q swap swapped
shardpack pack swap swapped
sleep 0.05
mv swap/a swap/t
mv swap/b swap/a
mv swap/t swap/b
status_of shardpack pack -q swap swapped
status_of shardpack pack -q --seed 3 swap swapped
# What would be in the way is told before the work begins.
mkdir -p folder/manifest.json notes
printf 'mine\n' > notes/bad-files.tsv
status_of shardpack pack -q swap folder
status_of shardpack pack -q --force swap folder
status_of shardpack pack -q --force swap notes
cat notes/bad-files.tsv
shardpack pack -q swap damaged
truncate -s 50 damaged/*.tar.zst
status_of shardpack pack -q swap damaged
rm damaged/*.tar.zst
shardpack pack -q swap damaged
shardpack verify -q damaged
