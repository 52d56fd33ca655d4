make_dataset out
shardpack ls out
shardpack ls out > by_folder
shardpack ls out/manifest.json > by_manifest
cmp by_folder by_manifest
for shard in out/*.tar.zst; do
    shardpack ls "$shard"
done
