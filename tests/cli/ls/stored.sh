# Sizes of files that are stored in another form: the file's own, then the one in the shard.
vectors=$HERE/../../format-spec/vectors
for shard in good-encoding-jpeg good-encoding-pixels; do
    cp "$vectors/$shard.tar.zst" .
    shardpack ls -l "$shard.tar.zst"
    shardpack ls --json "$shard.tar.zst"
done
shardpack ls -l "$vectors/good-dataset-stored"
