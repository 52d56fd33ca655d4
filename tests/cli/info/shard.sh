make_dataset out
set -- out/*-000000.tar.zst
shardpack info "$1" | steady | sed -E 's/^size .*/size/'
shardpack info --classes "$1" | sed -n '/^labels/,$p'
shardpack info --json "$1" | python3 -c 'import json, sys
m = json.load(sys.stdin)
print(m["samples"], m["frames"], m["tar_bytes"], m["fields"])'
