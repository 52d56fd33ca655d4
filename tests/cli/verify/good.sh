make_dataset out
shardpack verify out | sed -E 's/, [0-9.]+ (B|KiB), checked.*/, SIZE, TIME/'
shardpack verify -q --jobs 2 out
set -- out/*-000001.tar.zst
shardpack verify "$1" | sed -E 's/, [0-9.]+ (B|KiB), checked.*/, SIZE, TIME/'
shardpack verify --json out | python3 -c 'import json, sys
for line in sys.stdin:
    o = json.loads(line)
    print(o["ok"], o["problems"], o["shards"], o["samples"])'
