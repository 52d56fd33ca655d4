# Files that share a stem are one sample; --stem=first takes the first dot.
mkdir src
printf 1 > src/a.txt
printf 2 > src/a.json
printf 3 > src/b.x.txt
printf 4 > src/b.y.txt
shardpack pack -q --no-shuffle src last
shardpack pack -q --no-shuffle --stem first src first
shardpack ls -l last
shardpack ls -l first
