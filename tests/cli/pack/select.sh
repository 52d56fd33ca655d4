make_tree src
shardpack pack -q --no-shuffle --include '*.txt' --exclude ant --exclude '*odd*' --limit 3 src out
shardpack ls out
shardpack pack --dry-run --exclude ant src other | steady
shardpack pack --dry-run --exclude ant --exclude cat --exclude "1.*" --exclude "2.*" src other | tail -n 1
test ! -e other
