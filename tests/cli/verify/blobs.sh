# Data that its digests vouch for and that is not what its encoding says: named with shard, frame, sample, field and cause.
vectors=$HERE/../../format-spec/vectors
for shard in good-encoding-jpeg good-encoding-pixels bad-encoding-size bad-encoding-blob bad-encoding-cut; do
    status_of shardpack verify "$vectors/$shard.tar.zst" | sed -E 's/ found in.*|, [0-9]+ B, checked.*//'
done
