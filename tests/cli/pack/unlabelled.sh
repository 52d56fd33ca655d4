# Samples without a label beside others that have one are told of.
make_tree src
echo readme > src/README
shardpack pack -q --limit 3 src quiet
shardpack pack --dry-run src out > /dev/null
printf 'path,label\nant/1.txt,1\nbee/1.txt,\ncat/1.txt,3\n' > list.csv
shardpack pack --dry-run --list list.csv src out > /dev/null
printf 'path\nant/1.txt\nbee/1.txt\n' > list.csv
shardpack pack --dry-run --list list.csv src out > /dev/null
shardpack pack --dry-run --labels none src out > /dev/null
mkdir flat
echo 1 > flat/1.txt
shardpack pack --dry-run flat out > /dev/null
printf 'path,label\nant/1.txt,1.0\n' > list.csv
status_of shardpack pack --list list.csv src out
