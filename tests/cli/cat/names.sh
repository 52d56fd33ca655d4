make_dataset out
shardpack cat out ant/1.txt
shardpack cat out '#0.txt' '#9.txt' '#0.cls'
echo
shardpack cat out 'bee/an odd name.v2.txt' bee/2.txt
set -- out/*-000001.tar.zst
shardpack cat "$1" '#0.txt'
