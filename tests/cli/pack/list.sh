make_tree src
printf 'path,label,note\nbee/2.txt,bee,"two, quoted"\nant/1.txt,ant,\n' > list.csv
shardpack pack -q --no-shuffle --list list.csv src out
shardpack ls -l out
shardpack cat out '#0.json'
echo
printf '{"path": "cat/3.txt", "label": 7}\n' | shardpack pack -q --list - src out2
shardpack cat out2 '#0.cls'
echo
printf 'path,label\n../x.txt,bee\n' > bad.csv
status_of shardpack pack -q --list bad.csv src out3
printf 'path\nant/../ant/1.txt\n' > bad.csv
status_of shardpack pack -q --list bad.csv src out3
printf 'path\nant/1.txt\nant/2.txt\n./ant/1.txt\n' > bad.csv
status_of shardpack pack -q --list bad.csv src out3
ln -s ant src/link
printf 'path\nlink/1.txt\n' > bad.csv
status_of shardpack pack -q --list bad.csv src out3
shardpack pack -q --follow-symlinks --list bad.csv src out3
shardpack ls out3
