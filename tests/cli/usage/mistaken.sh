# One kind of thing in the place of another: the message says which of them is there and what was expected.
make_dataset out
tar -C out.src -cf plain.tar .
set -- out/*-000000.tar.zst
cp "$1" shard.tar.zst
cp out/shards-*.tsv table.tsv
for command in stream bench prune; do
    status_of shardpack $command shard.tar.zst
    status_of shardpack $command table.tsv
done
status_of shardpack export shard.tar.zst sizes
status_of shardpack mirror plain.tar copy
for command in ls info; do
    status_of shardpack $command plain.tar
done
status_of shardpack pack s3://bucket/photos out
status_of shardpack pack https://someone:secret@example.org/photos.tar?token=hidden out
status_of shardpack pack out.src s3://bucket/photos
status_of shardpack prune s3://bucket/photos
status_of shardpack extract out s3://bucket/photos
cd /
test ! -e s3: && test ! -e https:
