# On a terminal: a line that is redrawn and cleared, never wider than the terminal.
command -v script > /dev/null || exit 77
make_tree src
script -qec "stty cols 50; '$SHARDPACK' pack --jobs 1 src out" /dev/null < /dev/null > screen
tr '\r' '\n' < screen | sed 's/\x1b\[K//g' | grep -E '^(scanning|packing|publishing)' | awk 'length > 49 { print "too wide: " $0 }'
grep -c 'packed 10 samples' screen
