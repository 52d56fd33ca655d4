# The cause stands at the end of a message, whatever the length of the names before it.
long=$(printf 'y%.0s' $(seq 6000))
make_dataset set
for arguments in "ls $long" "cat set $long" "extract set $long" "pack --list $long.txt set.src dst" "pack --limit $long a b" "$long"; do
    status_of shardpack $arguments 2> err
    wc -l < err
    sed 's/.*yy//' err
done
