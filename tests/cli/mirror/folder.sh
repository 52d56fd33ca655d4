make_dataset set
shardpack mirror -n set copy
shardpack mirror set copy | steady
shardpack mirror set copy | steady
shardpack verify -q copy && diff -r set copy && echo same
status_of shardpack mirror set
status_of shardpack mirror --dry-run --prune set copy
status_of shardpack mirror set ftp://host/x
