make_dataset out
shardpack info --json out | python3 -c 'import json, sys
m = json.load(sys.stdin)
print(m["path"], m["format"], m["samples"], m["shards"], m["order"], m["classes"], m["fields"], "label_samples" in m)'
shardpack info --json --classes out | python3 -c 'import json, sys
m = json.load(sys.stdin)
print(m["label_samples"], m["unlabelled"])'
