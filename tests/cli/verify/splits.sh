# A folder of splits is no dataset; every command but prune says what it holds instead.
make_tree src
shardpack pack -q --split val=0.5,train=0.5 src out
for command in ls info verify 'extract --quiet'; do
    status_of shardpack $command out $(test "$command" = 'extract --quiet' && echo dir)
done
status_of shardpack export out sizes
status_of shardpack cat out ant/1.txt
# With a manifest whose table is missing, that is what is said.
cp out/val/manifest.json out
status_of shardpack verify out
