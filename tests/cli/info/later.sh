# A member that a later version may have in the manifest does not pass for ours.
make_dataset out
sed -i 's/"version": "1.0",/"version": "1.9", "path": "elsewhere", "new": [1],/' out/manifest.json
shardpack info --json out | grep -E '"(path|new|version)"'
