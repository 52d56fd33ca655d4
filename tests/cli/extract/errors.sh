make_dataset out
: > file
status_of shardpack extract out file
status_of shardpack extract out no/such/parent
status_of shardpack extract nothing dir
mkdir dir
: > dir/ant
status_of shardpack extract out dir
status_of shardpack extract -q out /dev/null
