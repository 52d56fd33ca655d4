# Shards of an earlier version, with a dry run first.
make_dataset out
rm out.src/ant/1.txt
shardpack pack -q --force --no-shuffle out.src out
before=$(ls out | wc -l)
shardpack prune --dry-run out > listed
test "$(ls out | wc -l)" = "$before"
grep -c '^would remove shard' listed
shardpack prune --json out | python3 -c 'import json, sys
o = json.load(sys.stdin)
print(o["files"], sorted(f["name"].rsplit("-", 1)[-1] for f in o["removed"] if f["name"].startswith("shard-")))'
shardpack verify -q out
