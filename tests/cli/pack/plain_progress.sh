# Not a terminal: no control characters; -q: nothing at all.
make_tree src
shardpack pack src out > /dev/null 2> progress
tr -d '\n -~' < progress | wc -c
shardpack pack -q src out2 2>&1
