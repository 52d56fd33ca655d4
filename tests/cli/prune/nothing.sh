make_dataset out
printf mine > out/notes.txt
shardpack prune out
shardpack prune -q out
shardpack prune --json out
cat out/notes.txt
status_of shardpack prune nothing
status_of shardpack prune https://no.such.host.invalid/set?secret=1
