# Symbolic links below DIR are not followed; DIR itself may be one.
make_dataset out
mkdir outside dir real
ln -s ../outside dir/bee
status_of shardpack extract out dir
status_of shardpack extract --force out dir
mkdir dir2 dir2/ant
printf 'outside\n' > outside/file
ln -s ../../outside/file dir2/ant/1.txt
status_of shardpack extract out dir2
shardpack extract -q --force out dir2
cat outside/file
cat dir2/ant/1.txt
ls outside
ln -s real link
shardpack extract -q out link
ls real
