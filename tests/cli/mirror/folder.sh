size() {
    sed -E 's/, [0-9.]+ [kKMG]?i?B/, SIZE/'
}
make_dataset set
shardpack mirror -n set copy | size
shardpack mirror set copy | size
shardpack mirror set copy | size
shardpack verify -q copy && diff -r set copy && echo same
status_of shardpack mirror set
status_of shardpack mirror --dry-run --prune set copy
status_of shardpack mirror set ftp://host/x
