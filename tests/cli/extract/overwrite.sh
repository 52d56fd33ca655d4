# Nothing that exists is overwritten, and nothing half-written stays.
make_dataset out
mkdir -p dir/ant
printf 'mine\n' > dir/ant/2.txt
status_of shardpack extract out dir
cat dir/ant/2.txt
shardpack extract --force out dir
cat dir/ant/2.txt
find dir -name '.shardpack*'
